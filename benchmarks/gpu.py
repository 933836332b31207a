"""Pretraining on a GPU at the paper's size: images a second, what of the card that is, and memory.

How fast a card can be is measured too, by a product of large matrices in bfloat16: what its maker
prints is seldom reached by anything.
"""

import statistics
import sys
import time

import torch
from measure import row
from pretraining import Timed, loop_row, timed
from torch.utils.flop_counter import FlopCounterMode

from epcore.runtime.device import autocast, choose_device

NETWORKS = {"wrn": "WRN-28-10", "resnet12": "ResNet-12", "conv4": "Conv-4"}
PIXELS, BATCH = 84, 128
SIDE, TURNS = 8192, 20


def best_rate(device: torch.device, side: int = SIDE) -> float:
    """Operations a second of a product of two bfloat16 matrices of `side` rows and columns."""
    left, right = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    seconds = []
    for _ in range(TURNS):
        _wait(device)
        start = time.perf_counter()
        left @ right
        _wait(device)
        seconds.append(time.perf_counter() - start)
    return 2 * side**3 / statistics.median(seconds)


def operations(task: Timed, device: torch.device) -> int:
    """Floating-point operations of one step's forward and backward pass through the backbone."""
    stored = task.device_images.batch(task.rows[: task.settings.batch_size])
    images = task.augmenter.pretrain_transform(stored, torch.Generator(), task.settings.copies)
    counter = FlopCounterMode(display=False)
    with counter:
        with autocast(device, task.config.precision):
            features = task.model.backbone(images)
        features.float().sum().backward()
    return counter.get_total_flops()


def rows(device: torch.device, network: str, pixels: int, batch: int, best: float) -> None:
    """The two rows of a network."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    task = timed(device, pixels, network, batch)
    gigabytes = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
    name = f"{NETWORKS[network]} at {pixels} pixels, batch {batch} x 4"
    loop_row(task, name, device)
    seconds = statistics.median(times.clock for times in task.loops[2:])
    rate = operations(task, device) / seconds
    row(
        f"pretraining {name}: operations a second, of those of a large product in bfloat16",
        rate / best,
        f"{rate / 1e12:.3g} of {best / 1e12:.3g} TFLOP/s; at most {gigabytes:.1f} GiB of memory",
    )


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    device = choose_device()
    if device.type != "cuda":
        sys.exit("there is no GPU here; make bench measures what a CPU does")
    best = best_rate(device)
    for network in NETWORKS:
        rows(device, network, PIXELS, BATCH, best)


if __name__ == "__main__":
    main()
