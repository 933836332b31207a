"""Classifiers of the queries of few-shot episodes, on the features of a network: one file each.

A classifier is a class that extends `EpisodeClassifier`. Recipes call it by its name in
`CLASSIFIERS`, `classifier: tim`, or with settings for its fields, `{name: tim, steps: 20}`. A class
that is not of this package is called by its dotted path, `{name: mypackage.module.MyClassifier}`.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from epcore.classifiers.alpha_tim import AlphaTIM
from epcore.classifiers.balanced_soft_k_means import BalancedSoftKMeans
from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.baseline import Baseline
from epcore.classifiers.baseline_plus_plus import BaselinePlusPlus
from epcore.classifiers.bd_cspn import BDCSPN
from epcore.classifiers.cosine_matching import CosineMatching
from epcore.classifiers.cosine_means import CosineMeans
from epcore.classifiers.discriminative import Discriminative
from epcore.classifiers.ease import EASE
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.few_shot import FewShotClassifier, NotFittedError
from epcore.classifiers.ilpc import ILPC
from epcore.classifiers.knn_label_propagation import KNNLabelPropagation
from epcore.classifiers.label_propagation import LabelPropagationClassifier
from epcore.classifiers.laplacian_shot import LaplacianShot
from epcore.classifiers.logistic_regression import LogisticRegression
from epcore.classifiers.masked_soft_k_means import MaskedSoftKMeans
from epcore.classifiers.preprocessing import Step
from epcore.classifiers.prototypes import Prototypes
from epcore.classifiers.pt_map import PTMAP
from epcore.classifiers.ridge import Ridge
from epcore.classifiers.self_training import SelfTraining
from epcore.classifiers.soft_k_means import SoftKMeans
from epcore.classifiers.svm import SVM
from epcore.classifiers.tim import TIM
from epcore.classifiers.transmatch_head import TransMatchHead
from epcore.errors import UserError
from epcore.settings import pick, validate

__all__ = [
    "BDCSPN",
    "CLASSIFIERS",
    "EASE",
    "ILPC",
    "PTMAP",
    "SVM",
    "TIM",
    "AlphaTIM",
    "BalancedSoftKMeans",
    "Baseline",
    "BaselinePlusPlus",
    "CosineMatching",
    "CosineMeans",
    "Discriminative",
    "EpisodeBatch",
    "EpisodeClassifier",
    "FewShotClassifier",
    "KNNLabelPropagation",
    "LabelPropagationClassifier",
    "LaplacianShot",
    "LogisticRegression",
    "MaskedSoftKMeans",
    "Needs",
    "NotFittedError",
    "Prototypes",
    "Ridge",
    "SelfTraining",
    "SoftKMeans",
    "Step",
    "TransMatchHead",
    "import_classifier",
    "load_classifier",
]

CLASSIFIERS: dict[str, type[EpisodeClassifier]] = {
    "alpha-tim": AlphaTIM,
    "balanced-soft-k-means": BalancedSoftKMeans,
    "baseline": Baseline,
    "baseline-plus-plus": BaselinePlusPlus,
    "bd-cspn": BDCSPN,
    "cosine-matching": CosineMatching,
    "cosine-means": CosineMeans,
    "discriminative": Discriminative,
    "ease": EASE,
    "ilpc": ILPC,
    "knn-label-propagation": KNNLabelPropagation,
    "label-propagation": LabelPropagationClassifier,
    "laplacian-shot": LaplacianShot,
    "logistic-regression": LogisticRegression,
    "masked-soft-k-means": MaskedSoftKMeans,
    "prototypes": Prototypes,
    "pt-map": PTMAP,
    "ridge": Ridge,
    "self-training": SelfTraining,
    "soft-k-means": SoftKMeans,
    "svm": SVM,
    "tim": TIM,
    "transmatch-head": TransMatchHead,
}


def load_classifier(
    classifier: str | Mapping[str, Any], shared: Mapping[str, Any], location: str
) -> EpisodeClassifier:
    """The classifier of a name, or of a mapping of its `name` and its settings.

    shared: settings of embedding propagation, such as `bandwidth`; those that the classifier has a
    field for are its own too, unless the mapping says otherwise.

    Raises:
        UserError: for a classifier that does not exist or cannot be imported, or settings that it
            does not have; it begins with `location`.
    """
    settings_given = {"name": classifier} if isinstance(classifier, str) else dict(classifier)
    name = settings_given.pop("name")
    kind = (
        import_classifier(name, location)
        if "." in name
        else pick(CLASSIFIERS, name, "classifier", location)
    )
    settings = {key: value for key, value in shared.items() if key in kind.model_fields}
    return validate(kind, settings | settings_given, f"{location}, classifier {name}")


def import_classifier(path: str, location: str) -> type[EpisodeClassifier]:
    """The class at a dotted path, which may begin with a file of the working folder.

    Raises:
        UserError: if Python cannot import it, or it is no complete classifier.
    """
    module, _, name = path.rpartition(".")
    if (folder := str(Path.cwd())) not in sys.path:  # where Snakemake and its jobs run
        sys.path.append(folder)
    try:
        kind = getattr(import_module(module), name)
    except Exception as error:  # anything may be wrong in somebody's file
        problem = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(
            f"{location}: the classifier {path} cannot be imported ({problem})"
        ) from None
    if not (isinstance(kind, type) and issubclass(kind, EpisodeClassifier)):
        raise UserError(f"{location}: {path} is no class that extends EpisodeClassifier")
    if missing := sorted(kind.__abstractmethods__):
        raise UserError(f"{location}: the classifier {path} has no {missing[0]}()", "write it")
    return kind
