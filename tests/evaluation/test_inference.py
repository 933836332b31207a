"""Embedding propagation in front of every classifier, and mistakes that are told before a run."""

import numpy as np
import pytest
import torch
from episode_batches import batch_of
from plans import plan_of
from reference import embeddings, propagator

from epcore.classifiers import CLASSIFIERS
from epcore.commands.check_methods import check_methods
from epcore.errors import UserError
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.config import Propagation
from epcore.evaluation.inference import Inference
from epcore.plan import Plan

WAY, SHOT, QUERIES = 3, 2, 9


def settings(**changes):
    official = plan_of("demo").registry.recipes.resolve("epnet", "conv4").propagation
    return Propagation(**official.model_dump() | changes)


def inference(classifier, embedding=True):
    return Inference(settings(classifier=classifier, embedding=embedding))


def points(unlabeled=0):
    shape = (4, WAY * SHOT + QUERIES + unlabeled, 5)
    return np.abs(np.random.default_rng(0).normal(size=shape))


MEAN = np.array([0.2, 0.9, 0.4, 1.1, 0.6])


def episodes(values, mean=MEAN):
    weights = torch.from_numpy(np.random.default_rng(1).normal(size=(7, 5)))
    points, mean = torch.from_numpy(values), torch.from_numpy(mean)
    return batch_of(points, WAY, SHOT, QUERIES, mean, weights)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_sees_what_was_propagated_over_all_images_of_an_episode(name):
    unlabeled = 6 if inference(name).classifier.needs.unlabeled else 0
    features = points(unlabeled)
    propagated = np.stack([embeddings(episode) for episode in features])
    means = np.stack([propagator(each, 0.5) @ np.tile(MEAN, (len(each), 1)) for each in features])
    found = inference(name).scores(episodes(features))
    expected = inference(name, embedding=False).scores(episodes(propagated, means))
    torch.testing.assert_close(found, expected)
    raw = inference(name, embedding=False).scores(episodes(features))
    assert not torch.allclose(found, raw, rtol=1e-3)


def test_unlabeled_images_are_refused_unless_they_are_taken():
    beside_unlabeled = episodes(points(unlabeled=6))
    scores = inference("label-propagation").scores(beside_unlabeled)
    assert scores.shape == (4, QUERIES, WAY)
    with pytest.raises(UserError, match="the recipe: the classifier prototypes takes no unlabeled"):
        inference("prototypes").scores(beside_unlabeled)


def test_a_classifier_takes_the_recipes_settings_unless_it_has_its_own():
    shared = inference("label-propagation").classifier
    own = inference({"name": "label-propagation", "label_alpha": 0.7}).classifier
    assert (shared.label_alpha, own.label_alpha) == (0.2, 0.7)
    assert own == shared.model_copy(update={"label_alpha": 0.7})


def test_a_name_and_a_mapping_of_nothing_but_the_name_are_one_recipe():
    assert settings(classifier={"name": "prototypes"}) == settings(classifier="prototypes")


def test_a_propagated_base_mean_is_taken_from_each_image():
    """By hand: with EP and center-base the class means are those of P (X - 1 m)."""
    features = points()
    named = {"name": "prototypes", "preprocessing": ["center-base"]}
    found = inference(named).scores(episodes(features))
    for episode, scores in zip(features, found.numpy(), strict=True):
        embedded = propagator(episode, 0.5) @ (episode - MEAN)
        means = embedded[: WAY * SHOT].reshape(WAY, SHOT, 5).mean(axis=1)
        queries = embedded[WAY * SHOT :]
        expected = -((queries[:, None] - means) ** 2).sum(axis=2) / np.sqrt(5)
        np.testing.assert_allclose(scores, expected, rtol=1e-9)


# -- before anything runs --------------------------------------------------------------------------


def check_all(plan):
    check_methods(plan, plan.registry.recipes.names)


def complaint(config, old, new):
    file = config / "recipes.yaml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        check_all(Plan(config, "demo"))
    return str(caught.value)


@pytest.mark.parametrize("scale", ["demo", "small", "paper"])
def test_the_projects_own_recipes_have_no_mistake(scale):
    check_all(plan_of(scale))


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("label_alfa: 0.3", "unknown key 'label_alfa'; did you mean 'label_alpha'?"),
        ("label_alpha: 1", "label_alpha: Input should be less than 1, got 1"),
    ],
)
def test_a_wrong_setting_is_told_with_its_recipe_and_classifier(config, setting, said):
    classifier = f"classifier: {{name: label-propagation, {setting}}}"
    own = f"  own: {{description: of mine, extends: net, propagation: {{{classifier}}}}}\n"
    message = complaint(config, "recipes:\n", f"recipes:\n{own}")
    where = "config/recipes.yaml, recipe own, classifier label-propagation"
    assert message == f"{where}: {said}"


def test_a_row_with_unlabeled_images_needs_a_classifier_that_takes_them(config):
    message = complaint(
        config,
        "    extends: epnet\n    propagation: {embedding: false}",
        "    extends: epnet\n    propagation: {embedding: false, classifier: prototypes}",
    )
    assert message.startswith("config/recipes.yaml, recipe net on 5way-")
    assert "the classifier prototypes takes no unlabeled images" in message
    assert "\n" not in message


def test_a_network_is_not_fine_tuned_through_a_classifier_without_a_gradient(config):
    """It may be tested with it, and pretrained: validation takes no gradient."""
    name = next(n for n in CLASSIFIERS if inference(n).classifier.needs.frozen_features)
    own = (
        "  own: {{description: of mine, extends: net, tested: {}, "
        "phases: {{{}: {{classifier: {}}}}}}}\n"
    )
    message = complaint(
        config, "recipes:\n", "recipes:\n" + own.format("finetuned", "finetuning", name)
    )
    assert message == (
        f"config/recipes.yaml, recipe own: no network can be fine-tuned through the classifier "
        f"{name}, whose scores have no gradient; name another one in phases.finetuning, or give "
        "`tested: pretrained`"
    )
    file = config / "recipes.yaml"
    text = file.read_text(encoding="utf-8")
    for tested, phase in (
        ("finetuned", "testing"),
        ("finetuned", "pretraining"),
        ("pretrained", "finetuning"),
    ):
        good = text.replace(
            own.format("finetuned", "finetuning", name), own.format(tested, phase, name), 1
        )
        file.write_text(good, encoding="utf-8")
        check_all(Plan(config, "demo"))


def test_weights_of_a_cosine_layer_are_no_base_weights(config):
    """Their lengths mean nothing; the base mean of such a network is one."""
    file = config / "tables/classifiers.yaml"
    text = file.read_text(encoding="utf-8")
    assert "{recipe: net, baseline" in text
    changed = text.replace("{recipe: net, baseline", "{recipe: cc-rot, baseline")
    file.write_text(changed, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        check_all(Plan(config, "demo"))
    assert "recipe cc-rot+discriminative on " in str(caught.value)
    assert "and the recipe has `heads: cosine`; choose another" in str(caught.value)


def test_a_wrong_setting_of_a_grid_is_told_with_its_entry(config):
    file = config / "classifiers.yaml"
    text = file.read_text(encoding="utf-8")
    own = "own: {label: own, classifier: ridge, grid: {regularization: [1, -1]}}\n"
    file.write_text(text + own, encoding="utf-8")
    with pytest.raises(
        UserError, match=r"config/classifiers\.yaml, own, classifier ridge: regular"
    ):
        check_all(Plan(config, "demo"))


@pytest.mark.parametrize(
    ("file", "old"),
    [("compared.yaml", "steps: 5, "), ("scales/demo.yaml", "inner_rate: ")],
)
def test_a_wrong_option_of_a_compared_method_is_told_with_its_files(config, file, old):
    text = (config / file).read_text(encoding="utf-8")
    assert old in text
    (config / file).write_text(text.replace(old, f"inner_rat: 1, {old}"), encoding="utf-8")
    where = r"config/compared\.yaml or config/scales/demo\.yaml, compared, maml, method"
    with pytest.raises(
        UserError, match=f"^{where}: unknown key 'inner_rat'; did you mean 'inner_rate'"
    ):
        check_all(Plan(config, "demo"))


BASE = BaseClasses(np.zeros(3, np.float32), np.ones((4, 3), np.float32))


@pytest.mark.parametrize(
    ("classifier", "base", "said"),
    [
        ({"name": "prototypes", "preprocessing": ["power"]}, BASE, "takes the root of features"),
        (
            {"name": "prototypes", "preprocessing": ["center-base"]},
            None,
            "takes the mean feature of .* give the array base_mean in .* or --base",
        ),
        ("discriminative", None, "takes the weights .* give the array base_weights in .* --base"),
    ],
)
def test_what_a_classifier_needs_and_there_is_not_is_told_before_it_runs(classifier, base, said):
    found = inference(classifier)
    with pytest.raises(UserError, match=f"the recipe: the classifier [a-z-]+ {said}"):
        found.check(torch.tensor([[1.0, -1, 0]]), base)
    inference("prototypes").check(torch.tensor([[1.0, -1, 0]]), None)


@pytest.mark.parametrize(
    ("classifier", "embedding", "unlabeled", "said"),
    [
        ("prototypes", False, False, ""),
        ("prototypes", True, False, "T"),
        ("pt-map", False, False, "T B"),
        ("soft-k-means", False, False, "T S"),
        ("soft-k-means", False, True, "S"),
        ("soft-k-means", True, True, "T S"),
        ("label-propagation", False, True, "T S"),
        ("balanced-soft-k-means", False, True, "S B"),
        ("laplacian-shot", False, False, "T B"),
        ({"name": "laplacian-shot", "rectification": "none"}, False, False, "T"),
        ({"name": "tim", "marginal_weight": 0}, False, False, "T"),
        ({"name": "prototypes", "preprocessing": ["center-split"]}, False, False, "T B"),
    ],
)
def test_what_is_assumed_follows_from_method_propagation_and_episodes(
    classifier, embedding, unlabeled, said
):
    assert inference(classifier, embedding).assumptions(unlabeled) == said
