"""Peak memory of the stage imagenet-fs-features, beside the size of what it reads and writes.

The growth of the peak resident set over a run of 64 images must not follow the data, which are
images on the disk and the features that are written. Linux only.
"""

import json
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
from measure import row

IMAGES, PIXELS, WIDTH = 10_000, 48, Fraction(1, 16)

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


def main() -> None:
    (data, growth), (more_data, more_growth) = measure(IMAGES)
    row(
        "features of ImageNet-FS: growth of memory at four times the data",
        more_growth / growth,
        1.1,
        False,
        f"{growth:.0f} MB for {data:.0f} MB of images and features, {more_growth:.0f} MB for "
        f"{more_data:.0f} MB",
    )


if __name__ == "__main__":
    main()
