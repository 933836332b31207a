"""Throughput of the real pretraining loop, against the bare backbone on a batch in memory."""

import copy
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from measure import Pair, Times, row
from stores import noise_store
from torch import Tensor

from epcore.data.episodes import pool_of, sample
from epcore.plan import Plan
from epcore.runtime.device import autocast, choose_device, describe, set_precision
from epcore.training.config import PretrainConfig
from epcore.training.loop import fit
from epcore.training.pretrain import PretrainingTask

SCALES = {28: "demo", 32: "small", 84: "paper"}
# Images, each in four rotations. The paper's batch at 84 pixels needs 6 GB and minutes of a CPU.
BATCHES = {28: 128, 32: 128, 84: 32}
STEPS = 10  # the first two are not measured


class Timed(PretrainingTask):
    """Between the steps of the loop, the bare backbone has its turn; seconds of each."""

    def losses(self, epoch: int, start: int, generator: torch.Generator) -> Iterator[Tensor]:
        self.loops, self.bare = [], []
        bare = copy.deepcopy(self.model.backbone)
        rows = self.rows[: self.settings.batch_size]
        stored, copies = self.device_images.batch(rows), self.settings.copies
        images = self.augmenter.pretrain_transform(stored, torch.Generator(), copies)
        gradient = torch.randn(len(images), bare.feature_size, device=self.device)
        began = self.now()
        for loss in super().losses(epoch, start, generator):
            yield loss
            stepped = self.now()
            with autocast(self.device, self.config.precision):
                features = bare(images)
            features.backward(gradient.to(features.dtype))
            bare.zero_grad()
            ended = self.now()
            self.loops.append(stepped.since(began))
            self.bare.append(ended.since(stepped))
            began = ended

    def now(self) -> Times:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return Times.now()

    def validate(self) -> tuple[float, float]:
        return 0.0, 0.0


def timed(device: torch.device, pixels: int, network: str, batch: int) -> Timed:
    """A network after a few steps of the loop, with their seconds."""
    plan = Plan(Path("config"), SCALES[pixels])
    told = plan.runs.pretrain(plan.registry.scale.columns["mini"], network, "epnet", 0)
    changed = told.model_dump(mode="json")
    changed["precision"] = "bf16"
    changed["pretraining"] |= {"epochs": 1, "batch_size": batch}
    stage = PretrainConfig(**changed)
    with tempfile.TemporaryDirectory() as folder:
        # Half of the classes are of the base split.
        store = noise_store(Path(folder, "noise"), pixels, 16, batch * STEPS // 8)
        episodes = sample(pool_of(store, "val"), 2, 1, 1, 2, seed=0)
        set_precision(stage.precision)
        task = Timed(stage, store, episodes, device)
        fit(task, stage.pretraining, 0, Path(folder, "state.pt"), "pretrain")
    return task


def loop_row(task: Timed, name: str, device: torch.device) -> None:
    """Its throughput as a share of the bare backbone."""
    pair = Pair.of(task.loops[2:], task.bare[2:])
    images = task.images_per_step
    facts = describe(device, task.config.precision)
    row(
        f"pretraining {name}: throughput of the loop as a share of the bare backbone",
        pair.other_to_ours,
        f"{images / pair.ours:.0f} images/s against {images / pair.other:.0f}, "
        f"{facts['precision']}; {pair.by_processors:.3g} in processor seconds",
    )


def main() -> None:
    device = choose_device()
    for pixels in map(int, sys.argv[1:] or SCALES):
        task = timed(device, pixels, "conv4", BATCHES[pixels])
        loop_row(task, f"Conv-4 at {pixels} pixels", device)


if __name__ == "__main__":
    main()
