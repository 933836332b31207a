"""Robust ensembles (Dvornik et al. 2019): many networks, which are trained to agree."""

import itertools
from fractions import Fraction
from typing import Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from epcore.backbones.base import Backbone
from epcore.backbones.wide_resnet import WideResNet
from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods.base import EpisodicMethod, query_classes
from epcore.propagation import at_least_float32
from epcore.settings import Ratio

# Authors' code: scale of the cosines in a test, share of the members that a step trains, dropout of
# features in front of the head.
SCALE, SHARE, DROPOUT = 20, 0.7, 0.1


class Robust(EpisodicMethod):
    """Members that classify the base classes; the mean of their probabilities is the ensemble's.

    In a test a member's probabilities are the softmax of 20 times the cosine to the class means.
    Training is no training on episodes: all images of an episode are classified
    among all base classes by the members that a step draws, and `relation_weight` times the
    cross-entropy of each pair of them, over the classes that an image is not of, makes them agree
    (the robust relation of the authors' code).

    An episode is a batch. All members see the same augmented image; in the authors' code each sees
    one of its own. A last step of theirs, which distills the ensemble into one network, is not
    here.
    """

    class Options(EpisodicMethod.Options):
        """The ensemble."""

        members: PositiveInt = Field(default=20, description="how many networks there are")
        network: Literal["resnet18", "wrn"] = Field(
            default="resnet18", description="what each of them is"
        )
        width: Ratio = Field(default=Fraction(1), description="of the channels of the networks")
        relation_weight: NonNegativeFloat = Field(
            default=10,
            description="of the members' agreement; 0 is what the authors' code does without its "
            "flag joint_training",
        )

    episodes_at_once = 4

    def __init__(self, options: Options, pixels: int, way: int) -> None:
        super().__init__()
        self.options = options
        members = [member(options) for _ in range(options.members)]
        self.members = nn.ModuleList(members)
        self.feature_size = members[0].feature_size
        self.base_features = options.members * self.feature_size

    def embed(self, images: Tensor) -> Tensor:
        return torch.cat([network(images) for network in self.members], dim=-1)

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        queries = self._of_members(episodes.query)[:, :, None]  # (E, q, 1, members, D)
        means = self._of_members(episodes.class_means)[:, None]  # (E, 1, way, members, D)
        cosines = functional.cosine_similarity(queries, means, dim=-1)  # (E, q, way, members)
        return (SCALE * cosines).softmax(dim=2).mean(dim=-1).clamp_min(1e-30).log()

    def joint_loss(self, episodes: EpisodeBatch, base_head: nn.Linear, classes: Tensor) -> Tensor:
        support = episodes.support_labels.argmax(dim=-1).expand(len(episodes.points), -1)
        expected = classes.gather(1, torch.cat([support, query_classes(episodes)], dim=1)).flatten()
        features = self._of_members(episodes.points).flatten(0, 1)  # (n, members, D)
        weight = base_head.weight.reshape(-1, self.options.members, self.feature_size)
        inputs = functional.dropout(features, DROPOUT, self.training)
        logits = torch.einsum("nmd,cmd->nmc", inputs, weight) + base_head.bias
        logits = at_least_float32(logits)[:, self._trained_members()]
        losses = [
            functional.cross_entropy(of_member, expected) for of_member in logits.unbind(dim=1)
        ]
        return torch.stack(losses).sum() + self.options.relation_weight * disagreement(
            logits.softmax(dim=-1), expected
        )

    def _of_members(self, points: Tensor) -> Tensor:
        """Points `(E, n, members * D)` as `(E, n, members, D)`."""
        return points.reshape(*points.shape[:2], self.options.members, self.feature_size)

    def _trained_members(self) -> Tensor:
        """The numbers of the members that a step trains: one at least, and all in eval mode."""
        count = self.options.members
        is_trained = torch.rand(count) < (SHARE if self.training else 1)
        return is_trained.nonzero()[:, 0] if is_trained.any() else torch.randint(count, (1,))


def member(options: Robust.Options) -> Backbone:
    """One network of the ensemble."""
    if options.network == "wrn":
        return WideResNet(options.width)
    from epcore.backbones.resnet import ResNet  # imports torchvision, which takes seconds

    return ResNet((2, 2, 2, 2), width=options.width, signed=False)


def disagreement(probabilities: Tensor, classes: Tensor) -> Tensor:
    """How much members disagree, from their probabilities `(n, members, C)`; classes `(n,)`.

    The mean over pairs of members of half their cross-entropies in both directions. These are over
    the classes that an image is not of, whose probabilities are left as they are (authors' code).
    """
    of_others = probabilities * (1 - functional.one_hot(classes, probabilities.shape[-1])[:, None])
    logarithms = (of_others + 1e-7).log()
    pairs = list(itertools.combinations(range(probabilities.shape[1]), 2))
    if not pairs:
        return probabilities.new_zeros(())
    agreement = torch.einsum("nac,nbc->ab", of_others, logarithms) / len(classes)
    first, second = torch.tensor(pairs, device=agreement.device).T
    return -(agreement[first, second] + agreement[second, first]).mean() / 2
