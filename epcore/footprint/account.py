"""Sums over the ledger: by job, rule, table and figure."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from epcore.footprint.ancestry import Ancestry
from epcore.footprint.config import Co2Config
from epcore.footprint.ledger import Entry


@dataclass(frozen=True)
class Use:
    """What the attempts at some jobs used together.

    level: job, rule, table, figure or total. A table or figure counts every job that it is made
    of, what several share for each of them. Published, it also waits for embeddings that only
    others test; those it does not count.
    """

    level: str
    name: str
    entries: tuple[Entry, ...]

    @property
    def label(self) -> str:
        """The label in reports; a table and a figure may have the same name."""
        return f"{self.name} (figure)" if self.level == "figure" else self.name

    def sum(self, quantity: str) -> float:
        """The sum of an attribute over the entries."""
        return float(sum(getattr(entry, quantity) for entry in self.entries))

    @property
    def unfinished(self) -> int:
        """Attempts that failed, were interrupted or killed, or still run."""
        return sum(entry.state != "finished" for entry in self.entries)

    @property
    def hours(self) -> float:
        return self.sum("seconds") / 3600

    @property
    def cpu_hours(self) -> float:
        return self.sum("cpu_seconds") / 3600

    @property
    def impact_kg(self) -> float:
        """Hours times the hardware's power at full load times factor."""
        return sum(entry.tdp_kwh * entry.factor for entry in self.entries)

    @property
    def devices(self) -> list[str]:
        return sorted({entry.device for entry in self.entries})

    def row(self) -> dict[str, str | float]:
        """A line of the CSV."""
        entries = self.entries if self.level in ("job", "rule") else ()
        return {
            "level": self.level,
            "name": self.name,
            "rule": " ".join(dict.fromkeys(entry.stage for entry in entries)),
            "attempts": len(self.entries),
            "unfinished": self.unfinished,
            "hours": self.hours,
            "cpu_hours": self.cpu_hours,
            **{quantity: self.sum(quantity) for quantity in ("kwh", "measured_kwh", "kg")},
            "impact_kg": self.impact_kg,
            "device": "; ".join(self.devices),
        }


@dataclass(frozen=True)
class Account:
    """All sums of a ledger."""

    jobs: list[Use]
    rules: list[Use]
    products: list[Use]
    total: Use

    @property
    def uses(self) -> list[Use]:
        """All uses of the account."""
        return [*self.jobs, *self.rules, *self.products, self.total]


def account(config: Co2Config, results: Path, entries: Iterable[Entry]) -> Account:
    """The sums of the last entries of all attempts at a scale's jobs.

    Jobs are in the order of their names, rules in that of their first attempt, tables and figures
    in that of the config, as far as they were made. What a table or figure is made of is what the
    meta files below `results`, the folder of the scale, say.
    """
    entries = tuple(entries)
    by_job: dict[str, list[Entry]] = {}
    by_rule: dict[str, list[Entry]] = {}
    for entry in entries:
        by_job.setdefault(entry.job, []).append(entry)
        by_rule.setdefault(entry.stage, []).append(entry)
    ancestry = Ancestry(results, entries)
    targets = [("table", *table) for table in config.tables.items()]
    targets += [("figure", *figure) for figure in config.figures.items()]
    products = [
        Use(level, name, tuple(e for job in ancestry.jobs_below(file) for e in by_job[job]))
        for level, name, file in targets
        if file in by_job
    ]
    return Account(
        jobs=[Use("job", name, tuple(by_job[name])) for name in sorted(by_job)],
        rules=[Use("rule", name, tuple(entries_of)) for name, entries_of in by_rule.items()],
        products=products,
        total=Use("total", "", entries),
    )
