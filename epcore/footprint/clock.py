"""The clock of a job's own work."""

import contextlib
import os


def cpu_seconds(team: bool = False) -> float:
    """Processor time of this process and of its children that have ended.

    team: those that still run too, the other processes of a training on several GPUs. To find them
    takes milliseconds for each hundred processes on the machine.
    """
    # Counted first: what ends meanwhile is then in the own times.
    running = _running_children() if team else 0.0
    return running + sum(os.times()[:4])


def _running_children() -> float:
    import psutil  # takes 10 ms, which short jobs do not spend

    total = 0.0
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended
            times = child.cpu_times()
            total += times.user + times.system
    return total
