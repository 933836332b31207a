"""The analysis figures as stages: what is drawn lies beside the picture, the same bytes twice."""

import csv
import json
import shutil
import subprocess
from collections import Counter
from contextlib import chdir
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from figure_files import draw_in_another_process
from torch import nn

from epcore.analysis import decision_boundary, interpolation, two_moons
from epcore.analysis.boundary import Arc, curvature, length
from epcore.analysis.plane import by_nearest_point
from epcore.data.episodes import Episodes
from epcore.evaluation.embed import Features
from epcore.plan import Plan
from epcore.propagation import EmbeddingPropagation
from epcore.report.statistics import student

CONFIG = Path(__file__).parents[2] / "config"
PLAN = Plan(CONFIG, "demo")
ENDINGS = (".pdf", ".png", ".csv", "-numbers.csv")


def smaller(stage, **changes):
    settings = type(stage.settings).model_validate(stage.settings.model_dump() | changes)
    return stage.model_copy(update={"settings": settings})


def moons():
    stage = PLAN.figures.two_moons()
    return smaller(stage, points=60, batch_sizes=(8, 16, 60), batches=7, draws=3)


def boundaries():
    return smaller(PLAN.figures.decision_boundary(), grid=31, draws=3)


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


def lines_of(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def numbers_of(path):
    lines = {line["name"]: line for line in lines_of(path)}
    assert len(lines) == len(lines_of(path))
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
    numbers_of(f"figures/{name}-numbers.csv")


@pytest.mark.slow
@pytest.mark.parametrize("name", STAGES)
def test_a_figure_is_the_same_bytes_in_another_process(figure, name):
    stage = figure(name)
    inputs = {"episodes": "episodes.npz"} if name == "interpolation" else {}
    draw_in_another_process(name, stage, "two.pdf", **inputs)
    for ending in ENDINGS:
        first = Path(f"figures/{name}{ending}").read_bytes()
        assert first == Path(f"two{ending}").read_bytes(), ending


@pytest.mark.parametrize("name", STAGES)
def test_the_words_of_a_figure_are_text_in_embedded_fonts(figure, name):
    if shutil.which("pdftotext") is None or shutil.which("pdffonts") is None:
        pytest.skip("poppler is not installed")
    figure(name)
    pdf = f"figures/{name}.pdf"
    printed = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, check=True)
    words = " ".join(printed.stdout.decode("utf-8").split())
    expected = {
        "two-moons": ("batches of 8", "batches of 60", "row-normalized", "All on the same scale"),
        "decision-boundary": (
            "(a) original",
            "(b) propagated",
            "(c) labels propagated",
            "nearest embedding",
            "labeled, by class",
            "unlabeled",
            "query",
            "means of 3 such sets",
            "difference",
        ),
        "interpolation": (
            "EPNet",
            "between features",
            "between embeddings",
            "--Net",
            "9 pairs",
            "Scale demo: rendered characters of 100",
        ),
    }
    for text in expected[name]:
        assert text in words
    fonts = subprocess.run(["pdffonts", pdf], capture_output=True, text=True, check=True)
    assert "TrueType" in fonts.stdout
    assert "Type 3" not in fonts.stdout


# -- each by itself --------------------------------------------------------------------------------


def test_of_the_moons_every_projection_and_every_point_is_in_the_csv(figure):
    figure("two-moons")
    lines = lines_of("figures/two-moons.csv")
    projected = Counter((e["batch_size"], e["point"]) for e in lines if e["panel"] == "a")
    every = {(size, str(point)) for size in ("8", "16", "60") for point in range(60)}
    assert projected == dict.fromkeys(every, 7)
    examples = {line["point"] for line in lines if line["example"] == "True"}
    assert examples == {"6", "18", "30", "42", "54"}
    variants = ("original", "propagated", "row-normalized", "rescaled")
    assert len(lines) == 3 * 60 * 7 + len(variants) * 60
    of_all = {
        (line["variant"], line["point"]): (float(line["x"]), float(line["y"]))
        for line in lines
        if line["panel"] == "b"
    }
    for line in lines:  # a batch of all points has but one projection
        if line["batch_size"] == "60":
            place = float(line["x"]), float(line["y"])
            assert place == pytest.approx(of_all["propagated", line["point"]], abs=1e-5)


def test_numbers_of_the_moons_are_means_over_the_draws(figure):
    stage = figure("two-moons")
    numbers = numbers_of("figures/two-moons-numbers.csv")
    outcomes = [two_moons.experiment(stage.settings, draw) for draw in range(3)]
    assert len({outcome.points.tobytes() for outcome in outcomes}) == 3
    totals = {
        name: np.array([np.trace(np.cov(o.variants[name].T, bias=True)) for o in outcomes])
        for name in ("original", "row-normalized")
    }
    gap = totals["row-normalized"] - totals["original"]
    found = numbers["total-variance-row-normalized-difference"]
    assert found == pytest.approx(gap.mean(), abs=1e-6)
    line = {line["name"]: line for line in lines_of("figures/two-moons-numbers.csv")}[
        "total-variance-row-normalized-difference"
    ]
    assert float(line["high"]) - found == pytest.approx(student(gap).half_width, abs=2e-6)
    of_points = [np.trace(np.cov(each.T)) for o in outcomes for each in o.projections[16]]
    assert numbers["projection-deviation-16"] == pytest.approx(np.sqrt(of_points).mean(), abs=1e-6)
    assert numbers["projection-deviation-60"] == pytest.approx(0, abs=1e-6)
    assert numbers["projection-deviation-8"] > numbers["projection-deviation-16"] > 0.01
    same = numbers["relative-within-propagated"] * numbers["total-variance-original"]
    assert numbers["within-variance-rescaled"] == pytest.approx(same, rel=0.05)


def test_the_boundaries_in_the_csv_are_as_long_as_the_figure_says(figure):
    stage = figure("decision-boundary")
    lines = lines_of("figures/decision-boundary.csv")
    drawn = decision_boundary.shown(
        stage.settings, decision_boundary.drawn_scene(stage.settings, 0)
    )
    for panel, expected in zip("abc", drawn, strict=True):
        vertices = {}
        for line in lines:
            if (line["panel"], line["kind"]) == (panel, "boundary"):
                key = line["class"], line["arc"]
                vertices.setdefault(key, []).append((float(line["x"]), float(line["y"])))
        assert {key[0] for key in vertices} == {"1|2", "1|3", "2|3"}
        arcs = [Arc((0, 1), np.array(points)) for points in vertices.values()]
        assert length(arcs) == pytest.approx(length(expected.arcs), abs=1e-3)
        assert length(arcs) > 3 * stage.settings.window
        assert curvature(arcs, 0.2) == pytest.approx(curvature(expected.arcs, 0.2), rel=0.01)
    kinds = [line["kind"] for line in lines if line["panel"] == "c"]
    assert kinds.count("labeled") == 6
    assert kinds.count("unlabeled") == 29
    (query,) = (line for line in lines if line["kind"] == "query")
    scores = drawn[2].scores
    side = np.linspace(-stage.settings.window, stage.settings.window, 31)
    column, row = (np.abs(side - float(query[axis])).argmin() for axis in ("x", "y"))
    # Of the nearest point of the grid, which may lie on the other side of a boundary.
    highest = scores[:, row, column].argsort()[::-1][:2] + 1
    assert int(query["predicted"]) in highest
    assert query["panel"] == "c"


def test_numbers_of_the_boundaries_are_of_every_classifier_before_and_after(figure):
    figure("decision-boundary")
    numbers = numbers_of("figures/decision-boundary-numbers.csv")
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
    settings = PLAN.figures.decision_boundary().settings
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


def test_every_probability_is_in_the_csv_and_its_numbers_follow_from_it(figure):
    figure("interpolation")
    lines = [line for line in lines_of("figures/interpolation.csv") if line["kind"] == "pair"]
    assert len(lines) == 2 * 2 * 9 * 21
    curves = {}
    for line in lines:
        assert line["class"] != line["other_class"]
        key = line["between"], line["network"], line["pair"], line["class"]
        curves.setdefault(key, []).append((float(line["alpha"]), float(line["probability"])))
    assert len(curves) == 2 * 18
    steepest = {}
    for (between, network, _, _), curve in curves.items():
        alphas, probabilities = np.transpose(curve)
        assert alphas == pytest.approx(np.arange(21) / 20)
        slopes = steepest.setdefault((between, network), [])
        slopes.append(np.abs(np.diff(probabilities)).max() * 20)
    numbers = numbers_of("figures/interpolation-numbers.csv")
    means = {place: np.mean(slopes) for place, slopes in steepest.items()}
    for (between, network), mean in means.items():
        shown = numbers[f"{between}-steepest-slope-{network}"]
        assert shown == pytest.approx(mean, abs=1e-4)
    for between in ("features", "embeddings"):
        gap = means[between, "epnet"] - means[between, "net"]
        shown = numbers[f"{between}-steepest-slope-difference"]
        assert shown == pytest.approx(gap, abs=1e-4)
    assert means["features", "net"] == means["embeddings", "net"]
    assert means["features", "epnet"] != means["embeddings", "epnet"]


def test_the_means_and_bands_that_are_drawn_are_in_the_csv(figure):
    """Quartiles of nine pairs are the third and the seventh."""
    figure("interpolation")
    of_pairs, drawn = {}, {}
    for line in lines_of("figures/interpolation.csv"):
        place = (line["between"], line["network"], line["alpha"])
        probability = float(line["probability"])
        if line["kind"] == "pair":
            of_pairs.setdefault(place, []).append(probability)
        else:
            assert (line["pair"], line["class"], line["other_class"]) == ("", "", "")
            drawn[line["kind"], *place] = probability
    assert len(of_pairs) == 2 * 2 * 21
    expected = {}
    for place, values in of_pairs.items():
        ordered = sorted(values)
        expected["mean", *place] = sum(values) / 9
        expected["lower quartile", *place] = ordered[2]
        expected["upper quartile", *place] = ordered[6]
    assert drawn == pytest.approx(expected, abs=2e-6)


def test_the_pairs_know_their_features_and_episodes(figure):
    stage = figure("interpolation")
    facts = json.loads(Path("figures/interpolation.meta.json").read_text(encoding="utf-8"))
    inputs = {"episodes.npz", *(network.features for network in stage.networks)}
    assert facts["inputs"].keys() == inputs
    assert facts["pairs"] == 9
