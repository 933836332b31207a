"""The CO2 report: what every job, rule, table and figure of a scale used."""

from pathlib import Path

import numpy as np
import pandas as pd

from epcore.files import Provenance, write_text
from epcore.footprint import impact
from epcore.footprint.account import account
from epcore.footprint.config import Co2Config
from epcore.footprint.energy import read
from epcore.report.figure import BLUE, ORANGE, figure
from epcore.report.numbers import write_table
from epcore.report.writer import fill

# The statements of the paragraph that the table repeats.
CAPTION = ("factor", "trust", "impact", "paper", "shared")


def statements(sums: pd.DataFrame, attempts: pd.DataFrame) -> dict[str, str]:
    """The sentences of the paper's paragraph on CO2 by topic, with the numbers of these runs.

    Args:
        sums: what `epcore.footprint.account` sums up.
        attempts: the attempts behind them.
    """
    total = _total(sums)
    devices = sorted(attempts["device"].unique())
    hardware = " and ".join("processors" if name == "cpu" else name for name in devices)
    sentences = {
        "factor": "Experiments were conducted with a carbon emission factor of "
        f"{_range(attempts['factor'])} kg/kWh (set in config/footprint.yaml) and a PUE of "
        f"{_range(attempts['pue'])}.",
        "work": f"A cumulative of {_digits(total['hours'])} hours of computation was performed on "
        f"{hardware}, in {len(attempts)} attempts at {attempts['job'].nunique()} jobs, "
        f"{total['unfinished']} of which failed, were interrupted or have not ended; they count "
        "with what they used.",
        "total": f"Total emissions are {_digits(total['kg'])} kg CO2eq from "
        f"{_digits(total['kwh'])} kWh.",
        "trust": _trust(total["measured_kwh"], total["kwh"]),
        "paper": impact.SENTENCE,
        "shared": "Tables and figures count the jobs that they are made of, not the embeddings for "
        "others that their publication waits for; what several share counts for each, so that "
        "their sum is not the total.",
    }
    if total["impact_kg"] > 0:
        sentences["impact"] = (
            "Hours times the GPUs' power at full load times that factor, as the Machine Learning "
            f"Impact calculator has it, give {_digits(total['impact_kg'])} kg CO2eq: "
            f"{_gpu_hours(attempts)}. Memory, the processor beside a GPU and the PUE are not in it."
        )
    return sentences


def _total(sums: pd.DataFrame) -> pd.Series:
    return sums[sums["level"] == "total"].iloc[0]


def _range(values: pd.Series) -> str:
    return " to ".join(f"{value:g}" for value in dict.fromkeys((values.min(), values.max())))


def _gpu_hours(attempts: pd.DataFrame) -> str:
    """The hours, and their mean watts, that the hours-times-power estimate is made of."""
    on_gpu = attempts[attempts["gpu_watts"] > 0]
    watts = np.average(on_gpu["gpu_watts"], weights=on_gpu["seconds"])
    return f"{_digits(on_gpu['seconds'].sum() / 3600)} hours of GPU jobs at {_digits(watts)} W"


def _trust(measured: float, kwh: float) -> str:
    """Which part of the energy is measured."""
    estimated = (
        "by codecarbon from the load of the whole machine, of which each training has the part of "
        "its processor time; the small jobs beside them count with theirs, at the same rate; a GPU "
        "without a counter with its power at full load"
    )
    if measured <= 0:
        return f"This is estimated, not measured, because no power counter was there: {estimated}."
    return (
        f"{_percent(measured, kwh)} of the energy was measured by power counters (that of a "
        "processor is split among jobs by their processor time), the rest is estimated: "
        f"{estimated}."
    )


def typeset(sums: pd.DataFrame, sentences: dict[str, str]) -> str:
    """The table of rules, tables and figures in LaTeX."""

    def row(use: pd.Series) -> tuple[str, int, int, list[str]]:
        numbers = [_digits(use[name]) for name in ("hours", "cpu_hours", "kwh", "kg")]
        return str(use["name"]), use["attempts"], use["unfinished"], numbers

    levels = {
        "rule": "Rule",
        "table": "Table, with all it is made of",
        "figure": "Figure, with all it is made of",
        "total": "",
    }
    return fill(
        "co2.tex",
        caption=" ".join(sentences[name] for name in CAPTION if name in sentences),
        parts=[
            (heading, [row(use) for _, use in sums[sums["level"] == level].iterrows()])
            for level, heading in levels.items()
            if level in set(sums["level"])
        ],
    )


def _percent(part: float, total: float) -> str:
    """The share of a part; 0 % where the whole is nothing."""
    return f"{100 * part / total if total else 0:.0f} %"


def _digits(number: float) -> str:
    """Three significant digits, in full."""
    return np.format_float_positional(number, precision=3, fractional=False, trim="-")


def draw(sums: pd.DataFrame, out: Path) -> None:
    """Bars of CO2 by rule and by table, the largest first; less than a hundredth has none."""
    import seaborn

    total = _total(sums)
    bars = sums[sums["level"].isin(["rule", "table"]) & (sums["kg"] >= total["kg"] / 100)]
    bars = bars.sort_values(["level", "kg"], ascending=[True, False])
    names = {"rule": "rule", "table": "table, with all it is made of"}
    with figure(out, width=4.8, height=1 + 0.17 * len(bars)) as axes:
        seaborn.barplot(
            bars.replace({"level": names}), x="kg", y="name", hue="level", ax=axes, errorbar=None,
            palette=dict(zip(names.values(), [BLUE, ORANGE], strict=True)), saturation=1,
        )  # fmt: skip
        measured = _percent(total["measured_kwh"], total["kwh"])
        axes.set(ylabel="", xlabel=f"kg CO2-equivalent; {measured} of the energy is measured")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)


def run(config: Co2Config, energy: Path, out: Path, tex: Path, drawing: Path) -> None:
    """The stage `co2`: numbers (.csv), paragraph (.md), table (.tex), drawing (.pdf and .png).

    `energy` is the folder of what the jobs of a scale used, in the folder of the scale.
    """
    provenance = Provenance("co2", config, [])
    attempts = read(energy)
    sums = account(config, energy.parent, attempts)
    sentences = statements(sums, attempts)
    write_table(sums, out, "%.6g")
    write_text(out.with_suffix(".md"), " ".join(sentences.values()) + "\n")
    write_text(tex, typeset(sums, sentences))
    draw(sums, drawing)
    provenance.write(out)
