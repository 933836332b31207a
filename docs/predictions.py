"""Draws docs/predictions.png: the page of `epcore predict` for characters of the demo.

`make pictures` runs it after `make`; it takes chromium.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from epcore.data.store import ImageStore

DEMO = Path("results/demo")
# Novel class -> what the folder is called, and how many labeled images it has.
CLASSES = {
    "u+0104 latin capital letter a with ogonek": ("A with ogonek", 1),
    "u+053f armenian capital letter ken": ("ken", 1),
    "u+0071 latin small letter q": ("q", 2),
    "u+2660 black spade suit": ("spade", 3),
}
NEW = 28


def main() -> None:
    """Classifies images of four novel classes from a few, and photographs the page."""
    store = ImageStore.open(DEMO / "data/glyph-mini")
    network = (DEMO / "models/glyph-mini/conv4/epnet/s0/pretrain.pt").resolve()
    random = np.random.default_rng(0)
    names = [image_class.name for image_class in store.classes]
    rows = [
        random.permutation(np.flatnonzero(store.labels == names.index(name))) for name in CLASSES
    ]
    counts = [count for _, count in CLASSES.values()]
    others = [of_class[count:] for of_class, count in zip(rows, counts, strict=True)]
    unlabeled = random.permutation(np.concatenate(others))[:NEW]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for of_class, (name, count) in zip(rows, CLASSES.values(), strict=True):
            _save(store, of_class[:count], place / "labeled" / name)
        _save(store, unlabeled, place / "new")
        command = [sys.executable, "-m", "epcore", "predict"]
        command += ["--support", "labeled", "--queries", "new"]
        command += ["--backbone", "conv4", "--weights", str(network), "--out", "page.csv"]
        command += ["--settings", str(Path("config").resolve())]
        subprocess.run(command, cwd=place, check=True)
        picture = f"--screenshot={Path('docs/predictions.png').resolve()}"
        browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        page = f"file://{place / 'page.html'}"
        subprocess.run([*browser, "--window-size=800,500", picture, page], check=True)


def _save(store: ImageStore, rows: np.ndarray, folder: Path) -> None:
    folder.mkdir(parents=True)
    for number, pixels in enumerate(store.pixels(rows)):
        Image.fromarray(pixels).save(folder / f"{number:02d}.png")


if __name__ == "__main__":
    main()
