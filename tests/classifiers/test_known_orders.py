"""Orders of methods that their papers agree on, on clusters of points."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from plans import plan_of

from epcore.data.episodes import Pool, sample
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import solve

CONFIG = Path(__file__).parents[2] / "config"
CLASSES, IMAGES, SIZE = 20, 100, 32
# Published on balanced queries from the least accurate to the most.
ORDER = ("simpleshot", "tim", "pt-map")


@pytest.fixture(scope="module")
def accuracies():
    """(classifier, whether queries are balanced) -> mean over the same 1-shot episodes."""
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(CLASSES), IMAGES)
    centers = random.normal(0, 1, (CLASSES, SIZE))
    values = np.maximum(centers[labels] + random.normal(0, 1.2, (len(labels), SIZE)), 0)
    features = Features(np.arange(len(labels)), labels, values.astype(np.float32))
    base = BaseClasses(features.values.mean(axis=0), np.empty((0, SIZE), np.float32))
    rows = tuple(np.flatnonzero(labels == each) for each in range(CLASSES))
    pool = Pool("clusters", tuple(map(str, range(CLASSES))), rows)
    found = {}
    for balanced in (True, False):
        shares = {} if balanced else {"dirichlet": 2.0}
        episodes = sample(pool, way=5, shot=1, queries=15, episodes=100, seed=0, **shares)
        for name in ORDER:
            settings = plan_of("demo").runs.evaluate("conv4", f"net+{name}").propagation
            results = solve(features, episodes, Inference(settings), base)
            found[name, balanced] = results.accuracies.mean()
    return found


@pytest.mark.slow
def test_with_balanced_queries_simpleshot_is_below_tim_and_tim_below_pt_map(accuracies):
    for less, more in pairwise(ORDER):
        assert accuracies[less, True] < accuracies[more, True] - 0.005, (less, more)


def test_with_unbalanced_queries_pt_map_falls_most(accuracies):
    falls = {name: accuracies[name, True] - accuracies[name, False] for name in ORDER}
    assert abs(falls["simpleshot"]) < 0.02
    assert falls["pt-map"] > falls["tim"] + 0.01 > 0.01
