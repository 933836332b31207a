"""The ablation's picture: which of its factors matter, alone and in pairs."""

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from epcore.errors import UserError
from epcore.files import Provenance
from epcore.report.figure import BAR, BLUE, ORANGE, ends, figure
from epcore.report.figure_config import TableFigureConfig, factors_of
from epcore.report.numbers import write_table
from epcore.report.scores import read_test
from epcore.report.statistics import Estimate, over_trainings
from epcore.report.text_table import Cells, Tests, by_seed, read_cells, read_tests

Term = tuple[str, ...]
# The accuracies of a full factorial design, by the set of factors that are on.
Design = Mapping[frozenset[str], np.ndarray]


def contrast(cells: Design, term: Term) -> np.ndarray:
    """The effect of a term in each episode `(n,)`, or in one number `()`.

    cells: for each of the 2^k sets of factors that are on, the accuracies of the same episodes.
    Of one factor: the mean with it less the mean without it. Of two: how much more the first
    gives with the second than without it.
    """
    total = np.zeros(())
    for on, accuracies in cells.items():
        sign = np.prod([1 if factor in on else -1 for factor in term])
        total = total + sign * np.asarray(accuracies)
    effect: np.ndarray = total * 2 ** len(term) / len(cells)
    return effect


def effects(trainings: Sequence[Design], factors: Sequence[str]) -> dict[Term, Estimate]:
    """Term -> its effect: each factor, then each pair of factors.

    trainings: designs whose cells share their episodes; `over_trainings` says what the interval is
    over.
    """
    terms = [term for size in (1, 2) for term in itertools.combinations(factors, size)]
    return {term: over_trainings([contrast(cells, term) for cells in trainings]) for term in terms}


def tabulate(config: TableFigureConfig, cells: Cells, tests: Tests) -> pd.DataFrame:
    """A line for each term: effect and interval in points of this run, effect in the paper.

    Raises:
        UserError: if the paper prints no number for a row.
    """
    first = config.cells[0]
    drawn = [c for c in config.cells if (c.block, c.column) == (first.block, first.column)]
    factors = factors_of([cell.marks for cell in drawn])
    ours: dict[str, dict[frozenset[str], np.ndarray]] = {}  # by seed
    theirs: dict[frozenset[str], np.ndarray] = {}
    for cell in drawn:
        marks = frozenset(cell.marks) & {*factors}
        printed = cells[cell.key]["paper_accuracy"]
        if not printed:
            raise UserError(
                f"the paper prints no number for {', '.join(cell.key)}",
                "correct `paper` of the table, or draw another one",
            )
        theirs[marks] = np.array(float(printed))
        for test in tests[cell.key]:
            ours.setdefault(test["seed"], {})[marks] = read_test(test)
    lines = [
        {
            "term": " x ".join(term),
            "order": len(term),
            "effect": mean.value,
            "interval": mean.half_width,
            "paper_effect": float(contrast(theirs, term)),
        }
        for term, mean in effects(list(ours.values()), factors).items()
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


def run(config: TableFigureConfig, table: Path, out: Path) -> None:
    """The stage `ablation`: the picture (.pdf, .png) and what is drawn (.csv)."""
    tests = by_seed(table)
    provenance = Provenance("ablation", config, [table, tests])
    numbers = tabulate(config, read_cells(table), read_tests(tests))
    write_table(numbers, out.with_suffix(".csv"), "%.4f")
    trainings = len(config.seeds)
    over = "episodes" if trainings == 1 else f"{trainings} trainings"
    draw(numbers, config.note, over, out)
    provenance.write(out)
