"""What the jobs that failed said, gathered from their logs at the end of a run of Snakemake."""

import re
from pathlib import Path

NAMED = re.compile(r"^\s+log: (.+) \(check log file\(s\) for error details\)$", re.M)


def failures(run: Path) -> str:
    """The last line of the log of each job that failed, in their order.

    run: Snakemake's own log of the run, which names those logs.
    """
    logs = dict.fromkeys(NAMED.findall(run.read_text(encoding="utf-8", errors="replace")))
    said = []
    for log in map(Path, logs):
        if log.is_file():
            text = log.read_text(encoding="utf-8", errors="replace").strip()
            if text:
                said.append(f"{log}: {text.splitlines()[-1]}")
    return "\n".join(said)
