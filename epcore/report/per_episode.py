"""How the accuracies of single episodes are distributed, with and without embedding propagation."""

import textwrap
from pathlib import Path

import pandas as pd

from epcore.errors import UserError
from epcore.files import Provenance
from epcore.plan.stages import PerEpisodeStage
from epcore.report.aggregate import read_scores
from epcore.report.figure import BLUE, ORANGE, panels
from epcore.report.numbers import write_table

PLACE = ["dataset", "backbone", "episodes"]
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def read(stage: PerEpisodeStage) -> pd.DataFrame:
    """A line for each episode of each row and seed: where it is drawn, and its accuracy in percent.

    Raises:
        UserError: if a score file is damaged, or two rows of a seed have other episodes.
    """
    parts = []
    for cell in stage.cells:
        accuracies = read_scores(Path(cell.scores))
        place = dict(zip(PLACE, (cell.dataset, cell.backbone, cell.episodes), strict=True))
        lines = pd.DataFrame({**place, "row": cell.row, "seed": cell.seed, "accuracy": accuracies})
        parts.append(lines.rename_axis("episode").reset_index())
    table = pd.concat(parts, ignore_index=True)
    counts = table.groupby([*PLACE, "seed", "row"], sort=False).size()
    if counts.groupby([*PLACE, "seed"]).nunique().max() > 1:
        raise UserError(
            "the score files of figure per-episode have different numbers of episodes; "
            "delete results/<scale>/scores and run the same command again"
        )
    return table


def tabulate(stage: PerEpisodeStage, episodes: pd.DataFrame) -> pd.DataFrame:
    """A line for each row and place: quantiles of the accuracies of its episodes, of all seeds.

    `above`, `equal` and `below` are shares, in percent, of the episodes in which the second row is
    more, as and less accurate than the first one.
    """
    quantiles = episodes.groupby([*PLACE, "row"], sort=False)["accuracy"].quantile(QUANTILES)
    table = quantiles.unstack().rename(columns=lambda share: f"q{100 * share:02.0f}")
    table = table.reindex(quantiles.index.droplevel(-1).unique())
    first, second = (
        episodes[episodes["row"] == row].set_index([*PLACE, "seed", "episode"])["accuracy"]
        for row in stage.rows
    )
    gap = (second - first).round(9)
    for name, met in (("above", gap > 0), ("equal", gap == 0), ("below", gap < 0)):
        shares = 100 * met.groupby(PLACE).mean()
        table[name] = shares.reindex(table.index.droplevel("row")).to_numpy()
    return table.reset_index()


def draw(stage: PerEpisodeStage, episodes: pd.DataFrame, table: pd.DataFrame, out: Path) -> None:
    """A row of panels for each data set, a column for each backbone; the rows share a violin."""
    import seaborn

    datasets, backbones, kinds = (list(dict.fromkeys(episodes[name])) for name in PLACE)
    shares = table.drop_duplicates(PLACE).set_index(PLACE)
    size = {"width": 5.6, "height": 1.2 + 1.7 * len(datasets)}
    grid = panels(out, len(datasets), len(backbones), **size, sharey=True)
    with grid as (canvas, axes):
        for row, dataset in zip(axes, datasets, strict=True):
            for panel, backbone in zip(row, backbones, strict=True):
                shown = episodes[
                    (episodes["dataset"] == dataset) & (episodes["backbone"] == backbone)
                ]
                seaborn.violinplot(
                    shown, x="episodes", y="accuracy", hue="row", order=kinds, ax=panel,
                    hue_order=stage.rows, palette=[BLUE, ORANGE], split=True, inner="quart",
                    cut=0, linewidth=0.6, legend=bool(panel is axes[0, 0]),
                )  # fmt: skip
                named = [
                    f"{kind}\n{share.above:.0f} : {share.below:.0f}"
                    for kind in kinds
                    for share in [shares.loc[(dataset, backbone, kind)]]
                ]
                panel.set_xticks(range(len(kinds)), named)
                panel.set(xlabel="", ylabel="")
            row[0].set_ylabel(f"{textwrap.fill(dataset, 24)}\naccuracy, %")
        for panel, backbone in zip(axes[0], backbones, strict=True):
            panel.set_title(textwrap.fill(backbone, 22), fontsize=8)
        handles, names = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].get_legend().remove()
        canvas.legend(handles, names, loc="outside upper center", ncols=2)
        first, second = stage.rows
        below = (
            f"a : b = {second} is above {first} in a % of the episodes, below it in b %. Lines are "
            f"quartiles. {stage.note}"
        )
        canvas.supxlabel(textwrap.fill(below, 110), fontsize=7)


def run(stage: PerEpisodeStage, out: Path) -> None:
    """The stage `per-episode`: the picture (.pdf, .png) and what it says in numbers (.csv)."""
    inputs = [Path(cell.scores) for cell in stage.cells]
    provenance = Provenance("per-episode", stage.model_dump(mode="json"), inputs)
    episodes = read(stage)
    table = tabulate(stage, episodes)
    write_table(table, out.with_suffix(".csv"), "%.4f")
    draw(stage, episodes, table, out)
    provenance.write(out)
