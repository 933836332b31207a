"""`epcore doctor`: what is missing is named with its remedy, what is there is not complained of."""

import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.resources import Resource

from epcore.commands.cli import main
from epcore.commands.doctor import doctor
from epcore.commands.doctor.cluster import check_profile, minutes, read_profile
from epcore.commands.doctor.data import GIB, check_data, check_disk, missing
from epcore.commands.doctor.doctor import asked_minutes, datasets_of
from epcore.commands.doctor.environment import check_factor, check_gpus, check_packages, installed
from epcore.commands.dry_run import Job, planned
from epcore.errors import UserError
from epcore.plan import Plan
from epcore.plan.registry import main_config

ROOT = Path(__file__).parents[2]
PROFILE = ROOT / "workflow/profiles/slurm"
SINFO = "#!/bin/sh\necho cpu infinite OFF\necho gpu 10-00:00:00 REQUEUE\n"


def plan(scale):
    return Plan(ROOT / "config", scale)


GPUS, MINUTES = 1, {"pretrain": 30, "data": 30}


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH with these programs alone: programs(sinfo="#!/bin/sh ...")."""

    def install(**scripts):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name, text in scripts.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        for name in ("ACCOUNT", "CPU_PARTITION", "GPU_PARTITION", "STATUS"):
            monkeypatch.delenv(f"EPCORE_SLURM_{name}", raising=False)

    return install


def asked(findings):
    return {
        finding.what: f"{finding.text} {finding.remedy}" for finding in findings if finding.remedy
    }


# -- packages and GPUs -----------------------------------------------------------------------------


def test_missing_and_other_packages_are_named_and_builds_of_a_version_are_that_version(tmp_path):
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"torch=={installed('torch')}\nno-such-package==1.0\nnumpy==0.1\n")
    said = asked(check_packages(lock))["packages"]
    assert "missing: no-such-package" in said
    assert f"numpy {installed('numpy')} for 0.1" in said
    assert "torch" not in said
    assert "pip install -r requirements.txt" in said


def test_a_folder_without_the_lock_is_told(tmp_path):
    assert (
        "folder of the checkout" in asked(check_packages(tmp_path / "requirements.txt"))["packages"]
    )


@pytest.mark.parametrize(
    ("required", "cluster", "missing"),
    [(True, False, True), (False, False, False), (True, True, False)],
)
def test_no_gpu_is_a_fault_where_the_scale_requires_one_and_nothing_else_has_any(
    programs, monkeypatch, required, cluster, missing
):
    import torch

    programs()
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert bool(asked(check_gpus(required, cluster))) == missing


@pytest.mark.parametrize(("required", "missing"), [(True, True), (False, False)])
def test_a_torch_that_no_node_can_use_is_a_fault_on_a_login_node_too(
    programs, monkeypatch, required, missing
):
    import torch

    programs()
    monkeypatch.setattr(torch.version, "cuda", None)
    assert ("is built without CUDA" in str(check_gpus(required, cluster=True))) == missing


def test_a_card_that_torch_does_not_see_is_a_fault(programs, monkeypatch):
    import torch

    programs(**{"nvidia-smi": "#!/bin/sh\necho 'GPU 0: A card (UUID: GPU-aa)'\n"})
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert "sees 0" in asked(check_gpus(required=False, cluster=False))["gpus"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert not asked(check_gpus(required=True, cluster=False))


# -- what a kilowatt-hour weighs -------------------------------------------------------------------


def test_a_country_without_a_factor_is_told_where_energy_is_tracked():
    known = plan("demo").registry.footprint
    (finding,) = check_factor(known)
    assert str(finding).endswith("0.02 kg, set in config/footprint.yaml")
    wrong = {"carbon_intensity": None, "country": "XXX", "region": None}
    said = asked(check_factor(known.model_copy(update=wrong)))["CO2 of a kWh"]
    assert "no factor of country 'XXX'" in said
    assert "or carbon_intensity" in said
    assert not check_factor(known.model_copy(update=wrong | {"tracking": False}))


# -- the profile -----------------------------------------------------------------------------------


def test_an_unfilled_profile_is_told_with_the_file_and_the_variable(programs):
    programs(sbatch="", sinfo=SINFO, sacct="#!/bin/sh\n")
    said = asked(check_profile(PROFILE, GPUS, MINUTES))
    assert set(said) == {"account"}
    assert "profile.yaml" in said["account"]
    assert "EPCORE_SLURM_ACCOUNT" in said["account"]


def test_the_environment_fills_the_profile(programs, monkeypatch):
    programs(sbatch="", sinfo=SINFO, sacct="#!/bin/sh\n")
    monkeypatch.setenv("EPCORE_SLURM_ACCOUNT", "me")
    assert not asked(check_profile(PROFILE, GPUS, MINUTES))
    monkeypatch.setenv("EPCORE_SLURM_GPU_PARTITION", "a100")
    assert asked(check_profile(PROFILE, GPUS, MINUTES)).keys() == {"partition"}
    content = read_profile(PROFILE / "profile.yaml")
    assert content["set-resources"]["pretrain"]["slurm_partition"] == "'a100'"


@pytest.mark.parametrize("name", ["2023_001", "12-34", "all", "gpu-a100", "me"])
def test_names_of_a_cluster_are_not_computed_with(monkeypatch, name):
    monkeypatch.setenv("EPCORE_SLURM_ACCOUNT", name)
    written = read_profile(PROFILE / "profile.yaml")["default-resources"]["slurm_account"]
    known = {"wildcards": None, "input": [], "attempt": 1, "async_run": None}
    assert Resource.cli_evaluator("slurm_account", written, **known) == name


def test_lines_of_sinfo_that_are_no_partition_are_passed_over(programs, monkeypatch):
    programs(sbatch="", sinfo=f"{SINFO}echo old 1-00:00:00\necho a note\n", sacct="#!/bin/sh\n")
    monkeypatch.setenv("EPCORE_SLURM_ACCOUNT", "me")
    assert not asked(check_profile(PROFILE, GPUS, MINUTES))


def test_a_partition_that_cancels_what_makes_room_is_told(programs, monkeypatch):
    programs(sbatch="", sinfo=SINFO.replace("REQUEUE", "CANCEL"), sacct="#!/bin/sh\n")
    monkeypatch.setenv("EPCORE_SLURM_ACCOUNT", "me")
    said = {finding.text for finding in check_profile(PROFILE, GPUS, MINUTES)}
    assert "cpu" in said
    assert "gpu; jobs that make room for others are canceled there" in "".join(said)


def test_a_pretraining_on_more_gpus_than_a_job_may_have_is_told(programs, monkeypatch):
    programs(sbatch="", sinfo=SINFO, sacct="#!/bin/sh\n")
    monkeypatch.setenv("EPCORE_SLURM_ACCOUNT", "me")
    said = asked(check_profile(PROFILE, 4, MINUTES))
    assert said.keys() == {"gpus of a job"}
    assert "set gpu: 4 under `resources`" in said["gpus of a job"]


def test_a_job_that_asks_for_more_time_than_the_partition_has_is_told(programs, monkeypatch):
    programs(sbatch="", sinfo=SINFO.replace("10-", "1-"), sacct="#!/bin/sh\n")
    monkeypatch.setenv("EPCORE_SLURM_ACCOUNT", "me")
    assert not asked(check_profile(PROFILE, GPUS, {"pretrain": 480}))
    said = asked(check_profile(PROFILE, GPUS, {"pretrain": 480, "finetune": 481}))
    assert said.keys() == {"time limit"}
    assert "gpu allows 1440 minutes, 3 tries of a job ask for up to 1443" in said["time limit"]
    assert "may ask for 480: lower `runtime` under `resources` of the scale" in said["time limit"]


def test_after_the_third_try_a_job_asks_for_no_more(programs, monkeypatch, tmp_path):
    programs(sbatch="", sinfo=SINFO.replace("10-", "1-"), sacct="#!/bin/sh\n")
    monkeypatch.setenv("EPCORE_SLURM_ACCOUNT", "me")
    folder = shutil.copytree(PROFILE, tmp_path / "profile")
    text = (folder / "profile.yaml").read_text()
    assert "retries: 2" in text
    (folder / "profile.yaml").write_text(text.replace("retries: 2", "retries: 30"))
    assert not asked(check_profile(folder, GPUS, {"pretrain": 480}))
    said = asked(check_profile(folder, GPUS, {"pretrain": 481}))["time limit"]
    assert "31 tries of a job ask for up to 1443" in said


def test_jobs_of_other_partitions_have_those_limits(programs, monkeypatch):
    limits = SINFO.replace("cpu infinite", "cpu 1-00:00:00")
    programs(sbatch="", sinfo=limits, sacct="#!/bin/sh\n")
    monkeypatch.setenv("EPCORE_SLURM_ACCOUNT", "me")
    said = asked(check_profile(PROFILE, GPUS, {"pretrain": 481, "data": 1440}))["time limit"]
    assert "cpu allows 1440 minutes, 3 tries of a job ask for up to 4320" in said


def to_run(*rules):
    """Jobs of these rules, on a data set that is named as they are."""
    return [Job(rule, rule, {"dataset": f"of-{rule}"}, gpu=False) for rule in rules]


def test_minutes_are_those_of_what_a_cluster_gets_and_a_training_has_its_embeddings_too():
    p = plan("paper")
    trainings = dict.fromkeys(("pretrain", "finetune"), 2880 + 60)
    asked = asked_minutes(p, to_run("pretrain", "finetune", "embed", "data_quick", "episodes"))
    assert asked == trainings
    fs = p.imagenet_fs.scale.resources
    asked = asked_minutes(
        p, to_run("data", "meta_train", "imagenet_fs_classifier", "imagenet_fs_evaluate")
    )
    assert asked == {
        "data": p.registry.scale.resources.data.runtime,
        "meta_train": 2880,
        "imagenet_fs_classifier": fs.network.runtime,
    }


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("infinite", math.inf), ("1-00:00:00", 1440), ("7-12:30:00", 10830), ("2:00:00", 120),
        ("30:00", 30), ("0:30", 0.5),
    ],
)  # fmt: skip
def test_time_limits_are_read_as_slurm_writes_them(limit, expected):
    assert minutes(limit) == expected


def test_a_cluster_without_accounting_is_told_to_ask_squeue(programs, monkeypatch):
    programs(sbatch="", sinfo=SINFO, sacct="#!/bin/sh\nexit 1\n", squeue="#!/bin/sh\n")
    monkeypatch.setenv("EPCORE_SLURM_ACCOUNT", "me")
    assert (
        "EPCORE_SLURM_STATUS=squeue" in asked(check_profile(PROFILE, GPUS, MINUTES))["job states"]
    )
    monkeypatch.setenv("EPCORE_SLURM_STATUS", "squeue")
    assert not asked(check_profile(PROFILE, GPUS, MINUTES))


def test_a_machine_without_slurm_is_told(programs):
    programs()
    assert "sbatch" in asked(check_profile(PROFILE, GPUS, MINUTES))["slurm"]


def test_a_profile_that_is_not_there_or_no_profile_is_named(tmp_path):
    with pytest.raises(UserError, match=r"profile\.yaml: cannot be read .*; give --profile"):
        check_profile(tmp_path, GPUS, MINUTES)
    (tmp_path / "profile.yaml").write_text("__use_yte__: true\nx: ?1/0\n")
    with pytest.raises(UserError, match=r"profile\.yaml: "):
        check_profile(tmp_path, GPUS, MINUTES)


# -- data and disk ---------------------------------------------------------------------------------


def test_data_that_is_got_by_hand_is_told_until_it_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EPCORE_MIRROR", raising=False)
    p = plan("paper")
    said = asked(check_data(p, ["mini-imagenet"], tmp_path))["data mini-imagenet"]
    assert "by hand" in said
    assert "epcore fetch ilsvrc2012-train ilsvrc2012-devkit says the steps" in said
    for source in p.registry.datasets["mini-imagenet"].sources:
        for file in p.registry.sources[source].files.values():
            path = tmp_path / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    findings = check_data(p, ["mini-imagenet"], tmp_path)
    assert "data mini-imagenet" not in asked(findings)
    assert "files found, to be verified" in findings[0].text


def test_built_in_data_need_nothing_and_a_built_store_is_recognized(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (first,) = check_data(plan("demo"), ["glyph-mini"], tmp_path)
    assert "without a download" in first.text
    store = tmp_path / "results/demo/data/glyph-mini/store.json"
    store.parent.mkdir(parents=True)
    store.write_text(json.dumps({"classes": [{}] * 3}))
    (first,) = check_data(plan("demo"), ["glyph-mini"], tmp_path)
    assert first.text == "built, 3 classes"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of 51 + 14 + 16 classes of 20 pictures each, and what doctor says of it."""
    monkeypatch.chdir(tmp_path)
    for number in range(81):
        folder = tmp_path / f"data/mine/images/c{number:02}"
        folder.mkdir(parents=True)
        for picture in range(20):
            (folder / f"{picture}.png").write_bytes(b"is not opened")
    return lambda: check_data(plan("own"), ["mine"], tmp_path)


def test_data_of_ones_own_is_read_as_the_builder_would(own):
    (finding,) = own()
    assert (finding.text, finding.remedy) == ("1,620 images of 81 classes in data/mine", "")


@pytest.mark.parametrize(("left", "said"), [(19, "need 20 images a class"), (0, "has no image")])
def test_classes_that_no_episode_can_be_drawn_from_are_told(own, left, said):
    for folder in Path("data/mine/images").iterdir():
        for picture in range(left, 20):
            (folder / f"{picture}.png").unlink()
    (finding,) = own()
    assert said in finding.text
    assert finding.remedy


@pytest.mark.parametrize(("size", "enough"), [(1020, True), (1021, False)])
def test_a_batch_that_the_base_images_do_not_fill_is_told(config, own, size, enough):
    file = config / "examples/own.yaml"
    file.write_text(file.read_text().replace("batch_size: 32", f"batch_size: {size}"))
    (finding,) = check_data(Plan(config, "own"), ["mine"], Path())
    assert bool(finding.remedy) is not enough
    assert enough or finding.text == "its 1020 base images do not fill one batch of 1021"


@pytest.mark.parametrize("split", ["base", "val", "novel"])
def test_a_class_too_small_for_an_episode_is_told_in_whatever_split_it_is(own, split):
    """Fine-tuning draws episodes of base classes, after hours of pretraining."""
    from epcore.data.build import contents_of
    from epcore.data.sources import Sources

    contents = contents_of(plan("own").registry.datasets["mine"], Sources.read([]))
    name = next(c.name for c in contents.classes if c.split == split)
    Path(f"data/mine/images/{name}/0.png").unlink()
    (finding,) = own()
    assert f"split {split}: 5-shot episodes with 15 queries need 20 images" in finding.text
    assert repr(name) in finding.text
    where = "`recipe: {finetuning: ...}`" if split == "base" else "config/protocols.yaml"
    assert where in finding.remedy


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
    (finding,) = check_data(plan("grocery"), ["grocery81"], tmp_path)
    assert ("draws from Dir(2)" in finding.text) is not enough
    assert bool(finding.remedy) is not enough
    assert enough or finding.remedy.startswith("add images, or raise `dirichlet`")


@pytest.mark.parametrize(
    ("built", "left_out", "remedy"),
    [(1620, 0, ""), (1617, 3, ""), (1600, 0, "--forcerun data"), (1620, 3, "--forcerun data")],
)
def test_a_built_data_set_is_compared_with_the_folder(own, built, left_out, remedy):
    """Images that two splits share may have been left out of base."""
    store = Path("results/own/data/mine/store.json")
    store.parent.mkdir(parents=True)
    repeated = {"left_out": {"base": left_out, "val": 0}}
    facts = {"classes": [{}] * 81, "shape": [built, 84, 84, 3], "repeated_images": repeated}
    store.write_text(json.dumps(facts))
    (finding,) = own()
    assert remedy in finding.remedy
    assert bool(finding.remedy) is bool(remedy)
    assert ("has 1,620 now" in finding.text) is bool(remedy)


@pytest.mark.parametrize(
    ("file", "text", "said", "remedy"),
    [
        ("split.csv", "", "the key `split` as well", "remove one of the two"),
        ("images/note.txt", "", "note.txt is no class folder", "remove all else"),
        ("images/more/0.png", "", "has 82 classes", "make the sum 82"),
    ],
)
def test_what_is_wrong_with_it_is_told_before_the_run(own, file, text, said, remedy):
    path = Path("data/mine") / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (finding,) = own()
    assert said in finding.text
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    "left", [b"", b"{}", b"[]", b'{"cla', b"\xff", b'{"classes": 3}', b'{"classes": null}']
)
def test_a_damaged_store_is_told_with_the_remedy(tmp_path, monkeypatch, left):
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "results/demo/data/glyph-mini/store.json"
    store.parent.mkdir(parents=True)
    store.write_bytes(left)
    said = asked(check_data(plan("demo"), ["glyph-mini"], tmp_path))["data glyph-mini"]
    assert "store.json is damaged" in said
    assert "delete it and run the same command again" in said


@pytest.fixture
def free(tmp_path, monkeypatch):
    """Sets the free GiB of a disk, without a mirror of anything."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EPCORE_MIRROR", raising=False)

    def build(gibibytes):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=gibibytes * GIB))
        return tmp_path / "disk" / "data"

    return build


ARCHIVES = 148_000_000_000  # ILSVRC2012's training images, and a little
IMAGENET = ["mini-imagenet", "tiered-imagenet"]


def test_a_file_that_data_sets_share_is_missing_once(free):
    found = missing(plan("paper"), IMAGENET, free(0))
    assert ARCHIVES * 0.99 < sum(filter(None, found.values())) < ARCHIVES * 1.01


def test_what_is_here_needs_no_room(free):
    p, root = plan("paper"), free(0)
    file = root / "ilsvrc2012/ILSVRC2012_img_train.tar"
    file.parent.mkdir(parents=True)
    file.touch()
    assert sum(filter(None, missing(p, ["tiered-imagenet"], root).values())) < ARCHIVES / 100


@pytest.mark.parametrize(("gibibytes", "enough"), [(500, True), (100, False)])
def test_the_disk_of_the_data_root_needs_room_for_what_is_missing_there(free, gibibytes, enough):
    """At the paper's scale about 138 GiB; the folder itself need not be there yet."""
    root = free(gibibytes)
    finding, _ = check_disk(plan("paper"), IMAGENET, root)
    assert bool(finding.remedy) != enough
    assert f"{gibibytes:.1f} GiB free below {root}, 13" in finding.text
    assert enough or "data_root in config/config.yaml" in finding.remedy


def test_data_that_are_drawn_need_no_room_for_downloads(free):
    for finding in check_disk(plan("demo"), ["glyph-mini"], free(0)):
        assert finding.text.endswith("0.0 to be put there")


@pytest.mark.parametrize(("gibibytes", "enough"), [(155, True), (140, False)])
def test_packed_data_sets_need_room_beside_the_downloads(free, gibibytes, enough):
    """mini-ImageNet's take 1.3 GB and tiered-ImageNet's 16.5, as docs/data.md says."""
    _, finding = check_disk(plan("paper"), IMAGENET, free(gibibytes))
    assert "below results, 16.5 to be put there beside those 13" in finding.text
    assert bool(finding.remedy) is not enough


def test_what_has_no_known_size_is_named_and_not_counted_as_nothing(free):
    own = check_disk(plan("own"), ["mine"], free(0))[1]
    assert own.text.endswith("not counting 1 of unknown size (mine)")
    p, name = plan("paper"), "ilsvrc2012-train"
    file = p.registry.sources[name].files
    files = {key: each.model_copy(update={"size": None}) for key, each in file.items()}
    p.registry.sources[name] = p.registry.sources[name].model_copy(update={"files": files})
    unknown = check_disk(p, IMAGENET, free(0))[0]
    assert "of unknown size (ilsvrc2012/ILSVRC2012_img_train.tar" in unknown.text


@pytest.fixture
def asked_of(config, monkeypatch):
    """asked_of(old=..., new=..., scale=..., root=...): what the checks of a run are told."""

    def run(old="", new="", scale="demo", root=None):
        told = {}
        quiet = {name: lambda *given: [] for name in ("check_packages", "check_factor", "planned")}
        listening = {
            "check_gpus": lambda required, cluster: told.update(required=required) or [],
            "check_data": lambda plan, datasets, root: (
                told.update(root=root, datasets=datasets) or []
            ),
        }
        for name, check in {**quiet, **listening}.items():
            monkeypatch.setattr(doctor, name, check)
        file = config / "config.yaml"
        file.write_text(file.read_text().replace(old, new, 1))
        main = main_config(config, {"scale": scale})
        doctor.run(["all"], config, main, root, None)
        return told

    return run


def test_the_data_root_is_that_of_the_workflow_unless_it_is_given(asked_of):
    assert asked_of("data_root: data", "data_root: /big/disk")["root"] == Path("/big/disk")
    assert asked_of(root=Path("/other"))["root"] == Path("/other")


@pytest.mark.parametrize("built", [True, False])
def test_ones_own_built_data_are_looked_at_where_nothing_is_left_to_run(
    asked_of, tmp_path, monkeypatch, built
):
    """Whoever changed photographs asks then, and no job knows of the change."""
    monkeypatch.chdir(tmp_path)
    store = Path("results/own/data/mine/store.json")
    store.parent.mkdir(parents=True)
    if built:
        store.touch()
    assert asked_of(scale="own")["datasets"] == (["mine"] if built else [])


def test_a_gpu_is_required_by_the_scale_unless_the_config_allows_a_cpu(asked_of):
    assert asked_of(scale="paper")["required"]
    assert not asked_of("allow_cpu: false", "allow_cpu: true", scale="paper")["required"]


@pytest.mark.parametrize("root", [None, Path("data")])
def test_a_config_without_a_key_is_told_wherever_data_lie(asked_of, root):
    with pytest.raises(UserError, match="the key 'allow_cpu' is missing"):
        asked_of("allow_cpu: false\n", "", root=root)


# -- targets ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_target_needs_the_data_of_the_jobs_that_are_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jobs = planned(plan("demo"), ["tables/cub.tex", "figures/two-moons.pdf"])
    assert datasets_of(jobs) == ["glyph-fine"]
    assert datasets_of(to_run("fetch", "data")) == ["of-data", "of-fetch"]
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
    monkeypatch.delenv("EPCORE_SLURM_ACCOUNT", raising=False)
    arguments = ["doctor", "tables/cub.tex", "--settings", str(ROOT / "config")]
    assert main(arguments) == 0
    assert "For tables/cub.tex at scale demo:" in capsys.readouterr().out
    assert main([*arguments, "--profile", str(PROFILE)]) == 2
    assert "!!  account:" in capsys.readouterr().out
