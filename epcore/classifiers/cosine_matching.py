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
    """

    scale: PositiveFloat = Field(
        default=10.0,
        description="of the cosines. 10 is what Gidaris and Komodakis (2018) start from, who then "
        "learn it; Chen et al. (2019) use 100, after a ReLU; Vinyals et al. (2016) 1",
    )

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        images = (episodes.query, episodes.support)
        query, support = (functional.normalize(points, dim=-1) for points in images)
        attention = (self.scale * query @ support.mT).log_softmax(dim=-1)
        return episodes.by_class(attention).logsumexp(dim=-1)
