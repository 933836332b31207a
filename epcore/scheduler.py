"""Two things that Snakemake's scheduler does and that a long run is better without."""

import signal
import threading
from types import FrameType
from typing import Any


def mend(scheduler: Any) -> None:
    """Changes Snakemake's `JobScheduler` of a run that begins.

    Its limit of jobs a second (--max-jobs-per-timespan, 100/1s) starts a timer whenever it looks
    for jobs to run, and looks again when that ends: once a second for every job that has ended.
    Nothing here needs the limit.

    Its handler of SIGTERM takes the lock that the scheduler itself holds while it chooses jobs,
    in the same thread: a signal at such a moment would stop it for ever. In a thread of its own
    the handler waits until the lock is free.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=scheduler.exit_gracefully).start()

    scheduler.job_rate_limiter = None
    signal.signal(signal.SIGTERM, leave)
