"""`epcore doctor`: what is missing is named with its remedy, what is there is not complained of."""

import json
from pathlib import Path

import pytest

from epcore.commands.cli import main
from epcore.commands.doctor import (
    check_data,
    check_gpus,
    check_packages,
    datasets_of,
)
from epcore.commands.dry_run import Job, planned
from epcore.errors import UserError
from epcore.files import version_of
from epcore.plan import Plan

ROOT = Path(__file__).parents[2]


def plan(scale):
    return Plan(ROOT / "config", scale)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH with these programs alone: programs(sbatch="#!/bin/sh ...")."""

    def install(**scripts):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name, text in scripts.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))

    return install


def asked(findings):
    return {
        finding.what: f"{finding.text} {finding.remedy}" for finding in findings if finding.remedy
    }


# -- this machine ----------------------------------------------------------------------------------


def test_missing_and_other_packages_are_named_and_builds_of_a_version_are_that_version(tmp_path):
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"torch=={version_of('torch')}\nno-such-package==1.0\nnumpy==0.1\n")
    said = asked(check_packages(lock))["packages"]
    assert "no-such-package missing for 1.0" in said
    assert f"numpy {version_of('numpy')} for 0.1" in said
    assert "torch" not in said
    assert "pip install -r requirements.txt" in said


def test_a_folder_without_the_lock_is_told(tmp_path):
    said = asked(check_packages(tmp_path / "requirements.txt"))["packages"]
    assert "folder of the checkout" in said


@pytest.mark.parametrize("required", [True, False])
def test_no_gpu_is_a_fault_where_the_scale_requires_one(programs, required):
    programs()
    finding = check_gpus(required)
    assert ("allow_cpu=true" in finding.remedy) == required


@pytest.mark.parametrize(("cuda", "missing"), [("13.0", False), (None, True)])
def test_where_jobs_are_submitted_the_nodes_have_gpus_and_the_same_torch(
    programs, monkeypatch, cuda, missing
):
    import torch

    programs(sbatch="")
    monkeypatch.setattr(torch.version, "cuda", cuda)
    finding = check_gpus(required=True)
    assert "the cluster's nodes have them" in finding.text
    assert bool(finding.remedy) is missing


def test_a_card_that_torch_does_not_see_is_a_fault(programs, monkeypatch):
    import torch

    programs(**{"nvidia-smi": "#!/bin/sh\necho 'GPU 0: A card (UUID: GPU-aa)'\n"})
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    finding = check_gpus(required=False)
    assert "sees 0" in finding.text
    assert finding.remedy
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert not check_gpus(required=True).remedy


# -- data ------------------------------------------------------------------------------------------


def test_data_that_is_got_by_hand_is_told_until_it_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EPCORE_MIRROR", raising=False)
    p = plan("paper")
    finding = check_data(p, "mini-imagenet", tmp_path)
    assert "by hand" in finding.text
    assert finding.remedy == "epcore fetch ilsvrc2012-train ilsvrc2012-devkit says the steps"
    for source in p.registry.datasets["mini-imagenet"].sources:
        for file in p.registry.sources[source].files.values():
            path = tmp_path / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    finding = check_data(p, "mini-imagenet", tmp_path)
    assert (finding.text, finding.remedy) == ("5 of 5 files found", "")


def test_what_can_be_downloaded_asks_for_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EPCORE_MIRROR", raising=False)
    finding = check_data(plan("small"), "cifar-fs", tmp_path)
    assert finding.text == "0 of 4 files found; Snakemake downloads the others"
    assert not finding.remedy


def test_built_in_data_need_nothing_and_a_built_store_is_recognized(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "without a download" in check_data(plan("demo"), "glyph-mini", tmp_path).text
    store = tmp_path / "results/demo/data/glyph-mini/store.json"
    store.parent.mkdir(parents=True)
    store.write_text(json.dumps({"classes": [{}] * 3}))
    assert check_data(plan("demo"), "glyph-mini", tmp_path).text == "built, 3 classes"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of 51 + 14 + 16 classes of 20 pictures each, and what doctor says of it."""
    monkeypatch.chdir(tmp_path)
    for number in range(81):
        folder = tmp_path / f"data/mine/images/c{number:02}"
        folder.mkdir(parents=True)
        for picture in range(20):
            (folder / f"{picture}.png").write_bytes(b"is not opened")
    return lambda: check_data(plan("own"), "mine", tmp_path)


def test_data_of_ones_own_is_read_as_the_builder_would(own):
    finding = own()
    assert (finding.text, finding.remedy) == ("1,620 images of 81 classes in data/mine", "")


@pytest.mark.parametrize(("left", "said"), [(19, "need 20 images a class"), (0, "has no image")])
def test_classes_that_no_episode_can_be_drawn_from_are_told(own, left, said):
    for folder in Path("data/mine/images").iterdir():
        for picture in range(left, 20):
            (folder / f"{picture}.png").unlink()
    finding = own()
    assert said in finding.text
    assert finding.remedy


def test_a_base_class_too_small_for_an_episode_is_told(own):
    """Fine-tuning draws episodes of base classes, after hours of pretraining."""
    from epcore.data.build import contents_of
    from epcore.data.sources import Sources

    contents = contents_of(plan("own").registry.datasets["mine"], Sources.read([]))
    name = next(c.name for c in contents.classes if c.split == "base")
    Path(f"data/mine/images/{name}/0.png").unlink()
    finding = own()
    assert "split base: 5-shot episodes with 15 queries need 20 images" in finding.text
    assert repr(name) in finding.text
    assert "`recipe: {finetuning: ...}`" in finding.remedy


@pytest.mark.slow
@pytest.mark.parametrize(("images", "enough"), [(20, False), (24, True)])
def test_unbalanced_queries_need_more_images_than_others(tmp_path, monkeypatch, images, enough):
    """As docs/tutorials/images.md says: of 20 every class would have to give each of its 15."""
    monkeypatch.chdir(tmp_path)
    lines = ["filename,label,split"]
    for number in range(15):
        folder = tmp_path / f"data/grocery81/images/c{number:02}"
        folder.mkdir(parents=True)
        for picture in range(images):
            (folder / f"{picture}.png").touch()
            lines.append(f"{picture}.png,c{number:02},{('base', 'val', 'novel')[number // 5]}")
    (tmp_path / "data/grocery81/split.csv").write_text("\n".join(lines))
    finding = check_data(plan("grocery"), "grocery81", tmp_path)
    assert ("draws from Dir(2)" in finding.text) is not enough
    assert bool(finding.remedy) is not enough
    assert enough or finding.remedy.startswith("add images, or raise `dirichlet`")


def test_what_is_wrong_with_it_is_told_before_the_run(own):
    Path("data/mine/images/note.txt").write_text("")
    finding = own()
    assert "note.txt is no class folder" in finding.text
    assert "remove all else" in finding.remedy


# -- targets ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_target_needs_the_data_of_the_jobs_that_are_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jobs = planned(plan("demo"), ["tables/cub.tex", "figures/two-moons.pdf"])
    assert datasets_of(jobs) == ["glyph-fine"]
    assert datasets_of([Job("all", "", {}, gpu=False)]) == []


@pytest.mark.slow
def test_an_unknown_target_is_one_line_after_what_snakemake_needs(capsys):
    assert main(["doctor", "tables/mian.tex", "--settings", str(ROOT / "config")]) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("epcore: Snakemake cannot plan tables/mian.tex: ")
    assert "makes no tables/mian.tex; did you mean 'main'?" in printed.err
    assert "ok  python:" in printed.out


def test_a_snakemake_that_is_killed_without_a_word_is_told(tmp_path, monkeypatch):
    (tmp_path / "python").write_text("#!/bin/sh\nkill -9 $$\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    said = r"cannot plan all: it ended without a word, with exit code -9"
    with pytest.raises(UserError, match=said):
        planned(plan("demo"), ["all"])


@pytest.mark.slow
def test_it_ends_with_an_error_as_long_as_anything_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EPCORE_MIRROR", raising=False)
    arguments = ["doctor", "tables/cub.tex", "--settings", str(ROOT / "config")]
    assert main(arguments) == 0
    assert "For tables/cub.tex at scale demo:" in capsys.readouterr().out
    assert main([*arguments, "--config", "scale=paper", "--root", str(tmp_path)]) == 2
    assert "!!  gpus:" in capsys.readouterr().out
