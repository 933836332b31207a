"""The CO2 report: what every job, rule, table and figure of a scale used."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from epcore.errors import UserError
from epcore.files import Provenance, write_text
from epcore.footprint import impact
from epcore.footprint.account import Account, Use, account
from epcore.footprint.config import Co2Config
from epcore.footprint.ledger import Entry, read
from epcore.report.figure import BLUE, ORANGE, figure
from epcore.report.numbers import write_table
from epcore.report.writer import fill

HOURS = 24  # of processors, below which the table tells minutes
LEAST = 0.001
# The statements of the paragraph that the table repeats.
CAPTION = ("factor", "trust", "paper", "shared")


def paragraph(sums: Account) -> str:
    """The paper's paragraph on CO2, with the numbers of these runs, and how far to trust them."""
    return " ".join(statements(sums).values())


def statements(sums: Account) -> dict[str, str]:
    """The sentences of the paragraph by topic."""
    total = sums.total
    kwh, kg, measured = total.sum("kwh"), total.sum("kg"), total.sum("measured_kwh")
    hardware = " and ".join("processors" if name == "cpu" else name for name in total.devices)
    return {
        "factor": f"Experiments were conducted with {_conditions(total.entries)}.",
        "work": f"A cumulative of {_digits(total.hours)} hours of computation was performed on "
        f"{hardware}, in {len(total.entries)} attempts at {len(sums.jobs)} jobs, "
        f"{total.unfinished} of which failed, were interrupted or have not ended; they count with "
        "what they used.",
        "total": f"Total emissions are {_mass(kg)} CO2eq from {_energy(kwh)}.",
        "trust": _trust(measured, kwh),
        "impact": "Hours times the hardware's power at full load times that factor, as the Machine "
        f"Learning Impact calculator has it, give {_mass(total.impact_kg)} CO2eq: "
        f"{_powers(total.entries)}. Memory, the processor beside a GPU and the PUE are not in it.",
        "paper": impact.SENTENCE,
        "shared": "Tables and figures count the jobs that they are made of, not the embeddings for "
        "others that their publication waits for; what several share counts for each, so that "
        "their sum is not the total.",
    }


def _conditions(entries: Sequence[Entry]) -> str:
    """The factor and the PUE that the ledger's energy was computed with."""
    factors = _range([entry.factor for entry in entries])
    sources = "; ".join(sorted({entry.factor_source for entry in entries}))
    pues = _range([entry.pue for entry in entries])
    return f"a carbon emission factor of {factors} kg/kWh ({sources}) and a PUE of {pues}"


def _range(values: Sequence[float]) -> str:
    return " to ".join(f"{value:g}" for value in dict.fromkeys((min(values), max(values))))


def _powers(entries: Sequence[Entry]) -> str:
    """The hours, and their mean watts, that the hours-times-power estimate is made of."""
    on_cpu = [entry for entry in entries if entry.device == "cpu"]
    on_gpu = [entry for entry in entries if entry.device != "cpu"]
    parts = (
        (sum(entry.cpu_seconds for entry in on_cpu) / 3600, "core hours", on_cpu),
        (sum(entry.seconds for entry in on_gpu) / 3600, "hours of GPU jobs", on_gpu),
    )
    return " and ".join(
        f"{_digits(hours)} {unit} at {_digits(1000 * sum(e.tdp_kwh for e in chosen) / hours)} W"
        for hours, unit, chosen in parts
        if hours > 0
    )


def _trust(measured: float, kwh: float) -> str:
    """Which part of the energy is measured."""
    estimated = (
        "from the processor time of each job: in trainings, embeddings and evaluations its part of "
        "what codecarbon estimates for the whole machine's load, in the small jobs beside them "
        "times the power at full load"
    )
    if measured <= 0:
        return f"This is estimated, not measured, because no power counter was there, {estimated}."
    return (
        f"{_percent(measured, kwh)} of the energy was measured by power counters (that of a "
        "processor is split among jobs by their processor time), the rest is estimated "
        f"{estimated}."
    )


def typeset(sums: Account) -> str:
    """The table of rules, tables and figures, and of the two estimates, in LaTeX."""
    sentences = statements(sums)
    small = sums.total.sum("kwh") < 1
    scale = 1000 if small else 1
    time, parts_of_hour = ("minutes", 60) if sums.total.cpu_hours < HOURS else ("hours", 1)

    def row(use: Use) -> tuple[str, int, int, list[str]]:
        times = (parts_of_hour * use.hours, parts_of_hour * use.cpu_hours)
        numbers = (*times, scale * use.sum("kwh"), scale * use.sum("kg"))
        name = use.label if use.name else ""
        return name, len(use.entries), use.unfinished, [_cell(number) for number in numbers]

    products = "Table or figure, with all it is made of"
    parts = {"Rule": sums.rules, products: sums.products, "": [sums.total]}
    paper = f"Paper: {impact.HOURS} h at {impact.WATTS} W (printed: {impact.PRINTED} kg)"
    ours = f"This run: {_powers(sums.total.entries)}"
    return fill(
        "co2.tex",
        caption=" ".join(sentences[name] for name in CAPTION),
        time=time,
        energy="Wh" if small else "kWh",
        mass="g" if small else "kg",
        parts=[(heading, [row(use) for use in uses]) for heading, uses in parts.items()],
        estimates=[(ours, _mass(sums.total.impact_kg)), (paper, f"{impact.COMPUTED} kg")],
    )


def _cell(number: float) -> str:
    """A cell of the table; what is next to nothing is not told to its last digit."""
    return f"$<${LEAST:g}" if 0 < number < LEAST else _digits(number)


def _percent(part: float, whole: float) -> str:
    """The share of a part; 0 % where the whole is nothing."""
    return f"{100 * part / whole if whole else 0:.0f} %"


def _mass(kg: float) -> str:
    return f"{_digits(kg)} kg" if kg >= 1 else f"{_digits(1000 * kg)} g"


def _energy(kwh: float) -> str:
    return f"{_digits(kwh)} kWh" if kwh >= 1 else f"{_digits(1000 * kwh)} Wh"


def _digits(number: float) -> str:
    """Three significant digits, in full."""
    return np.format_float_positional(number, precision=3, fractional=False, trim="-")


def largest(uses: Sequence[Use], least: float) -> list[tuple[str, float]]:
    """Names and kg, the largest first; uses of fewer than `least` kg stand at the end as one."""
    named = sorted(((use.label, use.sum("kg")) for use in uses), key=lambda bar: -bar[1])
    kept = [bar for bar in named if bar[1] >= least]
    rest = [kg for _, kg in named[len(kept) :]]
    return [*kept, (f"{len(rest)} others", sum(rest))] if rest else kept


def draw(sums: Account, out: Path) -> None:
    """Bars of CO2 by rule and by table; rules of less than a hundredth of all stand as one."""
    total = sums.total.sum("kg")
    unit, scale = ("g", 1000) if total < 1 else ("kg", 1)
    tables = [use for use in sums.products if use.level == "table"]
    groups = [
        ("rule", BLUE, largest(sums.rules, total / 100)),
        ("table, with all it is made of", ORANGE, largest(tables, 0)),
    ]
    rows = sum(len(bars) for _, _, bars in groups)
    with figure(out, width=4.8, height=1 + 0.17 * rows) as axes:
        place, ticks = 0, []
        for label, color, bars in groups:
            places = [place + number for number in range(len(bars))]
            axes.barh(places, [scale * kg for _, kg in bars], color=color, label=label)
            ticks += [(position, name) for position, (name, _) in zip(places, bars, strict=True)]
            place += len(bars) + 1
        axes.set_yticks([tick for tick, _ in ticks], [name for _, name in ticks])
        axes.set_ylim(place - 1.4, -0.6)
        measured = _percent(sums.total.sum("measured_kwh"), sums.total.sum("kwh"))
        axes.set_xlabel(f"{unit} CO2-equivalent; {measured} of the energy is measured")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)


def run(config: Co2Config, ledger: Path, out: Path, tex: Path, drawing: Path) -> None:
    """The stage `co2`: numbers (.csv), paragraph (.md), table (.tex), drawing (.pdf and .png)."""
    entries = read(ledger)
    if not entries:
        raise UserError(f"ledger {ledger} has no line that can be read; run a job first")
    provenance = Provenance("co2", config.model_dump(mode="json"), [ledger])
    sums = account(config, ledger.parent, entries)
    write_table(pd.DataFrame(use.row() for use in sums.uses), out, "%.6g")
    write_text(out.with_suffix(".md"), paragraph(sums) + "\n")
    write_text(tex, typeset(sums))
    draw(sums, drawing)
    provenance.write(out)
