"""The CO2 report: sums by hand, and what may be trusted."""

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from epcore.errors import UserError
from epcore.footprint.account import account
from epcore.footprint.ledger import append
from epcore.footprint.report import largest, paragraph, run
from epcore.plan import Plan, paths

CONFIG = Path(__file__).parents[2] / "config"
SHARED = "results/demo/data/glyph-mini/store.json"
MAIN = "results/demo/models/glyph-mini/conv4/epnet/s0/pretrain.pt"
ABLATION = "results/demo/models/glyph-mini/conv4/rot-ep/s0/finetune-1shot.pt"
OTHER = "results/demo/models/glyph-mini/conv4/epnet/s7/pretrain.pt"
LEDGER, OUT = Path("ledger.jsonl"), Path("out/co2.csv")


@pytest.fixture
def entries(entry):
    """Two tables share a data set; one training failed first; one is in no table; see `made`."""
    made = [
        entry(attempt="1", job=SHARED, stage="data", kwh=1, kg=0.5),
        entry(attempt="2", job=MAIN, state="failed", kwh=2, kg=1, seconds=1800),
        entry(attempt="3", job=MAIN, kwh=4, kg=2),
        entry(attempt="4", job=ABLATION, stage="finetune", kwh=8, kg=4, device="V100"),
        entry(attempt="5", job=OTHER, state="running", kwh=16, kg=8),
    ]
    for table, attempt in (("main", "6"), ("ablation", "7")):
        file = f"results/demo/tables/{table}.csv"
        made.append(entry(attempt=attempt, job=file, stage="table", kwh=0, kg=0, seconds=0))
    return made


def made(file, *inputs, attempt=""):
    """Writes the meta file of a job that made a file, and others beside it, from inputs."""
    meta = Path(paths.meta(file))
    meta.parent.mkdir(parents=True, exist_ok=True)
    names = [Path(file).name, Path(file).with_suffix(".csv").name]
    facts = {"made": dict.fromkeys(names, ""), "inputs": dict.fromkeys(inputs, "")}
    meta.write_text(json.dumps(facts | ({"energy": {"attempt": attempt}} if attempt else {})))


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The meta files of two tables: of one pretraining and its curve, and of a fine-tuning."""
    monkeypatch.chdir(tmp_path)
    made(MAIN, SHARED, attempt="3")
    made(ABLATION, SHARED, MAIN, attempt="4")
    made(OTHER, SHARED, attempt="5")
    made("results/demo/tables/main.csv", MAIN.replace(".pt", ".csv"))
    made("results/demo/tables/ablation.csv", str(paths.meta(ABLATION)), "config/paper/abl.csv")


@pytest.fixture
def report(results, entries):
    """Writes the report of some entries; rows by level and name."""

    def write(chosen=entries):
        LEDGER.unlink(missing_ok=True)
        for one in chosen:
            append(LEDGER, one)
        run(Plan(CONFIG, "demo").co2(), LEDGER, OUT, Path("out/co2.tex"), Path("out/co2.pdf"))
        with OUT.open(newline="") as file:
            return {(row["level"], row["name"]): row for row in csv.DictReader(file)}

    return write


def sums(entries):
    """What some entries of the demo add up to."""
    return account(Plan(CONFIG, "demo").co2(), Path("results/demo"), entries)


@pytest.fixture
def said():
    """The paragraph on some entries."""
    return lambda *entries: paragraph(sums(entries))


def test_every_attempt_counts_for_its_job_its_rule_and_the_total(report):
    rows = report()
    job = rows["job", MAIN]
    assert (job["attempts"], job["unfinished"], job["rule"]) == ("2", "1", "pretrain")
    assert (float(job["kwh"]), float(job["kg"]), float(job["hours"])) == (6, 3, 1.5)
    assert float(rows["rule", "pretrain"]["kg"]) == 11
    assert rows["rule", "finetune"]["device"] == "V100"
    total = rows["total", ""]
    assert (total["attempts"], total["unfinished"], float(total["kwh"])) == ("7", "2", 31)
    assert float(total["impact_kg"]) == pytest.approx(7 * 0.02 * 0.1)


def test_rules_that_made_one_file_stand_in_the_order_of_their_attempts(report, entry):
    rules = ["pretrain", "finetune", "data", "import-weights", "table"]
    made = [entry(attempt=str(n), job=MAIN, stage=rule) for n, rule in enumerate([*rules, "data"])]
    assert report(made)["job", MAIN]["rule"] == " ".join(rules)


def test_a_table_counts_what_it_is_made_of_shared_jobs_included(report):
    rows = report()
    assert float(rows["table", "main"]["kg"]) == 0.5 + 3
    ablation = {"data": 0.5, "pretrain of epnet": 3, "finetune of rot-ep": 4}
    assert float(rows["table", "ablation"]["kg"]) == sum(ablation.values())
    assert ("table", "cub") not in rows  # not built
    assert not [name for level, name in rows if level == "figure"]


def test_a_store_counts_the_downloads_that_it_was_built_from(results, entry):
    receipt, table = "results/demo/sources/cifar-100.json", "results/demo/tables/main.csv"
    Path(SHARED).parent.mkdir(parents=True)
    Path(SHARED).write_text(json.dumps({"provenance": {"sources": {"cifar-100": {}}}}))
    entries = [entry(attempt=file, job=file) for file in (receipt, SHARED, table)]
    (main,) = sums(entries).products
    assert {one.job for one in main.entries} == {receipt, SHARED, table}
    Path(SHARED).write_text("torn")
    (main,) = sums(entries).products
    assert {one.job for one in main.entries} == {SHARED, table}


def test_several_files_of_one_job_are_that_job_by_its_attempt(results, entry):
    """Scores of a suite: the ledger names the first file, a table may read another."""
    first, second = (f"results/demo/scores/x/s0/5way-{shot}shot.csv" for shot in (1, 5))
    for file in (first, second):
        made(file, attempt="suite")
    made("results/demo/tables/main.csv", second)
    table = "results/demo/tables/main.csv"
    entries = [entry(attempt="suite", job=first), entry(attempt="again", job=first)]
    (main,) = sums([*entries, entry(attempt="t", job=table)]).products
    assert sorted(one.attempt for one in main.entries) == ["again", "suite", "t"]


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", "null", '{"made": null}'])
def test_a_meta_file_that_is_none_hides_no_table(results, entries, content):
    Path("results/demo/models/foreign.meta.json").write_text(content)
    products = sums(entries).products
    assert {product.name for product in products} == {"main", "ablation"}


def test_the_same_ledger_gives_the_same_bytes(report):
    report()
    files = [OUT, Path("out/co2.md"), Path("out/co2.tex"), Path("out/co2.pdf")]
    files.append(Path("out/co2.png"))
    first = [file.read_bytes() for file in files]
    report()
    assert [file.read_bytes() for file in files] == first
    assert OUT.with_suffix(".meta.json").is_file()


def test_the_paragraph_says_what_is_measured_and_checks_the_papers_own(said, entries):
    estimated = said(*entries)
    assert "in 7 attempts at 6 jobs, 2 of which failed" in estimated
    assert "estimated, not measured, because no power counter was there" in estimated
    assert "15.5 kg CO2eq from 31 kWh" in estimated
    assert "122.4 kg by the same formula, not the printed 146.88 kg" in estimated
    assert "factor of 0.1 kg/kWh (set in config/footprint.yaml) and a PUE of 1.25" in estimated
    half = entries[2].model_copy(update={"measured_kwh": 2.0})
    assert "50 % of the energy was measured by power counters" in said(half)


def test_the_paragraph_says_what_each_attempt_was_computed_with(said, entries):
    changes = {"factor": 0.3, "pue": 1.5, "factor_source": "codecarbon's for quebec, CAN"}
    other = entries[0].model_copy(update=changes)
    assert (
        "factor of 0.1 to 0.3 kg/kWh (codecarbon's for quebec, CAN; set in config/footprint.yaml) "
        "and a PUE of 1.25 to 1.5."
    ) in said(entries[1], other)


def test_hours_times_power_can_be_checked_by_hand(said, entries):
    """The GPU's job used one hour, the others six of a core; all 0.02 kWh each, at 0.1 kg/kWh."""
    text = said(*entries)
    assert "give 14 g CO2eq: 6 core hours at 20 W and 1 hours of GPU jobs at 20 W." in text
    assert "Memory, the processor beside a GPU and the PUE are not in it." in text
    assert "give 2 g CO2eq: 1 core hours at 20 W. Memory" in said(entries[0])


def test_an_empty_ledger_is_an_error_that_says_what_to_do(report):
    with pytest.raises(UserError, match="ledger"):
        report([])


def test_attempts_that_used_nothing_are_drawn(report, entries):
    nothing = dict.fromkeys(("kwh", "kg", "tdp_kwh"), 0.0)
    rows = report([one.model_copy(update=nothing) for one in entries])
    assert float(rows["total", ""]["kwh"]) == 0
    assert Path("out/co2.pdf").stat().st_size > 0


@pytest.mark.latex
def test_the_table_compiles_and_has_its_numbers(report):
    for program in ("latexmk", "pdftotext"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    report()
    command = ["latexmk", "-pdf", "-interaction=nonstopmode", "-halt-on-error", "co2.tex"]
    done = subprocess.run(command, cwd="out", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    command = ["pdftotext", "-layout", "out/co2.pdf", "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.search(r"pretrain\s+3\s+2\s+150\s+180\s+22\s+11\b", text)
    assert re.search(r"Total\s+7\s+2\s+", text)
    assert re.search(r"This run: 6 core hours at 20 W and 1 hours of GPU jobs at 20 W\s+14 g", text)
    assert re.search(r"24480 h at 250 W.*122", text)
    log = Path("out/co2.log").read_text(errors="replace")
    assert not re.search(r"Overfull \\hbox \(([5-9]|\d\d+)\.", log)


def test_the_largest_bars_come_first_and_small_ones_stand_together(report, entries):
    report()
    rules = sums(entries).rules
    assert largest(rules, 3) == [("pretrain", 11.0), ("finetune", 4.0), ("2 others", 0.5)]
    assert [name for name, _ in largest(rules, 0)][:3] == ["pretrain", "finetune", "data"]
