"""An order of images and classes that their features alone decide.

Methods that draw images or weights at random draw them in this order. Otherwise their scores would
change with the order in which an episode happens to list its classes and images.
"""

import torch
from torch import Tensor

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.rows import rows_of


def _keys(points: Tensor) -> Tensor:
    """A number for each point `(...)`: its product with a direction that has no symmetry."""
    places = torch.arange(1, points.shape[-1] + 1, dtype=torch.float64, device=points.device)
    keys: Tensor = points.double() @ places.cos()
    return keys


def in_order(points: Tensor) -> Tensor:
    """Points `(..., n, D)` by content."""
    return rows_of(points, _keys(points).argsort(dim=-1))


def support_in_order(episodes: EpisodeBatch) -> tuple[Tensor, Tensor]:
    """The support `(..., labeled, D)` of classes of one size, classes and images by content.

    Also the place of each class in it `(..., 1, way)`: scores of classes by content, gathered at
    these places, are those of the episode's classes.
    """
    shape = (episodes.way, -1, episodes.points.shape[-1])
    classes = in_order(episodes.support.reshape(*episodes.points.shape[:-2], *shape))
    order = _keys(classes).mean(dim=-1).argsort(dim=-1)
    support = torch.take_along_dim(classes, order[..., None, None], dim=-3)
    return support.flatten(-3, -2), order.argsort(dim=-1)[..., None, :]
