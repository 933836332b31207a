"""The ablation's picture: which of its factors matter, alone and in pairs."""

import textwrap
from pathlib import Path

import numpy as np
import pandas as pd

from epcore.errors import UserError
from epcore.files import Provenance
from epcore.report.factorial import contrast, effects
from epcore.report.figure import BAR, BLUE, ORANGE, ends, figure
from epcore.report.figure_config import AblationConfig
from epcore.report.numbers import write_table
from epcore.report.printed import read_printed
from epcore.report.scores import read_scores


def tabulate(config: AblationConfig, paper: Path) -> pd.DataFrame:
    """A line for each term: effect and interval in points of this run, effect in the paper.

    Raises:
        UserError: unless the cells are every combination of the factors, each with a printed number
            and over the same episodes.
    """
    printed = read_printed(paper).items()
    rows = {(block, row): float(cell["accuracy"]) for (block, row, _), cell in printed}
    first = [cell for cell in config.cells if cell.seed == config.cells[0].seed]
    combinations = {frozenset(cell.marks) for cell in first}
    if not len(first) == len(combinations) == 2 ** len(config.factors):
        raise UserError(
            f"the ablation needs a cell for each of the {2 ** len(config.factors)} combinations of "
            f"{', '.join(config.factors)}; there are {len(first)} cells of "
            f"{len(combinations)} combinations; correct `marks` of the table's rows"
        )
    for cell in config.cells:
        if (cell.block, cell.paper) not in rows:
            raise UserError(f"{paper}: no row {cell.paper!r} in {cell.block}; correct `paper`")
    ours: dict[int, dict[frozenset[str], np.ndarray]] = {}
    for cell in config.cells:
        ours.setdefault(cell.seed, {})[frozenset(cell.marks)] = read_scores(cell.scores)
    theirs = {frozenset(cell.marks): np.array(rows[cell.block, cell.paper]) for cell in first}
    if len({len(scores) for cells in ours.values() for scores in cells.values()}) != 1:
        raise UserError("the ablation's scores are of different episodes; delete and rerun them")
    lines = [
        {
            "term": " x ".join(term),
            "order": len(term),
            "effect": mean.value,
            "interval": mean.interval,
            "paper_effect": float(contrast(theirs, term)),
        }
        for term, mean in effects(list(ours.values()), config.factors).items()
    ]
    return pd.DataFrame(lines)


def draw(table: pd.DataFrame, note: str, over: str, out: Path) -> None:
    """Effects from the largest to the smallest, those of single factors above the pairs.

    over: what the intervals are over.
    """
    import seaborn

    named = table.assign(
        term=table["term"].str.replace(" x ", " with "), size=-table["effect"].abs()
    )
    order = list(named.sort_values(["order", "size"])["term"])
    ours = ends(named, "effect", "interval").assign(of=f"this run, 95 % over {over}")
    printed = named.assign(effect=named["paper_effect"], of="paper, from its printed means")
    with figure(out, width=4.8, height=3.4) as axes:
        seaborn.pointplot(
            pd.concat([ours, printed]), x="effect", y="term", order=order, hue="of", ax=axes,
            palette=[BLUE, ORANGE], markers=["o", "D"], markersize=4, linestyle="none", dodge=0.4,
            errorbar=BAR, capsize=0.2, err_kws={"linewidth": 1.2},
        )  # fmt: skip
        axes.axvline(0, color="0.6", linewidth=0.8)
        axes.axhline(table["order"].eq(1).sum() - 0.5, color="0.6", linewidth=0.8, linestyle=":")
        axes.set(ylabel="", xlabel=f"effect on accuracy, points\n{textwrap.fill(note, 70)}")
        axes.set_title("What matters? Single factors, and how pairs add to them", pad=20)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, markerscale=0.6)


def run(config: AblationConfig, paper: Path, out: Path) -> None:
    """The stage `ablation`: the picture (.pdf, .png) and what is drawn (.csv)."""
    provenance = Provenance(
        "ablation", config, [paper, *(Path(c.scores.file) for c in config.cells)]
    )
    table = tabulate(config, paper)
    write_table(table, out.with_suffix(".csv"), "%.4f")
    trainings = len({cell.seed for cell in config.cells})
    draw(table, config.note, "episodes" if trainings == 1 else f"{trainings} trainings", out)
    provenance.write(out)
