"""Decision boundaries of three classes, before and after propagation of embeddings and of labels.

Boundaries are drawn in the plane of the points themselves; `epcore.analysis.plane` says how a
location of it is classified.

Panels a and b give every location the class of the nearest point, in the plane and among
embeddings. Of the classifiers that come into question it is the only one whose boundaries are
rough enough to be smoothed: between prototypes they are straight lines, and those of label
propagation are nearly so. The numbers have all three.

Lengths are in units of the distance of the classes' centers from the middle. Panels and numbers
have one grid, and curvature one step, 2.7 of the grid's. With 121 locations along each side and not
61, the nearest point's boundary changes by less than a third of the intervals: over the 20 sets of
points it is 9.30 and not 9.22 ± 0.46 long (a grid cuts corners) and its curvature 1.357 and not
1.342 ± 0.154; propagation changes its length by -0.090 and not -0.086 ± 0.057, its curvature by
-0.077 and not -0.065 ± 0.039.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from epcore.analysis.boundary import Arc, boundary, curvature, length
from epcore.analysis.config import DecisionBoundary, DecisionBoundaryConfig
from epcore.analysis.plane import (
    Classifier,
    Scene,
    by_label_propagation,
    by_nearest_point,
    by_prototypes,
    location_scores,
)
from epcore.files import Provenance
from epcore.propagation import EmbeddingPropagation, LabelPropagation
from epcore.report.figure import BLUE, GREEN, RED, panels
from epcore.report.numbers import Number, mean_number, write_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORDS = {
    "nearest": "nearest point",
    "prototypes": "nearest prototype",
    "labels": "label propagation",
}


def side_of(settings: DecisionBoundary) -> np.ndarray:
    """The places of the grid's locations along each side `(grid,)`."""
    return np.linspace(-settings.window, settings.window, settings.grid)


def boundaries(
    scene: Scene,
    settings: DecisionBoundary,
    propagate: nn.Module,
    classifiers: Sequence[Classifier],
) -> list[list[Arc]]:
    """The boundary of each classifier, all points having labels; they share the embeddings."""

    def classify(embeddings: Tensor, labels: Tensor) -> Tensor:
        return torch.cat([classifier(embeddings, labels) for classifier in classifiers], dim=-1)

    side, labels = side_of(settings), scene.labels(settings.points)
    scores = location_scores(scene.points, labels, side, side, propagate, classify)
    return [boundary(part, side, side) for part in np.split(scores, len(classifiers))]


def measure(settings: DecisionBoundary) -> list[Number]:
    """Length and curvature before and after propagation, as means over sets of points.

    With t intervals; differences are paired. All points have labels, as in panels a and b. At the
    end, the accuracy of label propagation on the unlabeled points, as in panel c.
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
    arcs = {
        network: [boundaries(s, settings, propagate, list(classifiers.values())) for s in scenes]
        for network, propagate in before_and_after.items()
    }
    quantities: dict[str, Callable[[list[Arc]], float]] = {
        "length": length,
        "curvature": partial(curvature, step=settings.curvature_step),
    }
    numbers = []
    for place, name in enumerate(classifiers):
        for quantity, of in quantities.items():
            values = {
                network: np.array([of(a[place]) for a in all_of])
                for network, all_of in arcs.items()
            }
            values["difference"] = values["propagated"] - values["original"]
            for network, of_draws in values.items():
                what = f"{quantity} of the decision boundary, {WORDS[name]}, {network}"
                numbers.append(mean_number(f"{name}-{quantity}-{network}", of_draws, what))
    for network, propagate in before_and_after.items():
        right = np.array([_accuracy(scene, settings, propagate) for scene in scenes])
        what = f"accuracy of label propagation on unlabeled points, {network}"
        numbers.append(mean_number(f"unlabeled-accuracy-{network}", right, what))
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

    `classifier` in words, its scores `(C, grid, grid)` and the arcs between the classes that are
    highest; `labeled` `(n,)` says which points have a label; `query` is the one that is asked for,
    if any, `predicted` the class that it is given.
    """

    name: str
    title: str
    classifier: str
    scores: np.ndarray
    arcs: list[Arc]
    labeled: np.ndarray
    query: int | None = None
    predicted: int | None = None


def shown(settings: DecisionBoundary, scene: Scene) -> list[Panel]:
    """The three panels.

    The query of panel c is the unlabeled point whose two highest scores are closest.
    """
    side = side_of(settings)
    propagation = EmbeddingPropagation(settings.embedding_alpha)
    by_labels = by_label_propagation(settings.label_alpha)

    def panel(
        name: str, title: str, classifier: str, of_each: int, propagate: nn.Module,
        classify: Classifier, **more: Any,
    ) -> Panel:  # fmt: skip
        labels = scene.labels(of_each)
        scores = location_scores(scene.points, labels, side, side, propagate, classify)
        labeled = (labels.sum(dim=1) > 0).numpy()
        arcs = boundary(scores, side, side)
        return Panel(name, title, classifier, scores, arcs, labeled, **more)

    highest, guesses = point_scores(scene, settings, propagation).topk(2, dim=1)
    gaps = highest[:, 0] - highest[:, 1]
    gaps[scene.labels(settings.labeled).sum(dim=1) > 0] = torch.inf
    query = int(gaps.argmin())
    count = settings.points
    return [
        panel("a", "original", "nearest point", count, nn.Identity(), by_nearest_point),
        panel("b", "propagated", "nearest embedding", count, propagation, by_nearest_point),
        panel(
            "c", "labels propagated", "label propagation", settings.labeled, propagation, by_labels,
            query=query, predicted=int(guesses[query, 0]),
        ),
    ]  # fmt: skip


COLORS_OF_CLASSES, MARKERS = (BLUE, RED, GREEN), ("o", "s", "^")


def draw(
    panels_shown: list[Panel],
    scene: Scene,
    settings: DecisionBoundary,
    numbers: list[Number],
    out: Path,
) -> None:
    """Regions, and the query's rim, in the color of the predicted class; points in their own.

    One set of points shows what the numbers say of many only roughly: they stand below.
    """
    from matplotlib.legend_handler import HandlerTuple

    side, window = side_of(settings), (-settings.window, settings.window)
    with panels(out, 1, len(panels_shown), 4.8, 2.7, sharex=True, sharey=True) as (canvas, axes):
        kinds: dict[str, Any] = {}
        for axis, panel in zip(axes[0], panels_shown, strict=True):
            for label, color in enumerate(COLORS_OF_CLASSES):
                margins = panel.scores[label] - np.delete(panel.scores, label, axis=0).max(axis=0)
                axis.contourf(
                    side, side, margins, levels=[0, np.inf], colors=[color], alpha=0.22,
                )  # fmt: skip
            for arc in panel.arcs:
                axis.plot(*arc.points.T, color="0.15", linewidth=0.9, solid_capstyle="round")
            kinds |= _draw_points(axis, panel, scene)
            axis.set(
                title=f"({panel.name}) {panel.title}", aspect="equal", xticks=[], yticks=[],
                xlim=window, ylim=window,
            )  # fmt: skip
            axis.spines[:].set_visible(True)
            turning = curvature(panel.arcs, settings.curvature_step)
            size = f"length {length(panel.arcs):.2f}, curvature {turning:.2f}"
            axis.set_xlabel(f"{panel.classifier}\n{size}", fontsize=7)
        canvas.legend(
            list(kinds.values()), list(kinds), loc="outside upper center", ncols=len(kinds),
            fontsize=7, handler_map={tuple: HandlerTuple(ndivide=None)},
        )  # fmt: skip
        canvas.supxlabel(_summary(settings, numbers), fontsize=7)


def _draw_points(axis: "Axes", panel: Panel, scene: Scene) -> dict[str, Any]:
    """Points by class; what the legend shows of each kind of point in the panel."""
    kinds: dict[str, Any] = {}
    for word, chosen, faces in (
        ("labeled, by class", panel.labeled, COLORS_OF_CLASSES),
        ("unlabeled", ~panel.labeled, ("0.72",) * len(MARKERS)),
    ):
        of_kind = []
        for label, (marker, face) in enumerate(zip(MARKERS, faces, strict=True)):
            x, y = scene.points[(scene.classes == label) & chosen].T
            style: Any = {"marker": marker, "color": face, "edgecolors": "white"}
            of_kind.append(axis.scatter(x, y, s=14, linewidths=0.4, zorder=3, **style))
        if chosen.any():
            kinds[word] = tuple(of_kind)
    if panel.query is not None and panel.predicted is not None:
        x, y = scene.points[panel.query]
        kinds["query, rim: its predicted class"] = axis.scatter(
            x, y, s=26, marker=MARKERS[scene.classes[panel.query]], color="0.2",
            edgecolors=COLORS_OF_CLASSES[panel.predicted], linewidths=1.2, zorder=4,
        )  # fmt: skip
    return kinds


def _summary(settings: DecisionBoundary, numbers: list[Number]) -> str:
    """Length and curvature of panels a and b over all sets of points, a line each."""
    by_name = {number.name: number for number in numbers}
    lines = [f"(a) to (b), means of {settings.draws} such sets of points, 95 % intervals:"]
    for quantity in ("length", "curvature"):
        before, after, gap = (
            by_name[f"nearest-{quantity}-{network}"]
            for network in ("original", "propagated", "difference")
        )
        assert gap.high is not None
        lines.append(
            f"{quantity} {before.value:.2f} to {after.value:.2f}, difference {gap.value:.2f} "
            f"± {gap.high - gap.value:.2f}"
        )
    return "\n".join(lines)


def run(config: DecisionBoundaryConfig, out: Path) -> None:
    """The stage `decision-boundary`: the picture (.pdf, .png) and what it measures (.csv)."""
    provenance = Provenance("decision-boundary", config, [])
    scene = drawn_scene(config.settings, 0)
    drawn = shown(config.settings, scene)
    numbers = measure(config.settings)
    write_numbers(numbers, out)
    draw(drawn, scene, config.settings, numbers, out)
    provenance.write(out)
