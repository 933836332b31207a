"""What the text by the letter does to the loss that drives training: docs/paper-vs-code.md.

    snakemake --cores 2 results/batch-epochs/data/glyph-mini/store.json \\
        results/batch-epochs/episodes/glyph-mini/val-5way-5shot.npz --config scale=batch-epochs
    OMP_NUM_THREADS=1 python benchmarks/readings.py

prints the page's two tables: Conv-4, one seed, some six minutes. In the first one network is
trained at a constant rate, and after each epoch four readings of kernel width and query logits
judge the same network; in the second one, three protocols train their own.
"""

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from epcore.classifiers import EpisodeBatch
from epcore.data.episodes import Episodes, pool_of, sample
from epcore.data.store import ImageStore
from epcore.evaluation.embed import embed
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import solve
from epcore.plan import Plan
from epcore.plan.stages import PretrainStage
from epcore.training.loop import Outcome, fit
from epcore.training.pretrain import PretrainingTask

SCALE, DATASET = "batch-epochs", "glyph-mini"
RESULTS = Path("results", SCALE)
EPOCHS, SHOWN = 10, (1, 2, 5, 10)
DEVICE = torch.device("cpu")
READINGS = {
    ("deviation", "log-scores"): {"bandwidth": "std", "query_logits": "log-scores"},
    ("deviation", "scores"): {"bandwidth": "std", "query_logits": "scores"},
    ("variance", "log-scores"): {"bandwidth": "var", "query_logits": "log-scores"},
    ("variance", "scores"): {"bandwidth": "var", "query_logits": "scores"},
}


def stage_of(recipe: str, patience: int, **propagation: Any) -> PretrainStage:
    """The scale's pretraining of a recipe, shortened, with another patience."""
    plan = Plan(Path("config"), SCALE)
    told = plan.runs.pretrain(DATASET, "conv4", recipe, 0)
    plateau = told.pretraining.plateau.model_copy(update={"patience": patience})
    shorter = told.pretraining.model_copy(update={"epochs": EPOCHS, "plateau": plateau})
    graph = told.propagation.model_copy(update=propagation)
    return told.model_copy(update={"pretraining": shorter, "propagation": graph})


class Judged(PretrainingTask):
    """After each epoch every reading judges the same network."""

    def validate(self) -> tuple[float, float]:
        if not hasattr(self, "judgments"):
            self.judgments: list[dict[tuple[str, str], tuple[float, float, float]]] = []
        result = super().validate()
        validator = self.validator
        features = embed(
            self.model.backbone, validator.store, validator.rows, validator.augmenter, DEVICE,
            validator.precision,
        )  # fmt: skip
        judgment = {}
        for name, changes in READINGS.items():
            graph = {**changes, "normalize_labels": False}
            settings = self.stage.propagation.model_copy(update=graph)
            inference = Inference(settings)
            results = solve(features, validator.episodes, inference)
            judgment[name] = (
                float(results.losses.mean()),
                100 * float(results.accuracies.mean()),
                self.gradient(inference),
            )
        self.judgments.append(judgment)
        return result

    def gradient(self, inference: Inference) -> float:
        """Norm of L_p's gradient by the features, times theirs: mean of 20 1-shot episodes."""
        episodes = sample(pool_of(self.validator.store, "base"), 5, 1, 15, 20, seed=7)
        found = []
        expected = torch.from_numpy(episodes.query_labels)
        for rows, labels in zip(episodes.images(), expected, strict=True):
            with torch.no_grad():
                images = self.validator.augmenter.plain(self.device_images.batch(rows))
                features = self.model.backbone(images).float()
            features.requires_grad_()
            logits = inference.scores(EpisodeBatch(features, 5, 1, 5 * 15))
            functional.cross_entropy(logits, labels).backward()
            found.append(float(features.grad.norm() * features.detach().norm()))
        return sum(found) / len(found)


def trained(task: PretrainingTask) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        return fit(task, task.stage.pretraining, 0, Path(folder, "state.pt"), "pretrain")


def main() -> None:
    store = ImageStore.open(RESULTS / "data" / DATASET)
    episodes = Episodes.load(RESULTS / "episodes" / DATASET / "val-5way-5shot.npz")

    judged = Judged(stage_of("epnet", patience=EPOCHS), store, episodes, DEVICE)
    trained(judged)
    shown = [judged.judgments[epoch - 1] for epoch in SHOWN]
    print(f"| kernel width | query logits | loss after {SHOWN} | accuracy, % | gradient |")
    print("|---|---|---|---|---|")
    for name in READINGS:
        losses = ", ".join(f"{judgment[name][0]:.4f}" for judgment in shown)
        accuracies = ", ".join(f"{judgment[name][1]:.0f}" for judgment in shown)
        gradients = sorted(judgment[name][2] for judgment in judged.judgments)
        span = f"{gradients[0]:.2g} to {gradients[-1]:.2g}"
        print("| " + " | ".join((*name, losses, accuracies, span)) + " |")

    print("\n| recipe | rate first fell after epoch | best validation accuracy, % |")
    print("|---|---|---|")
    for name, recipe, changes in (
        ("epnet-paper", "epnet-paper", {}),
        ("epnet-paper with the variance", "epnet-paper", {"bandwidth": "var"}),
        ("epnet-paper-literal", "epnet-paper-literal", {}),
    ):
        stage = stage_of(recipe, 2, **changes)
        outcome = trained(PretrainingTask(stage, store, episodes, DEVICE))
        rates = [row["learning_rate"] for row in outcome.curve]
        fell = next((n for n, rate in enumerate(rates) if rate < rates[0]), "never")
        print(f"| `{name}` | {fell} | {100 * outcome.best['val_accuracy']:.1f} |")


if __name__ == "__main__":
    main()
