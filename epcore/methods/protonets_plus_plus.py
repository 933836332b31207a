"""ProtoNets++ (Xing et al. 2019): prototypical networks on the residual network of TADAM."""

from fractions import Fraction

from pydantic import Field
from torch import Tensor

from epcore.backbones.base import scaled
from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods._encoders import map_size
from epcore.methods._resnet12 import tadam_encoder
from epcore.methods.base import EpisodicMethod
from epcore.settings import Ratio, Settings


class ProtoNetsPlusPlus(EpisodicMethod):
    """Scores are minus the distance, not squared, to the mean of each class's support.

    As in the code of AM3, whose baseline it is: no scale, features are means over positions, and in
    training support and queries are batches of their own.
    """

    class Options(Settings):
        """The size of the network."""

        width: Ratio = Field(default=Fraction(1), description="of the channels of the network")

    separate_batches = True

    def __init__(self, options: Options, pixels: int, way: int) -> None:
        super().__init__()
        self.encoder = tadam_encoder(
            tuple(scaled(count, options.width) for count in (64, 128, 256, 512))
        )
        map_size(self.encoder, pixels)

    def embed(self, images: Tensor) -> Tensor:
        features: Tensor = self.encoder(images).mean(dim=(-2, -1))
        return features

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        differences = episodes.query[:, :, None] - episodes.class_means[:, None]
        # At a distance of 0 the gradient is 0.
        return -differences.square().sum(dim=-1).clamp_min(1e-30).sqrt()  # (E, queries, way)
