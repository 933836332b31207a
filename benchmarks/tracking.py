"""What tracking its energy costs a job, in processor time.

Processes that load what an evaluation loads begin and end an attempt that does nothing: less than
the shortest evaluation. First one of a stage that is estimated, then one that codecarbon measures.
A real job would hide the cost in its own noise, which is several percent on a machine with other
work.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from measure import row

from epcore.config.load import read
from epcore.footprint.config import FootprintSettings
from epcore.footprint.tracker import LEDGER, SETTINGS

CONFIG, TIMES = Path(__file__).parents[1] / "config", 15
JOB = """
import resource, sys
from pathlib import Path
import epcore.cli, epcore.evaluation.evaluate
from epcore.files import ENERGY

def used():
    parts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in parts)

before = used()
from epcore.footprint.tracker import tracked
with tracked(sys.argv[1], Path("none")):
    ENERGY.get()()  # for the meta
print(before, used() - before)
"""


def cost(stage: str, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds of processor time: of a job without tracking, and of tracking."""
    command = [sys.executable, "-c", JOB, stage]
    whole = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, env=whole, stdout=subprocess.PIPE, text=True, check=True)
    job, tracking = map(float, done.stdout.split())
    return job, tracking


def costs(stage: str, environment: dict[str, str]) -> tuple[float, float]:
    """Medians of several jobs."""
    jobs, trackings = zip(*(cost(stage, environment) for _ in range(TIMES)), strict=True)
    return median(jobs), median(trackings)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = read(CONFIG, "footprint.yaml", FootprintSettings)
        environment = {
            SETTINGS: settings.model_dump_json(),
            LEDGER: str(Path(folder, "ledger.jsonl")),
        }
        _, first = cost("evaluate", environment)  # finds out the machine
        job, measured = costs("evaluate", environment)
        _, estimated = costs("table", environment)
    row(
        "tracking by codecarbon: seconds of processor time a job",
        measured,
        0.1,
        False,
        f"a job that only loads what an evaluation loads takes {job:.1f} s; the first job on a "
        f"machine spends {first:.1f} s; {1000 * estimated:.1f} ms in jobs that are estimated, such "
        "as tables",
    )


if __name__ == "__main__":
    main()
