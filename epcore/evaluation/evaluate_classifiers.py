"""Accuracy of every frozen episode with each of several classifiers, from the same features."""

from pathlib import Path

from epcore.evaluation.classifier_test import TestedFeatures, write_scores
from epcore.evaluation.config import EvaluateClassifiersConfig
from epcore.files import Provenance


def run(
    config: EvaluateClassifiersConfig,
    features: Path,
    base: Path,
    episodes: Path,
    out: Path,
    validation: Path | None = None,
) -> None:
    """The stage `evaluate-classifiers`: a CSV with the column episode and one for each classifier.

    Settings of a classifier that are to be chosen are chosen on the `validation` episodes alone.
    The meta has each classifier with all its settings.
    """
    inputs = [file for file in (features, base, validation, episodes) if file is not None]
    provenance = Provenance("evaluate-classifiers", config, inputs)
    tested = TestedFeatures.load(features, episodes, base, validation)
    accuracies, facts = {}, {}
    for name, test in config.classifiers.items():
        results, facts[name] = tested.classify(test)
        accuracies[name] = results.accuracies
    write_scores(out, accuracies)
    provenance.write(out, episodes=len(tested.episodes), classifiers=facts)
