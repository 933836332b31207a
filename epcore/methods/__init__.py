"""Few-shot methods that the paper compares with, each trained here: one file a method.

A method is a network that embeds images one by one, and classifies the queries of episodes from
these embeddings. It is trained on episodes of base classes (`epcore.training.episodic`), from
random or pretrained weights, and tested on frozen ones (`epcore.evaluation.meta_test`). TransMatch
alone is not trained so: each test episode tunes the pretrained network.
"""

from typing import Any

from epcore.errors import UserError
from epcore.methods.base import EpisodicMethod, Pretrained
from epcore.methods.can import Can
from epcore.methods.egnn import Egnn
from epcore.methods.gnn import Gnn
from epcore.methods.leo import Leo
from epcore.methods.lst import Lst
from epcore.methods.maml import Maml
from epcore.methods.masked_k_means import MaskedKMeans
from epcore.methods.matching import Matching
from epcore.methods.metaoptnet import MetaOptNet
from epcore.methods.mtl import Mtl
from epcore.methods.protonet import ProtoNet
from epcore.methods.protonets_plus_plus import ProtoNetsPlusPlus
from epcore.methods.relation_net import RelationNet
from epcore.methods.robust import Robust
from epcore.methods.tadam import Tadam
from epcore.methods.tpn import Tpn, TpnResNet12
from epcore.methods.transmatch import TransMatch
from epcore.methods.wdae_gnn import WdaeGnn
from epcore.settings import Settings, pick, validate

METHODS: dict[str, type[EpisodicMethod]] = {
    "can": Can,
    "egnn": Egnn,
    "gnn": Gnn,
    "maml": Maml,
    "leo": Leo,
    "lst": Lst,
    "masked-k-means": MaskedKMeans,
    "matching": Matching,
    "metaoptnet": MetaOptNet,
    "mtl": Mtl,
    "protonet": ProtoNet,
    "protonets-plus-plus": ProtoNetsPlusPlus,
    "relation-net": RelationNet,
    "robust": Robust,
    "tadam": Tadam,
    "tpn": Tpn,
    "tpn-resnet12": TpnResNet12,
    "transmatch": TransMatch,
    "wdae-gnn": WdaeGnn,
}


def method_of(settings: dict[str, Any], location: str) -> tuple[type[EpisodicMethod], Settings]:
    """The class and the options of a mapping of a method's `name` and its options.

    Raises:
        UserError: for a method that does not exist, or options that it does not have.
    """
    options = dict(settings)
    kind = pick(METHODS, options.pop("name"), "method", f"{location}, method")
    return kind, validate(kind.Options, options, f"{location}, method")


def build_method(
    settings: dict[str, Any],
    pixels: int,
    way: int,
    location: str,
    start: Pretrained | None = None,
) -> EpisodicMethod:
    """The untrained method of a mapping of `name` and its options.

    start: of a method that starts from a pretrained network; the method changes it.

    Raises:
        UserError: for options that it does not have, or images too small for it.
    """
    kind, options = method_of(settings, location)
    try:
        return kind(options, pixels, way, *([] if start is None else [start]))
    except ValueError as error:
        raise UserError(f"{location}, method {settings['name']}: {error}") from None
