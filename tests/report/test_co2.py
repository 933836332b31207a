"""The CO2 report: sums by hand, and what may be trusted."""

import csv
import json
import re
import shutil
from contextlib import chdir
from pathlib import Path

import pytest
from figure_files import compiled, overfull
from plans import plan_of

from epcore.errors import UserError
from epcore.footprint.account import account
from epcore.footprint.energy import frame_of
from epcore.footprint.rows import record
from epcore.plan import paths
from epcore.report.co2 import run, statements

SHARED = "results/demo/data/glyph-mini/store.json"
MAIN = "results/demo/models/glyph-mini/conv4/epnet/s0/pretrain.pt"
ABLATION = "results/demo/models/glyph-mini/conv4/rot-ep/s0/finetune-1shot.pt"
OTHER = "results/demo/models/glyph-mini/conv4/epnet/s7/pretrain.pt"
OUT, ENERGY = Path("out/co2.csv"), Path("results/demo/energy")


@pytest.fixture
def attempts(attempt):
    """Two tables share a data set; one training failed first; one is in no table; see `made`."""
    nothing = {"cpu_kwh": 0, "seconds": 0, "cpu_seconds": 0, "measured_seconds": 0}
    rows = [
        attempt(job=SHARED, stage="data", cpu_kwh=1),
        attempt(job=MAIN, state="failed", cpu_kwh=2, seconds=1800),
        attempt(job=MAIN, cpu_kwh=4),
        attempt(job=ABLATION, stage="finetune", cpu_kwh=0, gpu_kwh=8, device="V100",
                gpu_watts=250, measured_seconds=0, cpu_seconds=0),
        attempt(job=OTHER, state="running", cpu_kwh=16),
        *(attempt(job=f"results/demo/tables/{table}.csv", stage="table", **nothing)
          for table in ("main", "ablation")),
    ]  # fmt: skip
    hours = {"ram_kwh": 0.0, "factor": 0.5}
    return [
        row | hours | {"attempt": str(hour), "at": f"2026-01-01T0{hour}"}
        for hour, row in enumerate(rows)
    ]


def made(file, *inputs, job=""):
    """Writes the meta file of a job that made a file, and others beside it, from inputs."""
    meta = Path(paths.meta(file))
    meta.parent.mkdir(parents=True, exist_ok=True)
    names = [Path(file).name, Path(file).with_suffix(".csv").name]
    facts = {"made": dict.fromkeys(names, ""), "inputs": dict.fromkeys(inputs, "")}
    meta.write_text(json.dumps(facts | ({"energy": {"job": job}} if job else {})))


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The meta files of two tables: of one pretraining and its curve, and of a fine-tuning."""
    monkeypatch.chdir(tmp_path)
    made(MAIN, SHARED, job=MAIN)
    made(ABLATION, SHARED, MAIN, job=ABLATION)
    made(OTHER, SHARED, job=OTHER)
    made("results/demo/tables/main.csv", MAIN.replace(".pt", ".csv"))
    made("results/demo/tables/ablation.csv", str(paths.meta(ABLATION)), "config/paper/abl.csv")


@pytest.fixture
def report(results, attempts):
    """Writes the report of some attempts; rows by level and name."""

    def write(chosen=attempts):
        shutil.rmtree(ENERGY, ignore_errors=True)
        for row in chosen:
            record(ENERGY, row)
        run(plan_of("demo").co2(), ENERGY, OUT, Path("out/co2.tex"), Path("out/co2.pdf"))
        with OUT.open(newline="") as file:
            return {(row["level"], row["name"]): row for row in csv.DictReader(file)}

    return write


def sums(rows):
    """What some attempts of the demo add up to."""
    return account(plan_of("demo").co2(), Path("results/demo"), frame_of(rows))


def said(rows):
    """The paragraph on some attempts."""
    return " ".join(statements(sums(rows), frame_of(rows)).values())


def test_every_attempt_counts_for_its_job_its_rule_and_the_total(report):
    rows = report()
    job = rows["job", MAIN]
    assert (job["attempts"], job["unfinished"], job["rule"]) == ("2", "1", "pretrain")
    assert (float(job["kwh"]), float(job["kg"]), float(job["hours"])) == (6, 3, 1.5)
    assert float(rows["rule", "pretrain"]["kg"]) == 11
    assert rows["rule", "finetune"]["device"] == "V100"
    total = rows["total", ""]
    assert (total["attempts"], total["unfinished"], float(total["kwh"])) == ("7", "2", 31)
    assert float(total["impact_kg"]) == pytest.approx(0.25 * 0.5)


def test_rules_that_made_one_file_stand_in_the_order_of_their_attempts(report, attempt):
    rules = ["pretrain", "finetune", "data", "import-weights", "table"]
    rows = [
        attempt(attempt=str(n), at=str(n), job=MAIN, stage=rule)
        for n, rule in enumerate([*rules, "data"])
    ]
    assert report(rows)["job", MAIN]["rule"] == " ".join(rules)


def test_a_table_counts_what_it_is_made_of_shared_jobs_included(report):
    rows = report()
    assert float(rows["table", "main"]["kg"]) == 0.5 + 3
    ablation = {"data": 0.5, "pretrain of epnet": 3, "finetune of rot-ep": 4}
    assert float(rows["table", "ablation"]["kg"]) == sum(ablation.values())
    assert ("table", "cub") not in rows  # not built
    assert not [name for level, name in rows if level == "figure"]


def test_a_store_counts_the_downloads_that_it_was_built_from(results, attempt):
    receipt, table = "results/demo/sources/cifar-100.json", "results/demo/tables/main.csv"
    Path(SHARED).parent.mkdir(parents=True)
    Path(SHARED).write_text(json.dumps({"provenance": {"sources": {"cifar-100": {}}}}))
    rows = [attempt(attempt=file, job=file) for file in (receipt, SHARED, table)]
    products = sums(rows).set_index(["level", "name"])
    assert products.loc[("table", "main"), "attempts"] == 3
    Path(SHARED).write_text("torn")
    products = sums(rows).set_index(["level", "name"])
    assert products.loc[("table", "main"), "attempts"] == 2


def test_several_files_of_one_job_are_that_job(results, attempt):
    """Scores of several protocols: the job is named after the first file, a table reads another."""
    first, second = (f"results/demo/scores/x/s0/5way-{shot}shot.csv" for shot in (1, 5))
    for file in (first, second):
        made(file, job=first)
    table = "results/demo/tables/main.csv"
    made(table, second)
    rows = [attempt(attempt=name, job=first) for name in ("once", "again")]
    products = sums([*rows, attempt(job=table)]).set_index(["level", "name"])
    assert products.loc[("table", "main"), "attempts"] == 3


def test_the_paragraph_says_what_is_measured_and_checks_the_papers_own(results, attempts):
    text = said(attempts)
    assert "in 7 attempts at 6 jobs, 2 of which failed" in text
    assert "26 % of the energy was measured by power counters" in text  # the GPU's 8 of 31 kWh
    assert "15.5 kg CO2eq from 31 kWh" in text
    assert "122.4 kg by the same formula, not the printed 146.88 kg" in text
    assert "factor of 0.5 kg/kWh (set in config/footprint.yaml) and a PUE of 1.25" in text
    assert "estimated, not measured, because no power counter was there" in said(attempts[:3])


def test_the_paragraph_says_what_each_attempt_was_computed_with(results, attempts):
    changes = {"factor": 0.3, "pue": 1.5}
    assert (
        "factor of 0.3 to 0.5 kg/kWh (set in config/footprint.yaml) and a PUE of 1.25 to 1.5."
    ) in said([attempts[1], attempts[0] | changes])


def test_hours_times_power_can_be_checked_by_hand(results, attempts):
    """One hour of a GPU of 250 W at 0.5 kg/kWh."""
    assert "give 0.125 kg CO2eq: 1 hours of GPU jobs at 250 W." in said(attempts)
    assert "Machine Learning Impact" not in said(attempts[:3])


def test_without_tracked_jobs_the_error_says_what_to_do(report):
    with pytest.raises(UserError, match="has no energies of jobs"):
        report([])


def test_attempts_that_used_nothing_are_drawn(report, attempts):
    nothing = dict.fromkeys(("cpu_kwh", "gpu_kwh", "gpu_watts"), 0.0)
    rows = report([row | nothing for row in attempts])
    assert float(rows["total", ""]["kwh"]) == 0
    assert Path("out/co2.pdf").stat().st_size > 0


@pytest.mark.latex
def test_the_table_compiles_and_has_its_numbers(report):
    report()
    with chdir("out"):
        text = compiled("co2.tex")
    assert re.search(r"pretrain\s+3\s+2\s+2\.5\s+3\s+22\s+11\b", text)
    assert re.search(r"Total\s+7\s+2\s+", text)
    said = " ".join(text.split())
    assert "give 0.125 kg CO2 eq: 1 hours of GPU jobs at 250 W." in said
    assert "122.4 kg by the same formula" in said
    assert max(overfull("out/co2.log"), default=0) < 5
