"""From stored pixels to network input, in batches on the network's device.

Images are uint8 `(n, height, width, 3)`; a network sees float32 `(n, 3, h, w)` in [-1, 1], which
is all the normalization the authors' code has. Random numbers come from a CPU generator, so a
GPU sees the same augmentation.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn import functional

from epcore.data.config import View


@dataclass(frozen=True)
class Augmenter:
    """Turns stored images into the batches of a stage.

    `names` are any of `flip` (horizontal, probability 1/2), `crop` (random resized crop of 8 to
    100 % of the area) and `jitter` (brightness, contrast and saturation by up to 40 %, in random
    order): the authors' choices per backbone. `ordered-jitter` has them in that order always, as
    the code of wDAE-GNN does; `padded-crop` moves the image by up to a tenth of its side, as
    MetaOptNet's does.
    """

    names: Collection[str]
    view: View

    def eval_transform(self, images: Tensor) -> Tensor:
        """The view of an image without augmentation, as in validation and test."""
        return _normalize(view_of(_floats(images), self.view))

    def finetune_transform(self, images: Tensor, generator: Generator) -> Tensor:
        """For fine-tuning: the view, flipped at random where the recipe says so."""
        views = view_of(_floats(images), self.view)
        return _normalize(flip(views, generator, 3) if "flip" in self.names else views)

    def pretrain_transform(self, images: Tensor, generator: Generator, copies: int = 1) -> Tensor:
        """For training: `(copies * n, 3, h, w)`, all images at 0 degrees, then 90, 180 and 270.

        The flip comes before the rotations; crop and jitter after them, drawn anew for each copy.
        """
        # As bytes, of which there are a quarter.
        if "flip" in self.names:
            images = flip(images, generator, 2)
        turned = torch.cat([images.rot90(turns, (1, 2)) for turns in range(copies)])
        return _normalize(self._cropped(_floats(turned), generator))

    def _cropped(self, batch: Tensor, generator: Generator) -> Tensor:
        """Crop and jitter, or the plain view."""
        if "crop" in self.names:
            batch = random_resized_crop(batch, crop_size(batch.shape[-1], self.view), generator)
        else:
            batch = view_of(batch, self.view)
        if "padded-crop" in self.names:
            batch = padded_crop(batch, generator)
        if "jitter" in self.names:
            batch = color_jitter(batch, generator)
        if "ordered-jitter" in self.names:
            batch = color_jitter(batch, generator, ordered=True)
        return batch


def crop_size(pixels: int, view: View) -> int:
    """Pixels of a view of an image of `pixels`."""
    return max(1, round(pixels * view.crop))


def view_of(batch: Tensor, view: View) -> Tensor:
    """Resized (bilinear, antialiased) and center-cropped: `(n, 3, c, c)`."""
    pixels = batch.shape[-1]
    resized, cropped = max(1, round(pixels * view.resize)), crop_size(pixels, view)
    if resized != pixels:
        batch = functional.interpolate(
            batch, size=(resized, resized), mode="bilinear", antialias=True
        )
    offset = (resized - cropped) // 2
    return batch[..., offset : offset + cropped, offset : offset + cropped]


def flip(images: Tensor, generator: Generator, width: int) -> Tensor:
    """Each image mirrored left to right, along the dimension `width`, with probability 1/2."""
    flipped = torch.rand(len(images), generator=generator) < 0.5
    mirrored = images.flip(width)
    return torch.where(flipped.to(images.device)[:, None, None, None], mirrored, images)


def random_resized_crop(batch: Tensor, size: int, generator: Generator) -> Tensor:
    """A random box of 8 to 100 % of the area and 3/4 to 4/3 aspect, resized to `(size, size)`.

    The first of ten candidates that fits is taken, else the whole image, as the usual
    random resized crop does; resampled bilinearly.
    """
    count, tries = len(batch), 10
    area = torch.rand(count, tries, generator=generator) * (1 - 0.08) + 0.08
    log_ratio = (torch.rand(count, tries, generator=generator) * 2 - 1) * math.log(4 / 3)
    sides = torch.stack([(area * log_ratio.exp()).sqrt(), (area * (-log_ratio).exp()).sqrt()])
    fits = (sides <= 1).all(dim=0)
    first = fits.int().argmax(dim=1)
    sizes = sides.gather(2, first.expand(2, -1)[..., None]).squeeze(2)
    sizes = torch.where(fits.any(dim=1), sizes, torch.ones_like(sizes))
    center = (torch.rand(2, count, generator=generator) * 2 - 1) * (1 - sizes)
    boxes = torch.zeros(count, 2, 3)
    boxes[:, 0, 0], boxes[:, 1, 1] = sizes[0], sizes[1]
    boxes[:, :, 2] = center.T
    grid = functional.affine_grid(boxes.to(batch.device), [count, 3, size, size], False)
    return functional.grid_sample(batch, grid, padding_mode="border", align_corners=False)


def padded_crop(batch: Tensor, generator: Generator) -> Tensor:
    """Images `(n, c, s, s)`, each moved by up to `round(s / 10)` pixels both ways; black enters.

    That is 8 pixels of 84, as in MetaOptNet's code, and 3 of 32, where that has 4.
    """
    count, _, side, _ = batch.shape
    padding = round(side / 10)
    padded = functional.pad(batch, (padding,) * 4)
    start = torch.randint(2 * padding + 1, (2, count, 1), generator=generator)
    rows, columns = (start + torch.arange(side)).to(batch.device)  # (n, s) each
    images = torch.arange(count, device=batch.device)[:, None, None]
    moved = padded[images, :, rows[:, :, None], columns[:, None, :]]  # (n, s, s, c)
    return moved.permute(0, 3, 1, 2)


def color_jitter(batch: Tensor, generator: Generator, ordered: bool = False) -> Tensor:
    """Brightness, contrast and saturation, each scaled by a factor in [0.6, 1.4] per image.

    The three come in a random order, one order for the whole batch, or in this one if `ordered`.
    Values stay in [0, 1].
    """
    factors = 1 + (torch.rand(3, len(batch), generator=generator) * 2 - 1) * 0.4
    for kind in range(3) if ordered else torch.randperm(3, generator=generator).tolist():
        gray = (batch * batch.new_tensor([0.2989, 0.587, 0.114])[:, None, None]).sum(1, True)
        reference = (
            torch.zeros_like(gray),
            gray.mean(dim=(-2, -1), keepdim=True),
            gray,
        )[kind]
        factor = factors[kind].to(batch.device)[:, None, None, None]
        batch = (factor * batch + (1 - factor) * reference).clamp(0, 1)
    return batch


def _floats(images: Tensor) -> Tensor:
    return images.permute(0, 3, 1, 2).float().div_(255)


def _normalize(batch: Tensor) -> Tensor:
    """Normalizes a batch to [-1, 1] in place; the batch was made from bytes by the caller."""
    return batch.mul_(2).sub_(1).contiguous(memory_format=torch.channels_last)
