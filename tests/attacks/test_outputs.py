"""`--out` replaces nothing that it should not, and that is known before any work."""

import os

import pytest

from epcore.stages import STAGES


@pytest.mark.parametrize(
    ("stage", "out", "said"),
    [
        ("finetune", "net.pt", "is an input"),
        ("evaluate", "novel.npz", "must end in .csv"),
        ("embed", "toy/images.npy", "must end in .npz"),
        ("embed", "toy", "is a folder"),
        ("embed", "", "is a folder"),
        ("embed", "net.pt", "must end in .npz"),
        ("pretrain", "net", "must end in .pt"),
        ("base_classes", "pipe.npz", "is no regular file"),
        ("episodes", "link.npz", "is no regular file"),
    ],
)
def test_an_output_that_may_not_be_replaced_is_refused(project, stage, out, said):
    os.mkfifo(project / "pipe.npz")
    (project / "link.npz").symlink_to("/dev/null")
    before = {p: p.read_bytes() for p in project.folder.rglob("*") if p.is_file()}
    assert getattr(project, stage)(out=out) == 2
    project.complaint("--out: ", said)
    assert {p: p.read_bytes() for p in project.folder.rglob("*") if p.is_file()} == before


def test_an_input_by_another_name_is_one_too(project):
    (project / "alias.pt").symlink_to(project / "net.pt")
    assert project.finetune(out="alias.pt") == 2
    project.complaint("is an input")
    assert project.finetune(out="toy/../net.pt") == 2
    project.complaint("is an input")


def test_two_outputs_have_two_names(project):
    episodes = ["novel.npz", "val.npz"]
    assert project.evaluate(episodes=episodes, out=["a.csv", "./a.csv"]) == 2
    project.complaint("a.csv is there twice")


def test_a_folder_is_no_file(project):
    config = {"stage_version": 4, "dataset": {"kind": "glyphs", "title": "t", "selection": "mini",
              "image_size": 16, "images_per_class": {"base": 1, "val": 1, "novel": 1},
              "seed": 1}}  # fmt: skip
    assert project.run("data", config, out="net.pt") == 2
    project.complaint("net.pt is a file")


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_says_what_its_output_is(name):
    (out,) = (option for option in STAGES[name].files if option.name == "out")
    assert (not out.endings) == out.help.startswith("folder")
