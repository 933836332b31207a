"""Judges the claims: a CSV, a table in LaTeX and a page whose verdicts lead to their cells."""

from pathlib import Path

import pandas as pd

from epcore.files import Provenance, write_text
from epcore.report.claim_config import ClaimsConfig
from epcore.report.claims_page import page
from epcore.report.claims_table import typeset
from epcore.report.judged import Judged, judge, read_measured, reasons_against
from epcore.report.numbers import write_table


def tabulate(judged: list[Judged]) -> pd.DataFrame:
    """One line for each claim."""
    return pd.DataFrame(
        {
            "id": each.claim.id,
            "printed": each.printed.word,
            "printed_intervals": each.printed_intervals.word,
            "this_run": each.this_run.word,
            "printed_breaks": reasons_against(each.printed),
            "printed_intervals_breaks": reasons_against(each.printed_intervals),
            "this_run_breaks": reasons_against(each.this_run) or each.reason,
            "this_run_holds": each.this_run.count("holds"),
            "this_run_fails": each.this_run.count("fails"),
            "this_run_open": each.this_run.count("open"),
            "this_run_missing": len(each.this_run.missing),
            "whose": "ours" if each.claim.ours else "the paper's",
            "where": each.claim.where,
            "claim": each.claim.claim,
            "tables": " ".join(dict.fromkeys(cell.split("/")[0] for cell in each.claim.cells)),
        }
        for each in judged
    )


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
    write_table(tabulate(judged), out)
    write_text(out.with_suffix(".tex"), typeset(config, judged))
    write_text(out.with_suffix(".html"), page(config, judged, measured, out.parent))
    provenance.write(out)
