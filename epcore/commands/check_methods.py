"""Checks the settings that only torch can check, when a run begins."""

from collections.abc import Sequence
from itertools import product
from typing import get_args

from epcore.classifiers import load_classifier
from epcore.config.recipes import Phase
from epcore.errors import UserError
from epcore.evaluation.inference import Inference, settings_of_grid
from epcore.methods import method_of
from epcore.plan import Plan


def check_methods(plan: Plan, recipes: Sequence[str]) -> None:
    """Checks what a plan cannot, as that takes torch: settings of methods, unlabeled images.

    recipes: those that are checked; those that a run uses are `plan.tested.recipes`.

    Raises:
        UserError: that names the recipe, and the protocol of a table or figure.
    """
    recipes_of_plan, protocols = plan.registry.recipes, plan.registry.protocols.values()
    shots = sorted({protocol.checkpoint_shot for protocol in protocols})
    for name in recipes_of_plan.compared:
        place = recipes_of_plan.compared_place(name)
        for dataset, shot in product(("", *recipes_of_plan.special_datasets(name)), shots):
            method = recipes_of_plan.compared_method(name, dataset, shot)
            kind, _ = method_of(method.method, place)
        if kind.pretrained != (method.pretrained is not None):
            starts = "a pretrained network" if kind.pretrained else "random weights"
            raise UserError(
                f"{place}: {method.method['name']} starts from {starts}",
                "set `pretrained` to a recipe" if kind.pretrained else "remove `pretrained`",
            )
        if kind.trained != (method.training is not None):
            trained = "is trained on episodes" if kind.trained else "is tuned in its test alone"
            raise UserError(
                f"{place}: {method.method['name']} {trained}",
                "add `training`" if kind.trained else "remove `training`",
            )
    location = f"{plan.registry.config.name}/recipes.yaml, recipe {{}}".format
    for name in recipes:
        for backbone in plan.registry.scale.backbones:
            recipe = plan.registry.recipes.resolve(name, backbone)
            for phase in get_args(Phase):
                inference = Inference(recipe.propagation_in(phase), location(name))
                if phase == "finetuning" and recipe.tested == "finetuned":
                    inference.check_trainable()
    if not recipes:
        return  # the scale has tables of ImageNet-FS alone
    any_recipe = plan.registry.recipes.resolve(recipes[0], next(iter(plan.registry.backbones)))
    for name, choice in plan.registry.recipes.classifiers.items():
        if name in plan.registry.recipes.unusable:
            continue
        settings = any_recipe.propagation.model_copy(update={"classifier": choice.classifier})
        place = f"{plan.registry.config.name}/classifiers.yaml, {name}"
        for _, tested in settings_of_grid(settings, choice.grid):
            load_classifier(tested.classifier, dict(tested), place)
    for run in plan.tested.runs:
        episodes = plan.registry.protocols[run.protocol]
        recipe = plan.registry.recipes.resolve(run.recipe, run.backbone)
        place = f"{location(run.recipe)} on {run.protocol}"
        inference = Inference(recipe.propagation_in("testing"), place)
        inference.check_unlabeled(episodes.has_unlabeled)
        cosine = recipe.pretraining.heads == "cosine"
        if inference.classifier.needs.base_weights and cosine:
            raise UserError(
                f"{place}: the classifier {inference.classifier.name} takes the weights of a "
                "linear layer over the base classes, and the recipe has `heads: cosine`",
                "choose another classifier, or linear heads",
            )
