"""Speed of the memory order and of bfloat16, and what bfloat16 does to accuracy."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from measure import Pair, paired, row

from epcore.backbones.checkpoint import build
from epcore.data import build as data
from epcore.data.augment import Augmenter
from epcore.data.config import DataConfig
from epcore.data.episodes import Episodes, pool_of, sample
from epcore.data.store import ImageStore
from epcore.evaluation.embed import embed
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import solve
from epcore.plan import Plan
from epcore.report.statistics import mean_with_interval
from epcore.runtime.device import choose_device, computes_bf16, place
from epcore.training.config import PretrainConfig
from epcore.training.loop import fit
from epcore.training.pretrain import PretrainingTask

PIXELS, IMAGES = 28, 64  # of a step of the demo
SEEDS, EPISODES = 4, 600
PRECISIONS = ("fp32", "bf16")


def step(backbone: torch.nn.Module, images: torch.Tensor, half: bool = False) -> Callable[[], None]:
    """A function that does forward and backward once, in bfloat16 or in fp32."""

    def work() -> None:
        with torch.autocast(images.device.type, torch.bfloat16, enabled=half):
            features = backbone(images)
        features.backward(torch.ones_like(features))
        backbone.zero_grad()

    return work


def speeds(plan: Plan, device: torch.device) -> None:
    """Speed of bfloat16 for every network: faster, or slower where `computes_bf16` says so."""
    images = torch.rand(IMAGES, 3, PIXELS, PIXELS, device=device)
    last = images.contiguous(memory_format=torch.channels_last)
    for name in plan.registry.scale.backbones:
        stage = plan.runs.pretrain(plan.registry.scale.columns["mini"], name, "epnet", 0)
        plain, ordered = build(stage.backbone).to(device), build(stage.backbone)
        place(ordered, device)
        if name == "conv4":
            pair = paired(step(ordered, last), step(plain, images), 7)
            told("channels-last: times faster than the usual order, Conv-4, fp32", pair, True)
        pair = paired(step(ordered, last, half=True), step(ordered, last), 7)
        title = plan.registry.backbones[name].label
        what = f"bfloat16: times faster than fp32, {title} of the demo, channels-last"
        told(what, pair, computes_bf16(device))


def told(what: str, pair: Pair, faster: bool) -> None:
    """Prints the line of a pair, whose first part should be the faster one, or else the slower."""
    ours, other = IMAGES / pair.ours, IMAGES / pair.other
    by_processors = f"{pair.by_processors:.3g} in processor seconds"
    detail = f"{ours:.0f} images/s against {other:.0f}; {by_processors}"
    row(what, pair.other_to_ours, 1, faster, detail)


def accuracy(
    stage: PretrainConfig, store: ImageStore, test: Episodes, device: torch.device, folder: Path
) -> dict[str, float]:
    """Accuracy in percent by precision of the test; the network is trained in the stage's."""
    val = sample(pool_of(store, "val"), 5, 5, 15, 100, seed=0)
    task = PretrainingTask(stage, store, val, device)
    outcome = fit(task, stage.pretraining, stage.seed, folder / "state.pt", "pretrain")
    (folder / "state.pt").unlink()
    task.model.load_state_dict(outcome.weights)
    augmenter, inference = Augmenter((), stage.view), Inference(stage.propagation)
    found = {}
    for precision in PRECISIONS:
        features = embed(
            task.model.backbone, store, test.unique_image_indices(), augmenter, device, precision
        )
        found[precision] = 100 * float(solve(features, test, inference).accuracies.mean())
    return found


def accuracies(plan: Plan, device: torch.device) -> None:
    """Pairs of trainings that differ in precision alone: same seed, images and episodes."""
    found: dict[str, list[dict[str, float]]] = {precision: [] for precision in PRECISIONS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told = plan.data.build("glyph-mini").model_dump(mode="json")
        told["dataset"]["images_per_class"] |= {"base": 40, "val": 30, "novel": 60}
        data.run(DataConfig(**told), [], folder / "glyphs")
        store = ImageStore.open(folder / "glyphs")
        test = sample(pool_of(store, "novel"), 5, 1, 15, EPISODES, seed=1)
        for seed in range(SEEDS):
            for precision, values in found.items():
                dataset = plan.registry.scale.columns["mini"]
                stage = plan.runs.pretrain(dataset, "conv4", "epnet", seed)
                stage = stage.model_copy(update={"precision": precision})
                values.append(accuracy(stage, store, test, device, folder))
    full = np.array([values["fp32"] for values in found["fp32"]])
    pairs = {
        "bfloat16 in training and test": [values["bf16"] for values in found["bf16"]],
        "bfloat16 in the test alone": [values["bf16"] for values in found["fp32"]],
    }
    for what, accuracies in pairs.items():
        half = np.array(accuracies)
        difference = mean_with_interval(half - full)
        each = ", ".join(f"{value:+.2f}" for value in half - full)
        row(
            f"{what}: difference in 1-shot accuracy to fp32, in half widths of its 95 % interval",
            abs(difference.value) / difference.interval,
            1,
            False,
            f"{half.mean():.2f} % against {full.mean():.2f} %; {each} in {SEEDS} pairs",
        )


def main() -> None:
    plan, device = Plan(Path("config"), "demo"), choose_device()
    speeds(plan, device)
    if computes_bf16(device):
        accuracies(plan, device)
    else:
        print("accuracy in bfloat16 is not measured: jobs on this device compute in float32")


if __name__ == "__main__":
    main()
