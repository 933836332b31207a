"""The clock of a job's own work."""

import contextlib
import os
import sys

import psutil


def cpu_seconds() -> float:
    """Processor time of this process and its children; of those that still run only workers.

    Workers are processes of `multiprocessing`, the trainings on several GPUs. A search for others
    would read the state of every process on the machine.
    """
    total = sum(os.times()[:4])
    loaded = sys.modules.get("multiprocessing")
    for worker in loaded.active_children() if loaded else []:
        with contextlib.suppress(psutil.Error):  # it has just ended
            times = psutil.Process(worker.pid).cpu_times()
            total += times.user + times.system
    return total
