"""The methods of compared.yaml: their stages' configs."""

from functools import cache, cached_property
from typing import Any

from epcore.config.compared import ComparedMethod
from epcore.config.load import merge
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

    def _network(
        self, backbone: str, method: ComparedMethod, resources: JobResources
    ) -> dict[str, Any]:
        """What the configs of a method say of its network.

        A network that begins pretrained sees images as in the tests of its pretraining.
        """
        registry, start = self._registry, method.pretrained
        view = registry.recipes.resolve(start, backbone).view if start else WHOLE
        return registry.network(registry.backbone(backbone), view, resources)

    def meta_train(
        self, dataset: str, backbone: str, recipe: str, seed: int, shot: int
    ) -> MetaTrainConfig:
        method = self._registry.recipes.compared_method(recipe, dataset, shot)
        return MetaTrainConfig(
            **self._network(backbone, method, self._registry.scale.resources),
            method=method.method,
            training=method.training,
            shot=shot,
            seed=seed,
        )

    def meta_test(self, dataset: str, backbone: str, recipe: str, protocol: str) -> MetaTestConfig:
        tested = self._registry.protocols[protocol]
        shot = tested.checkpoint_shot
        method = self._registry.recipes.compared_method(recipe, dataset, shot)
        return MetaTestConfig(
            **self._network(backbone, method, self._registry.scale.resources.embed),
            method=method.method,
            way=tested.way,
            batch_statistics=method.batch_statistics,
            episodes=method.episodes,
        )

    @cached_property
    def trained(self) -> list[str]:
        """The recipes that are trained on episodes; others are pretrained, and tuned in a test."""
        recipes = self._registry.recipes
        return [name for name in recipes.compared if recipes.compared_method(name).training]

    # -- files ------------------------------------------------------------------------------------

    @cache  # noqa: B019 - a plan lives as long as the program
    def trained_as(self, recipe: str) -> str:
        """The first entry with the same training, which names the checkpoints."""

        def training(name: str) -> dict[str, Any]:
            whole = merge(*entries[name])
            of_test = ("description", "batch_statistics", "episodes")
            return {key: value for key, value in whole.items() if key not in of_test}

        entries = self._registry.recipes.compared
        return next(name for name in entries if training(name) == training(recipe))

    def validation(self, recipe: str, shot: int) -> str:
        """The protocol on whose episodes the best epoch is chosen."""
        method = self._registry.recipes.compared_method(recipe, shot=shot)
        assert method.training is not None
        protocol = f"5way-{shot}shot" + ("-u20" if method.training.unlabeled else "")
        return protocol if method.selected_on == "novel" else f"val-{protocol}"

    def checkpoint(self, run: Run) -> TrainedNetwork:
        """The network that a run of a trained method tests."""
        shot = self._registry.protocols[run.protocol].checkpoint_shot
        owner = self.trained_as(run.recipe)
        return TrainedNetwork(run.dataset, run.backbone, owner, run.seed, f"meta-{shot}shot")
