"""A job's part of its machine's energy, from energies and processor times that are given."""

from types import SimpleNamespace

import pytest

from epcore.footprint.meter import Meter


@pytest.fixture
def meter(monkeypatch, machine):
    """A meter whose readings, each with the job's own processor time, are these."""

    def build(*moments, gpus=0):
        own, readings = zip(*moments, strict=True)
        times, busy = iter(own), (reading.busy for reading in readings)

        class Tracker:
            def __init__(self, output_handlers, gpu_ids, **_):
                assert gpu_ids == [f"GPU-{number}" for number in range(gpus)]
                (self.handler,), self.readings = output_handlers, iter(readings)

            def start(self):
                pass

            def flush(self):
                self.handler.out(next(self.readings), None)

            def _clear_utilization_history(self):
                pass

            stop = flush

        monkeypatch.setattr("epcore.footprint.meter.OfflineEmissionsTracker", Tracker)
        monkeypatch.setattr("epcore.footprint.meter._indices", list)
        monkeypatch.setattr("epcore.footprint.meter._busy_seconds", lambda: next(busy))
        monkeypatch.setattr("epcore.footprint.meter.cpu_seconds", lambda team: next(times))
        return Meter(machine(), gpus)

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-0,GPU-1,GPU-2")
    return build


def reading(cpu=0.0, ram=0.0, gpu=0.0, busy=0.0):
    return SimpleNamespace(cpu_energy=cpu, ram_energy=ram, gpu_energy=gpu, busy=busy)


def test_a_job_is_given_its_part_of_the_processor_time_between_two_readings(meter):
    """Half of it at first, and a tenth later; nothing of what was before it."""
    job = meter(
        (3.0, reading(cpu=7, ram=5, busy=100)),
        (5.0, reading(cpu=8, ram=5.5, busy=104)),
        (6.0, reading(cpu=10, ram=6.5, busy=114)),
    )
    middle, last = job.read(), job.read(last=True)
    assert (middle.cpu, middle.ram) == pytest.approx((0.5, 0.25))
    assert (last.cpu, last.ram) == pytest.approx((0.5 + 0.2, 0.25 + 0.1))
    assert last.before == 3.0


def test_jobs_side_by_side_count_together_what_the_machine_used(meter):
    start, end = reading(busy=10), reading(cpu=6, ram=2, busy=20)
    samples = [meter((1.0, start), (1.0 + used, end)).read(last=True) for used in (2.5, 7.5)]
    assert [sample.cpu for sample in samples] == pytest.approx([1.5, 4.5])
    assert sum(sample.ram for sample in samples) == pytest.approx(2)


def test_a_gpu_is_one_jobs_alone_however_little_processor_time_that_has(meter):
    job = meter((1.0, reading(gpu=4, busy=10)), (1.0, reading(cpu=1, gpu=9, busy=20)), gpus=2)
    last = job.read(last=True)
    assert (last.cpu, last.gpu) == (0, 5)


def test_clocks_that_tick_apart_give_a_job_no_more_than_all_and_lose_nothing(meter):
    """A reading may come before the next tick of the machine's clock."""
    job = meter(
        (1.0, reading(busy=10)),
        (1.01, reading(cpu=1, gpu=1, busy=10)),
        (1.02, reading(cpu=2, gpu=2, busy=10.01)),
    )
    middle, last = job.read(), job.read(last=True)
    assert (middle.cpu, middle.gpu) == (0, 0)
    assert (last.cpu, last.gpu) == (2, 2)
