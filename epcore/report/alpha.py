"""Cross-validation of alpha: validation accuracy over both alphas, and the best pair."""

import itertools
import textwrap
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from epcore.data.episodes import Episodes
from epcore.errors import UserError
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import solve
from epcore.files import Provenance
from epcore.origin import check_one_store
from epcore.plan.stages import AlphaStage
from epcore.propagation import DegenerateFeaturesError
from epcore.report.figure import COLORS, figure
from epcore.report.numbers import write_table
from epcore.report.statistics import mean_with_interval

CODE = {"embedding": 0.5, "label": 0.2}  # the authors' code (A10)


def tabulate(stage: AlphaStage, episodes: Path) -> pd.DataFrame:
    """Accuracy in percent with its interval for every pair of alphas.

    Raises:
        UserError: if a checkpoint's features say nothing, because its training diverged.
    """
    frozen, lines = Episodes.load(episodes), []
    for candidate in tqdm(stage.candidates, desc="alpha", unit="checkpoint", disable=None):
        features = Features.load(Path(candidate.features))
        for alpha in stage.label_alphas:
            settings = candidate.propagation.model_copy(update={"label_alpha": alpha})
            try:
                accuracies = solve(features, frozen, Inference(settings)).accuracies
            except DegenerateFeaturesError as error:
                raise UserError(
                    f"{candidate.features}: {error}; leave its recipe out of figures.yaml"
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
    """A line for each alpha of embedding propagation over the alpha of label propagation."""
    best = table[table["chosen"]].iloc[0]
    with figure(out, width=6) as axes:
        axes.axvline(CODE["label"], color="0.7", linewidth=0.8, linestyle="--")
        curves = table.groupby("embedding_alpha")
        for color, (alpha, line) in zip(itertools.cycle(COLORS), curves, strict=False):
            code = " (authors' code)" if alpha == CODE["embedding"] else ""
            axes.errorbar(
                line["label_alpha"], line["accuracy"], yerr=line["interval"], color=color,
                marker="o", markersize=3, capsize=1.5, linewidth=1, elinewidth=0.5,
                label=f"EP {alpha:g}{code}",
            )  # fmt: skip
        axes.plot(
            best["label_alpha"], best["accuracy"], "*", markersize=12, color="black", zorder=5,
            label=f"best: EP {best['embedding_alpha']:g}, LP {best['label_alpha']:g}",
        )  # fmt: skip
        axes.set_xlabel(
            "alpha of label propagation (dashed: the authors' code)\n" + textwrap.fill(note, 70)
        )
        axes.set_ylabel("validation accuracy, %")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def run(stage: AlphaStage, episodes: Path, out: Path) -> None:
    """The stage `alpha`: the curves (.pdf, .png, .csv); the row `chosen` is the best pair."""
    inputs = [episodes, *(Path(candidate.features) for candidate in stage.candidates)]
    provenance = Provenance("alpha", stage.model_dump(mode="json"), inputs)
    check_one_store(inputs)
    table = tabulate(stage, episodes)
    write_table(table, out.with_suffix(".csv"), "%.4f")
    draw(table, stage.note, out)
    provenance.write(out)
