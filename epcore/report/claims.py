"""Judges the claims: a CSV, a table in LaTeX and a page whose verdicts lead to their cells."""

from pathlib import Path

import pandas as pd

from epcore.files import Provenance, write_text
from epcore.report.claim_config import ClaimsConfig
from epcore.report.claims_page import page
from epcore.report.claims_table import typeset
from epcore.report.judged import Judged, breaks, judge
from epcore.report.numbers import write_table


def table_of(judged: list[Judged]) -> pd.DataFrame:
    """One line for each claim."""
    return pd.DataFrame(
        {
            "id": each.claim.id,
            "printed": each.printed.word,
            "printed_intervals": each.printed_intervals.word,
            "this_run": each.this_run.word,
            "printed_breaks": breaks(each.printed),
            "printed_intervals_breaks": breaks(each.printed_intervals),
            "this_run_breaks": breaks(each.this_run) or each.run_why,
            "this_run_holds": each.this_run.count("holds"),
            "this_run_fails": each.this_run.count("fails"),
            "this_run_open": each.this_run.count("open"),
            "this_run_missing": len(each.this_run.missing),
            "whose": "ours" if each.claim.ours else "the paper's",
            "where": each.claim.where,
            "claim": each.claim.claim,
            "tables": " ".join(each.claim.tables),
        }
        for each in judged
    )


def run(config: ClaimsConfig, out: Path) -> None:
    """The stage `claims`: the table (.csv, .tex), the page (.html) and a meta."""
    files = [Path(column.file) for cell in config.cells.values() for column in cell.scores]
    files += [Path(n.file) for claim in config.claims for n in claim.numbers if n.file]
    provenance = Provenance("claims", config, list(dict.fromkeys(files)))
    judged = judge(config)
    write_table(table_of(judged), out)
    write_text(out.with_suffix(".tex"), typeset(config, judged))
    write_text(out.with_suffix(".html"), page(config, judged, out.parent))
    provenance.write(out)
