"""What is done to the features of an episode before they are classified."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch

Step = Literal["power", "signed-power", "center-base", "center-episode", "center-split", "unit"]
ROOT_OFFSET = 1e-6  # in the code of PT-MAP and iLPC


def preprocessed(steps: tuple[Step, ...], episodes: EpisodeBatch) -> Tensor:
    """The points `(..., N, D)` after all steps.

    power: the root of each feature plus 1e-6; features must not be negative (PT-MAP's code).
    signed-power: the root of each feature's size plus 1e-6, with its sign, that of zero being plus
    (iLPC's code, transductive_wrn.py:303-306). center-base: minus
    the mean of the base images (SimpleShot). center-episode: minus the mean of all images of the
    episode. center-split: the support minus its mean, the queries minus theirs, the unlabeled
    images minus theirs. unit: divided by its length.

    Raises:
        ValueError: for negative features, or without a base mean, where a step needs it.
    """
    points = episodes.points
    for step in steps:
        points = _step(step, points, episodes)
    return points


def _step(step: Step, points: Tensor, episodes: EpisodeBatch) -> Tensor:
    if step == "power":
        # Propagation of features without negatives may round to a negative one.
        if (points < -ROOT_OFFSET * points.abs().amax(dim=(-2, -1), keepdim=True)).any():
            raise ValueError("preprocessing power takes no negative features")
        return (points.clamp(min=0) + ROOT_OFFSET).sqrt()
    if step == "signed-power":
        return (points.abs() + ROOT_OFFSET).sqrt().copysign(torch.where(points < 0, -1.0, 1.0))
    if step == "center-base":
        if episodes.base_mean is None:
            raise ValueError("preprocessing center-base takes the mean of the base images")
        return points - episodes.base_mean.to(points.dtype)
    if step == "center-episode":
        return points - points.mean(dim=-2, keepdim=True)
    if step == "center-split":
        sizes = [episodes.labeled, episodes.queries, episodes.unlabeled]
        parts = torch.split(points, sizes, dim=-2)
        return torch.cat([part - part.mean(dim=-2, keepdim=True) for part in parts], dim=-2)
    return functional.normalize(points, dim=-1)
