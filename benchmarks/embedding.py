"""Throughput of the stage `embed`, against the bare forward pass on batches in memory."""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from measure import paired, row
from pretraining import SCALES
from stores import noise_store

from epcore.backbones.build import build_backbone
from epcore.data.augment import Augmenter
from epcore.evaluation.embed import BATCH, embed
from epcore.plan import Plan
from epcore.runtime.device import autocast, choose_device, describe, set_precision

BATCHES = {28: 16, 32: 16, 84: 2}
TURNS = 9


def measure(pixels: int, device: torch.device) -> None:
    """Conv-4 on as many images as `BATCHES` says."""
    stage = Plan(Path("config"), SCALES[pixels]).runs.embed("conv4", "epnet")
    set_precision(stage.precision)
    network = stage.backbone
    backbone = build_backbone(network.architecture, network.width, network.depth).eval()
    backbone = backbone.to(device, memory_format=torch.channels_last)
    augmenter, count = Augmenter((), stage.view), BATCH * BATCHES[pixels]
    with tempfile.TemporaryDirectory() as folder:
        store = noise_store(Path(folder, "noise"), pixels, 4, count // 4)
        rows = np.arange(count)
        batches = [
            augmenter.eval_transform(
                torch.from_numpy(store.pixels(rows[start : start + BATCH])).to(device)
            )
            for start in range(0, count, BATCH)
        ]

        def whole() -> None:
            embed(backbone, store, rows, augmenter, device, stage.precision)

        @torch.no_grad()
        def bare() -> None:
            with autocast(device, stage.precision):
                for images in batches:
                    backbone(images)
            if device.type == "cuda":
                torch.cuda.synchronize()

        pair = paired(whole, bare, TURNS)
    facts = describe(device, stage.precision)
    row(
        f"embedding Conv-4 at {pixels} pixels: throughput as a share of the bare forward pass",
        pair.other_to_ours,
        0.95,
        True,
        f"{count / pair.ours:.0f} images/s against {count / pair.other:.0f}, "
        f"{facts['precision']}; {pair.by_processors:.3g} in processor seconds",
    )


def main() -> None:
    device = choose_device()
    for pixels in map(int, sys.argv[1:] or SCALES):
        measure(pixels, device)


if __name__ == "__main__":
    main()
