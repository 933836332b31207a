"""Accuracy of every frozen episode, from cached features, as a recipe's own test has it."""

from pathlib import Path

from epcore.evaluation.classifier_test import TestedFeatures, write_scores
from epcore.evaluation.config import EvaluateConfig
from epcore.files import Provenance


def run(config: EvaluateConfig, features: Path, episodes: Path, out: Path) -> None:
    """The stage `evaluate`: a CSV with the columns episode, accuracy.

    The meta has the classifier with all its settings, those that nobody set included.
    """
    provenance = Provenance("evaluate", config, [features, episodes])
    tested = TestedFeatures.load(features, episodes)
    results, facts = tested.classify(config)
    write_scores(out, {"accuracy": results.accuracies})
    provenance.write(out, episodes=len(tested.episodes), **facts)
