"""The best of several trainings on validation, which goes on under the name of a recipe.

The authors pretrain with two learning rates and fine-tune from the better one in a grid; their code
and an answer of theirs call it a search of hyper-parameters on validation accuracy (A31, A36, A37).
"""

import shutil
from pathlib import Path

from epcore.files import Provenance, atomic, meta_of, read_meta
from epcore.training.config import SelectConfig


def run(config: SelectConfig, checkpoints: list[Path], out: Path) -> None:
    """The stage `select`: a copy of the best checkpoint and its curve, and a meta that names it.

    All candidates were validated on the same frozen episodes; of equals the first one counts.
    """
    provenance = Provenance("select", config, checkpoints)
    facts, accuracies = [], []
    for checkpoint in checkpoints:
        with read_meta(meta_of(checkpoint), "delete it and the checkpoint beside it") as meta:
            accuracies.append(float(meta["best"]["val_accuracy"]))
            facts.append({name: meta[name] for name in ("best", "parameters", "image_size")})
    place = accuracies.index(max(accuracies))
    curve = out.with_suffix(".csv")
    for file in (curve, out):
        with atomic(file) as temporary:
            shutil.copyfile(checkpoints[place].with_suffix(file.suffix), temporary)
    provenance.write(
        out,
        curve,
        chosen=config.candidates[place],
        val_accuracies=dict(zip(config.candidates, accuracies, strict=True)),
        **facts[place],
    )
