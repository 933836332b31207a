"""Made-up results: score files out of accuracies, training curves out of learning rates."""

import json
import zlib
from pathlib import Path

import numpy as np


def write_scores(path, accuracies):
    """A file of per-episode accuracies in [0, 1]."""
    lines = [f"{n},{accuracy:.6f}" for n, accuracy in enumerate(accuracies)]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("\n".join(["episode,accuracy", *lines]) + "\n", encoding="utf-8")


def write_curve(training, rates):
    """The curve of a training with one learning rate for each epoch; a meta, if it has none."""
    curve, meta = map(Path, training.files)
    lines = [f"{epoch},{rate:.6g},2.5,0.5,1.2" for epoch, rate in enumerate(rates)]
    header = "epoch,learning_rate,train_loss,val_accuracy,val_loss"
    curve.parent.mkdir(parents=True, exist_ok=True)
    curve.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    if not meta.exists():
        facts = {"parameters": 112_832, "best": {"epoch": 0}, "made": {}, "seconds": 90}
        meta.write_text(json.dumps(facts), encoding="utf-8")


def write_results(cells):
    """Writes score and meta files of cells, as paths relative to the working directory.

    Where a table tells of trainings, curves too: pretraining's rate falls after two of four
    epochs, that of fine-tuning never. Where it tells of classifiers, their metas. Accuracies are
    drawn by the name of their file, whatever other cells there are.
    Returns (block, row, column) -> accuracies of its 40 episodes in [0, 1].
    """
    by_file, written = {}, {}
    for number, cell in enumerate(cells):
        for file in (cell.scores, cell.baseline):
            if file and file not in by_file:
                random = np.random.default_rng(zlib.crc32(file.encode()))
                by_file[file] = random.integers(20, 76, 40) / 75
                write_scores(file, by_file[file])
        if cell.method_meta:
            chosen = {"cost": 0.1 * (1 + cell.seed), "steps": 3} if number % 2 else {}
            method = {"assumes": "T B", "chosen": chosen, "made": {}}
            method |= {"validation_accuracy": 0.5 + cell.seed / 10 if chosen else None}
            method |= {"seconds_per_1000_episodes": 2.5 + number % 7}
            Path(cell.method_meta).write_text(json.dumps(method), encoding="utf-8")
        facts = Path(cell.checkpoint_meta)
        facts.parent.mkdir(parents=True, exist_ok=True)
        known = {"parameters": 112_832 + 1000 * number, "best": {"epoch": 0}, "made": {}}
        known |= {"seconds": 60, "energy": {"kwh": 0.002}}
        facts.write_text(json.dumps(known), encoding="utf-8")
        for training in cell.trainings:
            falls = [0.1, 0.1, 0.01, 0.01] if training.phase == "pretraining" else [0.1, 0.1]
            write_curve(training, falls)
        written[cell.block, cell.row, cell.column] = by_file[cell.scores]
    return written
