"""A toy data set on which every stage runs in seconds, and the stages' configs for it."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
WAY, SHOT, QUERIES = 5, 2, 3
LONGEST = ("slurm", "workflow", "survival")


def pytest_collection_modifyitems(items):
    """Those that take longest come first, so that none is left to one process at the end."""
    items.sort(key=lambda item: not set(LONGEST) & set(item.path.relative_to(ROOT).parts))


@dataclass(frozen=True)
class Toy:
    """Folder of the packed data set, and its frozen episodes."""

    data: Path
    val: Path
    novel: Path


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    """6 base, 5 val and 5 novel classes of 20 images of 16x16 pixels.

    Classes differ in color, images of a class in brightness, far more: an untrained network
    sees the brightness. Splits alternate, so that a label is never the number of a base class.
    """
    from packing import pack

    from epcore.data.contents import ImageClass
    from epcore.data.episodes import pool_of, sample

    folder = tmp_path_factory.mktemp("toy")
    random = np.random.default_rng(0)
    splits = ["novel", "base", "val"] * 5 + ["base"]
    classes = [ImageClass(f"class {n}", split) for n, split in enumerate(splits)]
    labels = np.repeat(np.arange(len(classes)), 20)
    hues = {label: random.uniform(-1, 1, 3) for label in range(len(classes))}
    brightness = random.uniform(60, 190, (len(labels), 1, 1, 1))
    colors = np.stack([hues[label] for label in labels])[:, None, None] * 25
    noise = random.normal(0, 12, (len(labels), 16, 16, 3))
    images = (brightness + colors + noise).clip(0, 255).astype(np.uint8)
    store = pack(folder / "toy", classes, labels, images, 16)
    for split in ("val", "novel"):
        episodes = sample(pool_of(store, split), WAY, SHOT, QUERIES, 30, seed=len(split))
        episodes.save(folder / f"{split}.npz")
    return Toy(folder / "toy", folder / "val.npz", folder / "novel.npz")


@pytest.fixture
def config(tmp_path):
    """A copy of the project's config, to be changed."""
    return Path(shutil.copytree(ROOT / "config", tmp_path / "config"))


NARROW = {"conv4": "1/8", "resnet12": "1/8", "wrn": "1/10"}
SMALL = {
    "pretraining": {
        "epochs": 2,
        "batch_size": 4,
        "schedule": "plateau",
        "plateau": {"metric": "accuracy", "patience": 1, "factor": 0.1},
    },
    "finetuning": {"epochs": 2, "episodes_per_epoch": 4, "queries": QUERIES},
}


def laid_over(content, changes):
    """Nested settings with some of them changed."""
    below = {k: laid_over(content[k], v) for k, v in changes.items() if isinstance(v, dict)}
    return content | changes | below


@pytest.fixture(scope="session")
def stage_config():
    """A stage's config in the demo, made small for the toy: stage_config("pretrain", "epnet", ...).

    `dataset` is the one whose pretraining it is; the config of no other stage names it.
    """
    from plans import plan_of

    from epcore.evaluation.config import EmbedConfig
    from epcore.training.config import FinetuneConfig, PretrainConfig

    plan = plan_of("demo")
    kinds = {
        "pretrain": (PretrainConfig, (0,), {"pretraining": SMALL["pretraining"]}),
        "finetune": (FinetuneConfig, (0, SHOT), {"finetuning": SMALL["finetuning"]}),
        "embed": (EmbedConfig, (), {}),
    }

    def build(stage, recipe="epnet", backbone="conv4", dataset="glyph-mini", **changes):
        model, more, small = kinds[stage]
        where = (dataset, backbone) if stage == "pretrain" else (backbone,)
        said = getattr(plan.runs, stage)(*where, recipe, *more)
        content = laid_over(said.model_dump(mode="json"), small)
        if stage == "pretrain":
            content["augmentation"] = ["flip"]
        content |= {"precision": "fp32"}
        content["backbone"] |= {"width": NARROW[backbone]}
        return model(**laid_over(content, changes))

    return build


@pytest.fixture
def attempt():
    """The row of an attempt at a job, one measured hour on one core, with some values changed."""

    def build(**changes):
        values = {
            **{"attempt": "a", "job": "results/demo/x.pt", "stage": "pretrain"},
            **{"state": "finished", "at": "2026-01-01T00:00:00+00:00", "host": "h"},
            **{"device": "cpu", "seconds": 3600.0, "cpu_seconds": 3600.0, "pue": 1.25},
            **{"measured_seconds": 3600.0, "cpu_kwh": 0.008, "ram_kwh": 0.002, "gpu_kwh": 0.0},
            **{"counters": 0, "gpu_watts": 0.0, "factor": 0.1},
        }
        return values | changes

    return build
