"""Attempts at jobs: what they used is written down however they end."""

import json
import math
import os
import platform
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from epcore.errors import UserError
from epcore.files import ENERGY, Provenance, add_energy
from epcore.footprint.clock import cpu_seconds
from epcore.footprint.ledger import read
from epcore.footprint.meter import Sample
from epcore.footprint.tracker import LEDGER, SETTINGS, tracked

CORE_WATTS = 120 / (os.cpu_count() or 1)  # of the settings' processor and memory


@pytest.fixture
def tracking(tmp_path, monkeypatch, settings):
    """Switches tracking on as the workflow does, with some settings changed."""
    monkeypatch.chdir(tmp_path)

    def switch(**changes):
        monkeypatch.setenv(SETTINGS, settings(**changes).model_dump_json())
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
    with tracked("pretrain", Path("x.pt"), measured=True):
        assert ENERGY.get() is None
    assert not list(tmp_path.iterdir())


def test_it_can_be_switched_off(tracking):
    ledger = tracking(tracking=False)
    with tracked("pretrain", Path("x.pt"), measured=True):
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
        with pytest.raises(type(error)), tracked("pretrain", Path("x.pt"), measured=True):
            raise error
    first, second = read(ledger)
    assert (first.state, second.state) == (state, state)
    assert first.attempt != second.attempt
    assert first.kwh > 0


def test_the_meta_has_the_energy_up_to_then(tracking):
    ledger = tracking()
    with tracked("pretrain", Path("x.pt"), measured=True):
        Path("x.pt").touch()
        Provenance("pretrain", {}, []).write(Path("x.pt"))
        busy(0.2)
    energy = json.loads(Path("x.meta.json").read_text())["energy"]
    (entry,) = read(ledger)
    assert energy["attempt"] == entry.attempt
    assert 0 < energy["kwh"] < entry.kwh
    assert energy["kg"] == pytest.approx(energy["kwh"] * energy["factor"])
    with tracked("pretrain", Path("x.pt"), measured=True):
        add_energy(Path("x.pt"))  # that the processes of a training together have made
        busy(0.1)
    meta, (*_, entry) = json.loads(Path("x.meta.json").read_text()), read(ledger)
    assert (meta["stage"], meta["energy"]["attempt"]) == ("pretrain", entry.attempt)
    assert 0 < meta["energy"]["kwh"] < entry.kwh
    Path("untracked.pt").touch()
    Provenance("pretrain", {}, []).write(Path("untracked.pt"))
    assert "energy" not in json.loads(Path("untracked.meta.json").read_text())


JOB = """
    import os, socket, sys, time
    from pathlib import Path

    socket.socket.connect = socket.getaddrinfo = lambda *_, **__: os._exit(7)
    from epcore.footprint.tracker import tracked
    from epcore.runtime.interruption import leave_on_signals

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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_attempt_that_is_asked_to_leave_writes_what_it_had_used(tracking, number):
    ledger = tracking()
    job = start_job("x.pt", 60)
    time.sleep(0.2)
    job.send_signal(number)
    assert job.wait() != 0
    (entry,) = read(ledger)
    assert (entry.state, entry.method) == ("interrupted", "codecarbon, load of the machine")
    assert entry.kwh > 0


def test_codecarbon_measures_offline_and_jobs_side_by_side_share_the_machine(tracking):
    """What two jobs count together is at most what the machine used."""
    ledger = tracking()
    start = time.monotonic()
    jobs = [start_job(f"{number}.pt", 0.5) for number in range(2)]
    assert [job.wait() for job in jobs] == [0, 0]
    elapsed = time.monotonic() - start
    entries = read(ledger)
    assert len(entries) == 2
    for entry in entries:
        assert entry.state == "finished"
        assert entry.method == "codecarbon, load of the machine"
        assert entry.measured_kwh == 0
        assert entry.cpu_seconds >= 0.5
    most = 1.25 * 120 * elapsed / 3.6e6
    assert sum(entry.kwh for entry in entries) <= 1.1 * most
    assert all(entry.kwh >= 0.3 * at_full_load(entry) for entry in entries)
    alike = entries[0].kwh / entries[1].kwh
    assert 0.5 < alike < 2


STAGE = """
    import sys
    from pathlib import Path
    from epcore.footprint.tracker import tracked

    with tracked(sys.argv[1], Path("x"), measured=sys.argv[1] != "table"):
        pass
    print(*sorted({"codecarbon", "psutil"} & set(sys.modules)))
"""


def test_stages_of_a_second_are_estimated_without_codecarbon(tracking):
    """Nor psutil: to load both takes longer than such a job may spend on being tracked."""
    ledger = tracking()
    with tracked("table", Path("first")):
        pass  # finds out the machine

    def loaded(stage):
        command = [sys.executable, "-c", textwrap.dedent(STAGE), stage]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout, done.stderr

    assert loaded("table") == ("\n", "")
    assert loaded("evaluate") == ("codecarbon psutil\n", "")
    methods = [entry.method for entry in read(ledger)]
    assert methods[1:] == ["processor time times power", "codecarbon, load of the machine"]


def test_power_counters_that_are_gone_are_not_said_to_have_counted(tracking, monkeypatch):
    """They were there when the machine was found out."""
    ledger, there = tracking(cpu_power=None), "codecarbon.core.cpu.is_rapl_available"
    monkeypatch.setattr(there, lambda: True)
    with tracked("episodes", Path("x.npz")):
        pass
    monkeypatch.setattr(there, lambda: False)
    with tracked("pretrain", Path("x.pt"), measured=True):
        busy(0.2)
    _, entry = read(ledger)
    assert (entry.method, entry.measured_kwh) == ("codecarbon, load of the machine", 0)
    assert entry.kwh > 0


@pytest.mark.parametrize("method", ["__init__", "start", "flush", "stop", "_do_measurements"])
def test_codecarbon_that_fails_ends_no_training(tracking, monkeypatch, capsys, method):
    def fail(*_, **__):
        raise AttributeError(method)

    ledger = tracking()
    monkeypatch.setattr(f"codecarbon.OfflineEmissionsTracker.{method}", fail)
    with tracked("pretrain", Path("x.pt"), measured=True):
        time.sleep(0.1)  # what it measured a moment ago it does not measure again
        Path("x.pt").touch()
        Provenance("pretrain", {}, []).write(Path("x.pt"))
    (entry,) = read(ledger)
    assert (entry.state, entry.method) == ("finished", "processor time times power")
    assert entry.kwh == pytest.approx(at_full_load(entry), rel=0.05)
    assert "this job's energy is estimated" in capsys.readouterr().err


@pytest.mark.parametrize("odd", [math.nan, -1.0])
def test_codecarbon_that_measures_nonsense_is_not_believed(tracking, monkeypatch, capsys, odd):
    ledger = tracking()
    monkeypatch.setattr(
        "epcore.footprint.meter.Meter.read",
        lambda meter, last: Sample(0.0, 0.0, 0.0, gpu=odd, counters=False),
    )
    with tracked("pretrain", Path("x.pt"), measured=True):
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
        while cpu_seconds(team=True) - before < 0.2 and time.monotonic() < end:
            time.sleep(0.05)
        assert cpu_seconds(team=True) - before >= 0.2
    finally:
        member.kill()
        member.wait()


def test_a_wrong_region_stops_the_job_before_it_starts(tracking):
    tracking(carbon_intensity=None, country="CAN", region="qubec")
    with pytest.raises(UserError, match="qubec"), tracked("pretrain", Path("x.pt"), measured=True):
        pytest.fail("it ran")
