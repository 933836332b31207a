"""How the accuracies of single episodes are distributed, with and without embedding propagation."""

from pathlib import Path

import pandas as pd

from epcore.files import Provenance
from epcore.report.figure import BLUE, ORANGE, facets
from epcore.report.figure_config import PerEpisode, TableFigureConfig
from epcore.report.numbers import write_table
from epcore.report.scores import read_test
from epcore.report.text_table import Tests, by_seed, read_tests

PLACE = ["dataset", "backbone", "episodes"]
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def read(config: TableFigureConfig, tests: Tests) -> pd.DataFrame:
    """A line for each episode of each row and seed: where it is drawn, and its accuracy in percent.

    Raises:
        UserError: if a score file is damaged, or another than when the table was made.
    """
    parts = []
    for cell in config.cells:
        place = cell.model_dump(include={*PLACE, "row"})
        for test in tests[cell.key]:
            lines = pd.DataFrame({**place, "seed": int(test["seed"]), "accuracy": read_test(test)})
            parts.append(lines.rename_axis("episode").reset_index())
    return pd.concat(parts, ignore_index=True)


def tabulate(rows: tuple[str, str], episodes: pd.DataFrame) -> pd.DataFrame:
    """A line for each row and place: quantiles of the accuracies of its episodes, of all seeds.

    `above`, `equal` and `below` are shares, in percent, of the episodes in which the second row is
    more, as and less accurate than the first one.
    """
    quantiles = episodes.groupby([*PLACE, "row"], sort=False)["accuracy"].quantile(QUANTILES)
    table = quantiles.unstack().rename(columns=lambda share: f"q{100 * share:02.0f}")
    table = table.reindex(quantiles.index.droplevel(-1).unique())
    first, second = (
        episodes[episodes["row"] == row].set_index([*PLACE, "seed", "episode"])["accuracy"]
        for row in rows
    )
    gap = (second - first).dropna().round(9)  # over the episodes that both rows have
    for name, met in (("above", gap > 0), ("equal", gap == 0), ("below", gap < 0)):
        shares = 100 * met.groupby(PLACE).mean()
        table[name] = shares.reindex(table.index.droplevel("row")).to_numpy()
    return table.reset_index()


def draw(
    rows: tuple[str, str], note: str, episodes: pd.DataFrame, table: pd.DataFrame, out: Path
) -> None:
    """A row of panels for each data set, a column for each backbone; the rows share a violin."""
    kinds = list(dict.fromkeys(episodes["episodes"]))
    shares = table.drop_duplicates(PLACE).set_index(PLACE)
    first, second = rows
    below = (
        f"a : b = {second} is above {first} in a % of the episodes, below it in b %. Lines are "
        f"quartiles. {note}"
    )
    with facets(
        out, "catplot", (5.6, 1.2 + 1.7 * episodes["dataset"].nunique()), below,
        data=episodes, row="dataset", col="backbone", kind="violin", x="episodes", y="accuracy",
        order=kinds, hue="row", hue_order=rows, palette=[BLUE, ORANGE], split=True,
        inner="quart", cut=0, linewidth=0.6, sharex=False, margin_titles=True,
    ) as grid:  # fmt: skip
        grid.set_ylabels("accuracy, %")
        for place, panel in grid.axes_dict.items():
            names = [
                f"{kind}\n{shares.above[*place, kind]:.0f} : {shares.below[*place, kind]:.0f}"
                for kind in kinds
            ]
            panel.set_xticks(range(len(kinds)), names)


def run(config: TableFigureConfig, table: Path, out: Path) -> None:
    """The stage `per-episode`: the picture (.pdf, .png) and what it says in numbers (.csv)."""
    assert isinstance(config.figure, PerEpisode)
    rows, tests = config.figure.rows, by_seed(table)
    provenance = Provenance("per-episode", config, [table, tests])
    episodes = read(config, read_tests(tests))
    numbers = tabulate(rows, episodes)
    write_table(numbers, out.with_suffix(".csv"), "%.4f")
    note = f"{config.note}, seeds {', '.join(map(str, config.seeds))}"
    draw(rows, note, episodes, numbers, out)
    provenance.write(out)
