"""Stored images on their way to the network's device."""

import numpy as np
import torch
from torch import Tensor

from epcore.data.store import ImageStore
from epcore.runtime.device import room_for_images

BLOCK = 4096  # images read at once when a whole split is copied


def to_device(images: np.ndarray, device: torch.device) -> Tensor:
    """Images uint8 `(n, height, width, 3)` on the device.

    To a GPU they go through pinned memory and nobody waits for the copy: it is done by the time
    that the GPU, which may still be at the batch before, comes to use it.
    """
    batch = torch.from_numpy(images)
    if device.type == "cuda":
        batch = batch.pin_memory()
    return batch.to(device, non_blocking=True)


class DeviceImages:
    """Batches of a store's images on the network's device.

    If all the images that will be asked for, `rows` `(n,)`, fit into `room` bytes, by default
    those of `room_for_images`, they are read once and stay on the device; else each batch is read
    from the store when it is asked for.
    """

    def __init__(
        self, store: ImageStore, rows: np.ndarray, device: torch.device, room: int | None = None
    ) -> None:
        room = room_for_images(device) if room is None else room
        self._store, self._device = store, device
        self._rows = np.unique(rows)
        self._resident: Tensor | None = None
        shape = (len(self._rows), *store.images.shape[1:])
        if np.prod(shape) <= room:
            self._resident = torch.empty(shape, dtype=torch.uint8, device=device)
            for start in range(0, len(self._rows), BLOCK):
                block = store.pixels(self._rows[start : start + BLOCK])
                self._resident[start : start + BLOCK] = to_device(block, device)

    def batch(self, rows: np.ndarray) -> Tensor:
        """Images uint8 `(n, height, width, 3)` of store rows `(n,)`, on the device."""
        if self._resident is None:
            return to_device(self._store.pixels(rows), self._device)
        positions = torch.from_numpy(np.searchsorted(self._rows, rows))
        return self._resident[positions.to(self._device, non_blocking=True)]
