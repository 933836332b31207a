"""Attempts at jobs: what they used is written down however they end."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from epcore.errors import UserError
from epcore.files import ENERGY, Provenance, add_energy
from epcore.footprint import share
from epcore.footprint.energy import read
from epcore.footprint.tracker import FOLDER, SETTINGS, Attempt, tracked

WATTS = 120  # of the settings' processors and memory at full load


@pytest.fixture
def tracking(tmp_path, monkeypatch, settings):
    """Switches tracking on as the workflow does, with some settings changed."""
    monkeypatch.chdir(tmp_path)

    def switch(**changes):
        monkeypatch.setenv(SETTINGS, settings(**changes).model_dump_json())
        monkeypatch.setenv(FOLDER, "results/x/energy")
        return Path("results/x/energy")

    return switch


def only(folder):
    """The one attempt that was tracked."""
    (row,) = read(folder).itertuples()
    return row


def busy(seconds):
    """Uses the processor for so long."""
    start = time.process_time()
    while time.process_time() - start < seconds:
        sum(range(1000))


def test_by_hand_nothing_is_tracked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(SETTINGS, raising=False)
    with tracked("pretrain", Path("x.pt"), measured=True):
        assert ENERGY.get() is None
    assert not list(tmp_path.iterdir())


def test_it_can_be_switched_off(tracking):
    folder = tracking(tracking=False)
    with tracked("pretrain", Path("x.pt"), measured=True):
        assert ENERGY.get() is None
    assert not folder.exists()


def test_a_short_attempt_tells_its_processor_time(tracking):
    folder = tracking()
    before = sum(os.times()[:4])
    with tracked("episodes", Path("a/x.npz")):
        busy(0.3)
    after = sum(os.times()[:4])
    row = only(folder)
    assert (row.job, row.stage, row.state, row.device) == (
        "a/x.npz", "episodes", "finished", "cpu"
    )  # fmt: skip
    ticks = 0.05  # four counters of whole hundredths of a second
    assert before + 0.3 - ticks <= row.cpu_seconds <= after + ticks
    assert (row.measured_seconds, row.kwh) == (0, 0)
    assert (row.pue, row.factor) == (1.25, 0.5)


@pytest.mark.parametrize(
    ("error", "state"),
    [(UserError("no"), "failed"), (SystemExit(3), "failed"), (KeyboardInterrupt(), "interrupted")],
)
def test_attempts_that_do_not_succeed_count_each_for_itself(tracking, error, state):
    folder = tracking()
    for _ in range(2):
        with pytest.raises(type(error)), tracked("pretrain", Path("x.pt"), measured=True):
            raise error
    rows = read(folder)
    assert rows["state"].tolist() == [state, state]
    assert rows["attempt"].nunique() == 2


def test_the_meta_has_the_energy_up_to_then(tracking):
    folder = tracking()
    with tracked("pretrain", Path("x.pt"), measured=True):
        busy(0.2)
        Path("x.pt").touch()
        Provenance("pretrain", {}, []).write(Path("x.pt"))
        busy(0.2)
    energy, row = json.loads(Path("x.meta.json").read_text())["energy"], only(folder)
    assert (energy["attempt"], energy["job"], energy["factor"]) == (row.attempt, "x.pt", 0.5)
    assert 0 < energy["kwh"] < row.cpu_kwh + row.ram_kwh
    with tracked("pretrain", Path("x.pt"), measured=True):
        busy(0.2)
        add_energy(Path("x.pt"))  # that the processes of a training together have made
    meta = json.loads(Path("x.meta.json").read_text())
    assert (meta["stage"], meta["energy"]["attempt"] != row.attempt) == ("pretrain", True)
    Path("untracked.pt").touch()
    Provenance("pretrain", {}, []).write(Path("untracked.pt"))
    assert "energy" not in json.loads(Path("untracked.meta.json").read_text())


def test_the_meta_of_a_short_job_names_it_and_no_energy(tracking):
    tracking()
    with tracked("episodes", Path("x.npz")):
        Path("x.npz").touch()
        Provenance("episodes", {}, []).write(Path("x.npz"))
    energy = json.loads(Path("x.meta.json").read_text())["energy"]
    assert (energy["job"], energy["kwh"]) == ("x.npz", None)


JOB = """
    import os, socket, sys, time
    from pathlib import Path

    socket.socket.connect = socket.getaddrinfo = lambda *_, **__: os._exit(7)
    from epcore.footprint import share
    from epcore.footprint.tracker import tracked
    from epcore.runtime.interruption import leave_on_signals

    share.INTERVAL, share.BETWEEN_ROWS = 0.2, 1
    leave_on_signals()
    with tracked("pretrain", Path(sys.argv[1]), measured=True):
        print("ready", flush=True)
        start = time.process_time()
        while time.process_time() - start < float(sys.argv[2]):
            sum(range(1000))
"""


def start_job(name, seconds):
    """A tracked job in a process of its own, which ends at once if it asks the network."""
    command = [sys.executable, "-c", textwrap.dedent(JOB), name, str(seconds)]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert job.stdout.readline() == "ready\n"
    return job


def test_an_attempt_that_was_killed_counts_with_what_it_had_used(tracking):
    folder = tracking()
    job = start_job("x.pt", 60)
    while (row := only(folder)).state != "running" or row.cpu_kwh == 0:
        assert job.poll() is None
        time.sleep(0.05)
    job.send_signal(signal.SIGKILL)
    job.wait()
    after = only(folder)
    assert after.state == "running"
    assert after.kwh >= row.kwh > 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_attempt_that_is_asked_to_leave_writes_what_it_had_used(tracking, number):
    folder = tracking()
    job = start_job("x.pt", 60)
    time.sleep(0.3)
    job.send_signal(number)
    assert job.wait() != 0
    row = only(folder)
    assert row.state == "interrupted"
    assert row.measured_seconds > 0
    assert row.kwh > 0


@pytest.mark.slow
def test_codecarbon_measures_offline_and_jobs_side_by_side_share_the_machine(tracking):
    """What two jobs count together is at most what the machine used."""
    folder = tracking()
    start = time.monotonic()
    jobs = [start_job(f"{number}.pt", 0.5) for number in range(2)]
    assert [job.wait() for job in jobs] == [0, 0]
    elapsed = time.monotonic() - start
    rows = read(folder)
    assert rows["state"].tolist() == ["finished"] * 2
    assert (rows["measured_kwh"] == 0).all()
    assert (rows["measured_seconds"] >= 0.4).all()
    measured = rows["cpu_kwh"] + rows["ram_kwh"]
    assert 0 < measured.sum() <= 1.1 * 1.25 * WATTS * elapsed / 3.6e6
    assert (measured > 0).all()


@pytest.mark.parametrize("method", ["__init__", "start"])
def test_codecarbon_that_fails_ends_no_training(tracking, monkeypatch, capsys, method):
    def fail(*_, **__):
        raise AttributeError(method)

    folder = tracking()
    monkeypatch.setattr(f"codecarbon.OfflineEmissionsTracker.{method}", fail)
    with tracked("pretrain", Path("x.pt"), measured=True):
        pass
    row = only(folder)
    assert (row.state, row.measured_seconds) == ("finished", 0)
    assert "this job's energy is estimated" in capsys.readouterr().err


def test_a_full_disk_costs_the_row_and_not_the_job_its_result(tracking, tmp_path, capsys):
    folder = tracking()
    folder.parent.mkdir(parents=True)
    folder.touch()  # no folder can be made there
    with tracked("episodes", Path("x.npz")):
        pass
    with pytest.raises(UserError, match=r"^mine$"), tracked("episodes", Path("x.npz")):
        raise UserError("mine")
    assert "what this job used is not written" in capsys.readouterr().err


# -- the share ---------------------------------------------------------------------------------


@pytest.fixture
def job(tracking, monkeypatch, settings):
    """A job with these processor times of the machine and of itself, and its output."""

    def build(*times, gpus=0):
        folder, moments = tracking(), iter(times)
        current = {}

        def busy_seconds():
            current["own"], busy = next(moments)
            return busy

        monkeypatch.setattr(share, "_busy_seconds", busy_seconds)
        monkeypatch.setattr(share, "_own_seconds", lambda: current["own"])
        attempt = Attempt(settings(), folder, "pretrain", Path("x.pt"), gpus)
        return attempt, share.Share(attempt)

    return build


def used(cpu=0.0, ram=0.0, gpu=0.0):
    return SimpleNamespace(cpu_energy=cpu, ram_energy=ram, gpu_energy=gpu)


def amounts(attempt):
    return [attempt.row[name] for name in ("cpu_kwh", "ram_kwh", "gpu_kwh", "measured_seconds")]


def test_a_job_is_given_its_part_of_the_processor_time_between_two_readings(job):
    """Half of it at first, and a tenth later; nothing of what was before it."""
    attempt, output = job((3.0, 100), (5.0, 104), (6.0, 114))
    output.live_out(None, used(cpu=1, ram=0.5))
    assert amounts(attempt) == pytest.approx([0.5, 0.25, 0, 2])
    output.out(None, used(cpu=2, ram=1))
    assert amounts(attempt) == pytest.approx([0.7, 0.35, 0, 3])


def test_a_gpu_is_one_jobs_alone_however_little_processor_time_that_has(job):
    attempt, output = job((1.0, 10), (1.0, 20), gpus=2)
    output.out(None, used(cpu=1, gpu=5))
    assert amounts(attempt) == [0, 0, 5, 0]
    assert attempt.row["gpu_watts"] == 600


def test_clocks_that_tick_apart_give_a_job_no_more_than_all(job):
    attempt, output = job((1.0, 10), (1.02, 10.01))
    output.out(None, used(cpu=1, gpu=1))
    assert amounts(attempt)[:3] == [1, 0, 1]


@pytest.mark.parametrize("odd", [float("nan"), -1.0])
def test_nonsense_is_not_believed(job, odd):
    attempt, output = job((1.0, 10), (2.0, 11))
    output.out(None, used(gpu=odd))
    assert amounts(attempt) == [0, 0, 0, 0]


def test_the_processor_time_of_a_team_counts_while_it_runs():
    member = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        before, end = share._own_seconds(), time.monotonic() + 60
        while share._own_seconds() - before < 0.2 and time.monotonic() < end:
            time.sleep(0.05)
        assert psutil.Process(member.pid).is_running()
        assert share._own_seconds() - before >= 0.2
    finally:
        member.kill()
        member.wait()


def test_settings_in_the_users_home_change_nothing_that_footprint_yaml_says(tracking):
    """The power of a busy core and of the memory are those of footprint.yaml."""
    folder = tracking()
    Path(".codecarbon.config").write_text(
        "[codecarbon]\ntracking_mode = process\nforce_cpu_power = 7000\nforce_ram_power = 7000\n"
        "pue = 7\nmeasure_power_secs = 0.01\noutput_dir = /nowhere\nlog_level = debug\n"
    )
    start = time.monotonic()
    with tracked("pretrain", Path("x.pt"), measured=True):
        busy(0.5)
    row = only(folder)
    most = 1.25 * WATTS * (time.monotonic() - start) / 3.6e6
    assert 0 < row.cpu_kwh + row.ram_kwh <= most
