"""Cross-validation of alpha: validation accuracy over both alphas, and the best pair."""

import textwrap
from pathlib import Path
from typing import Any

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
from epcore.report.statistics import mean_with_interval

CODE = {"embedding": 0.5, "label": 0.2}  # the authors' code (A10)


def tabulate(config: AlphaConfig, episodes: Path) -> pd.DataFrame:
    """Accuracy in percent with its interval for every pair of alphas.

    Raises:
        UserError: if a checkpoint's features say nothing, because its training diverged.
    """
    lines = []
    for candidate in tqdm(config.candidates, desc="alpha", unit="checkpoint", disable=None):
        source = Path(candidate.features)
        features = Features.load(source)
        frozen = features.episodes(episodes, source)
        for alpha in config.label_alphas:
            settings = candidate.propagation.model_copy(update={"label_alpha": alpha})
            try:
                accuracies = solve(features, frozen, Inference(settings)).accuracies
            except DegenerateFeaturesError as error:
                raise UserError(
                    f"{candidate.features}: {error}", "leave its recipe out of figures.yaml"
                ) from None
            mean = mean_with_interval(100 * accuracies)
            lines.append(
                {
                    "embedding_alpha": settings.embedding_alpha,
                    "label_alpha": alpha,
                    "accuracy": mean.value,
                    "interval": mean.interval,
                }
            )
    table = pd.DataFrame(lines)
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
        code = CODE["embedding"], CODE["label"]
        marked = {
            f"best: EP {best['embedding_alpha']:g}, LP {best['label_alpha']:g}": (
                (best["embedding_alpha"], best["label_alpha"]), "black", "-",
            ),
            f"authors' code: EP {code[0]:g}, LP {code[1]:g}": (code, RED, "--"),
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
    """The stage `alpha`: the curves (.pdf, .png, .csv); the row `chosen` is the best pair."""
    inputs = [episodes, *(Path(candidate.features) for candidate in config.candidates)]
    provenance = Provenance("alpha", config, inputs)
    table = tabulate(config, episodes)
    write_table(table, out.with_suffix(".csv"), "%.4f")
    draw(table, config.note, out)
    provenance.write(out)
