"""Attention to the support by cosine similarity (Vinyals et al. 2016)."""

from pydantic import Field, PositiveFloat
from torch import Tensor
from torch.nn import functional

from epcore.classifiers.base import EpisodeClassifier
from epcore.classifiers.episodes import EpisodeBatch


class CosineMatching(EpisodeClassifier):
    """Matching networks without full-context embeddings.

    A query attends to the support by the softmax of `scale * cosine`. The probability of a class is
    the attention that its images get; scores are its logarithm.

    Oriol Vinyals, Charles Blundell, Timothy Lillicrap, Koray Kavukcuoglu, Daan Wierstra:
    Matching Networks for One Shot Learning, NIPS 2016, https://arxiv.org/abs/1606.04080.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, CosineMatching
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(CosineMatching()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    scale: PositiveFloat = Field(
        default=10.0,
        description="of the cosines. 10 is what Gidaris and Komodakis (2018) start from, who then "
        "learn it; Chen et al. (2019) use 100, after a ReLU; Vinyals et al. (2016) 1",
    )

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        return log_attention(episodes, self.scale)


def log_attention(episodes: EpisodeBatch, scale: float | Tensor) -> Tensor:
    """Logarithm of each query's attention to the support of a class, `(..., queries, way)`."""
    images = (episodes.query, episodes.support)
    query, support = (functional.normalize(points, dim=-1) for points in images)
    attention = (scale * query @ support.mT).log_softmax(dim=-1)  # (..., queries, labeled)
    return episodes.by_class(attention).logsumexp(dim=-1)
