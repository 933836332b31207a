"""What every method has that is trained, or tuned, on episodes."""

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.backbones.base import Backbone
from epcore.classifiers.episodes import EpisodeBatch
from epcore.propagation import at_least_float32
from epcore.settings import Settings


@dataclass(frozen=True)
class Pretrained:
    """A pretrained network, and its layer over the base classes.

    base_weights: `(C, D)`, or `(0, D)` if the checkpoint has no such layer. scale: that of a cosine
    layer, 1 of a linear one.
    """

    backbone: Backbone
    base_weights: Tensor
    scale: float = 1


class EpisodicMethod(nn.Module):
    """A network that classifies the queries of episodes.

    Options: what config/compared.yaml may say of it. transductive: whether all queries of an
    episode are classified together. unlabeled: whether it takes unlabeled images.
    low_precision_scores: whether its scores come from networks too, which autocast may speed up;
    distances and graphs are kept out of it. episodes_at_once: in a test, for memory. least_tasks:
    how many episodes a step of training takes at least. base_features: of methods whose training
    also classifies among all base classes, how many features the linear layer for it sees.
    pretrained: whether it starts from a pretrained network. trained: whether it is trained on
    episodes; else a test starts from that network. separate_batches: whether support and queries of
    a training step are a batch each.

    It is built from its options, the side of the images in pixels, the classes of an episode, as
    some networks end with as many outputs, and a `Pretrained` if it starts from one.
    """

    class Options(Settings):
        """The options of a method; the base class has none."""

    transductive: bool = False
    unlabeled: ClassVar[bool] = False
    low_precision_scores: ClassVar[bool] = False
    episodes_at_once: int = 16
    least_tasks: ClassVar[int] = 1
    base_features: int | None = None
    pretrained: ClassVar[bool] = False
    trained: ClassVar[bool] = True
    separate_batches: ClassVar[bool] = False

    def embed(self, images: Tensor) -> Tensor:
        """Images `(n, 3, h, w)` to vectors `(n, D)`."""
        raise NotImplementedError

    def embed_step(self, images: Tensor, labeled: int) -> Tensor:
        """Points `(T, N, D)` of the images `(T, N, 3, h, w)` of a training step's T episodes.

        The first `labeled` images of an episode are its support. BatchNorm sees all images
        together or, with `separate_batches`, first the support of all episodes and then their
        queries.
        """
        parts = (images[:, :labeled], images[:, labeled:]) if self.separate_batches else (images,)
        points = [self.embed(part.flatten(0, 1)).reshape(*part.shape[:2], -1) for part in parts]
        return torch.cat(points, dim=1)

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        """Logits `(E, queries, way)` from points `(E, N, D)`; more is likelier."""
        raise NotImplementedError

    def loss(self, episodes: EpisodeBatch) -> Tensor:
        """What training minimizes, a number: here the cross-entropy of the queries' classes."""
        return functional.cross_entropy(
            at_least_float32(self.scores(episodes)).flatten(0, 1), query_classes(episodes).flatten()
        )

    def loss_among_base(self, episodes: EpisodeBatch, classes: Tensor) -> Tensor:
        """What training minimizes, for a method that looks at which base classes an episode has.

        classes: int64 `(E, way)`, the classes of the episodes among all base classes.
        """
        return self.loss(episodes)

    def joint_loss(self, episodes: EpisodeBatch, base_head: nn.Linear, classes: Tensor) -> Tensor:
        """What training minimizes where there are `base_features`.

        base_head: a linear layer from these to all base classes. classes: as in `loss_among_base`.
        """
        raise NotImplementedError


class FrozenMethod(EpisodicMethod):
    """A method on the features of a pretrained network, which stays as it is."""

    pretrained = True

    def __init__(self, start: Pretrained) -> None:
        super().__init__()
        self.backbone = start.backbone.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """Sets the mode of all but the pretrained network, which stays in eval mode."""
        super().train(mode)
        self.backbone.eval()
        return self

    @torch.no_grad()
    def embed(self, images: Tensor) -> Tensor:
        features: Tensor = self.backbone(images)
        return features


def query_classes(episodes: EpisodeBatch) -> Tensor:
    """Classes `(E, queries)` of a training episode's queries, as many of each, class by class."""
    queries_per_class = episodes.queries // episodes.way
    classes = torch.arange(episodes.way, device=episodes.points.device).repeat_interleave(
        queries_per_class
    )
    return classes.expand(len(episodes.points), -1)
