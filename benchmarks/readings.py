"""What the text by the letter does to the loss that drives training: docs/paper-vs-code.md.

    snakemake --cores 2 results/batch-epochs/data/glyph-mini/store.json \\
        results/batch-epochs/episodes/glyph-mini/val-5way-5shot.npz --config scale=batch-epochs
    OMP_NUM_THREADS=1 python benchmarks/readings.py results/readings/tables
    python docs/findings/snapshot.py readings --command "python benchmarks/readings.py"

makes judged.csv and trained.csv, then the page's two tables of them: Conv-4, one seed, some six
minutes. In the first one network is trained at a constant rate, and after each epoch four readings
of kernel width and query logits judge the same network; in the second one, three protocols train
their own.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch
from epcore.data.episodes import Episodes, pool_of, sample
from epcore.data.store import ImageStore
from epcore.evaluation.embed import embed
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import solve
from epcore.files import Provenance
from epcore.plan import Plan
from epcore.report.numbers import write_table
from epcore.training.config import PretrainConfig
from epcore.training.loop import Outcome, fit
from epcore.training.pretrain import PretrainingTask

SCALE, DATASET = "batch-epochs", "glyph-mini"
RESULTS = Path("results", SCALE)
EPOCHS = 10
DEVICE = torch.device("cpu")
READINGS = {
    ("deviation", "log-scores"): {"bandwidth": "std", "query_logits": "log-scores"},
    ("deviation", "scores"): {"bandwidth": "std", "query_logits": "scores"},
    ("variance", "log-scores"): {"bandwidth": "var", "query_logits": "log-scores"},
    ("variance", "scores"): {"bandwidth": "var", "query_logits": "scores"},
}
PROTOCOLS: tuple[tuple[str, dict[str, str]], ...] = (
    ("epnet-paper", {}),
    ("epnet-paper", {"bandwidth": "var"}),
    ("epnet-paper-literal", {}),
)


def stage_of(recipe: str, patience: int, **propagation: Any) -> PretrainConfig:
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
                images = self.validator.augmenter.eval_transform(self.device_images.batch(rows))
                features = self.model.backbone(images).float()
            features.requires_grad_()
            logits = inference.scores(EpisodeBatch(features, 5, 1, 5 * 15))
            functional.cross_entropy(logits, labels).backward()
            found.append(float(features.grad.norm() * features.detach().norm()))
        return sum(found) / len(found)


def trained(task: PretrainingTask) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        return fit(task, task.stage.pretraining, 0, Path(folder, "state.pt"), "pretrain")


def judged(store: ImageStore, episodes: Episodes) -> pd.DataFrame:
    """A line for each reading and epoch: loss, accuracy in %, gradient."""
    task = Judged(stage_of("epnet", patience=EPOCHS), store, episodes, DEVICE)
    trained(task)
    lines = [
        (*name, epoch, *judgment[name])
        for name in READINGS
        for epoch, judgment in enumerate(task.judgments, 1)
    ]
    columns = ["kernel_width", "query_logits", "epoch", "loss", "accuracy", "gradient"]
    return pd.DataFrame(lines, columns=columns)


def protocols(store: ImageStore, episodes: Episodes) -> pd.DataFrame:
    """A line for each protocol: the epoch after which its rate first fell, its best accuracy."""
    lines = []
    for recipe, changes in PROTOCOLS:
        stage = stage_of(recipe, 2, **changes)
        outcome = trained(PretrainingTask(stage, store, episodes, DEVICE))
        rates = [row["learning_rate"] for row in outcome.curve]
        fell = next((n for n, rate in enumerate(rates) if rate < rates[0]), "never")
        best = 100 * outcome.best["val_accuracy"]
        lines.append((recipe, stage.propagation.bandwidth, fell, best))
    return pd.DataFrame(lines, columns=["recipe", "bandwidth", "rate_fell", "accuracy"])


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    data, frozen = RESULTS / "data" / DATASET, RESULTS / "episodes" / DATASET
    inputs = [data / "store.json", frozen / "val-5way-5shot.npz"]
    provenance = Provenance("readings", stage_of("epnet", EPOCHS), inputs)
    store, episodes = ImageStore.open(data), Episodes.load(inputs[1])
    write_table(judged(store, episodes), out / "judged.csv", "%.6g")
    write_table(protocols(store, episodes), out / "trained.csv", "%.6g")
    provenance.write(out / "judged.csv", out / "trained.csv")


if __name__ == "__main__":
    main()
