"""Processes that are killed for real, and files that are damaged for real."""

import multiprocessing
import os
import time

import pytest
from small_pipeline import project, whole  # noqa: F401 - fixtures


class Attempt:
    """A stage in a process of its own, which may be killed."""

    def __init__(self, target, *arguments):
        # Forked, so that torch is not imported anew for every attempt.
        self._process = multiprocessing.get_context("fork").Process(target=target, args=arguments)
        self._process.start()

    def send(self, number, after):
        """The process's exit code; a negative one is the signal that ended it."""
        self._process.join(after)
        if self._process.is_alive():
            os.kill(self._process.pid, number)
        return self.code()

    def code(self):
        self._process.join(300)
        return self._process.exitcode


@pytest.fixture(scope="session")
def attempt():
    return Attempt


@pytest.fixture
def eventually():
    """Waits until a condition holds."""

    def wait(condition, seconds=120):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "this never came to be"
            time.sleep(0.01)

    return wait
