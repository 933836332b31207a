"""Each classifier on a batch of episodes, against the same episodes one at a time."""

from pathlib import Path

import torch
from measure import paired, row

from epcore.classifiers.episodes import EpisodeBatch
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import BATCH
from epcore.plan import Plan

WAY, SHOT, QUERIES, SIZE, BASE = 5, 1, 75, 64, 64  # 5-way 1-shot, features of Conv-4
TURNS = 3


def episodes(count: int) -> EpisodeBatch:
    """Classes around centers; features are not negative, as those of a network."""
    draw = torch.Generator().manual_seed(0)
    centers = torch.randn(count, WAY, SIZE, generator=draw)
    places = torch.arange(WAY).repeat_interleave((SHOT * WAY + QUERIES) // WAY)
    order = places.reshape(WAY, -1)
    order = torch.cat([order[:, :SHOT].flatten(), order[:, SHOT:].flatten()])
    noise = torch.randn(count, len(order), SIZE, generator=draw)
    points = (centers[:, order] + noise).clamp(min=0)
    mean, weights = points.mean(dim=(0, 1)), torch.randn(BASE, SIZE, generator=draw)
    numbers = torch.arange(count)
    return EpisodeBatch(points, WAY, SHOT, QUERIES, mean, weights, numbers)


def one(batch: EpisodeBatch, number: int) -> EpisodeBatch:
    part = slice(number, number + 1)
    assert batch.numbers is not None
    return EpisodeBatch(
        batch.points[part], WAY, SHOT, QUERIES, batch.base_mean, batch.base_weights,
        batch.numbers[part],
    )  # fmt: skip


@torch.no_grad()
def main() -> None:
    plan, batch = Plan(Path("config"), "demo"), episodes(BATCH)
    for name in plan.registry.recipes.classifiers:
        stage = plan.runs.evaluate("conv4", f"net+{name}")
        method = Inference(stage.propagation)

        def alone(method: Inference = method) -> None:
            for number in range(BATCH):
                method.scores(one(batch, number))

        pair = paired(lambda method=method: method.scores(batch), alone, TURNS)
        each = [1000 * seconds / BATCH for seconds in (pair.ours, pair.other)]
        row(
            f"{name}: times faster in batches of {BATCH}",
            pair.other_to_ours,
            1,
            True,
            f"{each[0]:.3g} s for 1000 episodes against {each[1]:.3g}",
        )


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
