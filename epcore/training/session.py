"""What a training stage reads before it starts and writes when it is done."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from epcore.backbones import Backbone
from epcore.backbones.base import parameter_count
from epcore.checkpoint import Checkpoint, build
from epcore.data.augment import Augmenter
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.device import describe
from epcore.evaluation.embed import embed
from epcore.evaluation.evaluate import solve
from epcore.evaluation.propagation_classifier import PropagationClassifier
from epcore.files import Provenance
from epcore.plan.stages import TrainingStage
from epcore.propagation import DegenerateFeaturesError
from epcore.resume import state_file
from epcore.training.loop import Outcome


def base_labels(store: ImageStore) -> torch.Tensor:
    """For each store row, its class counted among the base classes; -1 for the others."""
    labels = torch.full((len(store.labels),), -1)
    for position, label in enumerate(store.class_indices("base")):
        labels[torch.from_numpy(store.labels == label)] = position
    return labels


class Validator:
    """Mean accuracy and loss of a backbone on frozen validation episodes.

    A backbone that gives all images of an episode the same features is at chance.
    """

    def __init__(
        self,
        store: ImageStore,
        episodes: Episodes,
        classifier: PropagationClassifier,
        stage: TrainingStage,
        device: torch.device,
    ) -> None:
        self.store, self.episodes, self.classifier = store, episodes, classifier
        self.augmenter = Augmenter((), stage.view)
        self.precision, self.device = stage.precision, device
        self.rows = episodes.touched()

    def __call__(self, backbone: Backbone) -> tuple[float, float]:
        features = embed(
            backbone, self.store, self.rows, self.augmenter, self.device, self.precision
        )
        try:
            results = solve(features, self.episodes, self.classifier)
        except DegenerateFeaturesError:
            if not np.isfinite(features.values).all():
                raise
            # After few steps the running statistics of BatchNorm lag behind, and in eval mode a
            # network may give every image the same features: it knows nothing yet.
            way = self.episodes.support.shape[1]
            return 1 / way, math.log(way)
        return float(results.accuracies.mean()), float(results.losses.mean())


@dataclass(frozen=True)
class Inputs:
    """Files that a training stage reads."""

    data: Path
    episodes: Path
    checkpoint: Path | None = None

    def files(self) -> list[Path]:
        files = [self.data / "store.json", self.episodes]
        return files + ([self.checkpoint] if self.checkpoint else [])


class Session:
    """One run of a training stage: opened inputs, the file to resume from, the outputs."""

    def __init__(self, name: str, stage: TrainingStage, inputs: Inputs, out: Path) -> None:
        self.stage, self.out = stage, out
        self.provenance = Provenance(name, stage.model_dump(mode="json"), inputs.files())
        self.state = state_file(out, self.provenance)
        self.store = ImageStore.open(inputs.data)
        self.episodes = Episodes.load(inputs.episodes)

    def finish(self, outcome: Outcome, device: torch.device, processes: int = 1) -> None:
        """Writes curve, checkpoint and meta."""
        curve = self.out.with_suffix(".csv")
        outcome.write_curve(curve)
        Checkpoint.of(self.stage.backbone, outcome.weights).save(self.out)
        self.provenance.write(
            self.out,
            curve,
            best=outcome.best,
            resumed_from_epoch=outcome.resumed_from,
            parameters=parameter_count(build(self.stage.backbone)),
            processes=processes,
            **describe(device, self.stage.precision),
        )
