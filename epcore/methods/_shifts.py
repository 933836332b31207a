"""Images shifted and mirrored at random, as tensors that a network sees."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Shifts:
    """What is done to each of n images.

    offsets: how many pixels it is moved down and to the right, `(n, 2)`; its border is mirrored.
    mirrored: whether it is then mirrored left to right, `(n,)`.
    """

    offsets: np.ndarray
    mirrored: np.ndarray

    @classmethod
    def draw(cls, random: np.random.Generator, count: int, most: int, mirror: bool) -> "Shifts":
        """Of `count` images, each moved by up to `most` pixels both ways; half are mirrored."""
        mirrored = random.random(count) < (0.5 if mirror else 0)
        return cls(random.integers(-most, most, (count, 2), endpoint=True), mirrored)

    def of(self, images: Tensor) -> Tensor:
        """Images `(n, 3, side, side)`, each moved and mirrored as it is told."""
        last = images.shape[-1] - 1
        places = np.arange(last + 1) - self.offsets[..., None]  # (n, 2, side)
        places = last - np.abs(last - np.abs(places))
        places[self.mirrored, 1] = places[self.mirrored, 1, ::-1]
        rows, columns = torch.from_numpy(places).to(images.device).unbind(dim=1)
        numbers = torch.arange(len(images), device=images.device)[:, None, None]
        moved = images.permute(0, 2, 3, 1)[numbers, rows[:, :, None], columns[:, None]]
        return moved.permute(0, 3, 1, 2)
