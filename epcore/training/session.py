"""What a training stage reads before it starts and writes when it is done."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from epcore.backbones.base import Backbone, parameter_count
from epcore.backbones.checkpoint import Checkpoint
from epcore.data.augment import Augmenter
from epcore.data.config import Split
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.evaluation.embed import embed
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import solve
from epcore.files import Provenance
from epcore.propagation import DegenerateFeaturesError
from epcore.runtime.device import describe
from epcore.runtime.resume import state_file
from epcore.settings import StageConfig
from epcore.training.config import SeededConfig, TrainingConfig
from epcore.training.loop import Outcome, Task, fit
from epcore.training.process_group import ALONE, ProcessGroup
from epcore.training.schedule import OptimizerSettings


def labels_among(store: ImageStore, *splits: Split) -> torch.Tensor:
    """For each store row, its class counted among the classes of the splits; -1 for the others."""
    labels = torch.full((len(store.labels),), -1)
    for position, label in enumerate(store.class_indices(*splits)):
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
        config: TrainingConfig,
        device: torch.device,
    ) -> None:
        self.store, self.episodes = store, episodes
        self.inference = Inference(config.propagation)
        self.augmenter = Augmenter((), config.view)
        self.precision, self.device = config.precision, device
        self.rows = episodes.unique_image_indices()

    def __call__(self, backbone: Backbone) -> tuple[float, float]:
        features = embed(
            backbone, self.store, self.rows, self.augmenter, self.device, self.precision
        )
        if not np.isfinite(features.values).all():
            raise DegenerateFeaturesError("the features are not finite")
        try:
            results = solve(features, self.episodes, self.inference)
        except DegenerateFeaturesError:
            # After few steps the running statistics of BatchNorm lag behind, and in eval mode a
            # network may give every image the same features: it knows nothing yet.
            way = self.episodes.support.shape[1]
            return 1 / way, math.log(way)
        return float(results.accuracies.mean()), float(results.losses.mean())


class NetworkTask(Task, Protocol):
    """A task of a stage that trains one network.

    config: of the stage. settings: its part about the optimizer. device: where the network is.
    """

    @property
    def config(self) -> SeededConfig: ...

    @property
    def settings(self) -> OptimizerSettings: ...

    @property
    def device(self) -> torch.device: ...


class Session:
    """One run of a stage that trains one model, which has no name, or several that have."""

    def __init__(self, name: str, config: StageConfig, inputs: list[Path], out: Path) -> None:
        self.out = out
        self.provenance = Provenance(name, config, inputs)

    def state(self, model: str = "") -> Path:
        """The file that the training of a model goes on from."""
        return state_file(self.out, self.provenance, model)

    def train(
        self,
        task: NetworkTask,
        label: str,
        counted: nn.Module,
        checkpoint: Callable[..., Checkpoint] = Checkpoint.of,
        team: ProcessGroup = ALONE,
        **facts: Any,
    ) -> None:
        """Trains one network, and writes its checkpoint, curve and meta.

        Of a team, whose processes all train, the first one writes.

        Args:
            task: what is trained.
            label: how messages and the progress bar call it.
            counted: the module whose parameters the meta counts.
            checkpoint: makes a checkpoint of the backbone's settings and the trained weights.
            team: the processes that train it together.
            facts: what else the meta says.

        Raises:
            UserError: if training diverges; see `fit`.
            Interrupted: after a signal, once everything is saved.
        """
        config = task.config
        outcome = fit(task, task.settings, config.seed, self.state(), label, team)
        if team.rank == 0:
            checkpoint(config.backbone, outcome.weights).save(self.out)
            facts |= describe(task.device, config.precision)
            self.finish({"": outcome}, parameters=parameter_count(counted), **facts)

    def finish(self, outcomes: Mapping[str, Outcome], **facts: Any) -> None:
        """Writes the curve of every model, and the meta of the checkpoint, which is there."""
        curves = {model: self.out.with_name(f"{self.out.stem}{model}.csv") for model in outcomes}
        for model, outcome in outcomes.items():
            outcome.write_curve(curves[model])
        best = {model: outcome.best for model, outcome in outcomes.items()}
        resumed = {model: outcome.resumed_from for model, outcome in outcomes.items()}
        self.provenance.write(
            self.out,
            *curves.values(),
            best=best.get("", best),
            resumed_from_epoch=resumed.get("", resumed),
            **facts,
        )
