"""Figures: what is drawn is right and lies beside the picture; the bytes are always the same."""

from pathlib import Path

import numpy as np
import pytest
from figure_files import lines_of, words_of
from plans import plan_of
from reference import propagator
from score_files import write_scores

from epcore.data.episodes import Episodes
from epcore.errors import UserError
from epcore.evaluation.embed import Features
from epcore.report import ablation, alpha, table
from epcore.report.ablation import run
from epcore.report.statistics import student
from epcore.report.text_table import by_seed, read_cells, read_tests

CONFIG = Path(__file__).parents[2] / "config"
PRINTED = CONFIG / "paper" / "abl.csv"


# -- ablation --------------------------------------------------------------------------------------


TABLE = Path("tables/ablation.csv")


def make_ablation_table():
    table.run(plan_of("demo").tables.stage("ablation"), [PRINTED], TABLE)


@pytest.fixture
def ablation_stage(fabricate):
    """The demo's ablation and its table; a cell's accuracy tells its number of the paper's."""
    plan = plan_of("demo")
    cells = plan.tables.measured("ablation")
    fabricate(cells)
    random = np.random.default_rng(0)
    hard = random.normal(0, 0.1, 40)
    for number, cell in enumerate(cells):
        accuracies = 0.4 + number / 100 + hard + random.normal(0, 0.02, 40)
        write_scores(cell.scores, accuracies.clip(0, 1))
    make_ablation_table()
    return plan.figures.of_table("ablation")


def marks_of(stage):
    """Row -> the factors that are on."""
    return {cell.row: cell.marks for cell in stage.cells}


def scores_of(stage):
    """Marks -> accuracies in percent of every cell."""
    return {
        marks_of(stage)[cell.row]: 100
        * np.array([float(line["accuracy"]) for line in lines_of(Path(cell.scores.file))])
        for cell in plan_of("demo").tables.measured("ablation")
    }


def test_the_effects_in_the_csv_are_differences_of_means_of_cells(ablation_stage):
    """A cell's expected accuracy is 40 + 8 EFT + 4 ROT + 2 LP + EP."""
    run(ablation_stage, TABLE, Path("figures/ablation.pdf"))
    effects = {line["term"]: line for line in lines_of(Path("figures/ablation.csv"))}
    cells = scores_of(ablation_stage)
    expected = {"EFT": 8, "ROT": 4, "LP": 2, "EP": 1}
    assert list(effects)[:4] == list(expected)
    for factor, points in expected.items():
        on = np.mean([cells[marks] for marks in cells if factor in marks], axis=0)
        off = np.mean([cells[marks] for marks in cells if factor not in marks], axis=0)
        mean = student(on - off)
        assert float(effects[factor]["effect"]) == pytest.approx(mean.value, abs=1e-4)
        assert float(effects[factor]["interval"]) == pytest.approx(mean.half_width, abs=1e-4)
        assert mean.value == pytest.approx(points, abs=0.5)
        assert effects[factor]["order"] == "1"
    pairs = [line for line in effects.values() if line["order"] == "2"]
    assert len(pairs) == 6
    for line in pairs:
        one, other = line["term"].split(" x ")

        def gain(with_other, one=one, other=other):
            alike = [marks for marks in cells if (other in marks) == with_other]
            on = [cells[marks] for marks in alike if one in marks]
            return np.mean(on) - np.mean([cells[marks] for marks in alike if one not in marks])

        assert float(line["effect"]) == pytest.approx(gain(True) - gain(False), abs=1e-4)


def test_the_effects_in_the_paper_are_those_known_from_its_printed_cells(ablation_stage):
    """Sums of the gains that docs/paper-vs-code.md lists: G12, C15, C16, C17."""
    run(ablation_stage, TABLE, Path("ablation.pdf"))
    found = {line["term"]: float(line["paper_effect"]) for line in lines_of(Path("ablation.csv"))}
    ep_without_lp, ep_with_lp = [3.26, 2.80, 2.09, 1.54], [2.35, 2.17, 1.42, 1.50]
    expected = {
        "EP": np.mean(ep_without_lp + ep_with_lp),
        "LP": np.mean([3.83, 2.92, 2.55, 1.92, 2.64, 1.97, 2.43, 2.39]),
        "EFT": np.mean([4.72, 3.55, 3.53, 2.60, 4.09, 2.83, 3.97, 3.30]),
        "ROT": np.mean([1.26, 0.80, -0.02, -0.20, 0.63, 0.08, 0.42, 0.50]),
        "LP x EP": np.mean(ep_with_lp) - np.mean(ep_without_lp),
    }
    for term, effect in expected.items():
        assert found[term] == pytest.approx(effect, abs=1e-4)
    assert found["LP x EP"] < 0


def test_the_words_of_the_ablation_are_text(ablation_stage):
    run(ablation_stage, TABLE, Path("ablation.pdf"))
    words = words_of("ablation.pdf")
    for term in ("EFT", "ROT", "LP with EP", "EFT with ROT"):
        assert term in words
    assert "Scale demo: rendered characters of 100 classes, Conv-4" in words


def test_an_ablation_without_a_factor_has_the_effects_of_the_others(ablation_stage):
    without_rotation = tuple(c for c in ablation_stage.cells if "ROT" not in c.marks)
    shown = ablation_stage.model_copy(update={"cells": without_rotation})
    table = ablation.tabulate(shown, read_cells(TABLE), read_tests(by_seed(TABLE)))
    effects = table.set_index("term")["effect"]
    assert list(effects.index) == ["EFT", "LP", "EP", "EFT x LP", "EFT x EP", "LP x EP"]
    cells = {m: v for m, v in scores_of(ablation_stage).items() if "ROT" not in m}
    without = [np.mean(cells[marks]) for marks in cells if "EP" not in marks]
    with_ep = [np.mean(cells[marks]) for marks in cells if "EP" in marks]
    assert effects["EP"] == pytest.approx(np.mean(with_ep) - np.mean(without))


def test_a_row_that_the_paper_does_not_print_is_named(ablation_stage):
    cells = read_cells(TABLE)
    cells["CONV-4", "exp1", "mini1"]["paper_accuracy"] = ""
    with pytest.raises(UserError, match=r"no number for CONV-4, exp1, .*correct `paper`"):
        ablation.tabulate(ablation_stage, cells, read_tests(by_seed(TABLE)))


# -- alpha -----------------------------------------------------------------------------------------

WAY, QUERIES = 5, 3


@pytest.fixture
def alpha_stage(tmp_path, monkeypatch):
    """The demo's search over features of 8 classes, which differ from candidate to candidate."""
    monkeypatch.chdir(tmp_path)
    stage = plan_of("demo").figures.alpha()
    random = np.random.default_rng(0)
    centers = np.repeat(random.normal(0, 1, (8, 6)), 10, axis=0)
    for number, candidate in enumerate(stage.candidates):
        spread = 1.3 if number == 3 else 1.5
        values = (centers + spread * random.normal(0, 1, centers.shape)).astype(np.float32)
        (file,) = candidate.features
        Features(np.arange(80), np.arange(80) // 10, values).save(Path(file))
    chosen = [random.choice(8, WAY, replace=False) for _ in range(20)]
    rows = np.stack([[10 * c + random.choice(10, 1 + QUERIES, replace=False) for c in episode]
                     for episode in chosen])  # fmt: skip
    Episodes(rows[..., :1], rows[..., 1:], rows[..., :0]).save(Path("episodes.npz"))
    return stage


def accuracies(candidate, label_alpha):
    """In percent, by the formulas in float64."""
    episodes, features = (
        Episodes.load(Path("episodes.npz")),
        Features.load(Path(candidate.features[0])),
    )
    expected = [place for place in range(WAY) for _ in range(QUERIES)]
    found = []
    for rows in episodes.images():
        points = features.values[rows].astype(np.float64)
        points = propagator(points, candidate.propagation.embedding_alpha) @ points
        matrix = propagator(points, label_alpha)
        guesses = matrix[WAY:, :WAY].argmax(axis=1)
        found.append(100 * np.mean(guesses == expected))
    return np.array(found)


def test_the_search_has_a_line_for_every_pair_of_alphas_with_its_accuracy(alpha_stage):
    alpha.run(alpha_stage, Path("episodes.npz"), Path("figures/alpha.pdf"))
    lines = lines_of(Path("figures/alpha.csv"))
    pairs = [(c, a) for c in alpha_stage.candidates for a in alpha_stage.label_alphas]
    assert len(pairs) == 5 * 8
    for line, (candidate, label_alpha) in zip(lines, pairs, strict=True):
        assert float(line["embedding_alpha"]) == candidate.propagation.embedding_alpha
        assert float(line["label_alpha"]) == label_alpha
        mean = student(accuracies(candidate, label_alpha))
        assert float(line["accuracy"]) == pytest.approx(mean.value, abs=1e-4)
        assert float(line["interval"]) == pytest.approx(mean.half_width, abs=1e-4)


def test_every_pair_is_compared_with_the_authors_over_the_same_episodes(alpha_stage):
    alpha.run(alpha_stage, Path("episodes.npz"), Path("alpha.pdf"))
    candidates = {c.propagation.embedding_alpha: c for c in alpha_stage.candidates}
    authors = accuracies(candidates[0.5], 0.2)
    for line in lines_of(Path("alpha.csv")):
        ours = accuracies(candidates[float(line["embedding_alpha"])], float(line["label_alpha"]))
        gap = student(ours - authors)
        assert float(line["difference"]) == pytest.approx(gap.value, abs=1e-4)
        assert float(line["difference_interval"]) == pytest.approx(gap.half_width, abs=1e-4)


def test_of_several_trainings_the_search_has_the_mean_and_what_another_would_give(alpha_stage):
    """The second training of each recipe is the first of the next."""
    first = [candidate.features[0] for candidate in alpha_stage.candidates]
    both = zip(alpha_stage.candidates, first, [*first[1:], first[0]], strict=True)
    candidates = tuple(c.model_copy(update={"features": tuple(files)}) for c, *files in both)
    stage = alpha_stage.model_copy(update={"candidates": candidates})
    alpha.run(stage, Path("episodes.npz"), Path("alpha.pdf"))
    for line in lines_of(Path("alpha.csv")):
        one, two = means_of_trainings(stage, line)
        authors_one, authors_two = means_of_trainings(
            stage, {"embedding_alpha": 0.5, "label_alpha": 0.2}
        )
        assert float(line["accuracy"]) == pytest.approx((one + two) / 2, abs=1e-4)
        # Student's t of one degree of freedom at 97.5 %, and the deviation of two numbers.
        assert float(line["interval"]) == pytest.approx(12.7062 * abs(one - two) / 2, abs=1e-3)
        gaps = one - authors_one, two - authors_two
        assert float(line["difference"]) == pytest.approx(sum(gaps) / 2, abs=1e-4)
        half_width = 12.7062 * abs(gaps[0] - gaps[1]) / 2
        assert float(line["difference_interval"]) == pytest.approx(half_width, abs=1e-3)


def means_of_trainings(stage, line):
    (candidate,) = (
        candidate
        for candidate in stage.candidates
        if candidate.propagation.embedding_alpha == float(line["embedding_alpha"])
    )
    for file in candidate.features:
        one = candidate.model_copy(update={"features": (file,)})
        yield accuracies(one, float(line["label_alpha"])).mean()


def test_the_chosen_pair_is_the_one_with_the_highest_accuracy(alpha_stage):
    alpha.run(alpha_stage, Path("episodes.npz"), Path("alpha.pdf"))
    lines = lines_of(Path("alpha.csv"))
    chosen = [line for line in lines if line["chosen"] == "True"]
    assert len(chosen) == 1
    assert {line["chosen"] for line in lines} == {"True", "False"}
    assert float(chosen[0]["accuracy"]) == max(float(line["accuracy"]) for line in lines)
    assert float(chosen[0]["embedding_alpha"]) == 0.65
    best = f"EP 0.65, LP {float(chosen[0]['label_alpha']):g}"
    assert f"best: {best}" in words_of("alpha.pdf")


def test_every_alpha_of_the_search_is_named_in_text_however_many_there_are(alpha_stage):
    more = tuple(
        candidate.model_copy(
            update={"propagation": candidate.propagation.model_copy(update={"embedding_alpha": a})}
        )
        for candidate, a in zip(alpha_stage.candidates, (0.05, 0.15, 0.25, 0.45), strict=False)
    )
    stage = alpha_stage.model_copy(update={"candidates": alpha_stage.candidates + more})
    alpha.run(stage, Path("episodes.npz"), Path("alpha.pdf"))
    words = words_of("alpha.pdf")
    for number in (0.05, 0.15, 0.2, 0.25, 0.35, 0.45, 0.65, 0.8):
        assert f" {number:g} " in words
    assert "authors' code: EP 0.5, LP 0.2" in words
    assert "Scale demo: rendered characters of 100 classes, Conv-4" in words
