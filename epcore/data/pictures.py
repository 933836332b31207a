"""Encoded pictures become arrays of one size, in several threads and in constant memory."""

import io
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from epcore.errors import UserError
from epcore.plan.datasets import Pixels

# Others start programs (EPS starts Ghostscript) or are no pictures of cameras and data sets.
PICTURES = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "AVIF")
Image.init()
FORMATS = tuple(name for name in PICTURES if name in Image.OPEN)
MOST_PIXELS = 64_000_000  # decoded, some 200 MB
FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "box": Image.Resampling.BOX,
}


def decode(
    data: bytes, name: str, size: int, pixels: Pixels, *, upright: bool = False
) -> np.ndarray:
    """An encoded picture as RGB, uint8 `(size, size, 3)`.

    Gray, palette and CMYK pictures become RGB; what is transparent lies on white. Of 16 bits of
    color, or of gray with opacity, the upper 8 count.

    Args:
        data: the content of a picture file.
        name: what to call it in messages.
        size: height and width of the result in pixels.
        pixels: which part of the picture, and how it is resized.
        upright: turn the picture as its EXIF data say, as cameras mean it. The builders of
            published data sets did not.

    Raises:
        UserError: if it is no picture, damaged, too large, or plain gray of more than 8 bits.
    """
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                most = f"more than {MOST_PIXELS // 10**6} million pixels"
                raise ValueError(f"it has {picture.width} x {picture.height}, {most}")
            # Pillow would cut 16 bits of gray off at 255.
            if picture.mode.startswith(("I", "F")):
                raise ValueError("its pixels have more than 8 bits a channel")
            return to_array(ImageOps.exif_transpose(picture) if upright else picture, size, pixels)
    except Exception as error:  # a damaged picture, or its EXIF data, raise nearly anything
        unknown = isinstance(error, UnidentifiedImageError)  # its text names a place in memory
        reason = "it is empty" if not data else "no known format" if unknown else str(error)
        raise UserError(f"{name} cannot be read as an image ({reason}); replace it") from None


def to_array(picture: Image.Image, size: int, pixels: Pixels) -> np.ndarray:
    """A picture as RGB, uint8 `(size, size, 3)`."""
    picture = _on_white(picture) if picture.has_transparency_data else picture.convert("RGB")
    if pixels.processing == "center-crop":
        side = min(picture.size)
        # Half less half, each rounded down, as TADAM did.
        left, top = (length // 2 - side // 2 for length in picture.size)
        picture = picture.crop((left, top, left + side, top + side))
    return np.asarray(picture.resize((size, size), FILTERS[pixels.filter]))


def _on_white(picture: Image.Image) -> Image.Image:
    picture = picture.convert("RGBA")
    white = Image.new("RGBA", picture.size, "white")
    return Image.alpha_composite(white, picture).convert("RGB")


def decode_all(
    pictures: Iterable[tuple[int, str, bytes]], size: int, pixels: Pixels, *, upright: bool = False
) -> Iterator[tuple[int, np.ndarray]]:
    """Decodes `(row, name, data)` to `(row, array)`, in order; see `decode`.

    Pillow decodes and resizes outside Python's lock, so OMP_NUM_THREADS threads share the work;
    a few pictures per thread are in memory at a time.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]  # OpenMP takes a list as well
    workers = max(1, int(asked)) if asked.isdecimal() else os.cpu_count() or 1
    waiting: deque[tuple[int, Future[np.ndarray]]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for row, name, data in pictures:
                waiting.append(
                    (row, pool.submit(decode, data, name, size, pixels, upright=upright))
                )
                if len(waiting) > 4 * workers:
                    done, result = waiting.popleft()
                    yield done, result.result()
            while waiting:
                done, result = waiting.popleft()
                yield done, result.result()
        finally:
            pool.shutdown(cancel_futures=True)
