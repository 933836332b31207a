"""Options with which methods on a ResNet-12 are small enough for pictures of 28 pixels."""

NARROW = {
    "can": {"width": "1/8"},
    "metaoptnet": {"width": "1/8"},
    "protonets-plus-plus": {"width": "1/8"},
    "robust": {"width": "1/8", "members": 2, "relation_weight": 1},  # of two losses, not 20
    "tadam": {"width": "1/8"},
    "tpn-resnet12": {"width": "1/8"},
}
