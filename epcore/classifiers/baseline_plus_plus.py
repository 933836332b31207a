"""A cosine layer trained on the support (Baseline++, Chen et al. 2019)."""

from pydantic import Field, PositiveFloat
from torch import Tensor
from torch.nn import functional

from epcore.classifiers.solvers.trained_head import TrainedHead


class BaselinePlusPlus(TrainedHead):
    """Scores of a query are `scale * g_k * cosine(x, w_k)`, trained on the support from random w_k.

    The paper has no g_k. In the authors' code it is the length of the weights, learned apart from
    their direction (weight normalization), and starts at the length of the random weights.

    Wei-Yu Chen, Yen-Cheng Liu, Zsolt Kira, Yu-Chiang Frank Wang, Jia-Bin Huang: A Closer Look
    at Few-shot Classification, ICLR 2019, https://arxiv.org/abs/1904.04232.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, BaselinePlusPlus
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(BaselinePlusPlus()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    class_norm: bool = Field(
        default=True,
        description="learn a factor g_k of each class (authors' code). Otherwise it is 1 (paper): "
        "weights are brought to unit length before each step, as the code does when this is off",
    )
    scale: PositiveFloat = Field(
        default=2.0,
        description="of the cosines; 2 in the authors' code for at most 200 classes, 10 for more",
    )

    def _inputs(self, points: Tensor) -> Tensor:
        return functional.normalize(points, dim=-1)

    def _start(self, uniform: Tensor) -> list[Tensor]:
        return [uniform, uniform.norm(dim=-1, keepdim=True)] if self.class_norm else [uniform]

    def _weights(self, parameters: list[Tensor]) -> Tensor:
        directions = parameters[0]
        if self.class_norm:
            return self.scale * parameters[1] * functional.normalize(directions, dim=-1)
        directions /= directions.norm(dim=-1, keepdim=True)
        return self.scale * directions

    def _gradients(self, parameters: list[Tensor], slope: Tensor) -> list[Tensor]:
        slope = self.scale * slope
        if not self.class_norm:
            return [slope]
        directions, factors = parameters
        lengths = directions.norm(dim=-1, keepdim=True)
        along = (slope * directions).sum(dim=-1, keepdim=True) / lengths
        across = slope - along * directions / lengths
        return [factors / lengths * across, along]
