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
from epcore.plan.stages import EvaluateStage
from epcore.propagation import DegenerateFeaturesError


def run(
    stage: EvaluateStage,
    features: Path,
    episodes: list[Path],
    out: list[Path],
    base: Path | None = None,
    validation: list[Path] | None = None,
) -> None:
    """The stage `evaluate`: for each file of episodes a CSV with the columns episode, accuracy.

    Settings that are to be chosen are, on the `validation` episodes, before the others are read.
    The meta has the classifier with all its settings, those that nobody set included.
    """
    for name, given in (("out", out), ("validation", validation)):
        if given and len(given) != len(episodes):
            raise UserError(
                f"--episodes: {len(episodes)} files, but --{name}: {len(given)}; give one "
                f"--{name} for each"
            )
    if stage.grid and not validation:
        raise UserError(
            f"{', '.join(stage.grid)} of the classifier is chosen on validation episodes; give "
            "--validation"
        )
    require(features, "input")
    check_one_store([features, *episodes, *(validation or []), *([base] if base else [])])
    loaded = Features.load(features)
    known = BaseClasses.load(base) if base else None
    if base and known:
        check_same_network(base, features)
        if len(known.mean) != loaded.values.shape[1]:
            raise UserError(
                f"{base} is of a network with {len(known.mean)} features, {features} of one with "
                f"{loaded.values.shape[1]}; give those of one network"
            )
    chosen_on = validation if stage.grid and validation else [None] * len(episodes)
    for tested, scores, held_out in zip(episodes, out, chosen_on, strict=True):
        inputs = [file for file in (features, base, held_out, tested) if file is not None]
        provenance = Provenance("evaluate", stage.model_dump(mode="json"), inputs)
        try:
            validated = loaded.episodes(held_out, features) if held_out else None
            choice = choose(stage, loaded, known, validated)
            begun = time.process_time()
            frozen = loaded.episodes(tested, features)
            results = solve(loaded, frozen, choice.inference, known, choice.name)
            spent = time.process_time() - begun
        except DegenerateFeaturesError as error:
            raise UserError(f"{features}: {error}; {ADVICE}") from None
        write_scores(scores, results)
        provenance.write(
            scores,
            episodes=len(frozen),
            seconds_per_1000_episodes=1000 * spent / len(frozen),
            **choice.facts(frozen),
        )


def write_scores(out: Path, results: Results) -> None:
    """The CSV of the accuracies of single episodes."""
    lines = [f"{number},{accuracy:.6f}" for number, accuracy in enumerate(results.accuracies)]
    write_text(out, "\n".join(["episode,accuracy", *lines]) + "\n")
