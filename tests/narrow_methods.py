"""Methods that are trained on episodes, and options that make a ResNet-12 fit for a toy."""

from epcore.methods import METHODS

TRAINED = [name for name, kind in METHODS.items() if kind.trained]

NARROW = {
    "can": {"width": "1/8"},
    "metaoptnet": {"width": "1/8"},
    "protonets-plus-plus": {"width": "1/8"},
    "robust": {"width": "1/8", "members": 2, "relation_weight": 1},  # of two losses, not 20
    "tadam": {"width": "1/8"},
    "tpn-resnet12": {"width": "1/8"},
}
