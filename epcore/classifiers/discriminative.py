"""Weights of new classes under a prior fitted to the base classes (Bauer et al. 2017)."""

from typing import ClassVar

from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.softmax_regression import softmax_regression


class Discriminative(EpisodeClassifier):
    """The most likely softmax weights under a Gaussian prior fitted to those of the base classes.

    Scores of a query x are `x W`. The columns w_k minimize the summed cross-entropy of the support
    plus `sum_k |w_k - m|^2 / (2 v)`: m is the mean base weight vector and v the mean square of the
    differences from it, over base classes and features. That is the paper's isotropic Gaussian.
    The mean m adds the same to the scores of all classes, so it changes no class distribution and
    is left out: what the base classes say is how large weights are. There is no official code.

    Matthias Bauer and others: Discriminative k-shot learning using probabilistic models, 2017,
    https://arxiv.org/abs/1706.00326.

    Example:
        >>> import torch
        >>> from epcore.classifiers import Discriminative, EpisodeBatch
        >>> points = torch.tensor([[[0.1, 0.9], [0.9, 0.2], [0.8, 0.1]]])  # two supports, one query
        >>> base = torch.tensor([[1.0, -1.0], [-1.0, 1.0], [0.5, 0.5]])  # weights of base classes
        >>> episode = EpisodeBatch(points, way=2, shot=1, queries=1, base_weights=base)
        >>> Discriminative().scores(episode).argmax(dim=-1)
        tensor([[1]])
    """

    needs: ClassVar[Needs] = Needs(base_weights=True, frozen_features=True)

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        base = episodes.base_weights
        if base is None:
            raise ValueError("discriminative takes the weights of the base classes")
        variance = (base - base.mean(dim=0)).square().mean().item()
        if not variance > 0:
            raise ValueError("discriminative takes weights of base classes that differ")
        weights, _ = softmax_regression(
            episodes.support, episodes.support_labels, penalty=1 / variance, bias=False
        )
        scores: Tensor = episodes.query @ weights
        return scores
