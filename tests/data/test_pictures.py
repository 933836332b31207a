"""Encoded pictures become arrays: which part, which filter, on white, several threads."""

import io
import threading

import numpy as np
import pytest
from PIL import Image, features

from epcore.data.datasets import Pixels
from epcore.data.pictures import decode, decode_all
from epcore.errors import UserError

WHOLE, CENTER = Pixels(), Pixels(processing="center-crop")


def random(height, width, channels=3, seed=0):
    shape = (height, width, channels)
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8).squeeze()


def encoded(picture, kind="png", **settings):
    """The content of a picture file; of an array or a picture of Pillow's."""
    if isinstance(picture, np.ndarray):
        picture = Image.fromarray(picture)
    file = io.BytesIO()
    picture.save(file, kind, **settings)
    return file.getvalue()


def as_it_is(data, size=8):
    """A picture of the size that is asked for: no pixel is resized."""
    read = decode(data, "some.png", size, WHOLE)
    assert (read.shape, read.dtype) == ((size, size, 3), np.uint8)
    return read


def refused(data, message):
    with pytest.raises(UserError, match=message) as caught:
        decode(data, "some.png", 8, WHOLE)
    assert str(caught.value).startswith("some.png cannot be read as an image (")
    assert str(caught.value).endswith("); replace or remove it")
    assert "\n" not in str(caught.value)


# -- which part of the picture -----------------------------------------------------------------

# Even and odd, wide and tall, and the least.
SIZES = [(8, 12), (8, 13), (9, 12), (13, 9), (9, 9), (1, 1)]


def middle(array):
    """The central square; where it cannot lie in the middle, what TADAM took.

    It begins at half the length less half the side, each half rounded down. So an odd side in an
    even length lies half a pixel to the right of the middle (or below), and an even side in an odd
    length half a pixel to the left (or above).
    """
    height, width = array.shape[:2]
    side = min(height, width)
    top, left = height // 2 - side // 2, width // 2 - side // 2
    return array[top : top + side, left : left + side]


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_the_central_square_is_cut_out_pixel_by_pixel(height, width):
    array, side = random(height, width).reshape(height, width, 3), min(height, width)
    assert np.array_equal(decode(encoded(array), "x", side, CENTER), middle(array))


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_the_square_is_as_large_as_can_be_and_within_half_a_pixel_of_the_middle(height, width):
    rows, columns = np.mgrid[:height, :width].astype(np.uint8)
    side = min(height, width)
    places = decode(encoded(np.dstack([rows, columns, rows])), "x", side, CENTER)[:, :, :2]
    assert np.array_equal(np.unique(places[:, :, 0]), places[:, 0, 0])
    for axis, length in ((0, height), (1, width)):
        found = np.unique(places[:, :, axis]).astype(int)
        assert np.array_equal(np.diff(found), np.ones(side - 1))
        assert abs((found[0] + found[-1]) / 2 - (length - 1) / 2) <= 0.5


@pytest.mark.parametrize("name", ["bilinear", "bicubic"])
@pytest.mark.parametrize("processing", ["resize", "center-crop"])
def test_each_filter_is_pillows_on_the_part_that_is_asked_for(name, processing):
    array = random(51, 30)
    part = middle(array) if processing == "center-crop" else array
    resized = Image.fromarray(part).resize((12, 12), Image.Resampling[name.upper()])
    read = decode(encoded(array), "x", 12, Pixels(processing=processing, filter=name))
    assert np.array_equal(read, np.asarray(resized))


def test_pixels_beside_the_square_do_not_shine_into_it():
    array = np.zeros((40, 100, 3), np.uint8)
    array[:, :30] = array[:, 70:] = 255
    assert not decode(encoded(array), "x", 10, CENTER).any()


def test_a_picture_is_turned_upright_only_if_that_is_asked_for():
    top = np.zeros((8, 8, 3), np.uint8)
    top[:4] = 255
    notes = Image.Exif()
    notes[0x0112] = 6  # to be turned clockwise when shown
    data = encoded(np.rot90(top), exif=notes)
    assert np.array_equal(decode(data, "x", 8, WHOLE, upright=True), top)
    assert np.array_equal(decode(data, "x", 8, WHOLE), np.rot90(top))


# -- kinds of pictures -------------------------------------------------------------------------


def on_white(colors, opacity):
    opacity = opacity[:, :, None] / 255
    return opacity * colors + (1 - opacity) * 255


GRAY, COLORS = random(8, 8, 1), random(8, 8)
OPACITY = np.random.default_rng(1).choice([0, 60, 255], (8, 8)).astype(np.uint8)


def test_colors_stay_as_they_are():
    assert np.array_equal(as_it_is(encoded(COLORS)), COLORS)


def test_gray_with_opacity_lies_on_white():
    data = encoded(np.dstack([GRAY, OPACITY]))
    expected = on_white(np.dstack([GRAY] * 3), OPACITY)
    assert np.abs(as_it_is(data) - expected).max() <= 1


def test_colors_with_opacity_lie_on_white():
    data = encoded(np.dstack([COLORS, OPACITY]))
    assert np.abs(as_it_is(data) - on_white(COLORS, OPACITY)).max() <= 1


def palette_picture():
    numbers, colors = GRAY % 16, random(16, 3, 1, seed=1)
    palette = Image.new("P", (8, 8))
    palette.putdata(numbers.ravel().tolist())
    palette.putpalette(colors.ravel().tolist())
    return palette, numbers, colors


@pytest.mark.parametrize("kind", ["png", "gif"])
def test_the_transparent_color_of_a_palette_is_white(kind):
    picture, numbers, colors = palette_picture()
    expected = colors[numbers]
    expected[numbers == 3] = 255
    assert np.array_equal(as_it_is(encoded(picture, kind, transparency=3)), expected)


def test_a_palette_of_half_transparent_colors_lies_on_white():
    picture, numbers, colors = palette_picture()
    opacity = np.arange(16, dtype=np.uint8) * 17
    data = encoded(picture, transparency=opacity.tobytes())
    expected = on_white(colors[numbers], opacity[numbers])
    assert np.abs(as_it_is(data) - expected).max() <= 1


def test_the_transparent_color_of_a_picture_without_palette_is_white():
    colors = COLORS.copy()
    colors[2, 3] = colors[4, 5] = (1, 2, 3)
    expected = colors.copy()
    expected[2, 3] = expected[4, 5] = 255
    assert np.array_equal(as_it_is(encoded(colors, transparency=(1, 2, 3))), expected)
    gray = np.where(GRAY == 7, 8, GRAY)
    gray[2, 3] = 7
    expected = np.dstack([np.where(gray == 7, 255, gray)] * 3)
    assert np.array_equal(as_it_is(encoded(gray, transparency=7)), expected)


@pytest.mark.parametrize("kind", [np.int32, np.float32, np.uint16])
def test_a_tiff_of_more_than_8_bits_is_refused(kind):
    refused(encoded(GRAY.astype(kind), "tiff"), "its pixels have more than 8 bits a channel")


# -- what cannot be read -----------------------------------------------------------------------


def test_an_empty_file_is_said_to_be_empty():
    refused(b"", r"\(it is empty\)")


@pytest.mark.parametrize("content", [b"x", b"<html>not found</html>", bytes(1000)])
def test_what_is_no_picture_is_refused(content):
    refused(content, "cannot")


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp", "bmp", "tiff"])
def test_half_a_picture_is_refused(kind):
    data = encoded(random(64, 64), kind)
    refused(data[: len(data) // 2], "cannot")


@pytest.mark.skipif(not features.check("avif"), reason="Pillow came without AVIF")
def test_a_damaged_avif_is_refused():
    data = encoded(random(64, 64), "avif")
    start = data.index(b"mdat") + 4
    refused(data[:start] + b"\xff" * 60 + data[start + 60 :], "Failed to decode")


# -- several at a time -------------------------------------------------------------------------


def numbered(count, read=None):
    """Pictures of one color each, and a list of those that were asked for."""
    for number in range(count):
        if read is not None:
            read.append(number)
        yield number, f"{number}.png", encoded(np.full((9, 9, 3), number, np.uint8))


@pytest.fixture(params=["1", "3"])
def threads(request, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", request.param)
    before = set(threading.enumerate())
    yield int(request.param)
    assert set(threading.enumerate()) == before


def test_all_come_in_order_whatever_takes_longer(threads):
    def some():
        """Large pictures among small ones."""
        for row, name, data in numbered(40):
            yield (
                row,
                name,
                encoded(np.full((900, 900, 3), row, np.uint8)) if row % 7 == 0 else data,
            )

    results = list(decode_all(some(), 4, WHOLE))
    assert [row for row, _ in results] == list(range(40))
    for row, image in results:
        assert (image == row).all()
        assert image.shape == (4, 4, 3)


def test_few_pictures_are_ahead_of_those_that_were_taken(threads):
    read = []
    results = decode_all(numbered(200, read), 4, WHOLE)
    assert read == []
    for taken, _ in enumerate(results, start=1):
        assert len(read) - taken <= 4 * threads
    assert taken == len(read) == 200


@pytest.mark.parametrize("bad", [0, 5, 39])
def test_a_bad_picture_ends_all_with_its_name_after_those_before_it(threads, bad):
    def some():
        for row, name, data in numbered(40):
            yield row, name, b"bad" if row == bad else data

    results, taken = decode_all(some(), 4, WHOLE), []
    with pytest.raises(UserError, match=rf"^{bad}\.png cannot be read as an image"):
        taken.extend(row for row, _ in results)
    assert taken == list(range(bad))


def test_a_mistake_of_the_reader_passes_and_ends_the_threads(threads):
    def some():
        yield from numbered(10)
        raise UserError("the archive is damaged")

    with pytest.raises(UserError, match=r"^the archive is damaged$"):
        list(decode_all(some(), 4, WHOLE))


def test_whoever_stops_early_leaves_no_threads(threads):
    read = []
    results = decode_all(numbered(200, read), 4, WHOLE)
    next(results)
    results.close()
    assert len(read) <= 4 * threads + 1
