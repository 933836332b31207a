"""wDAE-GNN (Gidaris and Komodakis 2019) on episodes: denoised class weights, on frozen features."""

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch
from epcore.generators.base import Task
from epcore.generators.config import DenoiserSettings
from epcore.generators.wdae import WdaeGenerator
from epcore.methods.base import FrozenMethod, Pretrained, query_classes


class WdaeGnn(FrozenMethod):
    """The classes of an episode get weights beside those of all base classes, and are denoised.

    A class's first weight is the mean of its support's unit features. `epcore.generators.wdae`
    denoises the weights of all classes together; those of the episode's classes then classify by
    cosines. Training takes the first half of an episode's classes out of the base and asks for the
    class of every query among all classes, those of the base included (section 3.3).
    """

    class Options(DenoiserSettings, FrozenMethod.Options):
        """The denoiser, and how much of its work is taken."""

        step: PositiveFloat = Field(
            default=1, le=1, description="how far to go from the first weights to the denoised ones"
        )

    def __init__(self, options: Options, pixels: int, way: int, start: Pretrained) -> None:
        super().__init__(start)
        if options.neighbors >= len(start.base_weights):
            raise ValueError(
                f"the checkpoint that it starts from has weights of {len(start.base_weights)} base "
                f"classes, which cannot have {options.neighbors} neighbors each"
            )
        self.options = options
        scale = torch.tensor(float(start.scale))
        self.generator = WdaeGenerator(options, start.base_weights, scale, None)

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        count = len(self.generator.base_weights)
        base = torch.arange(count, device=episodes.points.device).expand(len(episodes.points), -1)
        weights = self.generator(Task(base, _exemplars(episodes)), float(self.options.step))
        return self.generator.logits(episodes.query, weights[:, count:])

    def loss_among_base(self, episodes: EpisodeBatch, classes: Tensor) -> Tensor:
        novel = classes[:, : classes.shape[1] // 2]  # (E, n)
        count = len(self.generator.base_weights)
        stays = torch.ones(len(novel), count, dtype=torch.bool, device=novel.device)
        stays.scatter_(1, novel, False)
        base = stays.nonzero()[:, 1].reshape(len(novel), -1)  # (E, b)
        exemplars = _exemplars(episodes)[:, : novel.shape[1]]
        weights, penalty = self.generator.weights_and_penalty(Task(base, exemplars), novel)
        logits = self.generator.logits(episodes.query, weights)
        # The place of each class among the weights, base first.
        behind = base.shape[1] + torch.arange(novel.shape[1], device=novel.device)
        places = (stays.cumsum(dim=1) - 1).scatter(1, novel, behind.expand_as(novel))
        expected = places.gather(1, classes.gather(1, query_classes(episodes)))
        return functional.cross_entropy(logits.flatten(0, 1), expected.flatten()) + penalty


def _exemplars(episodes: EpisodeBatch) -> Tensor:
    """The support by class, `(E, way, shot, D)`."""
    support = episodes.support
    return support.reshape(len(support), episodes.way, -1, support.shape[-1])
