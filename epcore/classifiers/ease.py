"""EASE and SIAMESE (Zhu and Koniusz 2022): a subspace of the episode, then balanced means."""

from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn import functional

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.preprocessing import Step
from epcore.classifiers.solvers.balanced_means import balanced_means
from epcore.propagation import normalized_adjacency


class EASE(EpisodeClassifier):
    """Balanced means (SIAMESE) in the subspace of EASE.

    Let X be the features of the episode, U the `rank` leading left singular vectors of X, and W
    the graph `|U U^T|` without its diagonal, normalized as `D^-1/2 W D^-1/2`. V is the graph that
    joins every two images, normalized alike. Features are projected on the `dimensions`
    eigenvectors of `X^T (contrast * V - W) X` with the smallest eigenvalues, and divided by their
    length; then see `balanced_means`.

    In the authors' code transport also covers the support, whose classes are set again after
    every round. Its fixed point is the transport of the queries alone, which is solved here; theirs
    stops earlier, at a tolerance of 1e-3.

    Hao Zhu, Piotr Koniusz: EASE: Unsupervised Discriminant Subspace Learning for Transductive
    Few-Shot Learning, CVPR 2022, https://doi.org/10.1109/CVPR52688.2022.00889.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, EASE
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(EASE()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(transductive=True, balanced=True)

    preprocessing: tuple[Step, ...] = Field(
        default=("unit",),
        description="what is done to the features first, in this order; as in the authors' code, "
        "which has a step power before it for WRN only",
    )
    rank: PositiveInt = Field(
        default=5, description="how many singular vectors make the graph (authors' code: lowrank)"
    )
    contrast: NonNegativeFloat = Field(
        default=100, description="weight of the graph that joins all images (authors' code: lam)"
    )
    dimensions: PositiveInt = Field(
        default=40, description="size of the subspace, at most that of X (authors' code: K)"
    )
    scale: PositiveFloat = Field(
        default=10, description="weight of the squared distances (authors' code: lam)"
    )
    rate: float = Field(
        default=0.2,
        gt=0,
        le=1,
        description="how far means move in a step (authors' code: alpha)",
    )
    steps: NonNegativeInt = Field(default=40, description="how often means move (authors' code)")

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        projected = functional.normalize(self._projected(episodes.points), dim=-1)
        moved = replace(episodes, points=projected)
        return balanced_means(moved, self.scale, self.rate, self.steps)

    def _projected(self, points: Tensor) -> Tensor:
        """Points `(..., N, D)` in the subspace: `(..., N, dimensions)`.

        In float64: the Gram matrix has the squares of the singular values.
        """
        exact = points.to(torch.float64)
        count = min(exact.shape[-2:])
        values, vectors = torch.linalg.eigh(exact @ exact.mT)
        values, vectors = values[..., -count:], vectors[..., -count:]
        leading = vectors[..., -self.rank :]
        graph = normalized_adjacency(_off_diagonal((leading @ leading.mT).abs()))
        complete_graph = normalized_adjacency(_off_diagonal(torch.ones_like(graph)))
        # X in coordinates of its right singular vectors: a rotation of X, of at most N columns.
        rotated = vectors * values.clamp_min(0).sqrt()[..., None, :]
        contrasted = rotated.mT @ (self.contrast * complete_graph - graph) @ rotated
        _, axes = torch.linalg.eigh(contrasted)
        projected: Tensor = rotated @ axes[..., : self.dimensions]
        return projected.to(points.dtype)


def _off_diagonal(graph: Tensor) -> Tensor:
    diagonal = torch.eye(graph.shape[-1], dtype=torch.bool, device=graph.device)
    return graph.masked_fill(diagonal, 0)
