"""The recipes of recipes.yaml and compared.yaml, with what a scale changes of them."""

from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from epcore.config.compared import ComparedMethod, of_shot
from epcore.config.load import extend, laid_over, merge, read
from epcore.config.names import Name
from epcore.config.recipes import (
    BackboneInfo,
    ClassifierChoice,
    Recipe,
    RecipeSettings,
    RecipeSources,
    TrainingPhase,
)
from epcore.config.scale import Scale
from epcore.errors import UserError
from epcore.settings import pick, validate

# Recipe -> phase -> its candidates.
Selections = dict[str, dict[str, tuple[str, ...]]]


class Recipes:
    """How networks are trained and tested at a scale. All methods raise `UserError`."""

    def __init__(
        self, config: Path, scale: Scale, scale_file: str, backbones: Mapping[str, BackboneInfo]
    ) -> None:
        self.config, self.scale, self.scale_file = config, scale, scale_file
        self.backbones = backbones
        self.classifiers = read(config, "classifiers.yaml", dict[Name, ClassifierChoice])
        sources = read(config, "recipes.yaml", RecipeSources)
        self._protocols = sources.protocols
        self._recipes, self._selections = _with_candidates(
            sources.recipes, f"{config.name}/recipes.yaml"
        )
        keys = dict.fromkeys([*RecipeSettings.model_fields, "backbones"])
        for key in scale.recipe:  # the protocol is the recipe's own
            pick(keys, key, "key", f"{scale_file}, recipe")

    @cached_property
    def unusable(self) -> dict[str, str]:
        """Entries of classifiers.yaml that name a class of a user's -> why it cannot be imported.

        Tables leave out the rows of these entries, so that they stop nothing else.
        """
        problems = {}
        for name, choice in self.classifiers.items():
            path = choice.class_name
            if "." in path:
                from epcore.classifiers import import_classifier  # imports torch, as the class does

                try:
                    import_classifier(path, f"{self.config.name}/classifiers.yaml, {name}")
                except UserError as error:
                    problems[name] = str(error)
        return problems

    def is_usable(self, name: str | None) -> bool:
        """Whether a row's recipe has no classifier behind its + that cannot be imported."""
        return (name or "").partition("+")[2] not in self.unusable

    @property
    def names(self) -> list[str]:
        return list(self._recipes)

    def selection(self, recipe: str, phase: TrainingPhase) -> tuple[str, ...]:
        """The recipes of which a recipe takes the best on validation; none if it trains itself."""
        return self._selections.get(recipe.partition("+")[0], {}).get(phase, ())

    @cache  # noqa: B019 - it lives as long as the program
    def resolve(self, name: str, backbone: str) -> Recipe:
        """A recipe for a backbone: its protocol, then the scale's `recipe`, then its own keys.

        In each of the three, what stands under `backbones.<backbone>` goes over the rest.

        `<recipe>+<classifier>` tests the recipe's network with an entry of classifiers.yaml.
        """
        name, _, classifier = name.partition("+")
        if classifier:
            return self._tested_with(self.resolve(name, backbone), classifier)
        location = f"{self.config.name}/recipes.yaml"
        settings = extend(self._recipes, name, "recipe", location, dict)
        if "protocol" not in settings:
            raise UserError(
                f"{location}, recipes.{name}: the key 'protocol' is missing",
                "add it, or `extends:` with the name of a recipe that has it",
            )
        protocol, place = settings["protocol"], f"{location}, recipes.{name}"
        preset = extend(self._protocols, protocol, "protocol", place, dict)
        layers = (preset, self.scale.recipe, settings)
        place += f" (over protocols.{protocol} and {self.scale_file}, recipe)"
        for layer in layers:
            special = layer.get("backbones") or {}
            for name in validate(dict[str, dict[str, Any] | None], special, f"{place}, backbones"):
                pick(self.backbones, name, "backbone", f"{place}, backbones")
        return validate(Recipe, laid_over(layers, "backbones", backbone), place)

    def _tested_with(self, recipe: Recipe, classifier: str) -> Recipe:
        location = f"recipe <recipe>+{classifier}"
        choice = pick(self.classifiers, classifier, "entry of classifiers.yaml", location)
        tested = {"classifier": choice.classifier}
        testing = recipe.propagation_in("testing").model_copy(update=tested)
        phases = {**recipe.phases, "testing": testing}
        return recipe.model_copy(update={"phases": phases, "grid": choice.grid})

    def check(self, name: str, location: str) -> None:
        """Raises `UserError` unless the recipe exists, and the classifier behind its + does."""
        recipe, plus, classifier = name.partition("+")
        trained = {} if plus else self.compared
        pick({**self._recipes, **trained}, recipe, "recipe", location)
        if plus:
            pick(self.classifiers, classifier, "entry of classifiers.yaml", location)

    @cached_property
    def compared(self) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
        """Entry of compared.yaml -> its settings, and what the scale changes of them."""
        location, scale = f"{self.config.name}/compared.yaml", self.scale.compared
        sources = read(self.config, "compared.yaml", dict[Name, dict[str, Any]])
        entries = {name: extend(sources, name, "recipe", location, dict) for name in sources}
        for name, entry in entries.items():
            for key in ("method", "datasets"):
                validate(dict[str, Any], entry.get(key, {}), f"{location}, {name}.{key}")
        kinds = {name: entry.get("method", {}).get("name", "") for name, entry in entries.items()}
        for kind in scale.methods:
            place = f"{self.scale_file}, compared.methods"
            pick(dict.fromkeys(kinds.values()), kind, "method", place)
        shared = {"training": scale.training}
        return {
            name: (
                entry,
                merge(shared if "training" in entry else {}, scale.methods.get(kinds[name], {})),
            )
            for name, entry in entries.items()
        }

    def compared_place(self, name: str) -> str:
        """The place of the settings of an entry of compared.yaml, for messages."""
        return f"{self.config.name}/compared.yaml or {self.scale_file}, compared, {name}"

    def special_datasets(self, name: str) -> list[str]:
        """The data sets on which an entry of compared.yaml has settings of their own."""
        return list(merge(*self.compared[name]).get("datasets", {}))

    @cache  # noqa: B019
    def compared_method(self, name: str, dataset: str = "", shot: int = 1) -> ComparedMethod:
        """An entry of compared.yaml, with its settings on a data set and of a shot."""
        layers = pick(self.compared, name, "recipe", f"{self.config.name}/compared.yaml")
        advice = "; add it, or `extends:` with the name of an entry that has it"
        content = of_shot(laid_over(layers, "datasets", dataset), shot)
        place = self.compared_place(name) + (f", on {dataset}" if dataset else "")
        return validate(ComparedMethod, content, place, advice)


def _with_candidates(
    recipes: Mapping[str, dict[str, Any]], location: str
) -> tuple[dict[str, Any], Selections]:
    """Every recipe, and a recipe <recipe>-<name> for each candidate of one with `candidates`.

    Those of fine-tuning start from the pretraining that the recipe has chosen.
    """
    expanded: dict[str, Any] = {}
    selections: Selections = {}
    for name, settings in recipes.items():
        place = f"{location}, recipes.{name}.candidates"
        grid = extend(recipes, name, "recipe", location, dict).get("candidates", {})
        validate(dict[TrainingPhase, dict[Name, dict[str, Any]]], grid, place)
        expanded[name] = {key: value for key, value in settings.items() if key != "candidates"}
        candidates = {
            phase: tuple(f"{name}-{suffix}" for suffix in suffixes)
            for phase, suffixes in grid.items()
        }
        selections[name] = candidates
        for phase, suffixes in grid.items():
            for candidate, changes in zip(candidates[phase], suffixes.values(), strict=True):
                if candidate in recipes or candidate in expanded:
                    raise UserError(
                        f"{place}: a recipe {candidate!r} is there already",
                        "rename the candidate",
                    )
                described = f"a candidate of {name} for {phase}"
                expanded[candidate] = {"extends": name, "description": described, phase: changes}
                if phase == "finetuning" and "pretraining" in candidates:
                    selections[candidate] = {"pretraining": candidates["pretraining"]}
    return expanded, selections
