"""Label propagation from the support, and from pseudo-labels where there are unlabeled images."""

from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor
from torch.nn import functional

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.propagation import Bandwidth, LabelPropagation
from epcore.settings import Probability


class LabelPropagationClassifier(EpisodeClassifier):
    """Label propagation (paper, section 3.3), semi-supervised as in section 3.5.

    With unlabeled images, as in the authors' code: balanced label propagation from the support;
    every unlabeled image takes its most likely class as its label, in one pass and with no
    selection; balanced label propagation again, now from support and unlabeled images.

    Propagation is balanced too where classes have unequal numbers of support images: otherwise a
    class with many of them outweighs one with few.

    Pau Rodríguez, Issam Laradji, Alexandre Drouin, Alexandre Lacoste: Embedding Propagation:
    Smoother Manifold for Few-Shot Classification, ECCV 2020, https://arxiv.org/abs/2003.04151.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, LabelPropagationClassifier
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(LabelPropagationClassifier()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(transductive=True, unlabeled=True)

    label_alpha: Probability = Field(
        default=0.2, description="strength of the propagation; authors' code (A10)"
    )
    bandwidth: Bandwidth = Field(
        default="std", description="see `epcore.propagation.similarity_graph`"
    )
    normalize_labels: bool = Field(
        default=True, description="divide the propagator's rows by their sums"
    )
    query_logits: Literal["log-scores", "scores"] = Field(
        default="log-scores",
        description="the class distribution is the softmax of the log-scores (authors' code) or of "
        "the scores (the paper's text by the letter)",
    )

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        points, way = episodes.points, episodes.way
        first_unlabeled = episodes.labeled + episodes.queries
        semi_supervised = episodes.unlabeled > 0
        balanced = semi_supervised or episodes.equal_shots is None
        propagation = LabelPropagation(
            self.label_alpha, balanced, self.bandwidth, self.normalize_labels
        )
        propagator = propagation.propagator(points)
        labels = episodes.node_labels
        if semi_supervised:
            guesses = propagation.log_scores(propagator, labels).argmax(dim=-1)
            guessed = functional.one_hot(guesses[..., first_unlabeled:], way)
            labels[..., first_unlabeled:, :] = guessed.to(labels.dtype)
        log_scores = propagation.log_scores(propagator, labels)
        log_scores = log_scores[..., episodes.labeled : first_unlabeled, :]
        return log_scores if self.query_logits == "log-scores" else log_scores.exp()
