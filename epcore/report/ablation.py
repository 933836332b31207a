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
from epcore.report.scores import read_test
from epcore.report.text_table import Cells, Tests, by_seed, read_cells, read_tests


def tabulate(config: AblationConfig, cells: Cells, tests: Tests) -> pd.DataFrame:
    """A line for each term: effect and interval in points of this run, effect in the paper.

    Raises:
        UserError: unless the rows are every combination of the factors, each with a printed number
            and over the same episodes.
    """
    combinations = {frozenset(marks) for marks in config.marks.values()}
    if not len(config.marks) == len(combinations) == 2 ** len(config.factors):
        raise UserError(
            f"the ablation needs a cell for each of the {2 ** len(config.factors)} combinations of "
            f"{', '.join(config.factors)}; there are {len(config.marks)} cells of "
            f"{len(combinations)} combinations; correct `marks` of the table's rows"
        )
    ours: dict[str, dict[frozenset[str], np.ndarray]] = {}  # by seed
    theirs: dict[frozenset[str], np.ndarray] = {}
    for row, marks in config.marks.items():
        key = (config.block, row, config.column)
        if key not in cells or not cells[key]["paper_accuracy"]:
            raise UserError(f"the paper prints no number for {', '.join(key)}; correct `paper`")
        theirs[frozenset(marks)] = np.array(float(cells[key]["paper_accuracy"]))
        for test in tests[key]:
            ours.setdefault(test["seed"], {})[frozenset(marks)] = read_test(test)
    if len({len(scores) for of_seed in ours.values() for scores in of_seed.values()}) != 1:
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


def run(config: AblationConfig, table: Path, out: Path) -> None:
    """The stage `ablation`: the picture (.pdf, .png) and what is drawn (.csv)."""
    cells, tests = read_cells(table), read_tests(by_seed(table))
    told = [test for row in config.marks for test in tests[config.block, row, config.column]]
    scores = [Path(test["scores"]) for test in told]
    provenance = Provenance("ablation", config, [table, by_seed(table), *scores])
    numbers = tabulate(config, cells, tests)
    write_table(numbers, out.with_suffix(".csv"), "%.4f")
    trainings = len({test["seed"] for test in told})
    over = "episodes" if trainings == 1 else f"{trainings} trainings"
    draw(numbers, config.note, over, out)
    provenance.write(out)
