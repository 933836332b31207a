"""Decision boundaries of three classes, before and after propagation of embeddings and of labels.

Boundaries are drawn in the plane of the points themselves; `epcore.analysis.plane` says how a
location of it is classified.

Panels a and b give every location the class of the nearest point, in the plane and among
embeddings. Of the classifiers that come into question it is the only one whose boundaries are
rough enough to be smoothed: between prototypes they are straight lines, and those of label
propagation are nearly so. The numbers have all three.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from epcore.analysis.boundary import Arc, boundary, curvature, length
from epcore.analysis.plane import (
    Classifier,
    Scene,
    by_label_propagation,
    by_nearest_point,
    by_prototypes,
    location_scores,
)
from epcore.files import Provenance
from epcore.plan.figures import DecisionBoundary
from epcore.plan.stages import DecisionBoundaryStage
from epcore.propagation import EmbeddingPropagation, LabelPropagation
from epcore.report.figure import BLUE, GREEN, RED, panels
from epcore.report.numbers import Number, mean_number, write_numbers, write_table

WORDS = {
    "nearest": "nearest point",
    "prototypes": "nearest prototype",
    "labels": "label propagation",
}


def measure(settings: DecisionBoundary) -> list[Number]:
    """Length and curvature before and after propagation, as means over sets of points.

    With t intervals; differences are paired. All points have labels, as in panels a and b. At the
    end, the accuracy of label propagation on the unlabelled points, as in panel c.
    """
    scenes = [drawn_scene(settings, draw) for draw in range(settings.draws)]
    classifiers: dict[str, Classifier] = {
        "nearest": by_nearest_point,
        "prototypes": by_prototypes,
        "labels": by_label_propagation(settings.label_alpha),
    }
    before_and_after = {
        "original": nn.Identity(),
        "propagated": EmbeddingPropagation(settings.embedding_alpha),
    }
    side = np.linspace(-settings.window, settings.window, settings.measured_grid)
    quantities: dict[str, Callable[[list[Arc]], float]] = {
        "length": length,
        "curvature": partial(curvature, step=side[1] - side[0]),
    }
    numbers = []
    for name, classify in classifiers.items():
        found = {}
        for which, propagate in before_and_after.items():
            found[which] = [
                boundary(
                    location_scores(
                        scene.points, scene.labels(settings.points), side, side, propagate, classify
                    ),
                    side, side,
                )
                for scene in scenes
            ]  # fmt: skip
        for quantity, of in quantities.items():
            values = {which: np.array([of(arcs) for arcs in a]) for which, a in found.items()}
            values["difference"] = values["propagated"] - values["original"]
            for which, each in values.items():
                what = f"{quantity} of the decision boundary, {WORDS[name]}, {which}"
                numbers.append(mean_number(f"{name}-{quantity}-{which}", each, what))
    for which, propagate in before_and_after.items():
        right = np.array([_accuracy(scene, settings, propagate) for scene in scenes])
        what = f"accuracy of label propagation on unlabelled points, {which}"
        numbers.append(mean_number(f"unlabelled-accuracy-{which}", right, what))
    return numbers


def drawn_scene(settings: DecisionBoundary, draw: int) -> Scene:
    """The set of points of one number, from the seed; number 0 is the one that is drawn."""
    random = np.random.default_rng([settings.seed, draw])
    return Scene.draw(settings.points, settings.spread, random)


def point_scores(scene: Scene, settings: DecisionBoundary, propagate: nn.Module) -> Tensor:
    """Log-scores `(n, C)` of the points themselves, of which few have labels: panel c."""
    propagate_labels = LabelPropagation(settings.label_alpha)
    embeddings = propagate(torch.from_numpy(scene.points))
    scores: Tensor = propagate_labels(embeddings, scene.labels(settings.labeled))
    return scores


def _accuracy(scene: Scene, settings: DecisionBoundary, propagate: nn.Module) -> float:
    unlabeled = scene.labels(settings.labeled).sum(dim=1) == 0
    guesses = point_scores(scene, settings, propagate).argmax(dim=1)
    right = guesses == torch.from_numpy(scene.classes)
    return float(right[unlabeled].double().mean())


@dataclass(frozen=True)
class Panel:
    """What one panel shows.

    scores `(C, grid, grid)` and the arcs between the classes that are highest; `labeled` `(n,)`
    says which points have a label; `query` is the one that is asked for, if any, `predicted` the
    class that it is given.
    """

    name: str
    title: str
    scores: np.ndarray
    arcs: list[Arc]
    labeled: np.ndarray
    query: int | None = None
    predicted: int | None = None


def shown(settings: DecisionBoundary, scene: Scene) -> list[Panel]:
    """The three panels.

    The query of panel c is the unlabelled point whose two highest scores are closest.
    """
    side = np.linspace(-settings.window, settings.window, settings.grid)
    propagation = EmbeddingPropagation(settings.embedding_alpha)
    by_labels = by_label_propagation(settings.label_alpha)

    def panel(
        name: str, title: str, of_each: int, propagate: nn.Module, classify: Classifier, **more: Any
    ) -> Panel:
        labels = scene.labels(of_each)
        scores = location_scores(scene.points, labels, side, side, propagate, classify)
        labeled = (labels.sum(dim=1) > 0).numpy()
        return Panel(name, title, scores, boundary(scores, side, side), labeled, **more)

    highest, guesses = point_scores(scene, settings, propagation).topk(2, dim=1)
    gaps = highest[:, 0] - highest[:, 1]
    gaps[scene.labels(settings.labeled).sum(dim=1) > 0] = torch.inf
    query = int(gaps.argmin())
    whole = settings.points
    return [
        panel("a", "original", whole, nn.Identity(), by_nearest_point),
        panel("b", "propagated", whole, propagation, by_nearest_point),
        panel(
            "c", "labels propagated", settings.labeled, propagation, by_labels,
            query=query, predicted=int(guesses[query, 0]),
        ),
    ]  # fmt: skip


def tabulate(panels_shown: list[Panel], scene: Scene) -> pd.DataFrame:
    """Points and boundaries of every panel, a line a point or vertex; `arc` numbers boundaries."""
    lines: list[dict[str, Any]] = []
    for panel in panels_shown:
        for number, ((x, y), label) in enumerate(zip(scene.points, scene.classes, strict=True)):
            kind = "labelled" if panel.labeled[number] else "unlabelled"
            line = {"panel": panel.name, "kind": kind, "class": label + 1, "x": x, "y": y}
            if number == panel.query and panel.predicted is not None:
                line |= {"kind": "query", "predicted": panel.predicted + 1}
            lines.append(line)
        for number, arc in enumerate(panel.arcs):
            between = "|".join(str(label + 1) for label in arc.classes)
            stretch = {"panel": panel.name, "kind": "boundary", "class": between, "arc": number}
            lines += [{**stretch, "x": x, "y": y} for x, y in arc.points]
    columns = ["panel", "kind", "class", "predicted", "arc", "x", "y"]
    table = pd.DataFrame(lines, columns=columns)
    return table.astype({"predicted": "Int64", "arc": "Int64"})


COLOURS_OF_CLASSES, MARKERS = (BLUE, RED, GREEN), ("o", "s", "^")


def draw(
    panels_shown: list[Panel],
    scene: Scene,
    settings: DecisionBoundary,
    numbers: list[Number],
    out: Path,
) -> None:
    """Regions, and the query's rim, in the colour of the predicted class; points in their own.

    One set of points shows what the numbers say of many only roughly: they stand below.
    """
    values = {number.name: number.value for number in numbers}
    means = [
        f"{quantity} {values[f'nearest-{quantity}-original']:.2f} and "
        f"{values[f'nearest-{quantity}-propagated']:.2f}"
        for quantity in ("length", "curvature")
    ]
    side = np.linspace(-settings.window, settings.window, settings.grid)
    with panels(out, 1, len(panels_shown), 4.8, 2.2, sharex=True, sharey=True) as (canvas, axes):
        for axis, panel in zip(axes[0], panels_shown, strict=True):
            for label, colour in enumerate(COLOURS_OF_CLASSES):
                margins = panel.scores[label] - np.delete(panel.scores, label, axis=0).max(axis=0)
                axis.contourf(
                    side, side, margins, levels=[0, np.inf], colors=[colour], alpha=0.22,
                )  # fmt: skip
                of_class = scene.classes == label
                for chosen, face in ((panel.labeled, colour), (~panel.labeled, "0.75")):
                    axis.scatter(
                        *scene.points[of_class & chosen].T, s=14, marker=MARKERS[label],
                        color=face, edgecolors="white", linewidths=0.4, zorder=3,
                    )  # fmt: skip
            for arc in panel.arcs:
                axis.plot(*arc.points.T, color="0.15", linewidth=0.9, solid_capstyle="round")
            if panel.query is not None and panel.predicted is not None:
                axis.scatter(
                    *scene.points[panel.query], s=40, marker=MARKERS[scene.classes[panel.query]],
                    color="0.2", edgecolors=COLOURS_OF_CLASSES[panel.predicted], linewidths=1.5,
                    zorder=4,
                )  # fmt: skip
            axis.set(
                title=f"({panel.name}) {panel.title}", aspect="equal", xticks=[], yticks=[],
                xlim=(-settings.window, settings.window), ylim=(-settings.window, settings.window),
            )  # fmt: skip
            axis.spines[:].set_visible(True)
            turning = curvature(panel.arcs, side[1] - side[0])
            axis.set_xlabel(f"length {length(panel.arcs):.1f}, curvature {turning:.2f}", fontsize=7)
        canvas.supxlabel(
            f"means of (a) and (b) over {settings.draws} sets of points: {', '.join(means)}",
            fontsize=7,
        )


def run(stage: DecisionBoundaryStage, out: Path) -> None:
    """The stage `decision-boundary`: the picture, what is drawn (.csv), its numbers."""
    provenance = Provenance("decision-boundary", stage.model_dump(mode="json"), [])
    scene = drawn_scene(stage.settings, 0)
    drawn = shown(stage.settings, scene)
    write_table(tabulate(drawn, scene), out.with_suffix(".csv"))
    numbers = measure(stage.settings)
    write_numbers(numbers, out)
    draw(drawn, scene, stage.settings, numbers, out)
    provenance.write(out)
