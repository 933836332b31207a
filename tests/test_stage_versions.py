"""What stages compute, as digests that may change only together with their `stage_version`.

Snakemake re-runs a job when its config changes, not when code does: whoever changes the results
of a stage raises its version. Then `EPCORE_RECORD_DIGESTS=1 pytest tests/test_stage_versions.py`
writes the new digest into stage_digests.json.
"""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from figure_files import lines_of
from plans import plan_of

from epcore.data import build, episodes
from epcore.data.config import DataConfig
from epcore.evaluation import embed, evaluate, evaluate_classifiers
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.embed import Features
from epcore.training import finetune, pretrain

RECORDED = Path(__file__).with_name("stage_digests.json")


def digest(*parts):
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def losses(path):
    """To three digits, so that machines agree."""
    return [f"{float(line['train_loss']):.3g}" for line in lines_of(path.with_suffix(".csv"))]


@pytest.fixture(scope="module")
def computed(toy, stage_config, tmp_path_factory):
    """Stage -> its version, and a digest of what it makes of small inputs."""
    folder, plan, found = tmp_path_factory.mktemp("stages"), plan_of("demo"), {}

    def add(name, stage, *parts):
        found[name] = {"stage_version": stage.stage_version, "digest": digest(*parts)}

    glyphs = plan.registry.datasets["glyph-mini"].model_dump() | {"image_size": 16}
    glyphs["images_per_class"] = {"base": 2, "val": 2, "novel": 2}
    data = DataConfig.model_validate({"dataset": glyphs})
    build.run(data, [], folder / "glyphs")
    images = np.load(folder / "glyphs/images.npy")
    add("data", data, images.shape, hashlib.sha256(images.tobytes()).hexdigest())

    drawn = plan.data.episodes("5way-1shot").model_copy(update={"queries": 3, "episodes": 20})
    episodes.run(drawn, toy.data, folder / "drawn.npz")
    with np.load(folder / "drawn.npz") as arrays:
        add("episodes", drawn, *(arrays[name].tolist() for name in sorted(arrays.files)))

    short = {"epochs": 1, "batch_size": 60, "learning_rate": 1e-4}
    trained = stage_config("pretrain", pretraining=short)
    pretrain.run(trained, toy.data, toy.val, folder / "pretrain.pt", False)
    add("pretrain", trained, losses(folder / "pretrain.pt"))
    tuned = stage_config("finetune", finetuning={"epochs": 1, "learning_rate": 1e-4})
    files = (toy.data, toy.val, folder / "pretrain.pt", folder / "finetune.pt")
    finetune.run(tuned, *files, False)
    add("finetune", tuned, losses(folder / "finetune.pt"))
    embedded = stage_config("embed")
    embed.run(embedded, toy.data, folder / "finetune.pt", folder / "features.npz")
    features = Features.load(folder / "features.npz")
    add("embed", embedded, features.rows.tolist(), f"{features.values.mean():.2g}")

    random = np.random.default_rng(0)
    values = random.normal(0, 1, (300, 12)) + random.normal(0, 2, (15, 12))[np.arange(300) % 15]
    rows = np.arange(len(features.rows))
    clouds = Features(features.rows, features.labels, values[rows].astype(np.float32))
    clouds.save(folder / "clouds.npz")
    BaseClasses(np.zeros(12, np.float32), np.empty((0, 12), np.float32)).save(folder / "base.npz")
    test = plan.runs.evaluate("conv4", "epnet")
    evaluate.run(test, folder / "clouds.npz", folder / "drawn.npz", folder / "own.csv")
    add("evaluate", test, (folder / "own.csv").read_text())
    names = ["nearest-mean", "simpleshot", "label-propagation"]
    tests = plan.runs.evaluate_classifiers("conv4", "net", names)
    inputs = (folder / f"{name}.npz" for name in ("clouds", "base", "drawn"))
    evaluate_classifiers.run(tests, *inputs, folder / "classifiers.csv")
    add("evaluate-classifiers", tests, (folder / "classifiers.csv").read_text())
    return found


def test_results_change_only_together_with_a_stage_version(computed):
    if os.environ.get("EPCORE_RECORD_DIGESTS"):
        RECORDED.write_text(json.dumps(computed, indent=1) + "\n")
    recorded = json.loads(RECORDED.read_text())
    assert recorded.keys() == computed.keys()
    for name, known in recorded.items():
        same_version = known["stage_version"] == computed[name]["stage_version"]
        assert computed[name] == known, (
            f"{name} computes something else: raise its stage_version, then record"
            if same_version
            else f"{name} has a new version: record what it computes"
        )
