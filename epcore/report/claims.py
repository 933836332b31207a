"""Judges the claims: a CSV, a table in LaTeX and a page whose verdicts lead to their cells."""

import itertools
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from epcore.files import Provenance, write_text
from epcore.report.claim_config import ClaimsConfig, parts_of
from epcore.report.judged import Judged, Measured, judge, read_measured
from epcore.report.markup import to_text
from epcore.report.numbers import write_table
from epcore.report.verdicts import PLURAL, Verdict, Word
from epcore.report.writer import fill

# What a page calls a judge -> the judge's column of claims.csv.
JUDGES = {
    "As printed": "printed",
    "By printed intervals": "printed_intervals",
    "In this run": "this_run",
}


def run(config: ClaimsConfig, tests: list[Path], numbers: list[Path], out: Path) -> None:
    """The verdicts (.csv, .tex), the page (.html) and a meta.

    Args:
        config: the claims.
        tests: the tests behind each of `config.tables`.
        numbers: the numbers of each of `config.figures`.
        out: the CSV file.
    """
    provenance = Provenance("claims", config, [*tests, *numbers])
    measured = read_measured(config, tests)
    judged = judge(config, measured, dict(zip(config.figures, numbers, strict=True)))
    values = values_of(config, judged, measured, out.parent)
    write_table(tabulate(judged), out)
    write_text(out.with_suffix(".tex"), fill("claims.tex", **values))
    write_text(out.with_suffix(".html"), fill("claims.html", **values))
    provenance.write(out)


def tabulate(judged: list[Judged]) -> pd.DataFrame:
    """One line for each claim."""
    return pd.DataFrame(
        {
            "id": judgment.claim.id,
            "printed": judgment.printed.word,
            "printed_intervals": judgment.printed_intervals.word,
            "this_run": judgment.this_run.word,
            "printed_breaks": reasons_against(judgment.printed),
            "printed_intervals_breaks": reasons_against(judgment.printed_intervals),
            "this_run_breaks": reasons_against(judgment.this_run) or judgment.reason,
            "this_run_holds": judgment.this_run.count("holds"),
            "this_run_fails": judgment.this_run.count("fails"),
            "this_run_open": judgment.this_run.count("open"),
            "this_run_missing": len(judgment.this_run.missing),
            "whose": "ours" if judgment.claim.ours else "the paper's",
            "where": judgment.claim.where,
            "claim": judgment.claim.claim,
            "tables": " ".join(judgment.claim.tables),
        }
        for judgment in judged
    )


def reasons_against(verdict: Verdict) -> str:
    """What keeps a claim from holding, worst first."""
    cases = [case for word in ("fails", "open") for case in verdict.cases if case.word == word]
    return "; ".join(f"{case.name} {case.number} {case.word}".strip() for case in cases)


def values_of(
    config: ClaimsConfig, judged: list[Judged], measured: Mapping[str, Measured], folder: Path
) -> dict[str, Any]:
    """What the templates of the claims show; links are relative to the folder of the tables."""
    headings = {False: "Claims of the paper", True: "Claims of this project"}
    groups = itertools.groupby(judged, key=lambda judgment: judgment.claim.ours)
    cells = {name: _cell(name, config, measured.get(name), folder) for name in config.cells}
    return {
        "title": to_text(config.title),
        "note": note_of(config),
        "counts": counts_of([judgment for judgment in judged if not judgment.claim.ours]),
        "groups": [(headings[ours], list(claims)) for ours, claims in groups],
        "tables": config.tables,
        "figures": config.figures,
        "cells": {name: cell for name, cell in cells.items() if cell["printed"] or cell["tests"]},
    }


def note_of(config: ClaimsConfig) -> str:
    """What the verdicts mean."""
    if len(config.seeds) == 1:
        over = "over test episodes, of one training each: they say nothing of another training"
    else:
        over = (
            f"over {len(config.seeds)} trainings of each network (a figure's number is of the "
            "first, with the figure's interval)"
        )
    return (
        f"*Numbers*: as they stand. *Intervals*: 95\N{THIN SPACE}% intervals, as printed (those of "
        f"differences as of independent episodes) and, of this run, {over}; p-values of a claim's "
        "cells are adjusted by Holm's method. *Open*: an interval contains the bound, or "
        "cells are missing; in brackets, cells that hold, fail and are open, of all. "
        f"{config.notes.rstrip('.')}."
    )


def counts_of(judged: list[Judged]) -> list[str]:
    """How many of the paper's claims hold, by each judge."""
    words: dict[Word, str] = {**PLURAL, "not asked": "not asked"}
    lines = []
    for title, column in JUDGES.items():
        counts = Counter(getattr(judgment, column).word for judgment in judged)
        verdicts = ", ".join(f"{counts[word]} {plural}" for word, plural in words.items())
        lines.append(f"{title}: {verdicts} of the paper's {len(judged)} claims")
    return lines


def _cell(
    name: str, config: ClaimsConfig, measured: Measured | None, folder: Path
) -> dict[str, Any]:
    """The printed number with its file, and that of this run with the accuracies of episodes."""
    cell, paper = config.cells[name], config.papers.get(parts_of(name)[0])
    interval = f" ± {cell.printed_interval}" if cell.printed_interval else ""
    means = [accuracies.mean() for accuracies in measured.accuracies] if measured else []
    return {
        "printed": cell.printed + interval,
        "paper": os.path.relpath(f"config/paper/{paper}.csv", folder),
        "mean": f"{np.mean(means):.2f}" if means else "",
        "tests": [
            {"seed": test["seed"], "scores": os.path.relpath(test["scores"], folder)}
            for test in (measured.tests if measured else [])
        ],
    }
