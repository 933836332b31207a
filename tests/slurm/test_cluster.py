"""One table on a real SLURM that does to it what clusters do; the table is right all the same.

Memory: the first try of every pretraining asks for less than it takes and is killed. Time: the
second try's limit is shortened once it trains, until SLURM's warning is due, for which the training
waits. Then a job is requeued, another canceled, an embedding fails, and the driver is killed. Each
waits for what it needs to have happened, never for a time: this machine may be slow.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from one_node import Cluster

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slurm

TABLE = "tables/main.tex"
# Of a training and what is made of its network; of the latter alone once the former is there.
FINETUNING = "group_tiny-glyphs_conv4_*_s0_finetune-?shot_*"
PRETRAINING = "group_tiny-glyphs_conv4_*_s0_pretrain_*"
# The last image is of a test class: embeddings read it, the trainings in the same jobs do not.
IMAGES = "results/tiny/data/tiny-glyphs/images.npy"
EMBEDDING = "results/tiny/logs/embed/tiny-glyphs/conv4/{}/s0-finetune-5shot.log"
# Long enough to be found while it trains.
LONG = "pretraining: {epochs: 60, plateau: {patience: 100000}, batch_size: 32"
SHORT = "pretraining: {epochs: 2, batch_size: 32"
# Less than a pretraining and its two Snakemakes take, but more than half of it.
LITTLE = {
    "  finetune: *gpu\n": "  pretrain:\n    <<: *gpu\n    mem_mb: 350 * attempt\n",
    "  pretrain: &gpu\n": "  finetune: &gpu\n    runtime: 20 * attempt\n",
}
TRIES = ("00:20:00", "00:40:00", "01:00:00")


def furnish(folder):
    for name in ("Snakefile", "environment.yml"):
        shutil.copy(ROOT / name, folder)
    for name in ("config", "workflow", "profiles"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "tests/workflow/tiny.yaml", folder / "config/scales")
    replace(folder / "config/config.yaml", "scale: demo", "scale: tiny")
    replace(folder / "config/scales/tiny.yaml", SHORT, LONG)


def replace(file, old, new):
    text = file.read_text(encoding="utf-8")
    assert old in text, file
    file.write_text(text.replace(old, new), encoding="utf-8")


def results(folder):
    return {name: (folder / name).read_bytes() for name in (TABLE, "results/tiny/tables/main.csv")}


@pytest.fixture(scope="module")
def alone(slurm, tmp_path_factory):
    """The same project without a cluster: its folder and the run, which goes on meanwhile."""
    folder = tmp_path_factory.mktemp("alone") / "my project"
    folder.mkdir()
    furnish(folder)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", TABLE]
    with (folder / "driver.log").open("w") as log:
        files = {"stdout": log, "stderr": log}
        run = subprocess.Popen(command, cwd=folder, start_new_session=True, **files)
    yield folder, run
    end(run)


@pytest.fixture(scope="module")
def expected(alone):
    """The table that this machine makes alone."""
    folder, run = alone
    assert run.wait(1200) == 0, (folder / "driver.log").read_text()
    return results(folder)


@pytest.fixture(scope="module")
def disturbed(slurm, alone, tmp_path_factory):
    """The project after everything has been done to it, and what was seen on the way."""
    folder = tmp_path_factory.mktemp("cluster") / "my project"
    folder.mkdir()
    furnish(folder)
    profile = folder / "workflow/profiles/slurm/profile.yaml"
    replace(profile, "latency-wait: 60", "latency-wait: 10")
    replace(profile, "retries: 2", "retries: 5")
    for old, new in LITTLE.items():
        replace(profile, old, new)
    cluster, seen = Cluster(folder, slurm), {}
    driver = cluster.start(TABLE)
    try:
        seen["cards"] = cluster.wait(lambda: two_cards(cluster))
        seen["warned"] = cluster.wait(lambda: two_that_train(cluster))
        with at_rest(trainings(folder)) as processes:
            seen["status"] = cluster.run(sys.executable, "-m", "epcore", "status")
            for number in seen["warned"]:
                cluster.shorten(number)
            cluster.wait(lambda: not any(process.is_running() for process in processes))

        requeued = cluster.wait(lambda: third(cluster.jobs("pretrain", "RUNNING")))
        cluster.run("scontrol", "requeue", requeued.number)
        seen["requeued"] = requeued.number

        with damaged(folder / IMAGES):
            canceled = cluster.wait(lambda: one_shot(cluster.jobs("finetune", "RUNNING")))
            cluster.run("scancel", canceled.number)
            seen["canceled"] = canceled.number
            seen["stumbled"] = cluster.wait(lambda: stumbled(cluster))[0]

        # Whatever still runs when the driver is killed is canceled.
        cluster.wait(lambda: requeued.number in numbers(cluster.jobs("pretrain", "COMPLETED")))
        cluster.wait(lambda: cluster.jobs("finetune", "COMPLETED"))
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        seen["first log"] = cluster.log
        do_as_documented(cluster)
        driver = cluster.start(TABLE)
        seen["code"] = driver.wait(1200)
    finally:
        end(driver)
    seen["cluster"] = cluster
    return seen


def do_as_documented(cluster):
    """The lines of docs/cluster.md for a killed driver."""
    page = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```\n(grep .*?)```", page, re.S)
    ask, *then = lines.splitlines()
    run = cluster.run("bash", "-c", ask).split()[-1]
    for line in then:
        cluster.run("bash", "-c", line.replace("RUN_ID", run))


def end(run):
    """Ends a Snakemake and what it has started here."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(run.pid, signal.SIGKILL)
    run.wait()


@contextlib.contextmanager
def damaged(file):
    """A file whose last byte is another one, for a while."""
    invert_last_byte(file)
    yield
    invert_last_byte(file)


def invert_last_byte(file):
    """In place, as the file may be in use."""
    with file.open("rb+") as images:
        images.seek(-1, os.SEEK_END)
        (last,) = images.read(1)
        images.seek(-1, os.SEEK_END)
        images.write(bytes([last ^ 255]))


def one_shot(jobs):
    return next((job for job in jobs if "1shot" in job.name), None)


def stumbled(cluster):
    """Recipes of which a job is tried again because its embedding stumbled upon an image."""
    group = r"Error in group tiny-glyphs_conv4_(\w+)_s0_finetune-5shot(?=.*Trying to restart)"
    failed = re.findall(group, cluster.log, re.S)
    logs = [(cluster.folder / EMBEDDING.format(recipe)).read_text() for recipe in failed]
    assert all("has another checksum" in log for log in logs)
    return failed


def third(jobs):
    """A pretraining in its third try."""
    return next((job for job in jobs if job.limit == TRIES[2]), None)


def numbers(jobs):
    return {job.number for job in jobs}


def trainings(folder):
    """The processes that pretrain a network of a project, without the Snakemakes around them."""
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cmdline()[2:3] == ["pretrain"] and Path(process.cwd()) == folder:
                processes.append(process)
    return processes


@contextlib.contextmanager
def at_rest(processes):
    """Stops processes for a while; SLURM's warning wakes them earlier, as it sends SIGCONT too."""
    for process in processes:
        process.suspend()
    try:
        yield processes
    finally:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


def two_cards(cluster):
    """CUDA_VISIBLE_DEVICES of the pretrainings, once two of them run together."""
    found = {}
    for process in trainings(cluster.folder):
        with contextlib.suppress(psutil.Error):
            values = process.environ()
            found[values["SLURM_JOB_ID"]] = values.get("CUDA_VISIBLE_DEVICES")
    return found if len(found) == 2 else None


def two_that_train(cluster):
    """The two pretrainings in their second try, once both have trained an epoch.

    The first of them is stopped until then: it could be over before the other begins.
    """
    jobs = [job for job in cluster.jobs("pretrain", "RUNNING") if job.limit == TRIES[1]]
    train = set()
    for file in cluster.folder.glob("results/tiny/models/**/*.state/*.json"):
        with contextlib.suppress(OSError):  # its training may just have left
            beat = json.loads(file.read_text())
            train |= {beat["slurm_job"]} if beat["epoch"] > 0 else set()
    train &= numbers(jobs)
    for process in trainings(cluster.folder):
        with contextlib.suppress(psutil.Error):
            if process.environ()["SLURM_JOB_ID"] in train:
                process.suspend()
    return train if len(train) == 2 else None


def test_the_table_is_the_one_that_this_machine_makes_alone(disturbed, expected):
    assert disturbed["code"] == 0, disturbed["cluster"].log[-5000:]
    assert results(disturbed["cluster"].folder) == expected


def test_concurrent_jobs_have_cards_of_their_own(disturbed):
    assert sorted(disturbed["cards"].values()) == ["0", "1"]


def test_a_retry_asks_for_more_and_trainings_resume(disturbed):
    jobs = disturbed["cluster"].jobs("pretrain")
    # Those of the second try had TRIES[1] when they were found, before they were shortened.
    assert {TRIES[0], TRIES[2]} <= {job.limit for job in jobs}
    metas = disturbed["cluster"].folder.glob("results/tiny/models/**/pretrain.meta.json")
    for meta in metas:
        assert '"resumed_from_epoch": null' not in meta.read_text()


def test_a_job_beyond_its_memory_is_killed_and_tried_again(disturbed):
    first = disturbed["cluster"].jobs("pretrain")[:2]
    assert all(job.state != "COMPLETED" and job.limit == TRIES[0] for job in first)
    folder = disturbed["cluster"].folder / "logs/slurm"
    logs = [next(folder.glob(f"{PRETRAINING}/{job.number}.log")).read_text() for job in first]
    assert any("Exceeded job memory limit" in log for log in logs)


def test_a_job_near_its_time_limit_saves_and_leaves_before(disturbed):
    """One that SLURM had to end would be TIMEOUT, and its training would begin anew."""
    jobs = disturbed["cluster"].jobs("pretrain")
    warned = [job for job in jobs if job.number in disturbed["warned"]]
    assert [job.state for job in warned] == ["FAILED"] * 2
    logs = disturbed["cluster"].folder.glob("results/tiny/logs/pretrain/tiny-glyphs/*/*/s0.log")
    said = [re.search(r"pretrain goes on after epoch (\d+)/60", log.read_text()) for log in logs]
    assert len(said) == 2
    assert all(int(found[1]) > 0 for found in said)


def test_a_requeued_job_is_the_same_job_and_ends_well(disturbed):
    (job,) = (job for job in disturbed["cluster"].jobs() if job.number == disturbed["requeued"])
    assert job.restarts == 1
    assert job.state == "COMPLETED"


def test_a_canceled_job_is_tried_again(disturbed):
    assert disturbed["canceled"] in numbers(disturbed["cluster"].jobs("finetune", "CANCELLED"))
    log = f"{disturbed['canceled']}.log (check log file(s) for error details)"
    assert log in disturbed["first log"]


def test_a_training_and_its_embedding_are_one_job_with_one_card(disturbed):
    jobs = disturbed["cluster"].jobs("finetune", "COMPLETED")
    together = [job for job in jobs if job.name.endswith("_embed_finetune")]
    # One was waited for. Others may have ended in two: canceled, or after an embedding that failed.
    assert together
    for job in together:
        asked = disturbed["cluster"].run("scontrol", "show", "job", job.number)
        assert "TresPerJob=gres:gpu:1\n" in asked
        (log,) = disturbed["cluster"].folder.glob(f"logs/slurm/{FINETUNING}/{job.number}.log")
        assert "2 of 2 steps (100%) done" in log.read_text()


def test_an_embedding_that_fails_costs_no_training(disturbed):
    """Snakemake has deleted the checkpoint as well; its last state has made it again."""
    folder = disturbed["cluster"].folder / "results/tiny"
    place = f"tiny-glyphs/conv4/{disturbed['stumbled']}"
    log = (folder / f"logs/finetune/{place}/s0-5shot.log").read_text()
    assert "finetune 5-shot goes on after epoch 1/1" in log
    assert not list(folder.rglob("*.state"))


def test_evaluations_and_tables_are_no_jobs(disturbed):
    rules = {job.rule for job in disturbed["cluster"].jobs()}
    assert rules == {"data", "pretrain", "finetune"}


def test_status_shows_the_running_trainings(disturbed):
    assert "2 trainings running" in disturbed["status"]
    assert "tiny tiny-glyphs/conv4/net/s0/pretrain" in disturbed["status"]
    assert all(f", job {number}\n" in disturbed["status"] for number in disturbed["warned"])


def test_logs_are_where_the_documentation_says(disturbed):
    folder = disturbed["cluster"].folder
    places = {"data": "rule_data/*", "pretrain": PRETRAINING, "finetune": FINETUNING}
    for job in disturbed["cluster"].jobs():
        logs = list((folder / "logs/slurm").glob(f"{places[job.rule]}/{job.number}.log"))
        assert len(logs) == 1 or job.state == "CANCELLED", job
    assert list(folder.glob("results/tiny/logs/pretrain/tiny-glyphs/conv4/*/s0.log"))
