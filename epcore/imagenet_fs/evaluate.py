"""The stage `imagenet-fs-evaluate`: top-5 accuracies of every trial, for every K."""

from pathlib import Path
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from epcore.errors import UserError
from epcore.evaluation.classifier_test import write_scores
from epcore.files import Provenance
from epcore.generators.base import WeightGenerator
from epcore.generators.config import LONG_TESTS, LinearLayer
from epcore.generators.linear_layer import LinearLayerGenerator
from epcore.imagenet_fs.build import build_generator, load_generators, read_head
from epcore.imagenet_fs.classes import Subsets
from epcore.imagenet_fs.config import Measure, TrialsConfig
from epcore.imagenet_fs.exemplars import Exemplars
from epcore.imagenet_fs.features import open_both
from epcore.imagenet_fs.trials import Queries, scored_base_images, weights_of_trials
from epcore.propagation import DegenerateFeaturesError
from epcore.runtime.device import choose_device, describe

MEASURES: tuple[Measure, ...] = get_args(Measure)


@torch.no_grad()
def run(
    config: TrialsConfig,
    data: Path,
    queries: Path,
    features: Path,
    checkpoint: Path,
    exemplars: list[Path],
    out: Path,
    generator: Path | None = None,
) -> None:
    """Writes `<measure>-<K>shot.csv` with the columns episode and accuracy into the folder `out`.

    An episode is a trial. `exemplars` are those of split novel, in the order of the stage's shots.
    A generator that was trained with another K than it is tested with is the only one there is;
    without a file it has nothing to learn before the test.
    """
    files = [features / f"{part}.npy" for part in ("images", "queries")]
    trained = [generator] if generator else []
    provenance = Provenance(
        "imagenet-fs-evaluate", config, [*files, checkpoint, *trained, *exemplars]
    )
    images, tested = open_both(data, queries, features)
    subsets = Subsets.of(images.store, "novel")
    takes_hours = config.generator.kind in LONG_TESTS
    device = choose_device() if takes_hours else torch.device("cpu")
    model: WeightGenerator
    if isinstance(config.generator, LinearLayer):
        base_images = scored_base_images(images, subsets, device)
        model = LinearLayerGenerator(config.generator, base_images, config.seed)
    else:
        head = read_head(checkpoint)
        model = build_generator(config.generator, head["weight"], head["scale"], config.propagation)
        model.to(device)
    scored = Queries.of(tested, subsets, device)
    states: dict[int, dict[str, Tensor]] = {}
    if generator:
        states = load_generators(generator, config.generator.kind)
    base = len(subsets.base)
    factors = config.novel_factors or (1.0,) * len(config.shots)
    for shots, step_size, factor, file in zip(
        config.shots, config.step_sizes, factors, exemplars, strict=True
    ):
        if states:
            model.load_state_dict(states[shots] if len(states) > 1 else next(iter(states.values())))
        stored_exemplars = Exemplars.load(file, images.store, "novel", shots)
        try:
            results = [
                scored.accuracies(scored.scores(model, weights), config.prior, factor)
                for weights in weights_of_trials(model, images, stored_exemplars, base, step_size)
            ]
        except DegenerateFeaturesError as error:
            raise UserError(f"{generator or checkpoint}: {error}", "train it for longer") from None
        for measure in MEASURES:
            accuracies = np.array([of_trial[measure] for of_trial in results])
            write_scores(out / f"{measure}-{shots}shot.csv", {"accuracy": accuracies})
    scores = [out / f"{measure}-{shots}shot.csv" for measure in MEASURES for shots in config.shots]
    provenance.write(*scores, **describe(device, "fp32"))
