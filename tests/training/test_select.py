"""The checkpoint of the best candidate on validation, and what is said of the choice."""

import json
from pathlib import Path

import pytest

from epcore.files import Provenance
from epcore.training import select
from epcore.training.config import SelectConfig

NAMES = ("low", "middle", "high")
STAGE = SelectConfig(stage_version=1, candidates=NAMES)


@pytest.fixture
def candidates(tmp_path, monkeypatch):
    """Writes a checkpoint, curve and meta for each of three accuracies; their paths."""
    monkeypatch.chdir(tmp_path)

    def write(*accuracies):
        checkpoints = []
        for name, accuracy in zip(NAMES, accuracies, strict=True):
            path = Path(name) / "pretrain.pt"
            path.parent.mkdir()
            path.write_bytes(f"weights of {name}".encode())
            path.with_suffix(".csv").write_text(f"curve of {name}\n", encoding="utf-8")
            best = {"epoch": 3, "val_accuracy": accuracy}
            Provenance("pretrain", {}, []).write(
                path, path.with_suffix(".csv"), best=best, parameters=7, image_size=28
            )
            checkpoints.append(path)
        return checkpoints

    return write


@pytest.mark.parametrize(
    ("accuracies", "chosen"),
    [((0.3, 0.4, 0.5), "high"), ((0.5, 0.4, 0.3), "low"), ((0.4, 0.5, 0.5), "middle")],
)
def test_the_best_on_validation_is_taken_and_the_first_of_equals(candidates, accuracies, chosen):
    checkpoints = candidates(*accuracies)
    select.run(STAGE, checkpoints, Path("chosen/pretrain.pt"))
    assert Path("chosen/pretrain.pt").read_bytes() == f"weights of {chosen}".encode()
    assert Path("chosen/pretrain.csv").read_text(encoding="utf-8") == f"curve of {chosen}\n"
    facts = json.loads(Path("chosen/pretrain.meta.json").read_text(encoding="utf-8"))
    assert facts["chosen"] == chosen
    assert facts["val_accuracies"] == dict(zip(NAMES, accuracies, strict=True))
    assert facts["best"] == {"epoch": 3, "val_accuracy": max(accuracies)}
    assert (facts["parameters"], facts["image_size"]) == (7, 28)
    assert facts["inputs"].keys() == {path.as_posix() for path in checkpoints}
