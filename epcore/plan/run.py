"""The names that say which network a number is of."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """A recipe's network, trained on a data set with a seed, and tested on a protocol.

    Of ImageNet-FS, a method with the features of a network, which takes the backbone's place.
    """

    dataset: str
    backbone: str
    recipe: str
    seed: int
    protocol: str


@dataclass(frozen=True)
class TrainedNetwork:
    """A trained network: `recipe` names it for all recipes that share it, `checkpoint` its file."""

    dataset: str
    backbone: str
    recipe: str
    seed: int
    checkpoint: str

    @property
    def shot(self) -> int:
        """The shot that the network is fine-tuned or trained for; 0 if it is pretrained only."""
        match = re.fullmatch(r"(?:finetune|meta)-(\d+)shot", self.checkpoint)
        return int(match[1]) if match else 0
