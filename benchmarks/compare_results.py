"""Compares two trees of results value by value, before and after a change of the code.

  python benchmarks/compare_results.py before/results/demo after/results/demo

Checkpoints, episodes, features and score files are equal if their arrays are, tables if their cells
are. What differs from run to run (times, energy, paths in metas, logs) is left out. Columns of
classifiers are compared by their name, in whichever file they lie.
"""

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

MEASURED = {"training_seconds", "training_kwh", "seconds_per_1000_episodes", "seconds"}


def values(file: Path, of: str) -> Iterator[tuple[str, bytes]]:
    """What a file holds, by name; `of` is the file without its folder of results."""
    if file.suffix == ".npz":
        with np.load(file, allow_pickle=False) as arrays:
            yield from ((f"{of} {name}", arrays[name].tobytes()) for name in arrays.files)
    elif file.suffix == ".npy":
        yield of, np.load(file, mmap_mode="r").tobytes()
    elif file.suffix == ".pt":
        yield from _tensors(of, torch.load(file, weights_only=True, map_location="cpu"))
    elif file.suffix == ".csv" and of.startswith("scores/"):
        yield from _scores(file, of)
    elif file.suffix == ".csv":
        with file.open(newline="", encoding="utf-8") as lines:
            for number, line in enumerate(csv.DictReader(lines)):
                for column in line.keys() - MEASURED:
                    yield f"{of}, line {number + 2}, {column}", str(line[column]).encode()


def _scores(file: Path, of: str) -> Iterator[tuple[str, bytes]]:
    """Accuracies by recipe and protocol; `net+svm` is the column svm of `net`'s classifiers."""
    with file.open(newline="", encoding="utf-8") as lines:
        table = list(csv.DictReader(lines))
    for column in table[0].keys() - {"episode"}:
        name = of
        if column != "accuracy":
            folder, recipe, seed, protocol = of.removesuffix("-classifiers.csv").rsplit("/", 3)
            name = f"{folder}/{recipe}+{column}/{seed}/{protocol}.csv"
        yield name, " ".join(line[column] for line in table).encode()


def _tensors(name: str, content: object) -> Iterator[tuple[str, bytes]]:
    if isinstance(content, torch.Tensor):
        yield name, content.reshape(-1).view(torch.uint8).numpy().tobytes()
    elif isinstance(content, dict):
        for key, value in content.items():
            yield from _tensors(f"{name} {key}", value)
    else:
        yield name, repr(content).encode()


def tree(folder: Path) -> dict[str, bytes]:
    """All values of a folder of results, by name."""
    contents: dict[str, bytes] = {}
    for file in sorted(folder.rglob("*")):
        of = file.relative_to(folder).as_posix()
        if file.is_file() and not of.startswith(("logs/", "reports/", "energy/")):
            contents |= values(file, of)
    return contents


def main(before: Path, after: Path) -> int:
    """Prints what differs; 1 if anything in both trees does."""
    old, new = tree(before), tree(after)
    shared = old.keys() & new.keys()
    different = sorted(name for name in shared if old[name] != new[name])
    for name in different:
        print(f"differs: {name}")
    for where, names in (("before", old.keys() - new.keys()), ("after", new.keys() - old.keys())):
        for name in sorted(names):
            print(f"only {where}: {name}")
    print(f"{len(shared) - len(different)} of {len(shared)} values in both trees are equal")
    return bool(different)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    sys.exit(main(**vars(parser.parse_args())))
