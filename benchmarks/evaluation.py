"""Episodes solved from cached features, against one at a time as the authors' code does."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from measure import paired, row
from official import accuracy
from torch.profiler import ProfilerActivity, profile

from epcore.data.episodes import Episodes
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import solve
from epcore.plan import Plan

CLASSES, IMAGES, SIZE = 20, 600, 640  # the novel split of mini-ImageNet, features of the WRN
WAY, QUERIES = 5, 15


def features(random: np.random.Generator) -> Features:
    centers = 0.35 * random.normal(size=(CLASSES, 1, SIZE))
    values = np.maximum(centers + random.normal(size=(CLASSES, IMAGES, SIZE)), 0)
    rows = np.arange(CLASSES * IMAGES)
    return Features(rows, rows // IMAGES, values.reshape(-1, SIZE).astype(np.float32))


def episodes(random: np.random.Generator, count: int, unlabeled: int) -> Episodes:
    """1-shot episodes."""
    drawn = np.empty((count, WAY, 1 + QUERIES + unlabeled), dtype=np.int64)
    for episode in drawn:
        classes = random.choice(CLASSES, WAY, replace=False)
        for place, label in enumerate(classes):
            rows = random.choice(IMAGES, drawn.shape[2], replace=False)
            episode[place] = label * IMAGES + rows
    return Episodes(drawn[:, :, :1], drawn[:, :, 1 : 1 + QUERIES], drawn[:, :, 1 + QUERIES :])


def peak_bytes(work: Callable[[], object]) -> int:
    """Most that torch had allocated at once during the work, beyond what there was before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    held = peak = 0
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def compare(name: str, turns: int, frozen: Episodes, cached: Features) -> None:
    stage = Plan(Path("config"), "paper").runs.evaluate("wrn", "epnet")
    inference = Inference(stage.propagation)

    def theirs() -> list[float]:
        return [accuracy(cached.of(rows), WAY, 1, QUERIES) for rows in frozen.images()]

    # The comparison is void if the two do not compute the same.
    ours = solve(cached, frozen, inference).accuracies
    equal = np.mean(np.abs(ours - theirs()) < 1e-6)
    if equal < 0.99:
        sys.exit(f"{name}: only {equal:.1%} of the episodes have the same accuracy")
    pair = paired(lambda: solve(cached, frozen, inference), theirs, turns)
    each = [1000 * time / len(frozen) for time in (pair.ours, pair.other)]
    row(
        f"evaluation, {name}: times faster than one at a time",
        pair.other_to_ours,
        f"{each[0]:.2g} ms an episode against {each[1]:.3g}; {pair.by_processors:.3g} in processor "
        f"seconds; {equal:.1%} of accuracies equal",
    )


def main() -> None:
    random = np.random.default_rng(0)
    cached = features(random)
    place = "ordinary process" if len(sys.argv) > 1 else "environment of our jobs"
    many = episodes(random, 60, 0)
    compare(f"5-way 1-shot, {place}", 5, many, cached)
    few = episodes(random, 1, 100)
    compare(f"semi-supervised, 580 nodes, {place}", 5, few, cached)
    if len(sys.argv) > 1:
        return
    one = episodes(random, 1, 100)
    stage = Plan(Path("config"), "paper").runs.evaluate("wrn", "epnet")
    inference = Inference(stage.propagation)
    own = one.images().size * SIZE * 4
    ours = peak_bytes(lambda: solve(cached, one, inference))
    theirs = peak_bytes(lambda: accuracy(cached.of(one.images()[0]), WAY, 1, QUERIES))
    row(
        "memory of a 580-node episode, as a multiple of its features",
        ours / own,
        f"{ours / 2**20:.1f} MiB, one at a time {theirs / 2**20:.0f} MiB; features "
        f"{own / 2**20:.1f} MiB, one 580 x 580 float64 matrix {580**2 * 8 / 2**20:.1f} MiB",
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
