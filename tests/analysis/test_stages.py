"""The analysis figures as stages: what is drawn lies beside the picture, the same bytes twice."""

import json
from contextlib import chdir
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from figure_files import draw_in_another_process, lines_of, words_of
from plans import plan_of
from torch import nn

from epcore.analysis import decision_boundary, interpolation, two_moons
from epcore.analysis.boundary import curvature, length
from epcore.analysis.plane import by_nearest_point
from epcore.data.episodes import Episodes
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.propagation import EmbeddingPropagation
from epcore.report.statistics import student

PLAN = plan_of("demo")
ENDINGS = (".pdf", ".png", ".csv", ".csv")


def smaller(stage, **changes):
    settings = type(stage.settings).model_validate(stage.settings.model_dump() | changes)
    return stage.model_copy(update={"settings": settings})


def moons():
    stage = PLAN.figure_jobs["two-moons"].config
    return smaller(stage, points=60, batch_sizes=(8, 16, 60), batches=7, draws=3)


def boundaries():
    return smaller(PLAN.figure_jobs["decision-boundary"].config, grid=31, draws=3)


def pairs():
    """The demo's stage over features of 20 classes, which differ from network to network."""
    stage = PLAN.figures.interpolation()
    random = np.random.default_rng(0)
    centers = np.repeat(random.normal(size=(20, 16)), 10, axis=0)
    for spread, network in zip((0.5, 1), stage.networks, strict=True):
        values = (centers + spread * random.normal(size=centers.shape)).astype(np.float32)
        Features(np.arange(200), np.arange(200) // 10, values).save(Path(network.features))
    chosen = [random.choice(20, 5, replace=False) for _ in range(9)]
    rows = np.stack([[10 * c + random.choice(10, 4, replace=False) for c in e] for e in chosen])
    Episodes(rows[..., :1], rows[..., 1:], rows[..., :0]).save(Path("episodes.npz"))
    return smaller(stage, resamples=200, steps=20)


def numbers_of(path):
    lines = {line["name"]: line for line in lines_of(Path(path))}
    assert len(lines) == len(lines_of(Path(path)))
    for line in lines.values():
        assert float(line["low"]) <= float(line["value"]) <= float(line["high"])
        assert line["what"]
    return {name: float(line["value"]) for name, line in lines.items()}


# -- all of them -----------------------------------------------------------------------------------

STAGES = {
    "two-moons": (moons, two_moons, ()),
    "decision-boundary": (boundaries, decision_boundary, ()),
    "interpolation": (pairs, interpolation, (Path("episodes.npz"),)),
}


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """Each figure, small, in a folder of its own, drawn once for all tests that look at it."""

    @cache
    def draw(name):
        config, module, inputs = STAGES[name]
        folder = tmp_path_factory.mktemp(name)
        with chdir(folder):
            stage = config()
            module.run(stage, *inputs, Path(f"figures/{name}.pdf"))
        return folder, stage

    return draw


@pytest.fixture
def figure(once, monkeypatch):
    """figure(name) -> the config of its stage; its files lie in figures/."""

    def show(name):
        folder, stage = once(name)
        monkeypatch.chdir(folder)
        return stage

    return show


@pytest.mark.slow
@pytest.mark.parametrize("name", STAGES)
def test_a_figure_is_written_with_its_picture_its_numbers_and_where_they_come_from(figure, name):
    stage = figure(name)
    written = {path.name.removeprefix(name) for path in Path("figures").iterdir()}
    assert written == {*ENDINGS, ".meta.json"}
    assert Path(f"figures/{name}.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads(Path(f"figures/{name}.meta.json").read_text(encoding="utf-8"))
    assert facts["stage"] == name
    assert facts["config"] == stage.model_dump(mode="json")
    numbers_of(f"figures/{name}.csv")


@pytest.mark.slow
@pytest.mark.parametrize("name", STAGES)
def test_a_figure_is_the_same_bytes_in_another_process(figure, name):
    stage = figure(name)
    inputs = {"episodes": "episodes.npz"} if name == "interpolation" else {}
    draw_in_another_process(name, stage, "two.pdf", **inputs)
    for ending in ENDINGS:
        first = Path(f"figures/{name}{ending}").read_bytes()
        assert first == Path(f"two{ending}").read_bytes(), ending


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("two-moons", "batches of 8;batches of 60;row-normalized;All on the same scale"),
        ("decision-boundary", "(a) original;(b) propagated;(c) labels propagated;nearest embedding;"
         "labeled, by class;unlabeled;query;means of 3 such sets;difference"),
        ("interpolation", "EPNet;between features;between embeddings;--Net;9 pairs;"
         "Scale demo: rendered characters of 100"),
    ],
)  # fmt: skip
def test_a_figure_says_what_it_shows(figure, name, expected):
    figure(name)
    words = words_of(f"figures/{name}.pdf")
    for text in expected.split(";"):
        assert text in words


# -- each by itself --------------------------------------------------------------------------------


def test_a_batch_of_all_moons_has_but_one_projection():
    outcome = two_moons.experiment(moons().settings, 0)
    for places, expected in zip(
        outcome.projections[60], outcome.variants["propagated"], strict=True
    ):
        np.testing.assert_allclose(places, np.tile(expected, (7, 1)), atol=1e-5)


def test_numbers_of_the_moons_are_means_over_the_draws(figure):
    stage = figure("two-moons")
    numbers = numbers_of("figures/two-moons.csv")
    outcomes = [two_moons.experiment(stage.settings, draw) for draw in range(3)]
    assert len({outcome.points.tobytes() for outcome in outcomes}) == 3
    totals = {
        name: np.array([np.trace(np.cov(o.variants[name].T, bias=True)) for o in outcomes])
        for name in ("original", "row-normalized")
    }
    gap = totals["row-normalized"] - totals["original"]
    found = numbers["total-variance-row-normalized-difference"]
    assert found == pytest.approx(gap.mean(), abs=1e-6)
    line = {line["name"]: line for line in lines_of(Path("figures/two-moons.csv"))}[
        "total-variance-row-normalized-difference"
    ]
    assert float(line["high"]) - found == pytest.approx(student(gap).half_width, abs=2e-6)
    of_points = [np.trace(np.cov(each.T)) for o in outcomes for each in o.projections[16]]
    assert numbers["projection-deviation-16"] == pytest.approx(np.sqrt(of_points).mean(), abs=1e-6)
    assert numbers["projection-deviation-60"] == pytest.approx(0, abs=1e-6)
    assert numbers["projection-deviation-8"] > numbers["projection-deviation-16"] > 0.01
    same = numbers["relative-within-propagated"] * numbers["total-variance-original"]
    assert numbers["within-variance-rescaled"] == pytest.approx(same, rel=0.05)


def test_the_query_has_a_class_that_its_place_has():
    settings = boundaries().settings
    scene = decision_boundary.drawn_scene(settings, 0)
    panel = decision_boundary.shown(settings, scene)[2]
    assert panel.labeled.sum() == 6
    side = np.linspace(-settings.window, settings.window, 31)
    column, row = (np.abs(side - place).argmin() for place in scene.points[panel.query])
    # Of the nearest point of the grid, which may lie on the other side of a boundary.
    assert panel.predicted in panel.scores[:, row, column].argsort()[::-1][:2]


def test_numbers_of_the_boundaries_are_of_every_classifier_before_and_after(figure):
    figure("decision-boundary")
    numbers = numbers_of("figures/decision-boundary.csv")
    for classifier in ("nearest", "prototypes", "labels"):
        for quantity in ("length", "curvature"):
            name = f"{classifier}-{quantity}"
            gap = numbers[f"{name}-propagated"] - numbers[f"{name}-original"]
            assert numbers[f"{name}-difference"] == pytest.approx(gap, abs=2e-6)
    assert numbers["prototypes-curvature-original"] == 0
    assert numbers["nearest-curvature-original"] > 10 * numbers["labels-curvature-original"]
    assert 1 / 3 < numbers["unlabeled-accuracy-propagated"] <= 1


def test_panels_and_numbers_are_one_measure_of_one_grid():
    settings = boundaries().settings
    numbers = {number.name: number.value for number in decision_boundary.measure(settings)}
    panels = [
        decision_boundary.shown(settings, decision_boundary.drawn_scene(settings, draw))
        for draw in range(settings.draws)
    ]
    for place, which in enumerate(("original", "propagated")):
        arcs = [of_draw[place].arcs for of_draw in panels]
        lengths, turns = map(length, arcs), (curvature(a, settings.curvature_step) for a in arcs)
        for quantity, values in (("length", lengths), ("curvature", turns)):
            expected = np.mean(list(values))
            assert numbers[f"nearest-{quantity}-{which}"] == pytest.approx(expected)


@pytest.mark.slow
def test_a_grid_twice_as_fine_changes_what_propagation_does_by_less_than_its_interval():
    """Nearest points, of which the README speaks, in four sets of points."""
    settings = PLAN.figure_jobs["decision-boundary"].config.settings
    means = []
    for grid in (settings.grid, 2 * settings.grid - 1):
        stage = settings.model_copy(update={"grid": grid})
        gaps = []
        for draw in range(4):
            scene = decision_boundary.drawn_scene(stage, draw)
            before, after = (
                decision_boundary.boundaries(scene, stage, propagate, [by_nearest_point])[0]
                for propagate in (nn.Identity(), EmbeddingPropagation(stage.embedding_alpha))
            )
            turned = curvature(after, settings.curvature_step)
            turned -= curvature(before, settings.curvature_step)
            gaps.append((length(after) - length(before), turned))
        means.append([student(np.array(values)) for values in zip(*gaps, strict=True)])
    for coarse, fine in zip(*means, strict=True):
        assert abs(coarse.value - fine.value) < coarse.half_width / 2


def test_steepest_slopes_are_those_of_the_curves(figure):
    stage = figure("interpolation")
    steepest = {}
    for network in stage.networks:
        features = Features.load(Path(network.features))
        frozen = features.episodes(Path("episodes.npz"), Path(network.features))
        drawn = interpolation.Pairs.draw(frozen, stage.settings.pairs, stage.settings.seed)
        assert (drawn.classes[:, 0] != drawn.classes[:, 1]).all()
        for between in interpolation.READINGS:
            inference = Inference(network.propagation)
            curves = interpolation.curves(features, drawn, 20, inference, between)
            assert curves.shape == (9, 21)
            slopes = [np.abs(np.diff(curve)).max() * 20 for curve in curves]
            steepest[between, network.name] = np.mean(slopes)
    numbers = numbers_of("figures/interpolation.csv")
    for (between, network), mean in steepest.items():
        assert numbers[f"{between}-steepest-slope-{network}"] == pytest.approx(mean, abs=1e-4)
    for between in ("features", "embeddings"):
        gap = steepest[between, "epnet"] - steepest[between, "net"]
        assert numbers[f"{between}-steepest-slope-difference"] == pytest.approx(gap, abs=1e-4)
    assert steepest["features", "net"] == steepest["embeddings", "net"]
    assert steepest["features", "epnet"] != steepest["embeddings", "epnet"]


def test_what_is_drawn_of_all_pairs_is_their_mean_and_quartiles():
    """Quartiles of nine pairs are the third and the seventh."""
    curves = np.random.default_rng(0).uniform(size=(9, 21))
    mean, low, high = interpolation.summary(curves).values()
    np.testing.assert_allclose(mean, curves.sum(axis=0) / 9)
    np.testing.assert_array_equal([low, high], np.sort(curves, axis=0)[[2, 6]])


def test_the_pairs_know_their_features_and_episodes(figure):
    stage = figure("interpolation")
    facts = json.loads(Path("figures/interpolation.meta.json").read_text(encoding="utf-8"))
    inputs = {"episodes.npz", *(network.features for network in stage.networks)}
    assert facts["inputs"].keys() == inputs
    assert facts["pairs"] == 9
