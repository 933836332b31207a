"""Where the accuracies of single episodes lie."""

from epcore.plan.settings import Settings


class ScoreColumn(Settings):
    """A column of a file of per-episode accuracies.

    A recipe's own test has a file to itself, whose column is `accuracy`. The entries of
    classifiers.yaml share a file for each checkpoint and protocol, with a column each.
    """

    file: str
    column: str = "accuracy"
