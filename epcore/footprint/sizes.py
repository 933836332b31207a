"""How many images a data set has, before it is built."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from epcore.plan import Plan, paths
from epcore.plan.datasets import GlyphPictures, ImageNetFsData, OfficialData, OwnData
from epcore.plan.settings import Split

SPLITS: tuple[Split, ...] = get_args(Split)
# Classes of the drawn data sets in base, val and novel; see `epcore.data.builders.glyph_classes`.
GLYPHS = {"mini": (64, 16, 20), "tiered": (90, 25, 35), "fine": (100, 50, 50)}
GLYPHS["large"] = (389, 300, 311)
USUAL_CLASSES = dict(zip(SPLITS, (64, 16, 20), strict=True))  # those of mini-ImageNet
USUAL_PIXELS = 84
ILSVRC = 1_281_167 / 1000  # training images of a class of ILSVRC2012, on average


@dataclass(frozen=True)
class Size:
    """Images in each split, `pixels` high and wide; `guessed` if the data set does not say."""

    images: dict[Split, float]
    pixels: int
    guessed: bool = False

    @property
    def total(self) -> float:
        return sum(self.images.values())


def size_of(plan: Plan, dataset: str, images_per_class: float) -> Size:
    """From the built store, else as `published_size`."""
    return _built(plan, dataset) or published_size(plan, dataset, images_per_class)


def published_size(plan: Plan, dataset: str, images_per_class: float) -> Size:
    """From what is drawn or published, else from `images_per_class`."""
    settings, pixels = plan.datasets[dataset], _pixels(plan, dataset)
    if isinstance(settings, GlyphPictures):
        classes = dict(zip(SPLITS, GLYPHS[settings.selection], strict=True))
        images = {s: classes[s] * getattr(settings.images_per_class, s) for s in SPLITS}
        return Size(images, pixels)
    if isinstance(settings, OfficialData):
        if (published := settings.expected.images) is not None:
            return Size({split: getattr(published, split) for split in SPLITS}, pixels)
        known = {split: getattr(settings.expected.classes, split) for split in SPLITS}
        if isinstance(settings, ImageNetFsData):  # it has all 1000 classes
            return Size({split: known[split] * ILSVRC for split in SPLITS}, pixels)
    else:
        assert isinstance(settings, OwnData)
        split = settings.split
        known = {s: getattr(split, s) for s in SPLITS} if split else USUAL_CLASSES
    return Size({split: known[split] * images_per_class for split in SPLITS}, pixels, guessed=True)


def _pixels(plan: Plan, dataset: str) -> int:
    settings = plan.datasets[dataset]
    usual = {"cifar-100": 32}.get(settings.kind, USUAL_PIXELS)
    return int(getattr(settings, "image_size", usual))


def _built(plan: Plan, dataset: str) -> Size | None:
    """The size of a store; its classes are taken to be equally large."""
    store = Path(paths.STORE.format(scale=plan.scale_name, dataset=dataset))
    try:
        facts = json.loads(store.read_text(encoding="utf-8"))
        classes = Counter(c["split"] for c in facts["classes"])
        images = facts["shape"][0] / sum(classes.values())
    except (OSError, ValueError, LookupError, TypeError, ZeroDivisionError):
        return None  # it is not there, or damaged
    return Size({split: images * classes[split] for split in SPLITS}, _pixels(plan, dataset))
