"""The profile of the cluster: filled in, and known to SLURM."""

import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import yte

from epcore.doctor.finding import Finding
from epcore.errors import UserError

UNFILLED = "CHANGE-ME"


def check_profile(folder: Path, gpus: int) -> list[Finding]:
    """Account, partitions, SLURM's programs, Snakemake's plugin, and the GPUs of a pretraining."""
    profile = read_profile(folder / "profile.yaml")
    defaults = profile.get("default-resources", {})
    findings = [_plugin(), _most_gpus(profile, gpus, folder)]
    account, edit = defaults.get("slurm_account"), f"edit the top of {folder / 'profile.yaml'}"
    findings.append(
        Finding("account", f"{account}", f"{edit}, or export EPCORE_SLURM_ACCOUNT")
        if account in (None, UNFILLED)
        else Finding("account", f"{account}")
    )
    if shutil.which("sbatch") is None:
        remedy = "log in to a node of the cluster that submits jobs"
        return [*findings, Finding("slurm", "sbatch is not on the PATH", remedy)]
    wanted = [defaults.get("slurm_partition")]
    wanted += [rule.get("slurm_partition") for rule in profile.get("set-resources", {}).values()]
    known = _partitions()
    if known is None:
        return [*findings, Finding("slurm", "sinfo has no answer", "ask the cluster's people")]
    for name in sorted({str(name) for name in wanted if name}):
        remedy = f"{edit}; SLURM knows {', '.join(sorted(known))}"
        findings.append(
            Finding("partition", name)
            if name in known
            else Finding("partition", f"SLURM knows no {name}", remedy)
        )
    return [*findings, _accounting(str(profile.get("slurm-status-command", "sacct")))]


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
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except Exception as error:  # what the profile's expressions raise
        raise UserError(f"{path}: {error}") from None
    return content


def _partitions() -> set[str] | None:
    answer = _ask("sinfo", "--noheader", "--format", "%R")
    return None if answer is None else set(answer.split())


def _ask(*command: str) -> str | None:
    """What one of SLURM's programs prints, if it succeeds."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _plugin() -> Finding:
    name = "snakemake-executor-plugin-slurm"
    try:
        return Finding("plugin", f"{name} {metadata.version(name)}")
    except metadata.PackageNotFoundError:
        return Finding("plugin", f"{name} is missing", "pip install -r requirements.txt")
