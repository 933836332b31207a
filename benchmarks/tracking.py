"""What tracking energy costs a job, in processor time.

    python benchmarks/tracking.py [PAIRS]

Runs pairs of processes that do nothing, one of them tracked, in turn: first without codecarbon,
which short jobs do not start, and then with it from the beginning. Both costs are set against the
shortest jobs that have them: of two seconds, and of `measure_after`. Jobs that did real work would
hide the cost in their own noise, which is several percent on a machine with other work. Processor
time of children counts.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from epcore.footprint.tracker import LEDGER, SETTINGS
from epcore.plan.footprint import read_footprint

CONFIG = Path(__file__).parents[1] / "config"
SHORT = 2.0  # seconds: the shortest jobs of the demo that are trained, embedded or evaluated
JOB = """
import os, sys, time
from pathlib import Path
from epcore.footprint.tracker import tracked
with tracked("benchmark", Path("none")):
    time.sleep(float(sys.argv[1]))
print(sum(os.times()[:4]))
"""


def processor_time(seconds: float, environment: dict[str, str]) -> float:
    """Processor time of a process that sleeps for so many seconds."""
    command = [sys.executable, "-c", JOB, str(seconds)]
    whole = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, env=whole, capture_output=True, text=True, check=True)
    return float(done.stdout)


def tracking(folder: Path, **changes: float) -> dict[str, str]:
    """The environment of a tracked job."""
    settings = read_footprint(CONFIG).model_copy(update=changes)
    file = folder / "footprint.yaml"
    file.write_text(json.dumps(settings.model_dump(mode="json")))  # JSON is YAML
    return {SETTINGS: str(file), LEDGER: str(folder / "ledger.jsonl")}


def cost(pairs: int, seconds: float, environment: dict[str, str]) -> float:
    """Seconds of processor time more with tracking, median of pairs."""
    processor_time(0, environment)  # finds out the machine
    return median(
        processor_time(seconds, environment) - processor_time(seconds, {}) for _ in range(pairs)
    )


def main(pairs: int) -> None:
    """Prints both costs."""
    after = read_footprint(CONFIG).measure_after
    with tempfile.TemporaryDirectory() as folder:
        short = cost(pairs, 0, tracking(Path(folder)))
        long = cost(pairs, 5, tracking(Path(folder), measure_after=0))
    for what, seconds, length in (("estimated", short, SHORT), ("codecarbon", long, after)):
        percent = 100 * seconds / length
        print(f"{what}: {1000 * seconds:.0f} ms, {percent:.2f} % of a job of {length:g} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
