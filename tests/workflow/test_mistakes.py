"""A user's mistake ends in one clear line, an exit code other than 0 and nothing overwritten."""

import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow


def complaint(run):
    """The message, checked to be no traceback."""
    assert run.code != 0, run.text
    assert "Traceback" not in run.text, run.text
    return run.text


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "config/recipes.yaml",
            "classifier: label-propagation",
            "classifier: {name: label-propagation, label_alfa: 0.3}",
            "did you mean 'label_alpha'?",
        ),
        ("config/config.yaml", "allow_cpu:", "alow_cpu:", "unknown key 'alow_cpu'"),
        ("config/config.yaml", "allow_cpu:", "[allow_cpu:", "this is not valid YAML"),
    ],
)
def test_a_mistake_in_the_config_is_named_with_its_file_and_remedy(project, file, old, new, said):
    project.replace(file, old, new)
    message = [line for line in complaint(project.build()).splitlines() if said in line]
    assert len(message) == 1
    assert file.removeprefix("config/") in message[0]


def test_the_profile_of_a_cluster_where_there_is_none(project, tmp_path, monkeypatch):
    """Snakemake's plugin would wait for ever."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for folder in map(Path, os.environ["PATH"].split(os.pathsep)):
        for file in folder.glob("*"):
            if not file.name.startswith("s") and not os.path.lexists(programs / file.name):
                (programs / file.name).symlink_to(file)
    monkeypatch.setenv("PATH", str(programs))
    profile = ("--profile", "workflow/profiles/slurm", "--config", "allow_cpu=true")
    run = project.snakemake("tables/main.tex", *profile)
    assert "sbatch is not on the PATH; log in to a node" in complaint(run).splitlines()[-1]
    assert project.build("--cores", "1", "-n").code == 0  # no lock is left


def test_the_folder_itself_is_no_target(project):
    assert "No rule to produce ." in complaint(project.snakemake("-n", "."))


def test_a_figure_that_the_scale_has_no_runs_of_is_no_target(project):
    project.replace("config/scales/tiny.yaml", "{mini: tiny-glyphs,", "{mini: null,")
    message = complaint(project.snakemake("-n", "figures/alpha.png"))
    (line,) = [line for line in message.splitlines() if line.startswith("epcore:")]
    assert line.startswith("epcore: scale tiny makes no figures/alpha.png; ")


def test_a_config_file_in_another_encoding_is_told(project):
    """It is read a second time for its digest, which every job on a cluster compares."""
    (project.folder / "config/recipes.yaml").write_bytes("recipes: {é: {}}".encode("latin-1"))
    said = complaint(project.plan()).splitlines()[-1]
    assert said == "epcore: config/recipes.yaml: this is not UTF-8 text; save it as UTF-8"


def test_an_edit_during_a_run_is_told_by_jobs_that_read_the_config_again(project, monkeypatch):
    """As on a cluster, where each job is a Snakemake of its own that inherits the environment."""
    monkeypatch.setenv("EPCORE_CONFIG_DIGEST", "of another config")
    job = ("--mode", "subprocess", "--cores", "1", "tables/main.tex", "--allowed-rules", "table")
    assert complaint(project.snakemake(*job)).splitlines()[-1] == (
        "epcore: config/ was edited after this run had begun; run the same command again"
    )
