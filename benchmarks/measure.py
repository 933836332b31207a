"""Paired measurements, and the row of the table that each becomes."""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Times:
    """Seconds of the clock, and of all processors that worked on it."""

    clock: float
    processors: float

    @classmethod
    def now(cls) -> "Times":
        return cls(time.perf_counter(), time.process_time())

    def since(self, start: "Times") -> "Times":
        return Times(self.clock - start.clock, self.processors - start.processors)


@dataclass(frozen=True)
class Pair:
    """Two kinds of work done in turns: medians of seconds, and of the ratio in each turn.

    `by_processors` is the ratio in processor seconds, which hardly depends on what else runs on
    the machine.
    """

    ours: float
    other: float
    other_to_ours: float
    by_processors: float

    @classmethod
    def of(cls, ours: list[Times], other: list[Times]) -> "Pair":
        turns = list(zip(ours, other, strict=True))
        return cls(
            statistics.median(times.clock for times in ours),
            statistics.median(times.clock for times in other),
            statistics.median(b.clock / a.clock for a, b in turns),
            statistics.median(b.processors / a.processors for a, b in turns),
        )


def paired(ours: Callable[[], Any], other: Callable[[], Any], turns: int) -> Pair:
    """Does both once unmeasured, then in turns; what disturbs the machine disturbs both."""
    ours()
    other()
    times: dict[Callable[[], Any], list[Times]] = {ours: [], other: []}
    for _ in range(turns):
        for work, measured in times.items():
            gc.collect()
            start = Times.now()
            work()
            measured.append(Times.now().since(start))
    return Pair.of(times[ours], times[other])


def row(what: str, measured: float, detail: str = "") -> None:
    """Prints a row of the table: a ratio, and the numbers behind it."""
    number = f"{measured:.3g}" if abs(measured) < 100 else f"{measured:.0f}"
    print(f"| {what} | {number} | {detail} |", flush=True)
