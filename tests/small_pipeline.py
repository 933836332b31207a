"""The files of a small pipeline, made once by the command line, to be attacked and damaged."""

import json
import shutil

import pytest

from epcore.commands import cli
from epcore.files import canonical_json

PROPAGATION = {
    "embedding": False,
    "classifier": "prototypes",
    "part": "full",
    "embedding_alpha": 0.5,
    "label_alpha": 0.2,
    "bandwidth": "std",
    "normalize_labels": True,
    "query_logits": "log-scores",
}
EPISODES = {
    "stage_version": 2, "split": "novel", "way": 5, "shot": 2, "queries": 3, "labeled": None,
    "unlabeled": 0, "episodes": 30, "seed": 2,
}  # fmt: skip


class Project:
    """A folder with toy (data set), net.pt, val.npz, novel.npz and features.npz."""

    def __init__(self, folder, stage_config, capsys=None):
        self.folder, self._stage_config, self._capsys = folder, stage_config, capsys

    def __truediv__(self, name):
        return self.folder / name

    def run(self, stage, config=None, **paths):
        """The exit code of a stage by the command line; paths are within the folder."""
        words = [stage]
        if config is not None:
            words += ["--config", canonical_json(config)]
        for name, path in paths.items():
            many = path if isinstance(path, list) else [path]
            words += [f"--{name}", *(str(self.folder / each) if each else "" for each in many)]
        return cli.main(words)

    def stage(self, name, **changes):
        return json.loads(
            canonical_json(self._stage_config(name, **changes).model_dump(mode="json"))
        )

    def episodes(self, **paths):
        return self.run("episodes", EPISODES, **{"data": "toy", "out": "novel.npz", **paths})

    def pretrain(self, **paths):
        files = {"data": "toy", "episodes": "val.npz", "out": "net.pt", **paths}
        return self.run("pretrain", self.stage("pretrain", pretraining={"epochs": 1}), **files)

    def finetune(self, **paths):
        files = {"data": "toy", "episodes": "val.npz", "checkpoint": "net.pt", "out": "fine.pt"}
        return self.run("finetune", self.stage("finetune"), **{**files, **paths})

    def embed(self, **paths):
        files = {"data": "toy", "weights": "net.pt", "out": "features.npz", **paths}
        return self.run("embed", self.stage("embed"), **files)

    def base_classes(self, **paths):
        config = self.stage("embed") | {"stage_version": 1}
        files = {"data": "toy", "weights": "net.pt", "out": "base.npz", **paths}
        return self.run("base-classes", config, **files)

    def evaluate(self, **paths):
        config = {"stage_version": 3, "propagation": PROPAGATION}
        files = {"features": "features.npz", "episodes": "novel.npz", "out": "scores.csv"}
        return self.run("evaluate", config, **{**files, **paths})

    def evaluate_classifiers(self, **paths):
        test = {"propagation": PROPAGATION}
        config = {"stage_version": 1, "classifiers": {"prototypes": test}}
        files = {"features": "features.npz", "episodes": "novel.npz", "out": "scores.csv"}
        return self.run("evaluate-classifiers", config, **{**files, **paths})

    def complaint(self, *parts):
        """The only line that `epcore` wrote, which says all the parts."""
        message = self._capsys.readouterr().err
        lines = [line for line in message.splitlines() if line.startswith("epcore:")]
        assert len(lines) == 1, message
        assert "Traceback" not in message
        for part in parts:
            assert str(part) in lines[0], lines[0]
        return lines[0]


@pytest.fixture(scope="session")
def whole(stage_config, toy, tmp_path_factory):
    """Everything, once."""
    folder = tmp_path_factory.mktemp("whole")
    shutil.copytree(toy.data, folder / "toy")
    made = Project(folder, stage_config)
    assert made.run("episodes", EPISODES | {"split": "val"}, data="toy", out="val.npz") == 0
    assert made.episodes() == 0
    assert made.pretrain() == 0
    assert made.embed() == 0
    return folder


@pytest.fixture
def project(whole, tmp_path, stage_config, capsys, monkeypatch):
    folder = shutil.copytree(whole, tmp_path / "work")
    monkeypatch.chdir(folder)
    capsys.readouterr()
    return Project(folder, stage_config, capsys)
