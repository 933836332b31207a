"""Made-up results: score files out of accuracies, and the metas beside them."""

import json
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from epcore.files import meta_of


def write_scores(scores, accuracies):
    """Per-episode accuracies in [0, 1]: a file, or a column of a file that may have others."""
    path = Path(scores.file)
    path.parent.mkdir(parents=True, exist_ok=True)
    others = pd.read_csv(path, index_col=0) if path.exists() else pd.DataFrame()
    others = others if len(others) == len(accuracies) else pd.DataFrame()
    table = others.assign(**{scores.column: accuracies}).rename_axis("episode")
    path.write_text(table.to_csv(float_format="%.6f"), encoding="utf-8")


def write_training(training):
    """The meta of a training, if it has none."""
    meta = Path(training.files[1])
    meta.parent.mkdir(parents=True, exist_ok=True)
    if not meta.exists():
        meta.write_text(json.dumps({"parameters": 112_832, "made": {}, "seconds": 90}), "utf-8")


def write_classifier(scores, facts):
    """What the meta of scores says of their classifier; others in the same file stay."""
    path = meta_of(Path(scores.file))
    if scores.column != "accuracy":
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"made": {}}
        facts = known | {"classifiers": known.get("classifiers", {}) | {scores.column: facts}}
    path.write_text(json.dumps(facts), encoding="utf-8")


def write_results(cells):
    """Writes score and meta files of cells, as paths relative to the working directory.

    Where a table tells what trainings cost or of classifiers, their metas too. Accuracies are drawn
    by the name of their file, whatever other cells there are.
    Returns (block, row, column) -> accuracies of its 40 episodes in [0, 1].
    """
    by_scores, written = {}, {}
    for number, cell in enumerate(cells):
        for scores in (cell.scores, cell.baseline):
            if scores and scores not in by_scores:
                name = scores.file if scores.column == "accuracy" else scores.model_dump_json()
                random = np.random.default_rng(zlib.crc32(name.encode()))
                by_scores[scores] = random.integers(20, 76, 40) / 75
                write_scores(scores, by_scores[scores])
        if cell.tells_of_classifier:
            chosen = {"cost": 0.1 * (1 + cell.seed), "steps": 3} if number % 2 else {}
            method = {"assumes": "T B", "chosen": chosen, "made": {}}
            method |= {"validation_accuracy": 0.5 + cell.seed / 10 if chosen else None}
            method |= {"seconds_per_1000_episodes": 2.5 + number % 7}
            write_classifier(cell.scores, method)
        facts = Path(cell.checkpoint_meta)
        facts.parent.mkdir(parents=True, exist_ok=True)
        known = {"parameters": 112_832 + 1000 * number, "best": {"epoch": 0}, "made": {}}
        known |= {"seconds": 60, "energy": {"kwh": 0.002}}
        facts.write_text(json.dumps(known), encoding="utf-8")
        for training in cell.trainings:
            write_training(training)
        written[cell.block, cell.row, cell.column] = by_scores[cell.scores]
    return written
