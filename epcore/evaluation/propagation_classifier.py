"""The paper's inference phase: embedding propagation, then label propagation (section 3.3)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.evaluation.prototypes import prototype_logits
from epcore.plan.models import Propagation
from epcore.propagation import EmbeddingPropagation, LabelPropagation


class PropagationClassifier(nn.Module):
    """Classifies the query images of episodes from the features of support and query.

    The recipe `net` (the paper's --Net) has no embedding propagation: features are then their
    own embeddings. Label propagation builds its graph anew from the embeddings.
    """

    def __init__(self, settings: Propagation) -> None:
        super().__init__()
        self.settings = settings
        self.embedding_propagation: nn.Module = nn.Identity()
        if settings.embedding:
            self.embedding_propagation = EmbeddingPropagation(
                settings.embedding_alpha, settings.bandwidth, settings.part
            )
        self.label_propagation = LabelPropagation(
            settings.label_alpha,
            bandwidth=settings.bandwidth,
            normalize=settings.normalize_labels,
        )

    def embeddings(self, features: Tensor) -> Tensor:
        """Propagated features `(..., N, D)`."""
        embeddings: Tensor = self.embedding_propagation(features)
        return embeddings

    def query_logits(self, embeddings: Tensor, way: int, shot: int) -> Tensor:
        """Logits `(..., way * queries, way)` of the query images.

        embeddings `(..., N, D)`: first the support, `shot` images of each class in turn, then
        the queries. The class distribution is the softmax of the logits: of the log-scores in
        the authors' code, of the scores themselves in the text by the letter. Prototypes take the
        place of label propagation where the recipe says so.
        """
        support = way * shot
        if self.settings.classifier == "prototypes":
            shape = (*embeddings.shape[:-2], way, shot, embeddings.shape[-1])
            by_class = embeddings[..., :support, :].reshape(shape)
            return prototype_logits(by_class, embeddings[..., support:, :])
        labels = support_labels(embeddings, way, shot)
        log_scores: Tensor = self.label_propagation(embeddings, labels)[..., support:, :]
        return logits_of(log_scores, self.settings)


def support_labels(embeddings: Tensor, way: int, shot: int) -> Tensor:
    """One-hot labels `(..., N, way)` of the support, which is first; zero rows for all others."""
    labels = embeddings.new_zeros(*embeddings.shape[:-1], way)
    classes = torch.arange(way, device=embeddings.device).repeat_interleave(shot)
    labels[..., : way * shot, :] = functional.one_hot(classes, way).to(labels.dtype)
    return labels


def logits_of(log_scores: Tensor, settings: Propagation) -> Tensor:
    """What the class distribution is the softmax of: see `PropagationClassifier.query_logits`."""
    return log_scores if settings.query_logits == "log-scores" else log_scores.exp()


def query_labels(way: int, queries: int, device: torch.device | None = None) -> Tensor:
    """Classes `(way * queries,)` of the query images, in the order of an episode's rows."""
    return torch.arange(way, device=device).repeat_interleave(queries)
