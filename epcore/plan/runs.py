"""Trainings and tests: their stages' configs, and which recipes share them."""

import contextlib
from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from epcore.config.recipes import Phase, Recipe, TrainingPhase
from epcore.errors import UserError
from epcore.evaluation.config import (
    BaseClassesConfig,
    ClassifierTest,
    EmbedConfig,
    EvaluateClassifiersConfig,
    EvaluateConfig,
)
from epcore.plan import paths
from epcore.plan.compared import Compared
from epcore.plan.registry import Registry
from epcore.plan.run import Run, TrainedNetwork
from epcore.report.config import ScoreColumn, Training
from epcore.settings import config_text, pick
from epcore.training.config import FinetuneConfig, PretrainConfig, Pretraining, SelectConfig


class Runs:
    """What trains and tests a recipe's network; methods named after a stage make its config.

    Recipes that tell a stage the same share what it makes: it carries the name of the first of
    them in recipes.yaml. So nothing is trained, embedded or tested twice.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry, self.compared = registry, Compared(registry)

    # -- stages -----------------------------------------------------------------------------------

    def _network(self, backbone: str, recipe: str) -> dict[str, Any]:
        view = self._registry.recipes.resolve(recipe, backbone).view
        resources = self._registry.scale.resources.embed
        return self._registry.network(self._registry.backbone(backbone), view, resources)

    def _training(self, backbone: str, recipe: Recipe, seed: int, phase: Phase) -> dict[str, Any]:
        built, resources = self._registry.backbone(backbone), self._registry.scale.resources
        return self._registry.network(built, recipe.view, resources) | {
            "seed": seed,
            "propagation": recipe.propagation_in(phase),
        }

    def _pretrain(self, backbone: str, recipe: str, seed: int) -> PretrainConfig:
        """The pretraining of a recipe before a data set changes it."""
        resolved = self._registry.recipes.resolve(recipe, backbone)
        return PretrainConfig(
            **self._training(backbone, resolved, seed, "pretraining"),
            augmentation=resolved.augmentation.pretraining,
            pretraining=resolved.pretraining,
        )

    def pretraining(self, dataset: str, backbone: str, recipe: str) -> Pretraining:
        """The pretraining settings; where rotations are classes, without L_r and rotated copies.

        Four rotated copies would give one picture the label of four classes, and the rotation
        head would ask for what the class says.
        """
        settings = self._registry.recipes.resolve(recipe, backbone).pretraining
        if self._registry.datasets[dataset].rotations_are_classes:
            without = {"rotated_copies": False, "rotation_weight": 0.0}
            return settings.model_copy(update=without)
        return settings

    def pretrain(self, dataset: str, backbone: str, recipe: str, seed: int) -> PretrainConfig:
        settings = self.pretraining(dataset, backbone, recipe)
        return self._pretrain(backbone, recipe, seed).model_copy(update={"pretraining": settings})

    def finetune(self, backbone: str, recipe: str, seed: int, shot: int) -> FinetuneConfig:
        resolved = self._registry.recipes.resolve(recipe, backbone)
        return FinetuneConfig(
            **self._training(backbone, resolved, seed, "finetuning"),
            augmentation=resolved.augmentation.finetuning,
            finetuning=resolved.finetuning,
            shot=shot,
        )

    def select(self, recipe: str, checkpoint: str) -> SelectConfig:
        return SelectConfig(
            candidates=self._registry.recipes.selection(recipe, phase_of(checkpoint))
        )

    def embed(self, backbone: str, recipe: str) -> EmbedConfig:
        return EmbedConfig(**self._network(backbone, recipe))

    def base_classes(self, backbone: str, recipe: str) -> BaseClassesConfig:
        return BaseClassesConfig(**self._network(backbone, recipe))

    def evaluate(self, backbone: str, recipe: str) -> EvaluateConfig:
        return EvaluateConfig(
            threads=self._registry.scale.resources.evaluate.threads,
            **dict(self._classifier_test(backbone, recipe)),
        )

    def evaluate_classifiers(
        self, backbone: str, recipe: str, classifiers: Iterable[str]
    ) -> EvaluateClassifiersConfig:
        return EvaluateClassifiersConfig(
            threads=self._registry.scale.resources.evaluate.threads,
            classifiers={
                name: self._classifier_test(backbone, f"{recipe}+{name}") for name in classifiers
            },
        )

    def _classifier_test(self, backbone: str, recipe: str) -> ClassifierTest:
        resolved = self._registry.recipes.resolve(recipe, backbone)
        return ClassifierTest(propagation=resolved.propagation_in("testing"), grid=resolved.grid)

    # -- what recipes share -----------------------------------------------------------------------

    def candidates(self, backbone: str, recipe: str, phase: TrainingPhase) -> list[str]:
        """The recipes that name the checkpoints of a recipe's candidates, in their order."""
        candidates = self._registry.recipes.selection(recipe, phase)
        return [self.owner(phase, backbone, candidate) for candidate in candidates]

    @cache  # noqa: B019 - a plan lives as long as the program
    def owner(self, phase: Phase, backbone: str, recipe: str) -> str:
        """The first recipe of recipes.yaml that a phase makes the same file for, of any data set.

        It names the file: the pretrained or fine-tuned checkpoint, or the scores.
        """
        key = self._sharing_key(phase, backbone, recipe)
        return self._owners(phase, backbone).get(key, recipe)

    @cache  # noqa: B019
    def _owners(self, phase: Phase, backbone: str) -> dict[Hashable, str]:
        """What recipes that share a file agree in -> the first of them.

        A recipe that cannot be resolved is no other's first; if a run uses it, it is told anyway.
        """
        owners: dict[Hashable, str] = {}
        for name in self._registry.recipes.names:
            with contextlib.suppress(UserError):
                owners.setdefault(self._sharing_key(phase, backbone, name), name)
        return owners

    def _sharing_key(self, phase: Phase, backbone: str, recipe: str) -> Hashable:
        """What two recipes that share the file of a phase agree in."""
        if phase == "testing":
            return self._tested(backbone, recipe, 1), config_text(self.evaluate(backbone, recipe))
        chosen_from = self._registry.recipes.selection(recipe, phase)
        if phase == "pretraining":
            return chosen_from or config_text(self._pretrain(backbone, recipe, 0))
        trained = chosen_from or config_text(self.finetune(backbone, recipe, 0, 1))
        return self.owner("pretraining", backbone, recipe), trained

    def _tested(self, backbone: str, recipe: str, shot: int) -> tuple[str, str]:
        """Recipe and file name of the checkpoint that tests a recipe on episodes of a shot."""
        if self._registry.recipes.resolve(recipe, backbone).tested == "pretrained":
            return self.owner("pretraining", backbone, recipe), "pretrain"
        return self.owner("finetuning", backbone, recipe), f"finetune-{shot}shot"

    # -- files ------------------------------------------------------------------------------------

    def path(self, pattern: str, of: Run | TrainedNetwork) -> str:
        """A file of a run or checkpoint, by its pattern in `epcore.plan.paths`."""
        return self._registry.path(pattern, **vars(of))

    @cache  # noqa: B019
    def scores(self, run: Run) -> ScoreColumn:
        """The per-episode accuracies of a test."""
        if self.compared.has(run.recipe):
            return ScoreColumn(file=self.path(paths.SCORES, run))
        owner = self.owner("testing", run.backbone, run.recipe)
        recipe, _, classifier = owner.partition("+")
        of_recipe = replace(run, recipe=recipe)
        if classifier:
            return ScoreColumn(file=self.path(paths.CLASSIFIED, of_recipe), column=classifier)
        return ScoreColumn(file=self.path(paths.SCORES, of_recipe))

    def base(self, run: Run) -> str:
        """The file of the base classes, which classifiers of classifiers.yaml may take."""
        return self.path(paths.BASE_CLASSES, self.checkpoint(run))

    def chosen_on(self, run: Run) -> str | None:
        """The protocol on which the settings of a run's classifier are chosen, if any are."""
        if not self._registry.recipes.resolve(run.recipe, run.backbone).grid:
            return None
        protocol = self._registry.protocols[run.protocol].chosen_on or f"val-{run.protocol}"
        location = f"recipe {run.recipe}, whose settings are chosen on validation episodes"
        pick(self._registry.protocols, protocol, "protocol", location)
        return protocol

    def validation(self, run: Run) -> str | None:
        """The file of the validation episodes on which a run's settings are chosen, if any are."""
        protocol = self.chosen_on(run)
        return protocol and self.path(paths.EPISODES, replace(run, protocol=protocol))

    def features(self, run: Run) -> str:
        """The features that a run is tested with."""
        return self.path(paths.FEATURES, self.checkpoint(run))

    def checkpoint(self, run: Run) -> TrainedNetwork:
        """The network that a run tests.

        Raises:
            UserError: if it would be fine-tuned, which its pretraining does not allow.
        """
        if run.recipe in self.compared.trained:
            return self.compared.checkpoint(run)
        if self.compared.has(run.recipe):
            start = self.start(run.dataset, run.backbone, run.recipe, run.seed)
            assert start is not None  # as the entry has no training
            return start
        shot = self._registry.protocols[run.protocol].checkpoint_shot
        owner, name = self._tested(run.backbone, run.recipe, shot)
        recipe = self._registry.recipes.resolve(run.recipe, run.backbone)
        if name != "pretrain" and recipe.pretraining.heads == "cosine":
            raise UserError(
                f"recipe {run.recipe}: a network with `heads: cosine` is not fine-tuned, as "
                "the loss over base classes has a linear layer",
                "set `tested: pretrained`",
            )
        if name != "pretrain" and recipe.pretraining.with_validation:
            raise UserError(
                f"recipe {run.recipe}: fine-tuning chooses an epoch on validation classes, which "
                "`with_validation` has trained on",
                "set `tested: pretrained`",
            )
        return TrainedNetwork(run.dataset, run.backbone, owner, run.seed, name)

    def trained(self, run: Run) -> str:
        """The file of the network that a run tests."""
        return self.path(paths.CHECKPOINT, self.checkpoint(run))

    def pretrained(self, of: Run | TrainedNetwork) -> TrainedNetwork:
        """The pretrained network of a run, or behind a checkpoint."""
        owner = self.owner("pretraining", of.backbone, of.recipe)
        return TrainedNetwork(of.dataset, of.backbone, owner, of.seed, "pretrain")

    def start(self, dataset: str, backbone: str, recipe: str, seed: int) -> TrainedNetwork | None:
        """The pretrained network that a compared method starts from, if it starts from one.

        Raises:
            UserError: if it was trained on the classes that the method's epoch is chosen on.
        """
        method = self._registry.recipes.compared_method(recipe, dataset)
        start = method.pretrained
        if start is None:
            return None
        if method.training and self.pretraining(dataset, backbone, start).with_validation:
            raise UserError(
                f"recipe {recipe}: its training chooses an epoch on validation classes, which the "
                f"pretraining of {start} has trained on",
                "set `pretrained` to another recipe",
            )
        return self.pretrained(TrainedNetwork(dataset, backbone, start, seed, "pretrain"))

    def start_files(self, dataset: str, backbone: str, recipe: str, seed: int) -> list[str]:
        """The checkpoint that a compared method starts from: a list of one, or of none."""
        start = self.start(dataset, backbone, recipe, seed)
        return [self.path(paths.CHECKPOINT, start)] if start else []

    def trainings(self, checkpoint: TrainedNetwork) -> list[Training]:
        """What made a checkpoint: its pretraining and, behind it, its fine-tuning."""
        if self.compared.has(checkpoint.recipe):
            of = (checkpoint.dataset, checkpoint.backbone, checkpoint.recipe, checkpoint.seed)
            start = self.start(*of)
            steps = [("pretraining", start)] if start else []
            steps.append((f"episodes, {checkpoint.shot}-shot", checkpoint))
        else:
            steps = [("pretraining", self.pretrained(checkpoint))]
            if checkpoint.shot:
                steps.append((f"fine-tuning, {checkpoint.shot}-shot", checkpoint))
        return [
            Training(
                seed=step.seed,
                recipe=checkpoint.recipe,
                phase=phase,
                trained_as=step.recipe,
                checkpoint=self.path(paths.CHECKPOINT, step),
            )
            for phase, step in steps
        ]


def phase_of(checkpoint: str) -> TrainingPhase:
    """What made a checkpoint, by its name."""
    return "pretraining" if checkpoint == "pretrain" else "finetuning"
