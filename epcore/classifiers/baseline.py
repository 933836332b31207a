"""A linear layer trained on the support (Baseline, Chen et al. 2019)."""

from torch import Tensor
from torch.nn import functional

from epcore.classifiers.solvers.trained_head import TrainedHead


class Baseline(TrainedHead):
    """Scores of a query x are `[x, 1] W`; W starts at random and is trained on the support.

    Wei-Yu Chen, Yen-Cheng Liu, Zsolt Kira, Yu-Chiang Frank Wang, Jia-Bin Huang: A Closer Look
    at Few-shot Classification, ICLR 2019, https://arxiv.org/abs/1904.04232.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, Baseline
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(Baseline()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    def _inputs(self, points: Tensor) -> Tensor:
        return functional.pad(points, (0, 1), value=1)

    def _start(self, uniform: Tensor) -> list[Tensor]:
        return [uniform]

    def _weights(self, parameters: list[Tensor]) -> Tensor:
        return parameters[0]

    def _gradients(self, parameters: list[Tensor], slope: Tensor) -> list[Tensor]:
        return [slope]
