"""The forecast: ranges that hold what happens, and that a ledger narrows."""

import heapq
import itertools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from epcore.errors import UserError
from epcore.footprint.estimate import ON_GPU, THREADED, Estimate, Estimator, Range, learn
from epcore.footprint.forecast import GIB, forecast, gibibytes, tell, wall_time
from epcore.footprint.ledger import append
from epcore.plan import Plan
from epcore.plan.jobs import Job, Jobs

CONFIG = Path(__file__).parents[2] / "config"
MODEL = "results/demo/models/glyph-mini/conv4/epnet/s0/pretrain.pt"


@pytest.fixture
def demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Plan(CONFIG, "demo")


def scheduled(jobs, hours, devices, random):
    """The time that jobs really need if a free device takes any job that can run."""
    left, running, now = dict(jobs), [], 0.0
    done = set()
    while left or running:
        ready = [name for name, needs in left.items() if needs <= done]
        random.shuffle(ready)
        for name in ready[: devices - len(running)]:
            heapq.heappush(running, (now + hours[name], name))
            del left[name]
        now, name = heapq.heappop(running)
        done.add(name)
    return now


def test_wall_time_holds_what_any_scheduler_needs(demo):
    random = np.random.default_rng(0)
    for _ in range(200):
        count, devices = int(random.integers(1, 12)), int(random.integers(1, 5))
        hours = {n: float(random.uniform(0.1, 2)) for n in range(count)}
        needs = {n: {m for m in range(n) if random.random() < 0.3} for n in range(count)}
        made: dict[int, Job] = {}
        for n in range(count):
            made[n] = Job("x", str(n), tuple(made[m] for m in needs[n]))
        estimates = {
            made[n]: Estimate(made[n], "gpu", *[Range(hours[n], hours[n])] * 2, Range(), 0, False)
            for n in range(count)
        }
        found = wall_time(demo, estimates, "gpu", devices)
        real = scheduled(needs, hours, devices, random)
        assert found.low <= real * (1 + 1e-9)
        assert real <= found.high * (1 + 1e-9)
        if devices == 1:
            assert found.low == pytest.approx(found.high)


def test_a_ledger_corrects_and_narrows(demo, entry):
    (job,) = [e.job for e in forecast(demo, [MODEL]).estimates if e.job.rule == "pretrain"]
    plain = Estimator(demo, "cpu")
    expected = plain.unscaled(job).middle
    ledger = Path("results/demo/ledger.jsonl")
    for number, factor in enumerate((3.0, 2.0, 2.5)):
        seconds = factor * expected * 3600
        append(
            ledger,
            entry(attempt=str(number), job=MODEL, cpu_seconds=seconds, kwh=seconds / 3600 * 0.05),
        )
    append(ledger, entry(attempt="failed", job=MODEL, state="failed", cpu_seconds=1e6))
    append(ledger, entry(attempt="foreign", job="results/nowhere/x.pt", cpu_seconds=1e6))
    append(ledger, entry(attempt="odd", job="none", cpu_seconds=1e6))
    known = learn(demo, [ledger])
    assert known.attempts == 3
    assert known.ratios == {("pretrain", "conv4", "cpu"): pytest.approx(2.5)}
    assert known.kwh_per_hour == {"cpu": pytest.approx(0.05)}
    refined = Estimator(demo, "cpu", known)(job)
    assert refined.from_ledger
    assert refined.hours.middle == pytest.approx(2.5 * expected)
    before = plain(job).hours
    assert refined.hours.high / refined.hours.low < before.high / before.low
    assert refined.kwh.middle == pytest.approx(2.5 * expected * 0.05)


def test_an_attempt_that_used_no_time_says_nothing_of_power(demo, entry):
    ledger = Path("results/demo/ledger.jsonl")
    append(ledger, entry(attempt="killed", job=MODEL, state="running"))
    append(ledger, entry(attempt="remade", job=MODEL, cpu_seconds=0))
    assert learn(demo, [ledger]).attempts == 0


def test_the_processor_time_of_a_download_says_nothing_of_how_long_the_next_one_takes(demo, entry):
    ledger = Path("results/small/ledger.jsonl")
    receipt = "results/small/sources/cifar-100.json"
    small = Plan(CONFIG, "small")
    assert [e.job.rule for e in forecast(small, [receipt], finished_too=True).estimates] == [
        "fetch"
    ]
    append(ledger, entry(job=receipt, stage="fetch", seconds=600, cpu_seconds=3))
    assert learn(small, [ledger]).ratios == {}


def test_attempts_of_a_killed_training_count_together_and_a_remade_one_not_at_all(demo, entry):
    (job,) = [e.job for e in forecast(demo, [MODEL]).estimates if e.job.rule == "pretrain"]
    expected = 3600 * Estimator(demo, "cpu").unscaled(job).middle
    ledger = Path("results/demo/ledger.jsonl")
    for state, factor in (("running", 0.7), ("interrupted", 0.5), ("finished", 0.3)):
        append(ledger, entry(attempt=state, job=MODEL, state=state, cpu_seconds=factor * expected))
    append(ledger, entry(attempt="remade", job=MODEL, cpu_seconds=0.01 * expected))
    known = learn(demo, [ledger])
    assert known.ratios == {("pretrain", "conv4", "cpu"): pytest.approx(1.5)}
    assert known.attempts == 1


def test_another_scales_attempts_count_until_this_one_has_its_own(demo, entry):
    other = Plan(CONFIG, "batch-epochs")
    path = MODEL.replace("demo", "batch-epochs")
    for plan, file, factor in ((other, path, 3.0), (demo, MODEL, 2.0)):
        (job,) = [e.job for e in forecast(plan, [file]).estimates if e.job.rule == "pretrain"]
        seconds = factor * Estimator(plan, "cpu").unscaled(job).middle * 3600
        append(
            Path(f"results/{plan.scale_name}/ledger.jsonl"),
            entry(attempt=file, job=file, cpu_seconds=seconds),
        )
    key = ("pretrain", "conv4", "cpu")
    ledgers = [Path(f"results/{name}/ledger.jsonl") for name in ("demo", "batch-epochs")]
    assert learn(demo, ledgers[1:]).ratios == {key: pytest.approx(3)}
    assert learn(demo, ledgers).ratios == {key: pytest.approx(2)}


def test_what_is_there_is_not_forecast(demo):
    everything = forecast(demo, ["tables/main.tex"])
    file = Path("results/demo/data/glyph-mini/store.json")
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    rest = forecast(demo, ["tables/main.tex"])
    assert (everything.done, rest.done) == (0, 1)
    assert len(rest.estimates) == len(everything.estimates) - 1
    again = forecast(demo, ["tables/main.tex"], finished_too=True)
    assert len(again.estimates) == len(everything.estimates)


@pytest.mark.parametrize(
    "left", ["", "[]", '{"classes": 3}', '{"classes": [], "shape": [9]}',
             '{"classes": [{"split": "base"}], "shape": []}'],
)  # fmt: skip
def test_a_damaged_store_says_nothing_of_its_size(demo, left):
    expected = forecast(demo, ["tables/main.tex"], finished_too=True)
    file = Path("results/demo/data/glyph-mini/store.json")
    file.parent.mkdir(parents=True)
    file.write_text(left)
    found = forecast(demo, ["tables/main.tex"], finished_too=True)
    assert found.total("kwh") == expected.total("kwh")


def test_the_rules_that_use_a_gpu_are_those_of_the_workflow():
    declaring = []
    for file in (CONFIG.parent / "workflow/rules").glob("*.smk"):
        for rule in re.split(r"^rule ", file.read_text(), flags=re.M)[1:]:
            if re.search(r"^        gpu=", rule, re.M):
                declaring.append(rule.split(":")[0])
    assert sorted(ON_GPU) == sorted(declaring)


def test_the_threads_of_rules_are_those_of_the_workflow():
    resources = {
        "THREADS": "scale.resources",
        "RESOURCES": "scale.resources",
        **{name: f"imagenet_fs.scale.resources.{name.lower()}"
           for name in ("NETWORK", "FEATURES", "WEIGHTS")},
    }  # fmt: skip
    declared = {}
    for file in (CONFIG.parent / "workflow/rules").glob("*.smk"):
        for rule in re.split(r"^ *rule ?(?=\w*:$)", file.read_text(), flags=re.M)[1:]:
            stated = re.search(r"^ +threads: (\w+)(?:\.(\w+))??(?:\.threads)?$", rule, re.M)
            if stated and stated[1] != "1":
                place = [resources[stated[1]], *filter(None, [stated[2]])]
                declared[rule.split(":")[0] or file.stem] = ".".join(place)
    assert declared == THREADED


def test_a_jobs_hours_are_shared_by_the_threads_of_its_own_rule(config):
    """A number of threads of its own for each kind of job, so that none is taken for another."""
    path = config / "scales/demo.yaml"
    text, number = path.read_text(encoding="utf-8"), itertools.count(2)
    text = re.sub(r"threads: 1\b", lambda _: f"threads: {next(number)}", text)
    path.write_text(text, encoding="utf-8")
    plan = Plan(config, "demo")
    cores = {}
    for estimate in forecast(plan, ["all"], finished_too=True).estimates:
        cores[estimate.job.rule] = round(estimate.hours.low / estimate.wall.low)
    several = {rule: count for rule, count in cores.items() if count > 1}
    assert several == {
        **dict.fromkeys(("pretrain", "finetune", "alpha", "interpolation"), 2),
        **{"data": 3, "embed": 4, "evaluate": 5},
        **{"imagenet_fs_classifier": 6, "imagenet_fs_features": 7},
        **{"imagenet_fs_generator": 8, "imagenet_fs_evaluate": 8},
    }


@pytest.mark.parametrize(
    ("size", "said"), [(270.4, "270"), (22.1, "22"), (0.1512, "0.15"), (0, "0")]
)
def test_gibibytes_are_said_in_full(size, said):
    assert gibibytes(size * GIB) == f"{said} GiB"


def test_columns_stand_below_each_other_whatever_rules_are_called(demo):
    text = tell(demo, forecast(demo, ["tables/imagenetfs.tex"]), 0.02)
    head, *rows = text.split("\n\n")[1].splitlines()
    assert any("imagenet_fs_classifier" in row for row in rows)
    assert {len(row) for row in rows} == {len(head)}


def test_more_devices_take_less_time_but_no_less_energy():
    plan = Plan(CONFIG, "paper")
    one, many = (forecast(plan, ["all"], devices=n) for n in (1, 8))
    assert many.wall.high < one.wall.high / 2
    assert many.total("kwh") == one.total("kwh")
    assert one.total("hours", "gpu").low > 10


def test_the_papers_scale_on_gpus_is_of_the_order_of_the_papers_hours():
    """24,480 V100 hours for the whole research, failed ideas and searches included."""
    hours = forecast(Plan(CONFIG, "paper"), ["all"]).total("hours", "gpu")
    assert 50 < hours.low < hours.high < 24_480


def test_own_data_that_nobody_has_counted_are_guessed_and_said_to_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = Plan(CONFIG, "grocery")
    text = tell(plan, forecast(plan, ["all"]), 0.02)
    assert "Guessed" in text
    assert "grocery81" in text


def test_the_text_has_everything(demo):
    found = forecast(demo, ["tables/main.tex"], devices=4)
    text = tell(demo, found, 0.02)
    jobs = f"{len(Jobs(demo).of('tables/main.tex'))} jobs"
    for word in (jobs, "pretrain", "wall time on 4 cores", "kWh", "kg CO2", "disk", "GiB"):
        assert word in text


def test_an_unknown_target_names_the_nearest(demo):
    with pytest.raises(UserError, match=r"tables/maine\.tex.*did you mean 'tables/main\.tex'"):
        forecast(demo, ["tables/maine.tex"])


def test_it_is_pure_python():
    code = (
        "import sys; from pathlib import Path; from epcore.plan import Plan; "
        "from epcore.footprint.forecast import forecast; "
        f"forecast(Plan(Path({str(CONFIG)!r}), 'paper'), ['all']); "
        "print(*{'torch', 'numpy', 'pandas', 'codecarbon', 'psutil'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
