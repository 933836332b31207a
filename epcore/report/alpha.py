"""Cross-validation of alpha: validation accuracy over both alphas, and the best pair."""

import textwrap
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle
from tqdm import tqdm

from epcore.errors import UserError
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import solve
from epcore.files import Provenance
from epcore.propagation import DegenerateFeaturesError
from epcore.report.figure import RED, figure
from epcore.report.figure_config import AlphaConfig
from epcore.report.numbers import write_table
from epcore.report.statistics import over_trainings

AUTHORS = (0.5, 0.2)  # of embedding and label propagation in their code (A10)
COLUMNS = [
    "embedding_alpha", "label_alpha", "accuracy", "interval", "difference", "difference_interval",
]  # fmt: skip


def tabulate(config: AlphaConfig, episodes: Path) -> pd.DataFrame:
    """A line for every pair of alphas: accuracy, and its difference to that of the authors' pair.

    Both are in percent, each with its interval. Differences are empty if the search lacks the
    authors' pair. `chosen` marks the most accurate one.

    Raises:
        UserError: if a checkpoint's features say nothing, because its training diverged.
    """
    accuracies: dict[tuple[float, float], list[np.ndarray]] = defaultdict(list)
    for candidate in tqdm(config.candidates, desc="alpha", unit="recipe", disable=None):
        for source in map(Path, candidate.features):
            features = Features.load(source)
            frozen = features.episodes(episodes, source)
            for alpha in config.label_alphas:
                settings = candidate.propagation.model_copy(update={"label_alpha": alpha})
                try:
                    of_episodes = solve(features, frozen, Inference(settings)).accuracies
                except DegenerateFeaturesError as error:
                    raise UserError(
                        f"{source}: {error}", "leave its recipe out of the figure alpha"
                    ) from None
                accuracies[settings.embedding_alpha, alpha].append(100 * of_episodes)
    lines = []
    authors = accuracies.get(AUTHORS)
    for pair, values in accuracies.items():
        mean = over_trainings(values)
        line = [*pair, mean.value, mean.half_width, np.nan, np.nan]
        if authors:
            gap = over_trainings([a - b for a, b in zip(values, authors, strict=True)])
            line[-2:] = gap.value, gap.half_width
        lines.append(line)
    table = pd.DataFrame(lines, columns=COLUMNS)
    table["chosen"] = table.index == table["accuracy"].idxmax()
    return table


def draw(table: pd.DataFrame, note: str, out: Path) -> None:
    """A cell for each pair of alphas, darker where it is less accurate."""
    import seaborn

    grid = table.pivot(index="embedding_alpha", columns="label_alpha", values="accuracy")
    best = table[table["chosen"]].iloc[0]
    with figure(out, width=6, height=3.6) as axes:
        seaborn.heatmap(
            grid, ax=axes, cmap="viridis", annot=True, fmt=".1f", annot_kws={"fontsize": 6},
            linewidths=0.5, cbar_kws={"label": "validation accuracy, %"},
        )  # fmt: skip
        marked = {
            f"best: EP {best['embedding_alpha']:g}, LP {best['label_alpha']:g}": (
                (best["embedding_alpha"], best["label_alpha"]), "black", "-",
            ),
            f"authors' code: EP {AUTHORS[0]:g}, LP {AUTHORS[1]:g}": (AUTHORS, RED, "--"),
        }  # fmt: skip
        for name, ((row, column), color, line) in marked.items():
            if row in grid.index and column in grid.columns:
                corner = grid.columns.get_loc(column), grid.index.get_loc(row)
                style: Any = {"edgecolor": color, "linestyle": line, "linewidth": 1.5}
                axes.add_patch(Rectangle(corner, 1, 1, fill=False, label=name, **style))
        axes.invert_yaxis()
        axes.set_xlabel(f"alpha of label propagation\n{textwrap.fill(note, 80)}")
        axes.set_ylabel("alpha of embedding propagation")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def run(config: AlphaConfig, episodes: Path, out: Path) -> None:
    """The stage `alpha`: the figure (.pdf, .png, .csv); the row `chosen` is the best pair."""
    features = (Path(file) for candidate in config.candidates for file in candidate.features)
    inputs = [episodes, *features]
    provenance = Provenance("alpha", config, inputs)
    table = tabulate(config, episodes)
    write_table(table, out.with_suffix(".csv"), "%.4f")
    draw(table, config.note, out)
    provenance.write(out)
