"""Runs benchmarks, and puts what they print into the tables of README.md beside this file.

python benchmarks/collect.py [NAME ...]: those of the README's tables; without a name all but the
workflow's, which takes as long as the demo, and the GPU's.
"""

import os
import platform
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

from epcore.files import write_text
from epcore.runtime.environment import ENVIRONMENT

HERE = Path(__file__).parent
# Table -> the scripts that fill it.
TABLES = {
    "evaluation": (("evaluation.py",), ("evaluation.py", "ordinary")),
    "libraries": (("libraries.py",),),
    "pretraining": (("pretraining.py",), ("precision.py",)),
    "workflow": (("workflow.py",),),
    "gpu": (("gpu.py",),),
}
APART = ("workflow", "gpu")
HEAD = "| what | measured | in numbers |\n|---|---:|---|\n"


def machine() -> str:
    """What it was measured on, and how busy that was."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.processor() or platform.machine(),
    )
    load = os.getloadavg()[0]
    return (
        f"{model}, {os.cpu_count()} cores, load {load:.1f} when it ended; torch "
        f"{metadata.version('torch')}; {time.strftime('%Y-%m-%d')}"
    )


def rows_of(script: str, *arguments: str) -> list[str]:
    """The rows that a script prints; it runs in the environment of our jobs unless told."""
    # One thread, as the demo's jobs: of two, one waits for the other when the machine is busy.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if "ordinary" not in arguments:
        environment |= ENVIRONMENT
    command = [sys.executable, str(HERE / script), *arguments]
    rows = []
    with subprocess.Popen(
        command, cwd=HERE.parent, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout or ():
            if line.startswith("|"):
                print(line, end="", flush=True)
                rows.append(line.rstrip())
    if process.returncode:
        sys.exit(f"{script} failed")
    return rows


def main() -> None:
    readme = HERE / "README.md"
    for table in sys.argv[1:] or [name for name in TABLES if name not in APART]:
        rows = [row for script in TABLES[table] for row in rows_of(*script)]
        begin, end = f"<!-- {table} -->\n", f"<!-- end of {table} -->"
        before, _, rest = readme.read_text(encoding="utf-8").partition(begin)
        after = rest.partition(end)[2]
        lines = "\n".join(rows)
        write_text(readme, f"{before}{begin}{HEAD}{lines}\n\n{machine()}\n{end}{after}")


if __name__ == "__main__":
    main()
