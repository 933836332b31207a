"""`epcore classify`: a stranger's features get a table in one command."""

import re
from pathlib import Path

import numpy as np
import pytest
from plans import put
from sklearn.metrics import roc_auc_score

from epcore.commands.cli import main
from epcore.data.episodes import Episodes
from epcore.evaluation.confidence import calibration_error

CONFIG = str(Path(__file__).parents[2] / "config")
CLASSES, IMAGES, SIZE = 8, 30, 6


def arrays(spread=0.05, **changed):
    random = np.random.default_rng(0)
    labels = np.repeat([f"class {number}" for number in range(CLASSES)], IMAGES)
    centers = np.repeat(random.uniform(0, 4, (CLASSES, SIZE)), IMAGES, axis=0)
    features = np.abs(centers + spread * random.normal(size=(CLASSES * IMAGES, SIZE)))
    return {"features": features, "labels": labels} | changed


@pytest.fixture
def classify(tmp_path, capsys):
    """Saves arrays, runs the command on them, and returns its exit code, output and message."""

    def run(content, *words):
        np.savez(tmp_path / "mine.npz", **content)
        given = ["--features", str(tmp_path / "mine.npz"), "--settings", CONFIG]
        code = main(["classify", *given, "--count", "20", *words])
        return code, *capsys.readouterr()

    return run


def numbers(out):
    """Name of each line -> accuracy, and difference to the first."""
    found = {}
    for line in filter(lambda line: "  ECE" in line, out.splitlines()):
        name, accuracy, *others = re.split(r"\s{2,}", line.strip())
        gap = [other for other in others if other[0] in "+-"]
        found[name] = accuracy.split(" ± ")[0], gap[0].split(" ± ")[0] if gap else None
    return {name: (float(one), gap and float(gap)) for name, (one, gap) in found.items()}


def test_classes_far_apart_are_told_apart_by_whatever_can_do_with_the_features(classify):
    code, out, err = classify(arrays())
    found = numbers(out)
    assert code == 0
    assert re.search(r"^left out, .*\bsimpleshot, ", err, re.M)
    assert {"nearest-mean", "simpleshot-l2n", "ridge"} <= set(found)
    assert "simpleshot" not in found  # which takes a base mean
    for name in ("label-propagation", "nearest-mean", "simpleshot-l2n", "ridge", "pt-map"):
        assert found[name][0] == 100, name


def test_an_entry_whose_class_cannot_be_imported_is_left_out_unless_it_is_named(classify, config):
    put(config, "classifiers.yaml", "mine", {"label": "", "classifier": {"name": "nowhere.Mine"}})
    where = ("--settings", str(config))
    code, out, err = classify(arrays(), *where)
    assert code == 0
    assert "ridge" in numbers(out)
    assert re.search(
        r"^--classifier mine: .*nowhere\.Mine cannot be imported .*; it is left", err, re.M
    )
    code, _, err = classify(arrays(), "--classifier", "mine", *where)
    assert code == 2
    assert "nowhere.Mine cannot be imported" in err


def test_the_accuracy_is_that_of_the_nearest_mean_of_the_frozen_episodes(classify, tmp_path):
    content = arrays(spread=2.0)
    _, out, _ = classify(content, "--classifier", "ridge", "nearest-mean", "--shot", "3")
    episodes = Episodes.load(tmp_path / "mine-5way-3shot-15queries-20.npz")
    values, right = content["features"].astype(np.float32), []
    for support, query in zip(episodes.support, episodes.query, strict=True):
        means = values[support].mean(axis=1)
        for place, rows in enumerate(query):
            distances = ((values[rows][:, None] - means) ** 2).sum(axis=2)
            right += (distances.argmin(axis=1) == place).tolist()
    found = numbers(out)
    assert found["nearest-mean"][0] == pytest.approx(100 * np.mean(right), abs=0.006)
    gap = found["nearest-mean"][0] - found["ridge"][0]
    assert found["nearest-mean"][1] == pytest.approx(gap, abs=0.011)
    assert found["ridge"][1] is None
    labels = content["labels"][episodes.query]
    assert (labels == content["labels"][episodes.support][:, :, :1]).all()


def test_episodes_are_drawn_once_and_read_from_then_on(classify, tmp_path):
    classify(arrays(spread=2.0), "--classifier", "ridge")
    file = tmp_path / "mine-5way-1shot-15queries-20.npz"
    before = file.read_bytes()
    _, first, _ = classify(arrays(spread=2.0), "--classifier", "ridge", "--seed", "5")
    assert file.read_bytes() == before
    own = ["--episodes", str(tmp_path / "own.npz"), "--seed", "5"]
    _, other, _ = classify(arrays(spread=2.0), "--classifier", "ridge", *own)
    assert numbers(first) != numbers(other)


def test_other_queries_unlabeled_images_and_embedding_propagation(classify):
    noisy = arrays(spread=1.0)
    named = ["--classifier", "label-propagation", "ep+label-propagation"]
    found = [
        accuracy
        for words in ([], ["--unlabeled", "4"], ["--dirichlet", "2"])
        for accuracy, _ in numbers(classify(noisy, *named, *words)[1]).values()
    ]
    assert len(set(found)) == 6


def test_without_a_name_all_are_compared_with_the_papers(classify):
    found = numbers(classify(arrays(spread=1.0))[1])
    (first, (_, gap)), *others = found.items()
    assert (first, gap) == ("ep+label-propagation", None)
    assert {"label-propagation", "ridge"} <= {name for name, (_, gap) in others if gap is not None}


def test_confidence_is_told_for_queries_of_known_and_of_other_classes(classify, tmp_path):
    content = arrays(spread=2.0)
    code, out, _ = classify(
        content, "--classifier", "nearest-mean", "--open-set", "2", "--way", "4"
    )
    assert code == 0
    assert "20 episodes, 4-way 1-shot, 60 queries each" in out
    assert "and 30 queries of 2 classes that are none of these" in out
    episodes = Episodes.load(tmp_path / "mine-4way-1shot-15queries-open2-20.npz")
    values = content["features"].astype(np.float32).astype(np.float64)
    right, sure, areas = [], [], []
    for support, query in zip(episodes.support, episodes.query, strict=True):
        distances = values[query.ravel()][:, None] - values[support[:4, 0]]
        scores = np.sort(-(distances**2).sum(axis=2) / np.sqrt(SIZE), axis=1)
        # The odds of the most likely class against all others, which rank as its probability does.
        odds = scores[:, -1] - np.logaddexp.reduce(scores[:, :-1], axis=1)
        right.append(((distances**2).sum(axis=2).argmin(axis=1) == np.arange(90) // 15)[:60])
        sure.append(1 / (1 + np.exp(-odds[:60])))
        areas.append(roc_auc_score(np.arange(90) < 60, odds))
    (line,) = [line for line in out.splitlines() if "  ECE" in line]
    accuracy, ece, area = re.findall(r"(?:mean|ECE|AUROC)\s+([\d.]+)", line)
    assert float(accuracy) == pytest.approx(100 * np.mean(right), abs=0.006)
    expected = calibration_error(np.array(sure), np.array(right))
    assert float(ece) == pytest.approx(100 * expected, abs=0.06)
    assert float(area) == pytest.approx(100 * np.mean(areas), abs=0.06)


def test_a_base_mean_in_the_file_lets_simpleshot_take_part(classify):
    content = arrays(base_mean=np.full(SIZE, 2.0))
    assert numbers(classify(content)[1])["simpleshot"][0] == 100
    own = "{name: prototypes, preprocessing: [center-base, unit]}"
    for named in (own, f"ep+{own}"):
        assert numbers(classify(content, "--classifier", named)[1])[named][0] == 100


@pytest.mark.parametrize(
    ("changed", "words", "said"),
    [
        ({}, ["--classifier", "ep+ridg"], "unknown entry of classifiers.yaml 'ridg'; did you mean"),
        ({}, ["--classifier", "{name: [ridge]}"], "the key 'name' is missing; say which one"),
        ({}, ["--classifier", "{name: ridge, x: 1}"], "classifier ridge: unknown key 'x'"),
        ({}, ["--way", "9"], "9-way episodes need 9 classes, there are 8"),
        ({}, ["--shot", "29"], "class 'class 0' has 30; add images, or lower `queries`"),
        ({}, ["--dirichlet", "0.001"], "of 1000 draws from Dir(0.001) each asks for more queries"),
        ({}, ["--open-set", "2", "--dirichlet", "1"], "--open-set and --dirichlet exclude one"),
        ({"features": np.full((240, 6), 1e300)}, [], "features must be finite; it must hold"),
        ({"labels": np.zeros(3)}, [], "features have shape (240, 6) and labels (3,)"),
        ({"labels": np.full(240, "a", object)}, [], "Object arrays cannot be loaded"),
        ({"base_mean": np.zeros(5)}, [], "base_mean has shape (5,); it must hold"),
        ({"base_weights": np.zeros((3, 6))}, [], "base_mean is not a file in the archive"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_drawn(classify, tmp_path, changed, words, said):
    code, out, message = classify(arrays(**changed), *words)
    assert (code, out) == (2, "")
    assert said in message
    assert len(message.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.npz"]


def test_a_file_without_labels_and_one_that_is_none(classify, tmp_path, capsys):
    content = arrays()
    del content["labels"]
    assert "labels is not a file in the archive'; it must hold `features`" in classify(content)[2]
    (tmp_path / "text.npz").write_text("no zip", encoding="utf-8")
    assert main(["classify", "--features", str(tmp_path / "text.npz"), "--settings", CONFIG]) == 2
    assert "text.npz: " in (said := capsys.readouterr().err)
    assert "it must hold `features`" in said
    assert main(["classify", "--features", str(tmp_path / "none.npz"), "--settings", CONFIG]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_other_numbers_of_episodes_and_queries_are_drawn_into_other_files(classify, tmp_path):
    for words in ([], ["--queries", "3"], ["--queries", "3", "--count", "10"]):
        assert classify(arrays(), "--classifier", "ridge", *words)[0] == 0
    names = sorted(file.name for file in tmp_path.glob("mine-*.npz"))
    kinds = ("15queries-20", "3queries-10", "3queries-20")
    assert names == [f"mine-5way-1shot-{kind}.npz" for kind in kinds]


def test_unlabeled_images_of_the_episodes_are_told_to_who_takes_none(classify, tmp_path):
    file = ["--episodes", str(tmp_path / "own.npz")]
    first = ["--classifier", "label-propagation", "--unlabeled", "3"]
    assert classify(arrays(), *first, *file)[0] == 0
    code, out, message = classify(arrays(), "--classifier", "ridge", *file)
    assert (code, out) == (2, "")
    assert "ridge takes no unlabeled images" in message


@pytest.mark.parametrize("images", [slice(None, None, -1), slice(0, 200)])
def test_episodes_that_were_drawn_for_other_features_are_told(classify, images):
    """In another order, or more: rows would be images of other classes."""
    classify(arrays(), "--classifier", "ridge")
    content = {name: values[images] for name, values in arrays().items()}
    if images.step:
        content["labels"] = np.roll(content["labels"], 7)
    _, out, message = classify(content, "--classifier", "ridge")
    assert out == ""
    assert "was drawn for other features or labels than those of" in message


def test_episodes_that_were_there_are_said_to_be_used(classify):
    _, first, err = classify(arrays(), "--classifier", "ridge")
    assert err == ""
    _, second, err = classify(arrays(), "--classifier", "ridge", "--seed", "7")
    assert second == first
    assert err.endswith(
        "-15queries-20.npz was there: its episodes are used, and no option of the draw has an "
        "effect\n"
    )
