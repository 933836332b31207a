"""What tracking its energy costs a job, in processor time.

Processes that have loaded what an evaluation loads begin and end an attempt that does nothing:
first of a stage that is estimated, then of one that codecarbon measures. A real job would hide the
cost in its own noise, which is several percent on a machine with other work. Processor time of
children counts.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from measure import row

from epcore.footprint.tracker import LEDGER, SETTINGS
from epcore.plan.footprint import read_footprint

CONFIG, TIMES = Path(__file__).parents[1] / "config", 15
JOB_SECONDS = 7.0  # of processor time: about the demo's shortest training
JOB = """
import resource, sys
from pathlib import Path
import epcore.evaluation.evaluate
from epcore.footprint.tracker import tracked

def used():
    parts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in parts)

before = used()
with tracked(sys.argv[1], Path("none")):
    pass
print(used() - before)
"""


def cost(stage: str, environment: dict[str, str]) -> float:
    """Seconds of processor time that an attempt at nothing takes."""
    command = [sys.executable, "-c", JOB, stage]
    whole = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, env=whole, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "footprint.yaml")
        file.write_text(json.dumps(read_footprint(CONFIG).model_dump(mode="json")))  # is YAML
        tracking = {SETTINGS: str(file), LEDGER: str(Path(folder, "ledger.jsonl"))}
        cost("evaluate", tracking)  # finds out the machine
        estimated, measured = (
            median(cost(stage, tracking) for _ in range(TIMES)) for stage in ("latex", "evaluate")
        )
    row(
        "tracking by codecarbon: % of a job of seven seconds of processor time",
        100 * measured / JOB_SECONDS,
        1,
        False,
        f"{1000 * measured:.0f} ms of {JOB_SECONDS:g} s; {1000 * estimated:.1f} ms in jobs that "
        "are estimated, such as tables",
    )


if __name__ == "__main__":
    main()
