"""Methods that are trained on episodes from random weights: their stages' configs."""

from functools import cache
from typing import Any

from epcore.config.resources import JobResources
from epcore.data.config import View
from epcore.evaluation.config import MetaTestConfig
from epcore.plan.registry import Registry
from epcore.plan.run import Run, TrainedNetwork
from epcore.training.config import MetaTrainConfig

WHOLE = View.model_validate({"resize": 1, "crop": 1})


class Compared:
    """The recipes of compared.yaml; methods named after a stage make its config."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def has(self, recipe: str) -> bool:
        """Whether a recipe is an entry of compared.yaml."""
        return recipe in self._registry.recipes.compared

    # -- stages -----------------------------------------------------------------------------------

    def _network(self, backbone: str, resources: JobResources) -> dict[str, Any]:
        return self._registry.network(self._registry.backbone(backbone), WHOLE, resources)

    def meta_train(
        self, dataset: str, backbone: str, recipe: str, seed: int, shot: int
    ) -> MetaTrainConfig:
        chosen = self._registry.recipes.compared_method(recipe)
        return MetaTrainConfig(
            **self._network(backbone, self._registry.scale.resources),
            method=chosen.method,
            training=chosen.training_on.get(dataset, chosen.training).of_shot(shot),
            shot=shot,
            seed=seed,
        )

    def meta_test(self, backbone: str, recipe: str, protocol: str) -> MetaTestConfig:
        chosen = self._registry.recipes.compared_method(recipe)
        return MetaTestConfig(
            **self._network(backbone, self._registry.scale.resources.embed),
            method=chosen.method,
            way=self._registry.protocols[protocol].way,
            batch_statistics=chosen.batch_statistics,
        )

    # -- files ------------------------------------------------------------------------------------

    @cache  # noqa: B019 - a plan lives as long as the program
    def trained_as(self, recipe: str) -> str:
        """The first entry with the same training, which names the checkpoints."""

        def training(name: str) -> object:
            chosen = self._registry.recipes.compared_method(name)
            return chosen.method, chosen.training, chosen.training_on, chosen.selected_on

        wanted = training(recipe)
        return next(name for name in self._registry.recipes.compared if training(name) == wanted)

    def validation(self, recipe: str, shot: int) -> str:
        """The protocol on whose episodes the best epoch is chosen."""
        split = self._registry.recipes.compared_method(recipe).selected_on
        return f"5way-{shot}shot" if split == "novel" else f"val-5way-{shot}shot"

    def checkpoint(self, run: Run) -> TrainedNetwork:
        """The network that a run tests."""
        shot = self._registry.protocols[run.protocol].checkpoint_shot
        owner = self.trained_as(run.recipe)
        return TrainedNetwork(run.dataset, run.backbone, owner, run.seed, f"meta-{shot}shot")
