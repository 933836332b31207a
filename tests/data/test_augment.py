"""Views and augmentations against torchvision, Pillow, SciPy and numpy."""

import itertools
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance
from scipy import ndimage, stats

from epcore.data.augment import (
    Augmenter,
    color_jitter,
    crop_size,
    flip,
    padded_crop,
    random_resized_crop,
    view_of,
)
from epcore.data.config import View

IDENTITY = View(resize=1, crop=1)
PAPER_WRN = View(resize=Fraction(92, 84), crop=Fraction(80, 84))


@pytest.fixture(scope="module")
def torchvision():
    """Its transforms."""
    import_module("epcore.vision")  # before torchvision
    from torchvision import transforms

    return transforms


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def stored(count=6, pixels=12, seed=0):
    """Stored images, uint8 `(n, pixels, pixels, 3)`."""
    shape = (count, pixels, pixels, 3)
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8))


def floats(*arguments):
    return stored(*arguments).permute(0, 3, 1, 2).float() / 255


# -- what a network sees -----------------------------------------------------------------------


def test_plain_images_are_the_stored_ones_from_minus_1_to_1():
    images = stored()
    images[0], images[1] = 0, 255
    seen = Augmenter((), IDENTITY).eval_transform(images)
    expected = images.numpy().astype(np.float32) / np.float32(255) * 2 - 1
    assert seen.dtype == torch.float32
    assert np.array_equal(seen.numpy(), expected.transpose(0, 3, 1, 2))
    assert seen[0].eq(-1).all()
    assert seen[1].eq(1).all()


def test_no_augmentation_leaves_minus_1_to_1():
    images = torch.cat([torch.full((40, 12, 12, 3), 255, dtype=torch.uint8), stored(40)])
    augmenter = Augmenter(("flip", "crop", "jitter"), PAPER_WRN)
    batches = [
        augmenter.eval_transform(images),
        augmenter.finetune_transform(images, generator()),
        augmenter.pretrain_transform(images, generator(), copies=4),
        Augmenter(("crop",), PAPER_WRN).pretrain_transform(images, generator(), copies=4),
    ]
    for batch in batches:
        assert batch.abs().max() <= 1 + 1e-6
        assert batch.min() < -0.5
        assert batch.max() > 0.5


@pytest.mark.parametrize(("pixels", "resized", "cropped"), [(84, 92, 80), (28, 31, 27)])
def test_the_wide_resnets_view_is_resize_92_and_center_crop_80(
    torchvision, pixels, resized, cropped
):
    batch = floats(3, pixels)
    resize = torchvision.Resize((resized, resized), antialias=True)
    expected = torchvision.CenterCrop(cropped)(resize(batch))
    assert crop_size(pixels, PAPER_WRN) == cropped
    torch.testing.assert_close(view_of(batch, PAPER_WRN), expected)


def test_the_identity_view_returns_the_image():
    assert torch.equal(view_of(floats(), IDENTITY), floats())


# -- flip and rotations ------------------------------------------------------------------------


def test_about_half_of_the_images_are_mirrored_left_to_right_and_nothing_else_happens():
    batch = floats(1000, 4)
    flipped = flip(batch, generator(), 3)
    same = (flipped == batch).flatten(1).all(1)
    mirrored = (flipped == torch.from_numpy(batch.numpy()[:, :, :, ::-1].copy())).flatten(1).all(1)
    assert (same ^ mirrored).all()
    assert stats.binomtest(int(mirrored.sum()), 1000, 0.5).pvalue > 0.001


def test_fine_tuning_sees_flips_only_where_the_recipe_says_so():
    images = stored(20, 84)
    for view in (IDENTITY, PAPER_WRN):
        plain = Augmenter((), view).eval_transform(images)
        assert torch.equal(Augmenter((), view).finetune_transform(images, generator()), plain)
        seen = Augmenter(("flip",), view).finetune_transform(images, generator())
        mirrored = (seen != plain).flatten(1).any(1)
        assert 0 < mirrored.sum() < 20
        assert torch.equal(seen[mirrored], plain[mirrored].flip(-1))


def test_pretraining_sees_all_images_at_0_then_90_then_180_then_270_degrees():
    images = stored(5)
    seen = Augmenter((), IDENTITY).pretrain_transform(images, generator(), copies=4)
    assert seen.shape == (20, 3, 12, 12)
    plain = Augmenter((), IDENTITY).eval_transform(images).numpy()
    for turns in range(4):
        for number in range(5):
            upright = plain[number].transpose(1, 2, 0)
            expected = np.rot90(upright, turns).transpose(2, 0, 1)
            assert np.array_equal(seen[5 * turns + number].numpy(), expected)


def test_the_four_copies_of_an_image_are_flipped_alike():
    images = stored(20)
    seen = (
        Augmenter(("flip",), IDENTITY)
        .pretrain_transform(images, generator(), copies=4)
        .unflatten(0, (4, 20))
    )
    plain = Augmenter((), IDENTITY).eval_transform(images)
    mirrored = (seen[0] != plain).flatten(1).any(1)
    assert 0 < mirrored.sum() < 20
    for turns in range(1, 4):
        assert torch.equal(seen[turns].rot90(-turns, (2, 3)), seen[0])


@pytest.mark.parametrize("name", ["crop", "jitter"])
def test_crop_and_jitter_are_drawn_anew_for_each_copy(name):
    images = stored(4)
    seen = (
        Augmenter((name,), IDENTITY)
        .pretrain_transform(images, generator(), copies=4)
        .unflatten(0, (4, 4))
    )
    for turns in range(1, 4):
        turned_back = seen[turns].rot90(-turns, (2, 3))
        assert ((turned_back - seen[0]).abs().flatten(1).amax(1) > 0.01).all()


def test_without_crop_pretraining_sees_the_view_and_with_it_the_same_size():
    images = stored(2, 84)
    center = Augmenter((), PAPER_WRN).pretrain_transform(images, generator(), copies=4)
    assert torch.equal(center[:2], Augmenter((), PAPER_WRN).eval_transform(images))
    cropped = Augmenter(("crop",), PAPER_WRN).pretrain_transform(images, generator(), copies=4)
    assert cropped.shape == center.shape == (8, 3, 80, 80)


@pytest.mark.parametrize("names", [("flip",), ("flip", "crop", "jitter")])
def test_one_seed_gives_one_batch_and_another_seed_another(names):
    augmenter, images = Augmenter(names, PAPER_WRN), stored(8)
    for augment in (augmenter.finetune_transform, augmenter.pretrain_transform):
        batch = augment(images, generator(3))
        assert torch.equal(batch, augment(images, generator(3)))
        assert not torch.equal(batch, augment(images, generator(4)))


# -- random resized crop -----------------------------------------------------------------------


def boxes_of(count, pixels, size, seed):
    """left, top, width, height of the boxes drawn, as parts of the image: `(4, count)`.

    Read off images whose first two channels hold the place of each pixel.
    """
    places = (torch.arange(pixels) + 0.5) / pixels
    ramp = torch.stack([places.expand(pixels, pixels), places[:, None].expand(pixels, pixels)])
    ramp = torch.cat([ramp, torch.zeros(1, pixels, pixels)]).expand(count, 3, pixels, pixels)
    seen = random_resized_crop(ramp, size, generator(seed)).double()
    # Far from the border, where positions within half a pixel of it are cut off.
    first, last = size // 4, size - 1 - size // 4
    x, y = seen[:, 0, size // 2, [first, last]], seen[:, 1, [first, last], size // 2]
    width, height = ((at[:, 1] - at[:, 0]) / (last - first) * size for at in (x, y))
    left, top = (at[:, 0] - (first + 0.5) / size * side for at, side in ((x, width), (y, height)))
    return torch.stack([left, top, width, height])


def resampled(image, box, size):
    """The part `box` of an image `(3, h, w)`, resized bilinearly by SciPy to `(3, size, size)`."""
    left, top, width, height = (float(number) for number in box)
    steps, pixels = (np.arange(size) + 0.5) / size, image.shape[-1]
    rows = (top + steps * height) * pixels - 0.5
    columns = (left + steps * width) * pixels - 0.5
    grid = np.meshgrid(rows, columns, indexing="ij")
    return np.stack(
        [ndimage.map_coordinates(channel, grid, order=1, mode="nearest") for channel in image]
    )


def test_a_crop_is_its_box_resized():
    batch = floats(60, 12)  # smaller than the crops, so that some touch the image's border
    crops = random_resized_crop(batch, 26, generator(5))
    assert crops.shape == (60, 3, 26, 26)
    for image, box, crop in zip(batch, boxes_of(60, 12, 26, 5).T, crops, strict=True):
        expected = resampled(image.double().numpy(), box, 26)
        assert np.abs(crop.numpy() - expected).max() < 1e-3


def test_crops_lie_in_the_image_with_8_to_100_percent_of_its_area_and_3_4_to_4_3_aspect():
    left, top, width, height = boxes_of(4000, 16, 16, 1)
    for start, side in ((left, width), (top, height)):
        assert start.min() > -1e-4
        assert (start + side).max() < 1 + 1e-4
        assert side.max() > 0.995
        narrow = side < 0.9
        place = start[narrow] / (1 - side[narrow])
        assert stats.kstest(place.numpy(), "uniform").pvalue > 0.001
    area, aspect = width * height, width / height
    assert 0.08 - 1e-4 < area.min() < 0.1
    assert 0.95 < area.max() < 1 + 1e-4
    assert 0.75 - 1e-3 < aspect.min() < 0.77
    assert 1.3 < aspect.max() < 4 / 3 + 1e-3


def test_crops_are_spread_like_those_of_torchvision(torchvision):
    pixels, count = 2000, 3000  # many pixels, because torchvision rounds its boxes to whole ones
    torch.manual_seed(0)
    page = torch.empty(1, pixels, pixels)
    drawn = np.array(
        [
            torchvision.RandomResizedCrop.get_params(page, (0.08, 1.0), (3 / 4, 4 / 3))
            for _ in range(count)
        ]
    )
    theirs = dict(zip(("top", "left", "height", "width"), drawn.T / pixels, strict=True))
    left, top, width, height = boxes_of(count, 16, 16, 2).numpy()
    for ours, other in [
        (width * height, theirs["width"] * theirs["height"]),
        (np.log(width / height), np.log(theirs["width"] / theirs["height"])),
        (left + width / 2, theirs["left"] + theirs["width"] / 2),
        (top, theirs["top"]),
    ]:
        assert stats.ks_2samp(ours, other).pvalue > 0.001


# -- color jitter -----------------------------------------------------------------------------


def test_color_jitter_is_torchvisions_with_the_same_factors_in_the_same_order(torchvision):
    adjust = (
        torchvision.functional.adjust_brightness,
        torchvision.functional.adjust_contrast,
        torchvision.functional.adjust_saturation,
    )
    orders = set()
    for seed in range(25):
        batch, draws = floats(5, 8, seed), generator(seed)
        factors = 0.6 + 0.8 * torch.rand(3, 5, generator=draws)
        order = torch.randperm(3, generator=draws).tolist()
        orders.add(tuple(order))
        jittered = color_jitter(batch, generator(seed))
        for number in range(5):
            expected = batch[number]
            for kind in order:
                expected = adjust[kind](expected, float(factors[kind, number]))
            torch.testing.assert_close(jittered[number], expected, atol=1e-5, rtol=0)
    assert len(orders) == 6


def test_ordered_jitter_is_pillows_brightness_then_contrast_then_color():
    """As in wDAE-GNN's imagenet_dataset.py: Pillow's enhancers, always in this order."""
    enhancers = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)
    images, factors = stored(20, 8), 0.6 + 0.8 * torch.rand(3, 20, generator=generator())
    jittered = Augmenter(("ordered-jitter",), IDENTITY).pretrain_transform(images, generator())
    found = ((jittered + 1) / 2 * 255).permute(0, 2, 3, 1).numpy()
    misses = dict.fromkeys(itertools.permutations(range(3)), 0.0)
    for number, image in enumerate(images):
        for order in misses:
            picture = Image.fromarray(image.numpy())
            for kind in order:
                picture = enhancers[kind](picture).enhance(float(factors[kind, number]))
            miss = np.abs(np.asarray(picture, float) - found[number]).max()
            misses[order] = max(misses[order], miss)
    assert misses.pop((0, 1, 2)) < 4  # Pillow rounds to whole gray levels after each of them
    assert min(misses.values()) > 10


def test_brightness_changes_by_up_to_40_percent_either_way():
    gray = torch.full((4000, 3, 2, 2), 0.5)  # contrast and saturation leave a gray image alone
    factors = color_jitter(gray, generator())[:, 0, 0, 0] / 0.5
    assert stats.kstest(factors.numpy(), stats.uniform(0.6, 0.8).cdf).pvalue > 0.001
    assert factors.min() < 0.61
    assert factors.max() > 1.39


# -- upright images of ImageNet-FS ----------------------------------------------------------------


def test_upright_images_are_flipped_cropped_and_jittered_in_this_order():
    view = View(resize=1, crop=Fraction(7, 12))
    found = Augmenter(("flip", "crop", "jitter"), view).pretrain_transform(stored(), generator())
    draws = generator()
    expected = flip(floats(), draws, 3)
    expected = color_jitter(random_resized_crop(expected, 7, draws), draws)
    assert torch.equal(found, expected * 2 - 1)


def test_upright_images_without_augmentation_are_the_plain_view():
    view = View(resize=1, crop=Fraction(1, 2))
    plain = Augmenter((), view)
    assert torch.equal(
        plain.pretrain_transform(stored(), generator()), plain.eval_transform(stored())
    )


def test_a_padded_crop_is_the_image_moved_by_a_few_pixels_with_black_behind():
    """Each image by an offset of its own, of which all up to a tenth of the side appear."""
    side, padding = 20, 2
    images = torch.rand(200, 3, side, side, generator=generator()) + 0.5
    moved = padded_crop(images, generator())
    black = torch.zeros(3, side + 2 * padding, side + 2 * padding)
    offsets = []
    for image, found in zip(images, moved, strict=True):
        whole = black.clone()
        whole[:, padding:-padding, padding:-padding] = image
        (offset,) = (
            (top, left)
            for top in range(2 * padding + 1)
            for left in range(2 * padding + 1)
            if torch.equal(whole[:, top : top + side, left : left + side], found)
        )
        offsets.append(offset)
    assert len(set(offsets)) == (2 * padding + 1) ** 2
