"""Times a command, and puts what it took into docs/results/times/times.csv.

    python3 docs/timed.py "the main table" make

It needs no package, so that the installation can be timed too. The line of the same words is
replaced. Processor time is that of the command and all that it waited for; jobs are those
that Snakemake's log counts. `make findings` shows the lines in README.md and docs/scales.md.
"""

import argparse
import csv
import os
import platform
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TIMES = ROOT / "docs/results/times/times.csv"
COLUMNS = ["command", "what", "jobs", "seconds", "processor_seconds", "load", "revision", "machine"]


def machine() -> str:
    """Its processor, as far as the system tells, and how many cores it has."""
    file = Path("/proc/cpuinfo")
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    found = re.search(r"model name\s*: (.*)", text)
    model = found[1] if found else platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores"


def revision() -> str:
    """The commit, marked where something outside of docs differs from it."""
    commit, changed = (
        subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        for words in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", ".", ":!docs"])
    )
    return commit + ("-dirty" if changed else "")


def jobs_since(start: float) -> str:
    """How many jobs the Snakemake run after `start` finished; nothing where there was none."""
    logs = [file for file in ROOT.glob(".snakemake/log/*.log") if file.stat().st_mtime >= start]
    text = max(logs, key=lambda file: file.stat().st_mtime).read_text("utf-8") if logs else ""
    done = re.findall(r"^\d+ of (\d+) steps \(100%\) done", text, re.MULTILINE)
    return done[-1] if done else ""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", help="what the command makes, in words")
    parser.add_argument("command", help="as one types it at the root of the project")
    asked = parser.parse_args()
    line = {
        "command": asked.command,
        "what": asked.what,
        "load": f"{os.getloadavg()[0]:.1f}",
        "revision": revision(),
        "machine": machine(),
    }
    start, clock = time.time(), time.monotonic()
    failed = subprocess.run(["bash", "-c", asked.command], cwd=ROOT).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    line["seconds"] = f"{time.monotonic() - clock:.0f}"
    line["processor_seconds"] = f"{used.ru_utime + used.ru_stime:.0f}"
    line["jobs"] = jobs_since(start)
    if failed:
        sys.exit(f"not timed: {asked.command} ended with exit code {failed}")
    with TIMES.open(encoding="utf-8", newline="") as file:
        lines = {each["what"]: each for each in csv.DictReader(file)}
    lines[line["what"]] = line
    new = TIMES.with_suffix(".new")
    with new.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(lines.values())
    new.replace(TIMES)


if __name__ == "__main__":
    main()
