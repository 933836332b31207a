"""Speed of the memory order and of bfloat16, and what bfloat16 does to accuracy."""

import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from measure import paired, row

from epcore.checkpoint import build
from epcore.data import build as data
from epcore.data.augment import Augmenter
from epcore.data.episodes import Episodes, sample
from epcore.data.store import ImageStore
from epcore.device import autocast, choose_device, computes_bf16, place
from epcore.evaluation.embed import embed
from epcore.evaluation.evaluate import solve
from epcore.evaluation.propagation_classifier import PropagationClassifier
from epcore.plan import Plan
from epcore.plan.stages import DataStage, PretrainStage
from epcore.training.loop import fit
from epcore.training.pretrain import PretrainingTask

PIXELS, IMAGES, FEATURES = 32, 256, 64  # of Conv-4
SEEDS, EPISODES = 4, 400


def step(backbone: torch.nn.Module, images: torch.Tensor, precision: str) -> Callable[[], None]:
    """A function that does forward and backward once."""
    gradient = torch.randn(len(images), FEATURES, device=images.device)

    def work() -> None:
        with autocast(images.device, precision):
            features = backbone(images)
        features.backward(gradient.to(features.dtype))
        backbone.zero_grad()

    return work


def speeds(plan: Plan, device: torch.device) -> None:
    stage = PretrainStage(**json.loads(plan.pretrain("conv4", "epnet", 0)))
    plain = build(stage.backbone).to(device)
    ordered = build(stage.backbone)
    place(ordered, device)
    images = torch.rand(IMAGES, 3, PIXELS, PIXELS, device=device)
    last = images.contiguous(memory_format=torch.channels_last)
    pairs = {
        "channels-last: times faster than the usual order, Conv-4, fp32": paired(
            step(ordered, last, "fp32"), step(plain, images, "fp32"), 7
        )
    }
    if computes_bf16(device):
        pairs["bfloat16: times faster than fp32, Conv-4, channels-last"] = paired(
            step(ordered, last, "bf16"), step(ordered, last, "fp32"), 7
        )
    for what, pair in pairs.items():
        ours, other = IMAGES / pair.ours, IMAGES / pair.other
        by_processors = f"{pair.by_processors:.3g} in processor seconds"
        detail = f"{ours:.0f} images/s against {other:.0f}; {by_processors}"
        row(what, pair.other_to_ours, 1, True, detail)


def accuracy(
    stage: PretrainStage, store: ImageStore, test: Episodes, device: torch.device, folder: Path
) -> float:
    """Of a pretrained network on the test episodes, in percent."""
    val = sample(store, "val", 5, 5, 15, 20, seed=0)
    task = PretrainingTask(stage, store, val, device)
    outcome = fit(task, stage.pretraining, stage.seed, folder / "state.pt", "pretrain")
    (folder / "state.pt").unlink()
    task.model.load_state_dict(outcome.weights)
    augmenter = Augmenter((), stage.view)
    rows = test.touched()
    features = embed(task.model.backbone, store, rows, augmenter, device, stage.precision)
    results = solve(features, test, PropagationClassifier(stage.propagation))
    return 100 * float(results.accuracies.mean())


def accuracies(plan: Plan, device: torch.device) -> None:
    """Pairs of trainings that differ in precision alone: same seed, images and episodes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told = json.loads(plan.data("glyph-mini"))
        told["dataset"]["images_per_class"] |= {"base": 24, "val": 20, "novel": 60}
        data.run(DataStage(**told), [], folder / "glyphs")
        store = ImageStore.open(folder / "glyphs")
        test = sample(store, "novel", 5, 1, 15, EPISODES, seed=1)
        found: dict[str, list[float]] = {"fp32": [], "bf16": []}
        for seed in range(SEEDS):
            for precision, values in found.items():
                told = json.loads(plan.pretrain("conv4", "epnet", seed))
                told["precision"] = precision
                told["pretraining"] |= {"epochs": 3}
                values.append(accuracy(PretrainStage(**told), store, test, device, folder))
    differences = [b - a for a, b in zip(found["fp32"], found["bf16"], strict=True)]
    spread = statistics.stdev(found["fp32"])
    row(
        "bfloat16: difference in 1-shot accuracy to fp32, in standard deviations between seeds",
        abs(statistics.mean(differences)) / spread,
        1,
        False,
        f"{statistics.mean(found['bf16']):.2f} % against {statistics.mean(found['fp32']):.2f} %, "
        f"{SEEDS} pairs of trainings; differences "
        f"{', '.join(f'{value:+.2f}' for value in differences)}; deviation between seeds "
        f"{spread:.2f}",
    )


def main() -> None:
    plan, device = Plan(Path("config"), "demo"), choose_device()
    speeds(plan, device)
    if computes_bf16(device):
        accuracies(plan, device)
    else:
        print("bfloat16 is not measured: this device does not compute in it")


if __name__ == "__main__":
    main()
