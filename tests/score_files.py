"""Score files out of accuracies."""

from pathlib import Path


def write_scores(path, accuracies):
    """A file of per-episode accuracies in [0, 1]."""
    lines = [f"{n},{accuracy:.6f}" for n, accuracy in enumerate(accuracies)]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("\n".join(["episode,accuracy", *lines]) + "\n", encoding="utf-8")
