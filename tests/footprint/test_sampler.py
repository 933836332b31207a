"""A job's part of its machine's energy, from readings and processor times that are given."""

import pytest

from epcore.footprint.meter import Reading
from epcore.footprint.sampler import Sampler


@pytest.fixture
def sampler(monkeypatch, machine):
    """A sampler whose readings, each with the job's own processor time, are these."""

    def build(*moments, gpus=0):
        own, readings = [iter(values) for values in zip(*moments, strict=True)]

        class Meter:
            counters = False

            def __init__(self, machine, visible):
                assert visible == [f"GPU-{number}" for number in range(gpus)]

            def read(self, last=False):
                return next(readings)

        monkeypatch.setattr("epcore.footprint.sampler.Meter", Meter)
        monkeypatch.setattr("epcore.footprint.sampler.cpu_seconds", lambda team: next(own))
        return Sampler(machine(), gpus)

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-0,GPU-1,GPU-2")
    return build


def reading(cpu=0.0, ram=0.0, gpu=0.0, busy=0.0):
    return Reading(cpu, ram, gpu, busy)


def test_a_job_is_given_its_part_of_the_processor_time_between_two_readings(sampler):
    """Half of it at first, and a tenth later; nothing of what was before it."""
    job = sampler(
        (3.0, reading(cpu=7, ram=5, busy=100)),
        (5.0, reading(cpu=8, ram=5.5, busy=104)),
        (6.0, reading(cpu=10, ram=6.5, busy=114)),
    )
    middle, last = job.read(), job.read(last=True)
    assert (middle.cpu, middle.ram) == pytest.approx((0.5, 0.25))
    assert (last.cpu, last.ram) == pytest.approx((0.5 + 0.2, 0.25 + 0.1))
    assert last.before == 3.0


def test_jobs_side_by_side_count_together_what_the_machine_used(sampler):
    start, end = reading(busy=10), reading(cpu=6, ram=2, busy=20)
    samples = [sampler((1.0, start), (1.0 + used, end)).read(last=True) for used in (2.5, 7.5)]
    assert [sample.cpu for sample in samples] == pytest.approx([1.5, 4.5])
    assert sum(sample.ram for sample in samples) == pytest.approx(2)


def test_a_gpu_is_one_jobs_alone_however_little_processor_time_that_has(sampler):
    job = sampler((1.0, reading(gpu=4, busy=10)), (1.0, reading(cpu=1, gpu=9, busy=20)), gpus=2)
    last = job.read(last=True)
    assert (last.cpu, last.gpu) == (0, 5)


def test_clocks_that_tick_apart_give_a_job_no_more_than_all_and_lose_nothing(sampler):
    """Of the machine's clock one reading may come before the next tick."""
    job = sampler(
        (1.0, reading(busy=10)),
        (1.01, reading(cpu=1, gpu=1, busy=10)),
        (1.02, reading(cpu=2, gpu=2, busy=10.01)),
    )
    middle, last = job.read(), job.read(last=True)
    assert (middle.cpu, middle.gpu) == (0, 0)
    assert (last.cpu, last.gpu) == (2, 2)
