"""Images come to the device in the order asked for, whether they live there or not."""

import numpy as np
import pytest
import torch

from epcore.data.device_images import DeviceImages
from epcore.data.store import ImageStore
from epcore.errors import UserError

CPU = torch.device("cpu")


@pytest.mark.parametrize("room", [0, 10**9])
def test_batches_are_the_rows_asked_for_in_their_order_with_repeats(toy, room):
    store = ImageStore.open(toy.data)
    rows = store.image_indices("base")
    asked = np.random.default_rng(0).choice(rows, 50)
    batch = DeviceImages(store, rows[::-1], CPU, room).batch(asked)
    assert batch.dtype == torch.uint8
    assert np.array_equal(batch.numpy(), np.load(toy.data / "images.npy")[asked])


def test_images_stay_on_the_device_only_if_they_fit(toy, monkeypatch):
    store = ImageStore.open(toy.data)
    rows = store.image_indices("val")
    needed = len(rows) * 16 * 16 * 3
    read = []
    pixels = ImageStore.pixels
    monkeypatch.setattr(ImageStore, "pixels", lambda s, r: read.append(len(r)) or pixels(s, r))
    resident, streamed = (
        DeviceImages(store, rows, CPU, needed),
        DeviceImages(store, rows, CPU, needed - 1),
    )
    assert sum(read) == len(rows)
    resident.batch(rows[:7])
    assert sum(read) == len(rows)
    streamed.batch(rows[:7])
    assert sum(read) == len(rows) + 7


def test_images_that_stay_on_the_device_are_verified(toy):
    store = ImageStore.open(toy.data)
    rows = store.image_indices("novel")
    store.checksums[rows[3]] ^= 1
    with pytest.raises(UserError, match=f"image {rows[3]} of images.npy has another checksum"):
        DeviceImages(store, rows, CPU, 10**9)
