"""Wall time of the workflow itself, in a fresh copy of the project."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import row

ROOT = Path(__file__).parents[1]
TABLE = "tables/main.tex"


def snakemake(folder: Path, *arguments: str) -> float:
    """Seconds that a run of Snakemake takes; it must succeed."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "snakemake", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return time.perf_counter() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("config", "workflow", "profiles"):
            shutil.copytree(ROOT / part, folder / part)
        for part in ("Snakefile", "environment.yml"):
            shutil.copy(ROOT / part, folder)
        cores = min(2, os.cpu_count() or 1)
        planned = snakemake(folder, "-n", "all", "--config", "scale=paper")
        demo = snakemake(folder, "--cores", str(cores), TABLE)
        idle = snakemake(folder, "--cores", str(cores), TABLE)
    row("`snakemake -n all` at paper scale, seconds", planned)
    row("demo, nothing to do, seconds", idle)
    row(f"demo `{TABLE}`, {cores} cores, minutes", demo / 60)


if __name__ == "__main__":
    main()
