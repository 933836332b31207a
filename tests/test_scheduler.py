"""What the workflow changes in Snakemake's scheduler is there to be changed, and helps."""

import inspect
import subprocess
import sys

import pytest
from snakemake.scheduling.job_scheduler import JobScheduler

# A scheduler that is about to choose jobs, which it does under its lock, gets a signal.
SIGNALED = """
import os, signal, threading
from snakemake.scheduling.job_scheduler import JobScheduler
from epcore.scheduler import mend

scheduler = object.__new__(JobScheduler)
scheduler._lock, scheduler._open_jobs = threading.Lock(), threading.Semaphore(0)
scheduler._user_kill = None
{install}
with scheduler._lock:
    os.kill(os.getpid(), signal.SIGTERM)
    scheduler.chosen = True
assert scheduler._open_jobs.acquire(timeout=20)
assert scheduler._user_kill == "graceful"
print("left")
"""
THEIRS = "signal.signal(signal.SIGTERM, scheduler.exit_gracefully)"


def signaled(install, seconds):
    command = [sys.executable, "-c", SIGNALED.format(install=install)]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds)


def test_a_signal_while_jobs_are_chosen_does_not_stop_the_scheduler():
    run = signaled("mend(scheduler)", 60)
    assert run.stdout == "left\n", run.stderr


@pytest.mark.slow
def test_snakemakes_own_handler_would():
    """Once this fails, `mend` need not change the handler."""
    with pytest.raises(subprocess.TimeoutExpired):
        signaled(THEIRS, 8)


def test_the_limit_of_jobs_a_second_is_an_attribute_that_may_be_none():
    source = inspect.getsource(JobScheduler)
    assert "if self.job_rate_limiter is not None:" in source
    assert "self._schedule_reevalutation(self.job_rate_limiter.timespan)" in source
