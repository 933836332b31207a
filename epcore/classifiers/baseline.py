"""A linear layer trained on the support (Baseline, Chen et al. 2019)."""

from torch import Tensor
from torch.nn import functional

from epcore.classifiers.solvers.trained_head import TrainedHead


class Baseline(TrainedHead):
    """Scores of a query x are `[x, 1] W`; W starts at random and is trained on the support."""

    def _inputs(self, points: Tensor) -> Tensor:
        return functional.pad(points, (0, 1), value=1)

    def _start(self, uniform: Tensor) -> list[Tensor]:
        return [uniform]

    def _weights(self, parameters: list[Tensor]) -> Tensor:
        return parameters[0]

    def _gradients(self, parameters: list[Tensor], slope: Tensor) -> list[Tensor]:
        return [slope]
