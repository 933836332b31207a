"""Jobs of one machine each take a free GPU; a stand-in `nvidia-smi` names cards without any."""

import os
import subprocess
import sys
import time
import uuid

import pytest

from epcore.errors import UserError
from epcore.runtime import gpus
from epcore.runtime.gpus import claim, local_gpus

CARDS = ["GPU-aa", "GPU-bb", "GPU-cc"]

# Takes cards, says which, and keeps them until its input ends.
JOB = """
import os, sys
from epcore.runtime import gpus
gpus.PREFIX, gpus.POLL = sys.argv[1], 0.02
gpus._torch_sees = lambda *_: True
gpus.claim(int(sys.argv[2]), allow_cpu=True)
print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def no_slurm(monkeypatch):
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "EPCORE_GRES_ONLY"):
        monkeypatch.setenv(name, "")  # so that it will be as it was, whatever `claim` makes of it
        monkeypatch.delenv(name)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose `nvidia-smi -L` prints these lines."""

    def made(lines):
        folder = tmp_path / "bin"
        folder.mkdir()
        script = folder / "nvidia-smi"
        script.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    return made


@pytest.fixture
def cards(machine):
    """A machine with three cards."""
    machine(f"GPU {n}: A card (UUID: {card})" for n, card in enumerate(CARDS))


@pytest.fixture(autouse=True)
def prefix(monkeypatch):
    """Leases that no other test and nobody on this machine has."""
    monkeypatch.setattr(gpus, "PREFIX", f"epcore-test-{uuid.uuid4().hex[:8]}-")
    return gpus.PREFIX


@pytest.fixture
def job(cards, prefix):
    """Starts a process that claims so many cards."""
    started = []

    def start(count=1):
        process = subprocess.Popen(
            [sys.executable, "-c", JOB, prefix, str(count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def in_slurm(cards, monkeypatch):
    """A SLURM job that was given these devices."""

    def given(devices):
        monkeypatch.setenv("SLURM_JOB_ID", "7")
        if devices is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)

    return given


def test_all_cards_are_listed_and_those_that_are_visible_if_the_environment_says(
    cards, monkeypatch
):
    assert local_gpus() == CARDS
    for visible, expected in [("2,0", ["GPU-cc", "GPU-aa"]), ("GPU-bb", ["GPU-bb"]), ("", [])]:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert local_gpus() == expected


def test_a_machine_without_nvidia_smi_has_no_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert local_gpus() == []


def test_jobs_that_run_together_have_different_cards(job):
    together = [job() for _ in CARDS]
    assert sorted(process.stdout.readline().strip() for process in together) == CARDS


def test_one_job_more_waits_until_another_has_ended_however_it_ends(job):
    first = [job() for _ in CARDS]
    taken = [process.stdout.readline().strip() for process in first]
    waiting = job()
    assert "waiting for 1 free GPU of 3" in waiting.stderr.readline()
    time.sleep(0.2)
    assert waiting.poll() is None
    first[1].kill()
    assert waiting.stdout.readline().strip() == taken[1]


def test_two_jobs_of_two_cards_do_not_wait_for_each_others_second(job):
    one, other = job(2), job(2)
    for process in (one, other):
        process.stdin.close()
        process.stdin = None  # what communicate() shall not flush
    for process in (one, other):
        assert len(process.stdout.readline().strip().split(",")) == 2


def test_a_job_that_was_given_a_gpu_and_finds_none_stops(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="given 1 GPU, but this machine has none"):
        claim(1, allow_cpu=False)
    claim(1, allow_cpu=True)


def test_a_job_that_was_given_none_where_there_is_one_stops(cards):
    with pytest.raises(UserError, match="told to use no GPU, but this machine has GPU-aa"):
        claim(0, allow_cpu=False)


def test_a_card_that_torch_does_not_see_is_told(cards, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(UserError, match=r"given GPU-aa, but torch .* sees no GPU"):
        claim(1, allow_cpu=False)


@pytest.mark.parametrize("devices", [None, ""])
def test_a_slurm_job_that_asked_for_a_gpu_and_got_none_stops(in_slurm, devices):
    in_slurm(devices)
    with pytest.raises(UserError, match="given 1 GPU, but SLURM job 7 has none"):
        claim(1, allow_cpu=False)


def test_a_slurm_job_keeps_the_devices_that_slurm_gave_it(in_slurm, monkeypatch):
    in_slurm("1")
    monkeypatch.setattr(gpus, "_torch_sees", lambda *_: True)
    assert claim(1, allow_cpu=False) == 1
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"


def test_jobs_of_a_group_share_out_the_devices_of_their_slurm_job(in_slurm, job):
    """Another SLURM job on the same node may give its own device the same number."""
    in_slurm("0,1")
    first, second = job(), job()
    assert {first.stdout.readline(), second.stdout.readline()} == {"0\n", "1\n"}
    os.environ["SLURM_JOB_ID"] = "8"
    assert job().stdout.readline() in ("0\n", "1\n")


def test_a_slurm_job_that_holds_a_gpu_and_does_not_use_it_stops_unless_it_came_by_gres(
    in_slurm, monkeypatch
):
    in_slurm("0")
    with pytest.raises(UserError, match="SLURM job 7 has 0"):
        claim(0, allow_cpu=True)
    monkeypatch.setenv("EPCORE_GRES_ONLY", "1")
    claim(0, allow_cpu=True)


def test_a_slurm_job_that_counts_none_and_was_promised_one_by_gres_stops(in_slurm, monkeypatch):
    in_slurm(None)
    monkeypatch.setenv("EPCORE_GRES_ONLY", "1")
    with pytest.raises(UserError, match="given 1 GPU, but SLURM job 7 has none"):
        claim(0, allow_cpu=False)


@pytest.mark.parametrize("count", [0, 1])
def test_a_job_that_computes_without_a_gpu_sees_none_of_others(in_slurm, count):
    """Not every site hides from a job what it did not ask for."""
    in_slurm(None)
    assert claim(count, allow_cpu=True) == 0
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_a_process_that_a_job_starts_does_not_keep_its_card(job):
    """It may outlive the job, as a worker does whose job was killed."""
    descriptor = gpus._hold(CARDS[0])
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert gpus._hold(CARDS[0]) is None
    os.close(descriptor)
    assert job(3).stdout.readline().strip() == ",".join(CARDS)
    child.communicate(b"\n")


def test_the_name_of_a_part_of_a_card_in_a_slurm_job_is_not_too_long():
    name = f"job-4294967295-MIG-GPU-{uuid.uuid4()}/13/15"
    assert gpus._hold(name) is not None
    assert gpus._hold(name) is None
