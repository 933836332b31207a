"""The plan of one scale: what each stage of a run is told."""

from pathlib import Path
from typing import Any

from epcore.errors import UserError
from epcore.plan import paths
from epcore.plan.datasets import OfficialData
from epcore.plan.load import pick
from epcore.plan.models import Backbone, Recipe
from epcore.plan.stages import (
    STAGE_VERSIONS,
    DataStage,
    EmbedStage,
    EpisodesStage,
    EvaluateStage,
    FetchStage,
    FinetuneStage,
    PretrainStage,
    told,
)
from epcore.plan.tables import TablePlan


class Plan(TablePlan):
    """The config folder at one scale; methods named after a stage return what it is told.

    That is canonical JSON of the settings that the stage reads, and of nothing else.
    """

    def check(self) -> None:
        """Resolves every recipe and table, so that a mistake is told before anything runs."""
        columns: dict[str, str] = {}
        for table in self.tables:
            self.latex(table)
            columns |= self.table(table).groups
        for column in self.scale.columns:
            pick(columns, column, "column of the tables", f"{self._scale_file}, columns")
        for recipe in self.recipes:
            for backbone in self.scale.backbones:
                self.recipe(recipe, backbone)

    def data(self, dataset: str) -> str:
        settings = pick(self.datasets, dataset, "data set", "config/datasets.yaml")
        # The title is for captions: a better one must not rebuild the data.
        settings = settings.model_copy(update={"title": ""})
        return told(DataStage(stage_version=STAGE_VERSIONS["data"], dataset=settings))

    def data_inputs(self, dataset: str) -> dict[str, list[str]]:
        """What a data set is built from: receipts of its sources; files of one's own, if there.

        A change of either rebuilds the data set.
        """
        settings = self.datasets[dataset]
        if isinstance(settings, OfficialData):
            place = {"scale": self.scale_name}
            names = settings.sources
            return {"sources": [paths.RECEIPT.format(source=name, **place) for name in names]}
        own = {"folder": "{}/split.csv", "npz": "{}"}.get(settings.kind, "")
        file = Path(own.format(getattr(settings, "path", "")))
        return {"own": [str(file)] if own and file.is_file() else []}

    def fetch(self, source: str) -> str:
        """Paths and checksums: other addresses or terms change nothing about the files."""
        files = pick(self.sources, source, "source", "config/datasets.yaml").files
        return told(
            FetchStage(
                stage_version=STAGE_VERSIONS["fetch"],
                files={key: file.model_copy(update={"urls": ()}) for key, file in files.items()},
            )
        )

    def episodes(self, protocol: str) -> str:
        asked = pick(self.protocols, protocol, "protocol", "config/protocols.yaml")
        if asked.split == "base":
            raise UserError(f"protocol {protocol}: episodes are of split val or novel")
        return told(
            EpisodesStage(
                stage_version=STAGE_VERSIONS["episodes"],
                split=asked.split,
                way=asked.way,
                shot=asked.shot,
                queries=asked.queries,
                episodes=getattr(self.scale.episodes, asked.split),
                seed=self.scale.seed,
            )
        )

    def backbone(self, name: str) -> Backbone:
        """The backbone at this scale's width and depth."""
        size = pick(self.scale.backbones, name, "backbone", f"{self._scale_file}, backbones")
        architecture = self.backbones[name].architecture
        return Backbone(architecture=architecture, width=size.width, depth=size.depth)

    def _network(self, stage: str, backbone: str, recipe: Recipe) -> dict[str, Any]:
        return {
            "stage_version": STAGE_VERSIONS[stage],
            "backbone": self.backbone(backbone),
            "view": recipe.view,
            "precision": self.scale.precision,
        }

    def _training(self, stage: str, backbone: str, recipe: Recipe, seed: int) -> dict[str, Any]:
        return self._network(stage, backbone, recipe) | {
            "seed": seed,
            "propagation": recipe.propagation,
        }

    def pretrain(self, backbone: str, recipe: str, seed: int) -> str:
        resolved = self.recipe(recipe, backbone)
        return told(
            PretrainStage(
                **self._training("pretrain", backbone, resolved, seed),
                augmentation=resolved.augmentation.pretraining,
                pretraining=resolved.pretraining,
            )
        )

    def finetune(self, backbone: str, recipe: str, seed: int, shot: int) -> str:
        resolved = self.recipe(recipe, backbone)
        return told(
            FinetuneStage(
                **self._training("finetune", backbone, resolved, seed),
                augmentation=resolved.augmentation.finetuning,
                finetuning=resolved.finetuning,
                shot=shot,
            )
        )

    def embed(self, backbone: str, recipe: str) -> str:
        return told(EmbedStage(**self._network("embed", backbone, self.recipe(recipe, backbone))))

    def evaluate(self, backbone: str, recipe: str) -> str:
        return told(
            EvaluateStage(
                stage_version=STAGE_VERSIONS["evaluate"],
                propagation=self.recipe(recipe, backbone).propagation,
            )
        )
