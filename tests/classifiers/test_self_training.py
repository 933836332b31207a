"""Self-training, by scikit-learn's regression and pseudo-labels given in loops."""

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.preprocessing
import torch
from episode_batches import batch_of

from epcore.classifiers.self_training import SelfTraining

WAY, SHOT, QUERIES = 3, 2, 5


def features(unlabeled, size=6, count=4, spread=0.8):
    random = np.random.default_rng(0)
    classes = [np.arange(WAY).repeat(SHOT)]
    classes += [np.arange(number) % WAY for number in (QUERIES, unlabeled)]
    labels = np.concatenate(classes)
    centers = random.normal(0, 1, (count, WAY, size))
    return centers[:, labels] + spread * random.normal(0, 1, (count, len(labels), size))


def brute(episode, per_class, rounds, cost):
    points = sklearn.preprocessing.normalize(episode)
    n = WAY * SHOT
    labels = np.arange(n) // SHOT
    query, pool = points[n : n + QUERIES], points[n + QUERIES :]
    pool = pool if len(pool) else query
    solver = sklearn.linear_model.LogisticRegression(C=cost, tol=1e-12, max_iter=10000)
    solver.fit(points[:n], labels)
    for _ in range(rounds):
        chances = solver.predict_proba(pool)
        kept = []
        for k in range(WAY):
            of_class = [j for j in range(len(pool)) if np.argmax(chances[j]) == k]
            of_class.sort(key=lambda j, k=k, chances=chances: -chances[j, k])
            kept += [(j, k) for j in of_class[:per_class]]
        images = np.vstack([points[:n], *[pool[None, j] for j, _ in kept]])
        solver.fit(images, np.concatenate([labels, [k for _, k in kept]]))
    return solver.decision_function(query)


@pytest.mark.parametrize("unlabeled", [0, 4, 30])
@pytest.mark.parametrize(("per_class", "rounds", "cost"), [(20, 4, 1), (2, 3, 10), (1, 1, 1)])
def test_scores_are_those_of_the_steps_in_loops(unlabeled, per_class, rounds, cost):
    points = features(unlabeled)
    method = SelfTraining(per_class=per_class, rounds=rounds, cost=cost)
    found = method.scores(batch_of(torch.from_numpy(points), WAY, SHOT, QUERIES))
    for episode, scores in zip(points, found.numpy(), strict=True):
        expected = brute(episode, per_class, rounds, cost)
        np.testing.assert_allclose(scores, expected, atol=1e-4)
