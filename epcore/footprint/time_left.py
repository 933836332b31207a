"""How long a run of Snakemake goes on: its jobs that are left, times what such jobs took."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from epcore.footprint.ledger import read
from epcore.footprint.medians import Median, medians, read_medians
from epcore.plan.paths import LEDGER

# Below these seconds of finished jobs it is not asked how fast this machine is.
ENOUGH = 20.0


class TimeLeft:
    """Told what is planned, begun and done, it says how many seconds are left.

    `seconds` are those of a job by rule; rules that it lacks count as nothing. Jobs that finished
    say by which factor this machine is slower or faster, and as many jobs are taken to run
    together as ever did.
    """

    def __init__(
        self, seconds: Mapping[str, float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds, self._clock = seconds, clock
        self._left: dict[str, int] = {}
        self._running: dict[int, tuple[str, float]] = {}
        self._together = 1
        self._took = self._expected = 0.0

    def plan(self, counts: Mapping[str, int]) -> None:
        """Numbers of jobs by rule."""
        self._left = dict(counts)

    def begin(self, job: int, rule: str) -> None:
        """A job runs."""
        self._running[job] = rule, self._clock()
        self._together = max(self._together, len(self._running))

    def end(self, job: int) -> None:
        """A job is done; one that never began here does not count."""
        rule, began = self._running.pop(job, ("", 0.0))
        self._left[rule] = self._left.get(rule, 1) - 1
        if rule in self._seconds:
            self._took += self._clock() - began
            self._expected += self._seconds[rule]

    def seconds(self) -> float:
        """Until all jobs are done."""
        speed = self._took / self._expected if self._expected > ENOUGH else 1.0
        rest = speed * sum(self._seconds.get(r, 0) * count for r, count in self._left.items())
        for rule, began in self._running.values():
            rest -= min(self._clock() - began, speed * self._seconds.get(rule, 0))
        return rest / self._together


def seconds_by_stage(config: Path, scale: str) -> dict[str, float]:
    """What a job of each stage took: here, or else on the machine of config/measured.csv."""
    ledger = Path(LEDGER.format(scale=scale))
    shipped = read_medians(config / "measured.csv", scale)
    known = shipped | (medians(read(ledger)) if ledger.is_file() else {})
    stages: dict[str, list[Median]] = {}
    for key, median in known.items():
        if key == key.pooled:
            stages.setdefault(key.stage, []).append(median)
    return {
        stage: sum(one.jobs * one.seconds for one in found) / sum(one.jobs for one in found)
        for stage, found in stages.items()
    }


def seconds_by_rule(rules: Mapping[str, int], stages: Mapping[str, float]) -> dict[str, float]:
    """The same by rule: a rule has the name of its stage, and may have more behind it."""
    found = {}
    for rule in rules:
        named = [stage for stage in stages if rule.startswith(stage.replace("-", "_"))]
        if named:
            found[rule] = stages[max(named, key=len)]
    return found


def said(seconds: float) -> str:
    """In words, no more exact than it is."""
    minutes = seconds / 60
    if minutes < 1:
        return "less than a minute left"
    return f"some {minutes:.0f} min left" if minutes < 90 else f"some {minutes / 60:.0f} h left"
