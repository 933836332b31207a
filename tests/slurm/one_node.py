"""A project on a SLURM, and what SLURM says of its jobs."""

import math
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Job:
    number: str
    name: str
    state: str
    rule: str
    limit: str
    restarts: int


class Cluster:
    """SLURM and a project on it, which is driven by Snakemake with the profile."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A driver, as docs/cluster.md starts it; its output is appended to driver.log."""
        command = [sys.executable, "-m", "snakemake", "--profile", "workflow/profiles/slurm"]
        with (self.folder / "driver.log").open("a") as log:
            return subprocess.Popen(
                [*command, *arguments, "--config", "allow_cpu=true"],
                cwd=self.folder, env=self.environment, stdout=log, stderr=log, text=True,
                start_new_session=True,
            )  # fmt: skip

    def run(self, *command: str) -> str:
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, check=True, capture_output=True,
            text=True,
        ).stdout  # fmt: skip

    @property
    def log(self) -> str:
        return (self.folder / "driver.log").read_text()

    def jobs(self, rule: str = "", state: str = "") -> list[Job]:
        """All jobs so far, the oldest first, of a rule and in a state if one is given."""
        found = []
        for text in self.run("scontrol", "show", "job", "--oneliner").splitlines():
            facts = dict(re.findall(r"(\w+)=(\S*)", text))
            if not facts.get("JobId"):
                continue
            # Of a rule with its wildcards, or of a training and what goes with it.
            comment = facts.get("Comment", "")
            found_rule = re.sub(r"rule_([\w-]+?_s0_([a-z]+)|(\w+?)_wildcards).*", r"\2\3", comment)
            job = Job(
                facts["JobId"], comment, facts["JobState"], found_rule, facts["TimeLimit"],
                int(facts["Restarts"]),
            )  # fmt: skip
            if rule in ("", found_rule) and state in ("", job.state):
                found.append(job)
        return sorted(found, key=lambda job: int(job.number))

    def shorten(self, number: str) -> None:
        """Leaves a running job one to two minutes: the profile's warning, 120 s, is due."""
        (text,) = re.findall(r"RunTime=(\S+)", self.run("scontrol", "show", "job", number))
        hours, minutes, seconds = map(int, text.split(":"))
        limit = math.ceil((3600 * hours + 60 * minutes + seconds + 60) / 60)
        self.run("scontrol", "update", f"JobId={number}", f"TimeLimit={limit}")

    def wait(self, condition, seconds=900):
        """What the condition returns, once it is true."""
        end = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < end, f"this never came to be; {self.log[-3000:]}"
            time.sleep(0.2)
        return value
