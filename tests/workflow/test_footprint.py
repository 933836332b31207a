"""Real runs that are tracked: every attempt counts, whatever becomes of it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from figure_files import lines_of

from epcore.commands.dry_run import planned
from epcore.commands.forecast import run as forecast
from epcore.errors import UserError
from epcore.footprint.energy import read
from epcore.footprint.rows import file_of, rows_of
from epcore.plan import Plan
from epcore.plan.registry import main_config

pytestmark = pytest.mark.workflow

CHECKPOINT = "results/tiny/models/tiny-glyphs/conv4/epnet/s0/pretrain.pt"
# Rules that make no file, or only copy one.
UNTRACKED = {"publish", "publish_figure", "co2", "all", "ablation_pipeline"}


def test_the_jobs_are_those_that_snakemake_plans(project, monkeypatch):
    monkeypatch.chdir(project.folder)
    run = project.snakemake("-n", "tables/main.tex", "--config", "scale=demo", "seeds=3")
    jobs = planned(Plan(Path("config"), "demo", 3), ["tables/main.tex"])
    assert Counter(job.rule for job in jobs) == run.jobs
    trained = [job for job in jobs if job.rule == "pretrain"]
    assert {job.wildcards["seed"] for job in trained} == {"0", "1", "2"}
    assert all(job.stage == "pretrain" and job.gpu and job.backbone for job in trained)
    assert not [job for job in jobs if job.rule.startswith("publish") and (job.stage or job.gpu)]


def test_the_co2_report_waits_for_all_that_is_not_a_copy(project, monkeypatch):
    monkeypatch.chdir(project.folder)
    plan = Plan(Path("config"), "demo")
    everything, report = (
        Counter(job.rule for job in planned(plan, [target]))
        for target in ("all", "reports/co2.csv")
    )
    assert report["table"] > 1
    later = everything - report
    assert {rule for rule in later if not rule.startswith("publish")} == {"all"}


def test_a_finished_target_has_no_jobs_left_and_a_lost_file_its_own(finished, monkeypatch, capsys):
    monkeypatch.chdir(finished.folder)
    plan = Plan(Path("config"), "tiny")
    assert planned(plan, ["tables/main.tex"]) == []
    for made in ("tables/main.tex", "results/tiny/tables/main.tex"):
        Path(made).unlink()
    jobs = planned(plan, ["tables/main.tex"])
    assert Counter(job.rule for job in jobs) == {"table": 1, "publish": 1}
    main = main_config(Path("config"), {"scale": "tiny"})
    forecast(["tables/main.tex"], Path("config"), main, device=None, medians_alone=False)
    assert re.search(r"^  table +1 .* here$", capsys.readouterr().out, re.M)


def test_a_target_that_snakemake_refuses_is_told_in_its_words(project, monkeypatch):
    monkeypatch.chdir(project.folder)
    with pytest.raises(UserError) as caught:
        planned(Plan(Path("config"), "tiny"), ["tables/mian.tex"])
    said = str(caught.value)
    assert said.startswith("Snakemake cannot plan tables/mian.tex: ")
    assert "did you mean 'main'?" in said
    assert "\n" not in said


def test_every_job_is_counted_and_its_meta_names_it(finished_once):
    project, run = finished_once
    attempts = read(project.folder / "results/tiny/energy")
    assert set(attempts["state"]) == {"finished"}
    tracked = {rule: count for rule, count in run.jobs.items() if rule not in UNTRACKED}
    assert Counter(stage.replace("-", "_") for stage in attempts["stage"]) == tracked
    assert attempts["job"].is_unique
    by_job = attempts.set_index("job")
    results = project.folder / "results/tiny"
    artifacts = [*results.glob("models/**/*.pt"), *results.glob("features/**/*.npz")]
    artifacts += [*results.glob("scores/**/*.csv")]
    assert len(artifacts) == 6 + 4 + 4
    for artifact in artifacts:
        meta = artifact.with_suffix("").with_suffix(".meta.json").read_text()
        energy = json.loads(meta)["energy"]
        row = by_job.loc[artifact.relative_to(project.folder).as_posix()]
        assert energy["attempt"] == row["attempt"]
        assert row["kwh"] > 0
        if row["stage"] in ("pretrain", "finetune"):
            assert 0 < energy["kwh"] <= row["kwh"]


def test_the_report_comes_last_of_all_and_is_published(everything_once):
    project, _ = everything_once
    lines = lines_of(project.folder / "reports/co2.csv")
    rows = {(row["level"], row["name"]): row for row in lines}
    products = {place for place in rows if place[0] in ("table", "figure")}
    figures = {name for kind, name in products if kind == "figure"}
    assert figures == {
        "alpha", "two-moons", "decision-boundary", "interpolation", "by-shot",
        "curves-tiny-glyphs-conv4", "per-episode",
    }  # fmt: skip
    assert products - {("figure", name) for name in figures} == {("table", "main")}
    main, total = rows["table", "main"], rows["total", ""]
    assert 0 < float(main["kg"]) < float(total["kg"])
    attempts = read(project.folder / "results/tiny/energy")
    assert float(total["kg"]) == pytest.approx(attempts["kg"].sum(), rel=1e-5)
    assert int(total["attempts"]) == len(attempts) > 28  # what was embedded anew counts again
    for file in ("reports/co2.md", "tables/co2.tex", "figures/co2.pdf", "figures/co2.png"):
        assert (project.folder / file).stat().st_size > 0


def test_a_job_that_fails_and_one_that_is_killed_count(finished):
    finished.replace("config/scales/tiny.yaml", "learning_rate: 0.01", "learning_rate: 1.0e+9")
    assert finished.snakemake("--cores", "1", CHECKPOINT).code != 0
    energy = finished.folder / "results/tiny/energy"

    def states():
        rows = rows_of(file_of(energy, CHECKPOINT))
        return [row["state"] for row in sorted(rows, key=lambda row: row["at"])]

    assert states() == ["finished", "failed"]
    finished.replace("config/scales/tiny.yaml", "learning_rate: 1.0e+9", "learning_rate: 0.01")
    finished.replace("config/scales/tiny.yaml", "epochs: 2, batch", "epochs: 4000, batch")
    command = [sys.executable, "-m", "snakemake", "--cores", "1", CHECKPOINT]
    pipe = subprocess.DEVNULL
    run = subprocess.Popen(
        command, cwd=finished.folder, stdout=pipe, stderr=pipe, start_new_session=True
    )
    try:
        while len(states()) < 3:
            assert run.poll() is None
            time.sleep(0.1)
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    assert states() == ["finished", "failed", "started"]


def test_a_changed_factor_rebuilds_nothing_and_tracking_can_be_switched_off(finished):
    finished.replace("config/footprint.yaml", "carbon_intensity: 0.02", "carbon_intensity: 0.4")
    assert finished.plan().nothing_to_do
    finished.replace("config/footprint.yaml", "tracking: true", "tracking: false")
    assert finished.plan().nothing_to_do
    before = read(finished.folder / "results/tiny/energy")
    assert finished.snakemake("--cores", "1", "--force", "results/tiny/tables/main.tex").code == 0
    assert read(finished.folder / "results/tiny/energy").equals(before)
    jobs = finished.snakemake("-n").jobs
    assert jobs["all"] == 1
    assert "co2" not in jobs


def test_a_report_that_nothing_will_be_known_for_is_refused_at_once(project):
    target = "tables/co2.tex"
    project.replace("config/footprint.yaml", "tracking: true", "tracking: false")
    run = project.snakemake("-n", target)
    assert run.code != 0
    assert run.text.splitlines()[-1].startswith(f"epcore: scale tiny makes no {target}; ")
    (project.folder / "results/tiny/energy").mkdir(parents=True)  # of runs that were tracked
    assert project.snakemake("-n", target).jobs["co2"] == 1


def test_a_scale_for_gpus_names_the_command_that_says_what_it_costs(project):
    run = project.snakemake("-n", "tables/cub.tex", "--config", "scale=paper", "seeds=2")
    assert run.code == 0
    assert "epcore forecast TARGET --config scale=paper\n" in run.text
    assert "epcore forecast" not in project.plan().text
