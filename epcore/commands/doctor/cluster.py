"""The profile of the cluster: filled in, and known to SLURM."""

import math
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import yte

from epcore.commands.doctor.finding import Finding
from epcore.errors import UserError

UNFILLED = "CHANGE-ME"


@dataclass(frozen=True)
class Partition:
    """How many minutes it lets a job run, and what becomes of a job that has to make room."""

    minutes: float
    preemption: str


def check_profile(folder: Path, gpus: int, asked: Mapping[str, int]) -> list[Finding]:
    """Account, partitions, SLURM's programs, Snakemake's plugin, and what jobs ask for.

    gpus: of a pretraining. asked: for each rule that the cluster gets, minutes of its first try.
    """
    profile = read_profile(folder / "profile.yaml")
    defaults = profile.get("default-resources", {})
    findings = [_plugin(), _most_gpus(profile, gpus, folder)]
    account, edit = _name(defaults, "slurm_account"), f"edit the top of {folder / 'profile.yaml'}"
    findings.append(
        Finding("account", account, f"{edit}, or export EPCORE_SLURM_ACCOUNT")
        if account in ("", UNFILLED)
        else Finding("account", account)
    )
    if shutil.which("sbatch") is None:
        remedy = "log in to a node of the cluster that submits jobs"
        return [*findings, Finding("slurm", "sbatch is not on the PATH", remedy)]
    places = (defaults, *profile.get("set-resources", {}).values())
    wanted = {_name(place, "slurm_partition") for place in places} - {""}
    partitions = _partitions()
    if partitions is None:
        return [*findings, Finding("slurm", "sinfo has no answer", "ask the cluster's people")]
    findings += _time_limits(profile, partitions, asked)
    for name in sorted(wanted):
        remedy = f"{edit}; SLURM knows {', '.join(sorted(partitions))}"
        findings.append(
            Finding("partition", f"{name}{_preemption(partitions[name])}")
            if name in partitions
            else Finding("partition", f"SLURM knows no {name}", remedy)
        )
    return [*findings, _accounting(str(profile.get("slurm-status-command", "sacct")))]


def _name(place: dict[str, Any], key: str) -> str:
    """An account or a partition; quoted, so that Snakemake does not compute with it."""
    return str(place.get(key) or "").strip("'\"")


def _preemption(partition: Partition) -> str:
    """What Snakemake does not notice."""
    if partition.preemption != "CANCEL":
        return ""
    return "; jobs that make room for others are canceled there: see docs/cluster.md, preempted"


def _most_gpus(profile: dict[str, Any], gpus: int, folder: Path) -> Finding:
    """Whether a job may ask for the GPUs that a pretraining of the scale needs."""
    most = profile.get("resources", {}).get("gpu", 0)
    remedy = f"set gpu: {gpus} under `resources` in {folder / 'profile.yaml'}"
    fact = f"at most {most}, a pretraining has {gpus}"
    return Finding("gpus of a job", fact, remedy if most < gpus else "")


def _accounting(command: str) -> Finding:
    """Whether the program answers that tells Snakemake what became of its jobs."""
    if _ask(command, "--noheader") is not None:
        return Finding("job states", f"{command} tells them")
    remedy = "export EPCORE_SLURM_STATUS=squeue; for that MinJobAge should be 300 s or more"
    return Finding("job states", f"{command} does not tell them: no accounting?", remedy)


def read_profile(path: Path) -> dict[str, Any]:
    """The profile as Snakemake reads it, with the environment's values in place.

    Raises:
        UserError: if it is missing or cannot be read.
    """
    try:
        with path.open(encoding="utf-8") as file:
            content: dict[str, Any] = yte.process_yaml(file, require_use_yte=True)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}); give --profile the folder of a profile, "
            "e.g. workflow/profiles/slurm"
        ) from None
    except Exception as error:  # what the profile's expressions raise
        raise UserError(f"{path}: {error}") from None
    return content


def _time_limits(
    profile: dict[str, Any], partitions: dict[str, Partition], asked: Mapping[str, int]
) -> list[Finding]:
    """Whether the last tries of a partition's jobs may run as long as they ask for."""
    tries, longest = profile.get("retries", 0) + 1, dict[str, int]()
    for rule, minutes in asked.items():
        place = profile.get("default-resources", {}) | profile.get("set-resources", {}).get(
            rule, {}
        )
        partition = _name(place, "slurm_partition")
        longest[partition] = max(minutes, longest.get(partition, 0))
    findings = []
    for partition, first in longest.items():
        if partition not in partitions or partitions[partition].minutes == math.inf:
            continue
        # What a try asks for stops growing at thrice the first.
        most, times = int(partitions[partition].minutes), min(tries, 3)
        last = first * times
        fact = f"{partition} allows {most} minutes, {tries} tries of a job ask for up to {last}"
        remedy = (
            f"a job there (a training with its embedding) may ask for {most // times}: lower "
            "`runtime` under `resources` of the scale; a training goes on in its next try, or when "
            "the same command is run again"
        )
        findings.append(Finding("time limit", fact, remedy if last > most else ""))
    return findings


def _partitions() -> dict[str, Partition] | None:
    """SLURM's partitions; a line that is none is passed over."""
    answer = _ask("sinfo", "--noheader", "--format", "%R %l %M")
    if answer is None:
        return None
    lines = [words for line in answer.splitlines() if len(words := line.split()) == 3]
    return {name: Partition(minutes(limit), mode) for name, limit, mode in lines}


def minutes(limit: str) -> float:
    """Minutes of a limit as SLURM writes it: days-hours:minutes:seconds, first parts left out."""
    if not limit[0].isdigit():  # infinite
        return math.inf
    days, _, rest = limit.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    hours, whole, seconds = [0] * (3 - len(parts)) + parts
    return 1440 * int(days or 0) + 60 * hours + whole + seconds / 60


def _ask(*command: str) -> str | None:
    """What one of SLURM's programs prints, if it succeeds."""
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _plugin() -> Finding:
    name = "snakemake-executor-plugin-slurm"
    try:
        return Finding("plugin", f"{name} {metadata.version(name)}")
    except metadata.PackageNotFoundError:
        return Finding("plugin", f"{name} is missing", "pip install -r requirements.txt")
