"""Accuracy of every frozen episode, from cached features."""

import time
from pathlib import Path

from epcore.errors import UserError
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.choice import choose
from epcore.evaluation.embed import Features
from epcore.evaluation.solve import ADVICE, Results, solve
from epcore.files import Provenance, require, write_text
from epcore.origin import check_one_store, check_same_network
from epcore.plan.stages.testing import EvaluateStage
from epcore.propagation import DegenerateFeaturesError


def run(
    stage: EvaluateStage,
    features: list[Path],
    episodes: list[Path],
    out: list[Path],
    base: list[Path] | None = None,
    validation: list[Path] | None = None,
) -> None:
    """The stage `evaluate`: for each file of episodes a CSV with the columns episode, accuracy.

    Features and what is known of the base classes are of one network for all episodes, or of one
    for each file of these. Settings that are to be chosen are, on the `validation` episodes, before
    the others are read. The meta has the classifier with all its settings, those that nobody set
    included.
    """
    features, bases = _for_each(features, episodes), _for_each(base or [], episodes)
    given = {"features": features, "out": out, "base": bases, "validation": validation or []}
    for name, files in given.items():
        if files and len(files) != len(episodes):
            raise UserError(
                f"--episodes: {len(episodes)} files, but --{name}: {len(files)}; give one "
                f"--{name} for each"
            )
    if stage.grid and not validation:
        raise UserError(
            f"{', '.join(stage.grid)} of the classifier is chosen on validation episodes; give "
            "--validation"
        )
    for file in features:
        require(file, "input")
    check_one_store(dict.fromkeys([*features, *episodes, *(validation or []), *bases]))
    none = [None] * len(episodes)
    networks = list(zip(features, bases or none, strict=True))
    loaded = {network: _loaded(*network) for network in dict.fromkeys(networks)}
    chosen_on = validation if stage.grid and validation else none
    for network, tested, scores, held_out in zip(networks, episodes, out, chosen_on, strict=True):
        inputs = [file for file in (*network, held_out, tested) if file is not None]
        provenance = Provenance("evaluate", stage, inputs)
        (found, known), source = loaded[network], network[0]
        try:
            validated = found.episodes(held_out, source) if held_out else None
            choice = choose(stage, found, known, validated)
            frozen = found.episodes(tested, source)
            begun = time.process_time()
            results = solve(found, frozen, choice.inference, known, choice.name)
            spent = time.process_time() - begun
        except DegenerateFeaturesError as error:
            raise UserError(f"{source}: {error}; {ADVICE}") from None
        write_scores(scores, results)
        provenance.write(
            scores,
            episodes=len(frozen),
            seconds_per_1000_episodes=1000 * spent / len(frozen),
            **choice.facts(frozen),
        )


def _for_each(files: list[Path], episodes: list[Path]) -> list[Path]:
    """One file stands for as many as there are of episodes."""
    return files * len(episodes) if len(files) == 1 else files


def _loaded(features: Path, base: Path | None) -> tuple[Features, BaseClasses | None]:
    """Features of one network and, where a file is given, its base classes."""
    found = Features.load(features)
    if base is None:
        return found, None
    check_same_network(base, features)
    known = BaseClasses.load(base)
    if len(known.mean) != found.values.shape[1]:
        raise UserError(
            f"{base} is of a network with {len(known.mean)} features, {features} of one with "
            f"{found.values.shape[1]}; give those of one network"
        )
    return found, known


def write_scores(out: Path, results: Results) -> None:
    """The CSV of the accuracies of single episodes."""
    lines = [f"{number},{accuracy:.6f}" for number, accuracy in enumerate(results.accuracies)]
    write_text(out, "\n".join(["episode,accuracy", *lines]) + "\n")
