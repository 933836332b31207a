"""Classifiers on anyone's features: draws episodes, freezes them, prints a table."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from epcore.commands.labeled import Labeled
from epcore.config.load import DEFAULTS, parse_yaml, read
from epcore.config.recipes import ClassifierChoice, RecipeSources
from epcore.config.scale import Protocol
from epcore.data.episodes import Episodes, sample
from epcore.errors import UserError
from epcore.evaluation.confidence import auroc, calibration_error, log_doubts
from epcore.evaluation.config import Propagation
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import scores_of
from epcore.propagation import DegenerateFeaturesError
from epcore.report.statistics import student
from epcore.settings import pick, validate

EP = "ep+"  # before a classifier's name: embedding propagation in front
WORDS = {"T": "transductive", "S": "takes unlabeled images", "B": "assumes balanced classes"}


def methods_of(classifiers: Sequence[str], settings: Path) -> dict[str, Inference]:
    """Classifiers by their names in classifiers.yaml, or as mappings of a name and settings.

    "ep+" before one puts embedding propagation in front of it. Where none is named, these are all,
    after the paper's own: label propagation with embedding propagation in front. Settings of both
    propagations are those of the authors' code.

    Raises:
        UserError: for an unknown name or setting.
    """
    entries = read(settings, "classifiers.yaml", dict[str, ClassifierChoice])
    official = read(DEFAULTS, "recipes.yaml", RecipeSources).protocols["official"]["propagation"]
    methods = {}
    for text in classifiers or (
        *(EP + name for name in entries if name == "label-propagation"),
        *entries,
    ):
        location, entry = f"--classifier {text}", text.removeprefix(EP)
        if entry.lstrip().startswith("{"):
            mapping = parse_yaml(entry, location)
            name = str(mapping.get("name"))
            if name in entries:
                entry_classifier = entries[name].classifier
                if not isinstance(entry_classifier, dict):
                    entry_classifier = {"name": entry_classifier}
                mapping = entry_classifier | mapping | {"name": entry_classifier["name"]}
            classifier = validate(ClassifierChoice, {"label": "", "classifier": mapping}, location)
        else:
            classifier = pick(entries, entry, "entry of classifiers.yaml", "--classifier")
        tested = {"embedding": entry != text, "classifier": classifier.classifier}
        propagation = Propagation(**official | tested)
        try:
            methods[text] = Inference(propagation, location)
        except UserError as error:
            if classifiers:
                raise
            _note(f"{error}; it is left out")
    return methods


def episodes_of(path: Path, labeled: Labeled, protocol: Protocol, seed: int) -> Episodes:
    """Episodes of a file, which are drawn and written first if the file does not exist.

    Raises:
        UserError: if they cannot be drawn, or those of the file are of other features.
    """
    if path.exists():
        _note(f"{path} was there: its episodes are used, and no option of the draw has an effect")
    else:
        drawing = protocol.model_dump(exclude={"split", "finetuned_shot", "chosen_on"})
        sample(labeled.pool, seed=seed, **drawing).save(path)
    episodes = Episodes.load(path)
    if not episodes.are_of(labeled.features.labels):
        raise UserError(
            f"{path} was drawn for other features or labels than those of {labeled.pool.name}",
            "name another file with --episodes, or delete it, and episodes are drawn into it",
        )
    return episodes


def run(
    features: Path,
    classifier: list[str],
    episodes: Path | None,
    settings: Path,
    count: int,
    seed: int,
    open_set: int,
    **numbers: Any,
) -> None:
    """The command `classify`."""
    protocol = validate(
        Protocol, {"split": "novel", "episodes": count, **numbers}, "epcore classify"
    )
    if open_set and protocol.dirichlet is not None:
        raise UserError("--open-set and --dirichlet exclude one another", "leave out one of them")
    labeled, methods = Labeled.load(features), methods_of(classifier, settings)
    kind = f"{protocol.way}way-{protocol.shot}shot-{protocol.queries}queries"
    if protocol.has_unlabeled:
        kind += f"-u{protocol.unlabeled}"
    if protocol.dirichlet is not None:
        kind += f"-dirichlet-{protocol.dirichlet:g}"
    if open_set:
        kind += f"-open{open_set}"
    kind += f"-{count}"
    frozen = episodes or features.with_name(f"{features.stem}-{kind}.npz")
    drawing = protocol.model_copy(update={"way": protocol.way + open_set})
    drawn = episodes_of(frozen, labeled, drawing, seed)
    fitting, missing = {}, []
    for name, inference in methods.items():
        try:
            inference.check(torch.from_numpy(labeled.features.values), labeled.base)
            inference.check_unlabeled(drawn.unlabeled_count > 0)
        except UserError:
            if classifier:
                raise
            missing.append(name)  # nobody named it
            continue
        fitting[name] = inference
    _print(labeled, fitting, drawn, frozen, open_set)
    if missing:
        _note(f"left out, as the file or the episodes lack what they need: {', '.join(missing)}")


def _note(text: str) -> None:
    """Prints a note to standard error, apart from the table."""
    print(text, file=sys.stderr)


@dataclass(frozen=True)
class _Measured:
    """In %: accuracies `(E,)` of a classifier, its calibration error, and AUROC `(E,)` or None."""

    accuracies: np.ndarray
    calibration: float
    areas: np.ndarray | None


def _measure(
    labeled: Labeled, episodes: Episodes, inference: Inference, name: str, extra_classes: int
) -> _Measured:
    in_way = _in_way(episodes, extra_classes)
    try:
        answers = [
            *scores_of(labeled.features, episodes, inference, labeled.base, name, extra_classes)
        ]
    except DegenerateFeaturesError as error:
        raise UserError(f"{labeled.pool.name}: {error}", "give other features") from None
    logits, expected = map(torch.cat, zip(*answers, strict=True))
    predicted, doubts = logits.argmax(dim=-1), log_doubts(logits).numpy()
    correct = (predicted == expected).numpy()[:, in_way]
    return _Measured(
        accuracies=100 * correct.mean(axis=1),
        calibration=100 * calibration_error(-np.expm1(doubts[:, in_way]), correct),
        areas=100 * auroc(-doubts[:, in_way], -doubts[:, ~in_way]) if extra_classes else None,
    )


def _in_way(episodes: Episodes, extra_classes: int) -> np.ndarray:
    """Which queries `(queries,)` are of one of the classes that have a support."""
    in_way: np.ndarray = episodes.query_labels[0] < episodes.support.shape[1] - extra_classes
    return in_way


def _print(
    labeled: Labeled,
    methods: dict[str, Inference],
    episodes: Episodes,
    frozen: Path,
    extra_classes: int,
) -> None:
    """What was drawn, and a line for each classifier; all are compared with the first."""
    _print_head(episodes, frozen, extra_classes)
    width = max(map(len, methods))
    first: np.ndarray | None = None
    for name, inference in methods.items():
        measured = _measure(labeled, episodes, inference, name, extra_classes)
        mean = student(measured.accuracies)
        line = f"{name:{width}}  {mean.value:6.2f} ± {mean.half_width:.2f}"
        if first is None:
            first = measured.accuracies
            line += " " * 16
        else:
            gap = student(measured.accuracies - first)
            line += f"  {gap.value:+7.2f} ± {gap.half_width:.2f}"
        line += f"  ECE {measured.calibration:4.1f}"
        if measured.areas is not None:
            area = student(measured.areas)
            line += f"  AUROC {area.value:4.1f} ± {area.half_width:.1f}"
        assumed = inference.assumptions(episodes.unlabeled.shape[2] > 0).split()
        print(f"{line}  {', '.join(WORDS[letter] for letter in assumed)}".rstrip())


def _print_head(episodes: Episodes, frozen: Path, extra_classes: int) -> None:
    classes, shot = episodes.support.shape[1:]
    way, in_way = classes - extra_classes, _in_way(episodes, extra_classes)
    print(f"{len(episodes)} episodes, {way}-way {shot}-shot, {in_way.sum()} queries each: {frozen}")
    if extra_classes:
        print(f"and {(~in_way).sum()} queries of {extra_classes} classes that are none of these")
    print("accuracy in %, and difference to the first, with 95 % intervals over episodes; ECE: how")
    print("far the probability of the predicted class is from how often it is right, in points")
    if extra_classes:
        print("AUROC in %: how often it is higher for a query of a known class than for another")
