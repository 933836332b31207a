"""Trainings and tests: what their stages are told, and which recipes share them."""

import re
from functools import cache
from typing import Any

from epcore.plan import paths
from epcore.plan.load import pick
from epcore.plan.models import Backbone, Phase, Pretraining, Recipe, TrainingPhase
from epcore.plan.registry import Registry
from epcore.plan.stages import (
    EmbedStage,
    EvaluateStage,
    FinetuneStage,
    PretrainStage,
    SelectStage,
    Training,
    told,
)


class Runs(Registry):
    """A registry that knows what trains and tests a recipe's network.

    Recipes that tell a stage the same share what it makes: it carries the name of the first of
    them in recipes.yaml. So nothing is trained, embedded or tested twice.
    """

    def backbone(self, name: str) -> Backbone:
        """The backbone at this scale's width and depth."""
        size = pick(self.scale.backbones, name, "backbone", f"{self._scale_file}, backbones")
        architecture = self.backbones[name].architecture
        return Backbone(architecture=architecture, width=size.width, depth=size.depth)

    def _network(self, backbone: str, recipe: Recipe) -> dict[str, Any]:
        return {
            "backbone": self.backbone(backbone),
            "view": recipe.view,
            "precision": self.scale.precision,
        }

    def _training(self, backbone: str, recipe: Recipe, seed: int, phase: Phase) -> dict[str, Any]:
        return self._network(backbone, recipe) | {
            "seed": seed,
            "propagation": recipe.propagation_in(phase),
        }

    def _pretrain(self, backbone: str, recipe: str, seed: int) -> PretrainStage:
        """As the recipe says, whatever the data set."""
        resolved = self.recipe(recipe, backbone)
        return PretrainStage(
            **self._training(backbone, resolved, seed, "pretraining"),
            augmentation=resolved.augmentation.pretraining,
            pretraining=resolved.pretraining,
        )

    def pretraining(self, dataset: str, backbone: str, recipe: str) -> Pretraining:
        """Where rotations are classes, the paper's loss without L_r, on pictures as they are.

        Four rotated copies would give one picture the label of four classes, and the rotation
        head would ask for what the class says.
        """
        settings = self.recipe(recipe, backbone).pretraining
        if pick(self.datasets, dataset, "data set", "config/datasets.yaml").rotations_are_classes:
            without = {"rotated_copies": False, "rotation_weight": 0.0}
            return settings.model_copy(update=without)
        return settings

    def pretrain(self, dataset: str, backbone: str, recipe: str, seed: int) -> str:
        settings = self.pretraining(dataset, backbone, recipe)
        stage = self._pretrain(backbone, recipe, seed)
        return told(stage.model_copy(update={"pretraining": settings}))

    def finetune(self, backbone: str, recipe: str, seed: int, shot: int) -> str:
        resolved = self.recipe(recipe, backbone)
        return told(
            FinetuneStage(
                **self._training(backbone, resolved, seed, "finetuning"),
                augmentation=resolved.augmentation.finetuning,
                finetuning=resolved.finetuning,
                shot=shot,
            )
        )

    def select(self, recipe: str, checkpoint: str) -> str:
        return told(SelectStage(candidates=self.selection(recipe, phase_of(checkpoint))))

    def candidates(self, backbone: str, recipe: str, phase: TrainingPhase) -> list[str]:
        """The recipes that name the checkpoints of a recipe's candidates, in their order."""
        owner = self.pretraining_recipe if phase == "pretraining" else self.finetuning_recipe
        return [owner(backbone, candidate) for candidate in self.selection(recipe, phase)]

    def embed(self, backbone: str, recipe: str) -> str:
        return told(EmbedStage(**self._network(backbone, self.recipe(recipe, backbone))))

    def evaluate(self, backbone: str, recipe: str) -> str:
        return told(
            EvaluateStage(
                propagation=self.recipe(recipe, backbone).propagation_in("testing"),
            )
        )

    @cache  # noqa: B019 - a registry lives as long as the program
    def pretraining_recipe(self, backbone: str, recipe: str) -> str:
        """The recipe that names the pretrained checkpoint of a recipe, of every data set."""
        return self._first(
            lambda name: self.selection(name, "pretraining") or self._pretrain(backbone, name, 0),
            recipe,
        )

    @cache  # noqa: B019
    def finetuning_recipe(self, backbone: str, recipe: str) -> str:
        """The recipe that names the fine-tuned checkpoints of a recipe."""
        return self._first(
            lambda name: (
                self.pretraining_recipe(backbone, name),
                self.selection(name, "finetuning") or self.finetune(backbone, name, 0, 1),
            ),
            recipe,
        )

    @cache  # noqa: B019
    def scores_recipe(self, backbone: str, recipe: str) -> str:
        """The recipe that names the scores of a recipe."""
        return self._first(
            lambda name: (self.checkpoint(backbone, name, 1), self.evaluate(backbone, name)), recipe
        )

    def _first(self, key: Any, recipe: str) -> str:
        wanted = key(recipe)
        return next(name for name in self.recipes if key(name) == wanted)

    def checkpoint(self, backbone: str, recipe: str, shot: int) -> tuple[str, str]:
        """Recipe and file name of the checkpoint that tests a recipe on episodes of a shot."""
        if self.recipe(recipe, backbone).tested == "pretrained":
            return self.pretraining_recipe(backbone, recipe), "pretrain"
        return self.finetuning_recipe(backbone, recipe), f"finetune-{shot}shot"

    def scores(
        self, dataset: str, backbone: str, recipe: str, protocol: str, seed: int | None = None
    ) -> str:
        """The file of per-episode scores, of the first seed unless another is given."""
        owner = self.scores_recipe(backbone, recipe)
        place = self._place(dataset, backbone, owner, seed)
        return paths.SCORES.format(**place, protocol=protocol)

    def checkpoint_of(
        self, dataset: str, backbone: str, recipe: str, protocol: str, seed: int | None = None
    ) -> str:
        """The checkpoint that a recipe is tested with on a protocol."""
        return self._of_checkpoint(paths.CHECKPOINT, dataset, backbone, recipe, protocol, seed)

    def trainings_of(
        self, dataset: str, backbone: str, recipe: str, protocol: str, seed: int
    ) -> list[Training]:
        """What made the checkpoint that a recipe is tested with on a protocol."""
        owner, name = self.checkpoint(backbone, recipe, self.protocols[protocol].checkpoint_shot)
        return self.trainings(dataset, backbone, owner, {name}, seed)

    def features_of(
        self, dataset: str, backbone: str, recipe: str, protocol: str, seed: int | None = None
    ) -> str:
        """The features that a recipe is tested with on a protocol."""
        return self._of_checkpoint(paths.FEATURES, dataset, backbone, recipe, protocol, seed)

    def trainings(
        self, dataset: str, backbone: str, recipe: str, checkpoints: set[str], seed: int
    ) -> list[Training]:
        """A recipe's pretraining, then its fine-tunings from the fewest shots on."""
        shots = [re.fullmatch(r"finetune-(\d+)shot", name) for name in checkpoints]
        steps = [("pretrain", "pretraining", self.pretraining_recipe(backbone, recipe))]
        steps += [
            (f"finetune-{shot}shot", f"fine-tuning, {shot}-shot", recipe)
            for shot in sorted(int(found[1]) for found in shots if found)
        ]
        return [
            Training(
                seed=seed,
                recipe=recipe,
                phase=phase,
                trained_as=owner,
                checkpoint=paths.CHECKPOINT.format(
                    **self._place(dataset, backbone, owner, seed), checkpoint=checkpoint
                ),
            )
            for checkpoint, phase, owner in steps
        ]

    def _of_checkpoint(
        self,
        pattern: str,
        dataset: str,
        backbone: str,
        recipe: str,
        protocol: str,
        seed: int | None,
    ) -> str:
        owner, name = self.checkpoint(backbone, recipe, self.protocols[protocol].checkpoint_shot)
        return pattern.format(**self._place(dataset, backbone, owner, seed), checkpoint=name)

    def _place(
        self, dataset: str, backbone: str, recipe: str, seed: int | None
    ) -> dict[str, str | int]:
        return {
            "scale": self.scale_name,
            "dataset": dataset,
            "backbone": backbone,
            "recipe": recipe,
            "seed": self.seeds[0] if seed is None else seed,
        }


def phase_of(checkpoint: str) -> TrainingPhase:
    """What made a checkpoint, by its name."""
    return "pretraining" if checkpoint == "pretrain" else "finetuning"
