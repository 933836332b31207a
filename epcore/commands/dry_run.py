"""The jobs that are left to run, read from Snakemake's dry run: no other DAG is kept."""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from epcore.commands.stages import REPORT
from epcore.errors import UserError
from epcore.plan import Plan

SNAKEFILES = ("Snakefile", "workflow/Snakefile")  # where it lies beside config/


@dataclass(frozen=True)
class Job:
    """A job. stage: its command of `epcore`, or empty. gpu: whether it takes one if there is."""

    rule: str
    stage: str
    wildcards: dict[str, str]
    gpu: bool

    @property
    def backbone(self) -> str:
        """The backbone of the job or, for ImageNet-FS, its network; empty if it has none."""
        return self.wildcards.get("backbone", self.wildcards.get("network", ""))


def planned(plan: Plan, targets: Sequence[str]) -> list[Job]:
    """What Snakemake would run for the targets, in the current folder.

    Raises:
        UserError: for a mistake in the config, or a target that Snakemake refuses, in its words.
    """
    plan.check()
    config = (f"scale={plan.registry.scale_name}", f"seeds={list(plan.registry.seeds)}")
    folder = plan.registry.config.parent
    snakefiles = [folder / name for name in SNAKEFILES if (folder / name).is_file()]
    snakefile = str(next(iter(snakefiles), folder / SNAKEFILES[0]))
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--printshellcmds", "--nocolor"]
    command += ["--snakefile", snakefile, "--config", *config, "--", *targets]
    process = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if process.returncode:
        raise UserError(f"Snakemake cannot plan {' '.join(targets)}: {_reason(process)}")
    jobs = read_jobs(process.stdout, plan)
    total = re.search(r"^total +(\d+)$", process.stdout, re.M)
    if len(jobs) != (int(total[1]) if total else 0):
        raise UserError("Snakemake's dry run has a new form", "install what requirements.txt names")
    return jobs


def read_jobs(text: str, plan: Plan) -> list[Job]:
    """The jobs of a dry run that prints shell commands."""
    rules = re.split(r"^ *(?:local)?rule (\w+):$", text, flags=re.M)[1:]
    return [_job(rule, body, plan) for rule, body in zip(rules[::2], rules[1::2], strict=True)]


def _reason(refused: subprocess.CompletedProcess[str]) -> str:
    """Why Snakemake refuses, in one line, be it workflow, DAG or a Snakemake that cannot start."""
    output = refused.stderr + refused.stdout
    if not output.strip():  # killed, for example for its memory
        return f"it ended without a word, with exit code {refused.returncode}"
    message = re.search(r"^epcore: (.+)$|Building DAG of jobs\.\.\.\n([\s\S]+)", output, re.M)
    return " ".join(
        (message[1] or message[2] if message else output.strip().splitlines()[-1]).split()
    )


def _job(rule: str, body: str, plan: Plan) -> Job:
    named = re.search(r"^ *wildcards: (.+)$", body, re.M)
    stage = re.search(r"^ *Shell command: epcore ([a-z0-9-]+) ", body, re.M)
    wildcards = dict(pair.split("=", 1) for pair in named[1].split(", ")) if named else {}
    return Job(
        rule=rule,
        stage=stage[1] if stage else _report_stage(rule, wildcards, plan),
        wildcards=wildcards,
        gpu=re.search(r"^ *resources: .*\bgpu=", body, re.M) is not None,
    )


def _report_stage(rule: str, wildcards: Mapping[str, str], plan: Plan) -> str:
    """The stage of a job that is a script: a rule of its name, or the figure's; else none."""
    if "figure" in wildcards:
        return plan.figure_jobs[wildcards["figure"]].stage
    return rule if rule in REPORT else ""
