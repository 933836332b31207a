"""Attempts at jobs: what they used is written down however they end."""

import json
import math
import os
import platform
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from epcore.errors import UserError
from epcore.files import ENERGY, Provenance
from epcore.footprint.clock import cpu_seconds
from epcore.footprint.ledger import read
from epcore.footprint.meter import METER
from epcore.footprint.sampler import Sample
from epcore.footprint.tracker import LEDGER, SETTINGS, tracked

CORE_WATTS = 120 / (os.cpu_count() or 1)  # of the settings' processor and memory


@pytest.fixture
def tracking(tmp_path, monkeypatch, settings):
    """Switches tracking on as the workflow does, with some settings changed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(METER, raising=False)

    def switch(**changes):
        Path("footprint.yaml").write_text(settings(**changes).model_dump_json())
        monkeypatch.setenv(SETTINGS, "footprint.yaml")
        monkeypatch.setenv(LEDGER, "results/x/ledger.jsonl")
        return Path("results/x/ledger.jsonl")

    return switch


def at_full_load(entry):
    """kWh of the entry's processor time."""
    return 1.25 * CORE_WATTS * entry.cpu_seconds / 3.6e6


def busy(seconds):
    """Uses the processor for so long."""
    start = time.process_time()
    while time.process_time() - start < seconds:
        sum(range(1000))


def test_by_hand_nothing_is_tracked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(SETTINGS, raising=False)
    with tracked("pretrain", Path("x.pt")):
        assert ENERGY.get() is None
    assert not list(tmp_path.iterdir())


def test_it_can_be_switched_off(tracking):
    ledger = tracking(tracking=False)
    with tracked("pretrain", Path("x.pt")):
        assert ENERGY.get() is None
    assert not ledger.exists()


def test_a_short_attempt_is_its_processor_time_times_the_machines_power(tracking):
    ledger = tracking()
    before = sum(os.times()[:4])
    with tracked("episodes", Path("a/x.npz")):
        busy(0.3)
    after = sum(os.times()[:4])
    (entry,) = read(ledger)
    assert (entry.job, entry.stage, entry.state) == ("a/x.npz", "episodes", "finished")
    ticks = 0.05  # four counters of whole hundredths of a second
    assert before + 0.3 - ticks <= entry.cpu_seconds <= after + ticks
    assert entry.kwh == pytest.approx(1.25 * CORE_WATTS * entry.cpu_seconds / 3.6e6, rel=0.05)
    assert entry.kg == pytest.approx(0.5 * entry.kwh)
    assert entry.tdp_kwh == pytest.approx(entry.kwh / 1.25 * 100 / 120)
    assert entry.measured_kwh == 0
    assert (entry.pue, entry.factor_source) == (1.25, "set in config/footprint.yaml")


@pytest.mark.parametrize(
    ("error", "state"),
    [(UserError("no"), "failed"), (SystemExit(3), "failed"), (KeyboardInterrupt(), "interrupted")],
)
def test_attempts_that_do_not_succeed_count_each_for_itself(tracking, error, state):
    ledger = tracking()
    for _ in range(2):
        with pytest.raises(type(error)), tracked("pretrain", Path("x.pt")):
            raise error
    first, second = read(ledger)
    assert (first.state, second.state) == (state, state)
    assert first.attempt != second.attempt
    assert first.kwh > 0


def test_the_meta_has_the_energy_up_to_then(tracking):
    ledger = tracking()
    with tracked("pretrain", Path("x.pt")):
        Path("x.pt").touch()
        Provenance("pretrain", {}, []).write(Path("x.pt"))
        busy(0.2)
    energy = json.loads(Path("x.meta.json").read_text())["energy"]
    (entry,) = read(ledger)
    assert energy["attempt"] == entry.attempt
    assert 0 < energy["kwh"] < entry.kwh
    assert energy["kg"] == pytest.approx(energy["kwh"] * energy["factor"])
    Path("untracked.pt").touch()
    Provenance("pretrain", {}, []).write(Path("untracked.pt"))
    assert "energy" not in json.loads(Path("untracked.meta.json").read_text())


JOB = """
    import os, socket, sys, time
    from pathlib import Path

    class Offline(socket.socket):
        def connect(self, address):
            if self.family != socket.AF_UNIX:
                os._exit(7)
            super().connect(address)

    socket.socket, socket.getaddrinfo = Offline, lambda *_, **__: os._exit(7)
    from epcore.footprint.tracker import tracked

    with tracked("pretrain", Path(sys.argv[1])):
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
    ledger = tracking()
    job = start_job("x.pt", 60)
    while not (entries := read(ledger)) or entries[0].state != "running":
        assert job.poll() is None
        time.sleep(0.05)
    job.send_signal(signal.SIGKILL)
    job.wait()
    (entry,) = read(ledger)
    assert entry.state == "running"
    assert entry.seconds >= 2
    assert entry.kwh > 1.25 * CORE_WATTS * 0.1 / 3.6e6


@pytest.mark.parametrize("of_the_run", [False, True])
def test_codecarbon_measures_offline_and_jobs_side_by_side_share_the_machine(
    tracking, monkeypatch, run, of_the_run
):
    """What two jobs count together is at most what the machine used, whoever measures."""
    ledger = tracking()
    if of_the_run:
        monkeypatch.setenv(METER, str(run.path))
    start = time.monotonic()
    jobs = [start_job(f"{number}.pt", 4) for number in range(2)]
    assert [job.wait() for job in jobs] == [0, 0]
    elapsed = time.monotonic() - start
    entries = read(ledger)
    assert len(entries) == 2
    for entry in entries:
        assert entry.state == "finished"
        assert entry.method == "codecarbon, load of the machine"
        assert entry.measured_kwh == 0
        assert entry.cpu_seconds >= 4
    most = 1.25 * 120 * elapsed / 3.6e6
    assert sum(entry.kwh for entry in entries) <= 1.1 * most
    assert all(entry.kwh >= 0.3 * at_full_load(entry) for entry in entries)
    alike = entries[0].kwh / entries[1].kwh
    assert 0.5 < alike < 2


def test_a_job_on_a_busy_machine_counts_only_its_part(tracking):
    """Half of the processor time that the machine spends is another's."""
    ledger = tracking()
    other = subprocess.Popen([sys.executable, "-c", "while True: sum(range(1000))"])
    try:
        start, before = time.monotonic(), psutil.cpu_times()
        assert start_job("x.pt", 4).wait() == 0
        elapsed, after = time.monotonic() - start, psutil.cpu_times()
    finally:
        other.kill()
        other.wait()
    spent = sum(getattr(after, kind) - getattr(before, kind) for kind in ("user", "system"))
    (entry,) = read(ledger)
    share = entry.cpu_seconds / spent
    assert share < 0.9
    assert 0.3 * at_full_load(entry) <= entry.kwh
    assert entry.kwh <= 1.3 * share * 1.25 * 120 * elapsed / 3.6e6


@pytest.mark.parametrize("method", ["__init__", "read", "stop"])
def test_codecarbon_that_fails_ends_no_training(tracking, monkeypatch, capsys, method):
    def fail(*_):
        raise AttributeError(method)

    ledger = tracking()
    monkeypatch.setattr(f"epcore.footprint.sampler.Sampler.{method}", fail)
    with tracked("pretrain", Path("x.pt")):
        Path("x.pt").touch()
        Provenance("pretrain", {}, []).write(Path("x.pt"))
    (entry,) = read(ledger)
    assert (entry.state, entry.method) == ("finished", "processor time times power")
    assert "this job's energy is estimated" in capsys.readouterr().err


def test_a_meter_that_ends_before_its_job_ends_no_training(tracking, monkeypatch, run, capsys):
    ledger = tracking()
    monkeypatch.setenv(METER, str(run.path))
    with tracked("pretrain", Path("x.pt")):
        run.meter.kill()
        while run.measures():
            time.sleep(0.05)
    (entry,) = read(ledger)
    assert (entry.state, entry.method) == ("finished", "processor time times power")
    assert "this job's energy is estimated" in capsys.readouterr().err
    shutil.rmtree(run.path.parent)


@pytest.mark.parametrize("odd", [math.nan, -1.0])
def test_codecarbon_that_measures_nonsense_is_not_believed(tracking, monkeypatch, capsys, odd):
    ledger = tracking()
    monkeypatch.setattr(
        "epcore.footprint.sampler.Sampler.stop", lambda _: Sample(0.0, 0.0, 0.0, gpu=odd)
    )
    with tracked("pretrain", Path("x.pt")):
        pass
    (entry,) = read(ledger)
    assert (entry.state, entry.method) == ("finished", "processor time times power")
    assert "this job's energy is estimated" in capsys.readouterr().err


def test_a_full_disk_costs_the_ledger_its_line_and_not_the_job_its_result(
    tracking, tmp_path, capsys
):
    ledger = tracking()
    ledger.parent.mkdir(parents=True)
    ledger.symlink_to("/dev/full")
    with tracked("episodes", Path("x.npz")):
        pass
    with pytest.raises(UserError, match=r"^mine$"), tracked("episodes", Path("x.npz")):
        raise UserError("mine")
    told = "epcore: ledger results/x/ledger.jsonl: No space left on device; what this job used"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("broken", ["no folder", "full disk"])
def test_a_machine_that_cannot_be_saved_costs_no_job_its_result(tracking, capsys, broken):
    ledger = tracking()
    machines = ledger.parent / "machines"
    if broken == "no folder":
        ledger.parent.mkdir(parents=True)
        machines.touch()
    else:
        machines.mkdir(parents=True)
        (machines / f"{platform.node()}.json").symlink_to("/dev/full")
    with tracked("episodes", Path("x.npz")):
        pass
    (entry,) = read(ledger)
    assert (entry.state, entry.factor) == ("finished", 0.5)
    assert "what is known of this machine is not saved" in capsys.readouterr().err


def test_the_processor_time_of_a_team_counts_while_it_runs():
    member = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        before, end = cpu_seconds(team=True), time.monotonic() + 60
        while cpu_seconds(team=True) - before < 1 and time.monotonic() < end:
            time.sleep(0.1)
        assert cpu_seconds(team=True) - before >= 1
    finally:
        member.kill()
        member.wait()


def test_a_wrong_region_stops_the_job_before_it_starts(tracking):
    tracking(carbon_intensity=None, country="CAN", region="qubec")
    with pytest.raises(UserError, match="qubec"), tracked("pretrain", Path("x.pt")):
        pytest.fail("it ran")
