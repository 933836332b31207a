"""Class probability on the way from the embedding of one image to that of another.

The paper says no more than: `z~ = alpha z_i + (1 - alpha) z_j` between random pairs of different
classes, against `p(y_i | z~)` by label propagation, of EPNet and of --Net. Here:

- A pair is two support images of one frozen test episode, of two classes drawn from a seed; one
  pair an episode, the same for both networks. The classifier is told the class of support images,
  so that networks differ in the way between the ends, not in how often they are right at them.
- The text calls both features z and propagated embeddings z~, so there are two readings. Between
  features, the interpolant joins the episode as one more image without a label: embeddings are
  propagated over support, queries and interpolant together, as the recipe is tested. Between
  embeddings, those of support and queries are propagated without it, as the recipe is tested, and
  the interpolant joins them afterwards. In both, labels are propagated over the graph of the
  embeddings, the interpolant's with them. Without embedding propagation both are the same.
- No image leaves its place, and each interpolant has a graph of its own. At both ends it is the
  copy of an image, and the bandwidth leaves copies out: a step in p of the order of one over the
  number of pairs of images.
"""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from epcore.analysis.config import InterpolatedPairs, InterpolationConfig
from epcore.classifiers.episodes import EpisodeBatch
from epcore.data.episodes import Episodes
from epcore.errors import UserError
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import ADVICE, PAIRS
from epcore.files import Provenance
from epcore.propagation import DegenerateFeaturesError
from epcore.report.figure import BLUE, RED, panels
from epcore.report.numbers import Number, write_numbers

# What is interpolated.
Reading = Literal["features", "embeddings"]
READINGS: tuple[Reading, ...] = get_args(Reading)


@dataclass(frozen=True)
class Pairs:
    """An episode each, with the classes of its two images `(n, 2)` as places along its way."""

    episodes: Episodes
    classes: np.ndarray

    @classmethod
    def draw(cls, episodes: Episodes, count: int, seed: int) -> "Pairs":
        """Two classes of each of the first `count` episodes, or of all if there are fewer."""
        count, way = min(count, len(episodes)), episodes.support.shape[1]
        random = np.random.default_rng(seed)
        classes = [random.choice(way, 2, replace=False) for _ in range(count)]
        parts = (episodes.support, episodes.query, episodes.unlabeled)
        return cls(Episodes(*(part[:count] for part in parts)), np.array(classes))


def probability(
    features: Tensor, way: int, shot: int, classes: tuple[int, int], alphas: Tensor,
    inference: Inference, between: Reading,
) -> Tensor:  # fmt: skip
    """Probability `(alphas,)` of the first class along the way from the second image to the first.

    features `(N, D)` of one episode: first the support, `shot` images of each class in turn, then
    the others. The two images are the first of their classes; alphas `(alphas,)` weigh the first.
    """
    propagated = between == "embeddings"
    images = inference.propagate(features) if propagated else features
    start, end = (images[label * shot] for label in classes)
    interpolants = alphas[:, None] * start + (1 - alphas[:, None]) * end
    probabilities = []
    for chunk in torch.split(interpolants, max(1, PAIRS // (len(images) + 1) ** 2)):
        nodes = torch.cat([images.expand(len(chunk), -1, -1), chunk[:, None]], dim=1)
        embeddings = nodes if propagated else inference.propagate(nodes)
        episodes = EpisodeBatch(embeddings, way, shot, nodes.shape[-2] - way * shot)
        logits = inference.classifier.scores(episodes)
        probabilities.append(logits[:, -1].softmax(dim=-1)[:, classes[0]])
    return torch.cat(probabilities)


@torch.no_grad()
def curves(
    features: Features,
    pairs: Pairs,
    steps: int,
    inference: Inference,
    between: Reading,
) -> np.ndarray:
    """Probability `(pairs, steps + 1)`, float64, at alpha = 0, 1 / steps, ... 1."""
    way, shot = pairs.episodes.support.shape[1:]
    alphas = torch.linspace(0, 1, steps + 1, dtype=torch.float64)
    probabilities = [
        probability(
            features.of(rows).double(),
            way,
            shot,
            (int(first), int(second)),
            alphas,
            inference,
            between,
        )
        for rows, (first, second) in zip(pairs.episodes.images(), pairs.classes, strict=True)
    ]
    return torch.stack(probabilities).numpy()


def steepest_slope(curves: np.ndarray) -> np.ndarray:
    """The largest `|dp / dalpha|` of each curve `(n, steps + 1)`, by differences: `(n,)`."""
    steps = curves.shape[1] - 1
    slopes: np.ndarray = np.abs(np.diff(curves, axis=1)).max(axis=1) * steps
    return slopes


def slope_variation(curves: np.ndarray) -> np.ndarray:
    """Total absolute second difference of each curve `(n, steps + 1)` over the step: `(n,)`.

    It tends to the total variation of the slope, the integral of `|p''|`, as steps grow in number.
    """
    steps = curves.shape[1] - 1
    variation: np.ndarray = np.abs(np.diff(curves, n=2, axis=1)).sum(axis=1) * steps
    return variation


def rise(curves: np.ndarray) -> np.ndarray:
    """The probability at the first image less that at the second, of each curve: `(n,)`."""
    gains: np.ndarray = curves[:, -1] - curves[:, 0]
    return gains


def relative_slope(curves: np.ndarray) -> np.ndarray:
    """The largest slope of each curve over its mean slope, the rise: `(n,)`, 1 for a line.

    A classifier that is less sure of both ends has gentler curves; this does not count it. NaN for
    a curve that does not rise, which a slope cannot be relative to.
    """
    gains = rise(curves)
    ratios: np.ndarray = steepest_slope(curves) / np.where(gains > 0, gains, np.nan)
    return ratios


MEASURES: tuple[tuple[str, Callable[[np.ndarray], np.ndarray], str], ...] = (
    ("steepest-slope", steepest_slope, "mean over pairs of the largest |dp/dalpha|"),
    ("slope-variation", slope_variation, "mean over pairs of the total variation of dp/dalpha"),
    ("rise", rise, "mean over pairs of p at the first image - p at the second"),
    ("relative-slope", relative_slope, "mean over pairs of the largest |dp/dalpha| / rise"),
)


def bootstrap_number(
    name: str, values: np.ndarray, what: str, settings: InterpolatedPairs
) -> Number:
    """The mean over pairs `(n,)`, with the 95 % percentile interval of its bootstrap."""
    interval = stats.bootstrap(
        (values,), np.mean, n_resamples=settings.resamples, method="percentile",
        rng=np.random.default_rng(settings.seed),
    ).confidence_interval  # fmt: skip
    return Number(name, float(values.mean()), what, float(interval.low), float(interval.high))


def measure(by_network: dict[str, np.ndarray], settings: InterpolatedPairs) -> list[Number]:
    """All measures of the curves `(pairs, steps + 1)` of two networks, and paired differences.

    Pairs for which a measure of either network is NaN are left out of it, and its words then say
    how many are left; of fewer than two there is no number.
    """
    first, second = by_network
    numbers = []
    for name, of, what in MEASURES:
        values = {network: of(of_pairs) for network, of_pairs in by_network.items()}
        defined = ~(np.isnan(values[first]) | np.isnan(values[second]))
        if defined.sum() < 2:
            continue
        if not defined.all():
            what += (
                f", of the {defined.sum()} of {len(defined)} pairs whose p rises in both networks"
            )
            values = {network: of_pairs[defined] for network, of_pairs in values.items()}
        for network, of_pairs in values.items():
            number = bootstrap_number(f"{name}-{network}", of_pairs, f"{network}: {what}", settings)
            numbers.append(number)
        difference, text = values[first] - values[second], f"{first} minus {second}: {what}"
        numbers.append(bootstrap_number(f"{name}-difference", difference, text, settings))
    return numbers


def summary(curves: np.ndarray) -> dict[str, np.ndarray]:
    """Mean and quartiles over pairs of curves `(n, steps + 1)`, each `(steps + 1,)`."""
    low, high = np.quantile(curves, [0.25, 0.75], axis=0)
    return {"mean": curves.mean(axis=0), "lower quartile": low, "upper quartile": high}


def draw(rows: list[tuple[str, str, np.ndarray]], shown: int, note: str, out: Path) -> None:
    """Rows of a label, a color and curves: some one by one, then the mean and the middle half."""
    size = (4.8, 1.7 * len(rows))
    with panels(out, len(rows), 2, *size, sharex=True, sharey=True) as (canvas, axes):
        for row, (label, color, of_pairs) in zip(axes, rows, strict=True):
            alphas = np.linspace(0, 1, of_pairs.shape[1])
            row[0].plot(alphas, of_pairs[:shown].T, color=color, linewidth=0.7, alpha=0.7)
            mean, low, high = summary(of_pairs).values()
            row[1].fill_between(alphas, low, high, color=color, alpha=0.2, linewidth=0)
            row[1].plot(alphas, mean, color=color, linewidth=1.4)
            slope = steepest_slope(of_pairs).mean()
            row[1].text(0.04, 0.93, f"steepest slope {slope:.2f}", va="top", fontsize=7)
            row[0].set_ylabel(f"{label}\np(first class)")
        axes[0, 0].set_title(f"{min(shown, len(of_pairs))} pairs")
        axes[0, 1].set_title(f"{len(of_pairs)} pairs: mean, middle half")
        for axis in axes[-1]:
            axis.set_xlabel("weight of the first image")
        axes[0, 0].set(xlim=(0, 1), ylim=(0, 1))
        canvas.supxlabel(textwrap.fill(note, 95), fontsize=7)


def run(config: InterpolationConfig, episodes: Path, out: Path) -> None:
    """The stage `interpolation`: the picture (.pdf, .png) and what it measures (.csv)."""
    inputs = [episodes, *(Path(network.features) for network in config.networks)]
    provenance = Provenance("interpolation", config, inputs)
    settings = config.settings
    by_reading: dict[Reading, dict[str, np.ndarray]] = {reading: {} for reading in READINGS}
    rows = []
    for network, color in zip(config.networks, (BLUE, RED), strict=True):
        source = Path(network.features)
        features = Features.load(source)
        frozen = features.episodes(episodes, source)
        pairs = Pairs.draw(frozen, settings.pairs, settings.seed)
        inference = Inference(network.propagation)
        for reading in READINGS:
            try:
                probabilities = curves(features, pairs, settings.steps, inference, reading)
            except DegenerateFeaturesError as error:
                raise UserError(f"{network.features}: {error}", ADVICE) from None
            by_reading[reading][network.name] = probabilities
            if network.propagation.embedding:
                rows.append((f"{network.label}\nbetween {reading}", color, probabilities))
        if not network.propagation.embedding:
            rows.append((network.label, color, probabilities))
    numbers = [
        replace(number, name=f"{reading}-{number.name}", what=f"between {reading}, {number.what}")
        for reading, by_network in by_reading.items()
        for number in measure(by_network, settings)
    ]
    write_numbers(numbers, out)
    draw(rows, settings.shown, config.note, out)
    provenance.write(out, pairs=len(pairs.classes))
