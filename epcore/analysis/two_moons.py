"""Two moons: what random batches and embedding propagation do to points in two dimensions."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.spatial import KDTree

from epcore.analysis.config import TwoMoons, TwoMoonsConfig
from epcore.files import Provenance
from epcore.propagation import EmbeddingPropagation, Propagator
from epcore.report.figure import BLUE, COLORS, RED, SKY, panels
from epcore.report.numbers import Number, mean_number, write_numbers


def two_moons(count: int, noise: float, random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Points `(count, 2)` on two half circles with normal noise, and their classes `(count,)`.

    The moons of scikit-learn's `make_moons`: one of radius 1 around (0, 0), the upper half, and one
    around (1, 0.5), the lower half; equally spaced along each, the upper first.
    """
    upper = count // 2
    upper_angles, lower_angles = (np.linspace(0, np.pi, n) for n in (upper, count - upper))
    moons = [
        (np.cos(upper_angles), np.sin(upper_angles)),
        (1 - np.cos(lower_angles), 0.5 - np.sin(lower_angles)),
    ]
    points = np.concatenate([np.stack(moon, axis=1) for moon in moons])
    classes = np.repeat([0, 1], [upper, count - upper])
    return points + random.normal(0, noise, points.shape), classes


def projections(
    points: np.ndarray, size: int, batches: int, alpha: float, random: np.random.Generator
) -> np.ndarray:
    """What embedding propagation makes of every point in random batches: `(n, batches, 2)`.

    As in a training: points `(n, 2)` in a random order, cut into batches of `size`, again and
    again. The last batch is filled up with others, which it does not project. So a point is in
    `batches` batches, each with `size - 1` others, without replacement. float64.
    """
    propagate, batches_of_points = EmbeddingPropagation(alpha), []
    for _ in range(batches):
        order = random.permutation(len(points))
        rows = np.append(order, order[: -len(points) % size]).reshape(-1, size)
        projected = propagate(torch.from_numpy(points[rows])).reshape(-1, 2).numpy()
        batches_of_points.append(projected[order.argsort()])
    return np.stack(batches_of_points, axis=1)


def deviation(points: np.ndarray) -> float:
    """Standard deviation of points `(n, D)`: root of the trace of their unbiased covariance."""
    return float(np.sqrt(points.var(axis=0, ddof=1).sum()))


def propagated(points: np.ndarray, alpha: float) -> dict[str, np.ndarray]:
    """All points `(n, 2)` propagated together, in three ways; `points` themselves are `original`.

    - `propagated`: `P Z`, the authors' code, whose rows sum to about 1 / (1 - alpha);
    - `row-normalized`: each row of P divided by its sum, so that embeddings are means of points;
    - `rescaled`: `P Z` around its mean, with the total variance of the originals.
    """
    features = torch.from_numpy(points)
    ones = torch.ones_like(features[:, :1])
    spread = Propagator(features, alpha).apply(torch.cat([features, ones], dim=1)).numpy()
    embeddings, sums = spread[:, :-1], spread[:, -1:]
    mean = embeddings.mean(axis=0)
    scale = np.sqrt(points.var(axis=0).sum() / embeddings.var(axis=0).sum())
    return {
        "original": points,
        "propagated": embeddings,
        "row-normalized": embeddings / sums,
        "rescaled": points.mean(axis=0) + scale * (embeddings - mean),
    }


@dataclass(frozen=True)
class Compactness:
    """How densely points lie, in their own units (squared, for variances).

    total_variance: mean squared distance to the mean of all points;
    within_variance: mean squared distance to the mean of a point's class;
    nearest: mean distance from a point to its nearest neighbor.
    """

    total_variance: float
    within_variance: float
    nearest: float

    @property
    def relative_within(self) -> float:
        """Variance within classes as a share of the total."""
        return self.within_variance / self.total_variance

    @property
    def relative_nearest(self) -> float:
        """Distance to the nearest neighbor in units of the root of the total variance."""
        return self.nearest / float(np.sqrt(self.total_variance))


def compactness(points: np.ndarray, classes: np.ndarray) -> Compactness:
    """How compact points `(n, D)` of classes `(n,)` lie."""
    means = np.stack([points[classes == label].mean(axis=0) for label in np.unique(classes)])
    class_means = means[np.searchsorted(np.unique(classes), classes)]
    nearest = KDTree(points).query(points, k=2)[0][:, 1]
    return Compactness(
        total_variance=float(points.var(axis=0).sum()),
        within_variance=float(((points - class_means) ** 2).sum(axis=1).mean()),
        nearest=float(nearest.mean()),
    )


@dataclass(frozen=True)
class Outcome:
    """One set of points `(n, 2)`, its classes `(n,)`, and what became of it.

    projections: batch size -> `(n, batches, 2)`; examples: the points of which they stand out;
    variants: see `propagated`.
    """

    points: np.ndarray
    classes: np.ndarray
    projections: dict[int, np.ndarray]
    examples: list[int]
    variants: dict[str, np.ndarray]


def experiment(settings: TwoMoons, draw: int) -> Outcome:
    """The set of points of one number, from the seed; examples lie evenly along the moons."""
    random = np.random.default_rng([settings.seed, draw])
    points, classes = two_moons(settings.points, settings.noise, random)
    examples = (np.arange(settings.examples) + 0.5) * settings.points / settings.examples
    alpha = settings.embedding_alpha
    projected = {
        size: projections(points, size, settings.batches, alpha, random)
        for size in settings.batch_sizes
    }
    variants = propagated(points, alpha)
    return Outcome(points, classes, projected, examples.astype(int).tolist(), variants)


# Name, attribute of `Compactness` and words of what is measured of all points.
MEASURES = (
    ("total-variance", "total_variance", "mean squared distance to the mean of all points"),
    ("within-variance", "within_variance", "mean squared distance to the mean of the class"),
    ("nearest", "nearest", "mean distance to the nearest neighbor"),
    ("relative-within", "relative_within", "variance within classes / total variance"),
    ("relative-nearest", "relative_nearest", "distance to the nearest neighbor / total deviation"),
)


def measure(outcomes: list[Outcome]) -> list[Number]:
    """Means over sets of points, with t intervals; differences to the originals are paired."""
    numbers = []
    for size in outcomes[0].projections:
        deviations = [
            np.mean([deviation(of_point) for of_point in outcome.projections[size]])
            for outcome in outcomes
        ]
        what = f"deviation of a point's projections in random batches of {size}, mean over points"
        numbers.append(mean_number(f"projection-deviation-{size}", np.array(deviations), what))
    measured = {
        variant: [compactness(outcome.variants[variant], outcome.classes) for outcome in outcomes]
        for variant in outcomes[0].variants
    }
    for name, attribute, what in MEASURES:
        values = {
            variant: np.array([getattr(of_draw, attribute) for of_draw in all_of])
            for variant, all_of in measured.items()
        }
        for variant, of_variant in values.items():
            if variant == "rescaled" and name not in ("within-variance", "nearest"):
                continue  # as the original, or as propagated, by construction
            numbers.append(mean_number(f"{name}-{variant}", of_variant, f"{variant}: {what}"))
            if variant != "original":
                difference = of_variant - values["original"]
                text = f"{variant} minus original: {what}"
                numbers.append(mean_number(f"{name}-{variant}-difference", difference, text))
    return numbers


def draw(outcome: Outcome, out: Path) -> None:
    """Above, points in random batches of each size; below, together; all on one scale."""
    drawn = {name: places for name, places in outcome.variants.items() if name != "original"}
    columns = max(len(outcome.projections), len(drawn))
    with panels(out, 2, columns, 4.8, 2.6, sharex=True, sharey=True) as (canvas, axes):
        for panel in axes.flat:
            panel.set_aspect("equal")
            panel.tick_params(labelsize=6)
            panel.scatter(*outcome.points.T, s=2, color="0.68", linewidths=0)
        for panel, (size, of_points) in zip(axes[0], outcome.projections.items(), strict=False):
            panel.set_title(f"batches of {size}")
            panel.scatter(
                *of_points.reshape(-1, 2).T, s=0.8, color=SKY, alpha=0.25, linewidths=0, zorder=0.5
            )
            for color, point in zip(COLORS, outcome.examples, strict=False):
                panel.scatter(*of_points[point].T, s=3, color=color, linewidths=0)
                panel.plot(*outcome.points[point], "o", ms=4, mfc=color, mec="black", mew=0.6)
        for panel, (variant, places) in zip(axes[1], drawn.items(), strict=False):
            panel.set_title(variant)
            for label, color in enumerate((BLUE, RED)):
                panel.scatter(*places[outcome.classes == label].T, s=3, color=color, linewidths=0)
        axes[0, 0].set_ylabel("(a) in batches")
        axes[1, 0].set_ylabel("(b) all together")
        canvas.supxlabel(
            f"gray: points before. (a) light: each of them in {of_points.shape[1]} random batches; "
            f"strong: {len(outcome.examples)} of them,\n"
            "black rim: where these were. All on the same scale.",
            fontsize=7,
        )


def run(config: TwoMoonsConfig, out: Path) -> None:
    """The stage `two-moons`: the picture (.pdf, .png) and what it measures (.csv)."""
    provenance = Provenance("two-moons", config, [])
    outcomes = [experiment(config.settings, draw) for draw in range(config.settings.draws)]
    write_numbers(measure(outcomes), out)
    draw(outcomes[0], out)
    provenance.write(out)
