"""Speed of the memory order and of bfloat16."""

from collections.abc import Callable
from pathlib import Path

import torch
from measure import Pair, paired, row

from epcore.backbones.checkpoint import build
from epcore.plan import Plan
from epcore.runtime.device import choose_device, place

PIXELS, IMAGES = 28, 64  # of a step of the demo


def step(backbone: torch.nn.Module, images: torch.Tensor, half: bool = False) -> Callable[[], None]:
    """A function that does forward and backward once, in bfloat16 or in fp32."""

    def work() -> None:
        with torch.autocast(images.device.type, torch.bfloat16, enabled=half):
            features = backbone(images)
        features.backward(torch.ones_like(features))
        backbone.zero_grad()

    return work


def speeds(plan: Plan, device: torch.device) -> None:
    """Speed of bfloat16 for every network, and for one that of the memory order."""
    images = torch.rand(IMAGES, 3, PIXELS, PIXELS, device=device)
    last = images.contiguous(memory_format=torch.channels_last)
    for name in plan.registry.scale.backbones:
        stage = plan.runs.pretrain(plan.registry.scale.columns["mini"], name, "epnet", 0)
        plain, ordered = build(stage.backbone).to(device), build(stage.backbone)
        place(ordered, device)
        if name == "conv4":
            pair = paired(step(ordered, last), step(plain, images), 7)
            told("channels-last: times faster than the usual order, Conv-4, fp32", pair)
        pair = paired(step(ordered, last, half=True), step(ordered, last), 7)
        title = plan.registry.backbones[name].label
        what = f"bfloat16: times faster than fp32, {title} of the demo, channels-last"
        told(what, pair)


def told(what: str, pair: Pair) -> None:
    """Prints the row of a pair."""
    ours, other = IMAGES / pair.ours, IMAGES / pair.other
    by_processors = f"{pair.by_processors:.3g} in processor seconds"
    detail = f"{ours:.0f} images/s against {other:.0f}; {by_processors}"
    row(what, pair.other_to_ours, detail)


def main() -> None:
    speeds(Plan(Path("config"), "demo"), choose_device())


if __name__ == "__main__":
    main()
