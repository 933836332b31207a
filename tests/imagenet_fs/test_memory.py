"""The feature stage's memory does not follow the data: images on the disk, features written."""

import json
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

PIXELS, WIDTH = 48, Fraction(1, 16)

CHILD = """
import json, sys
from pathlib import Path
import torch
from epcore.backbones.build import build_backbone
import zlib
import numpy as np
from epcore.data.augment import Augmenter
from epcore.data.store import ImageStore
from epcore.imagenet_fs.features import extract
from epcore.data.config import View
from fractions import Fraction
torch.manual_seed(0)
backbone = build_backbone("resnet10", Fraction(sys.argv[3]))
view = View(resize=1, crop=1)
folder, state = Path(sys.argv[1]), Path(sys.argv[2])
images = np.load(folder / "images.npy", mmap_mode="r")
rows = len(images)
sums = np.full(rows, zlib.crc32(images[0].tobytes()), np.uint32)
labels, seen = np.zeros(rows, np.int64), np.zeros(rows, bool)
store = ImageStore(folder, images, labels, sums, (), seen)
extract(backbone, store, state, Augmenter((), view), torch.device("cpu"), "fp32")
status = Path("/proc/self/status").read_text()
print(json.dumps(int(status.split("VmHWM:")[1].split()[0]) / 1024))
"""


def peak(folder: Path, images: int) -> tuple[float, float]:
    """MB of the images and features, and the peak resident set in MB, of a process of its own."""
    source, state = folder / str(images) / "images.npy", folder / f"{images}.state"
    source.parent.mkdir()
    shape = (images, PIXELS, PIXELS, 3)
    np.lib.format.open_memmap(source, mode="w+", dtype=np.uint8, shape=shape).flush()
    command = [sys.executable, "-c", CHILD, str(source.parent), str(state), str(WIDTH)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    data = (source.stat().st_size + (state / "values.npy").stat().st_size) / 2**20
    return data, json.loads(done.stdout)


def measure(images: int) -> list[tuple[float, float]]:
    """MB of data and growth of the peak in MB, for `images` and four times as many."""
    with tempfile.TemporaryDirectory() as folder:
        _, idle = peak(Path(folder), 64)
        found = [peak(Path(folder), count) for count in (images, 4 * images)]
    return [(data, used - idle) for data, used in found]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_four_times_the_data_takes_no_fifth_of_it_more_memory():
    """One mapping that stays open would take all of it."""
    (less, first), (more, second) = measure(6000)
    assert more > 3.9 * less
    assert second - first < 0.2 * (more - less)
