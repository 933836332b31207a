"""Label propagation of TPN (Liu et al. 2019), with nothing learned."""

from typing import ClassVar

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.distances import squared_distances
from epcore.classifiers.solvers.neighbors import propagate_labels
from epcore.settings import Probability


class KNNLabelPropagation(EpisodeClassifier):
    """Scores are `(I - alpha S)^-1 Y` of a graph of nearest neighbors.

    The graph has `W_ij = exp(-d^2_ij / (2 sigma^2 m))`, where m is the mean of the squared
    distances `d^2` over all pairs of different images. An edge is kept if one of its images is
    among the `neighbors` nearest of the other; as in the authors' code an image is its own nearest
    neighbor, and keeps its edge to itself. S is `D^-1/2 W D^-1/2`; Y is the one-hot classes of the
    support, and zero for all other images. Unlabeled images are in the graph too. The authors train
    the softmax of the scores.

    In TPN a network learns to divide each image's features by a number of its own. Here sigma
    is one number for all, and m makes it mean the same for features of any scale and size.

    Yanbin Liu and others: Learning to Propagate Labels: Transductive Propagation Network for
    Few-shot Learning, ICLR 2019, https://arxiv.org/abs/1805.10002.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, KNNLabelPropagation
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(KNNLabelPropagation()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(transductive=True, unlabeled=True)

    alpha: Probability = Field(
        default=0.99, description="strength of the propagation (authors' commands)"
    )
    neighbors: PositiveInt = Field(
        default=20,
        description="how many neighbors each image has, itself included (authors' commands: k)",
    )
    sigma: PositiveFloat = Field(
        default=0.25,
        description="width of the kernel, in root mean squared distances; neither paper nor code "
        "has a value, as it is learned there",
    )

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        points = episodes.points
        squared = squared_distances(points.double(), points.double())
        count = squared.shape[-1]
        mean = squared.sum(dim=(-2, -1), keepdim=True) / (count * (count - 1))
        # Images that are all alike have distances of 0, and edges of weight 1.
        width = (2 * self.sigma**2 * mean).clamp_min(torch.finfo(squared.dtype).tiny)
        weights = (-squared / width).exp()
        scores = propagate_labels(weights, self.neighbors, self.alpha, episodes.node_labels)
        return scores[..., episodes.labeled : episodes.labeled + episodes.queries, :]
