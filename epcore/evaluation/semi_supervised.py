"""Semi-supervised inference with pseudo-labels (paper, section 3.5; official code)."""

from torch import Tensor
from torch.nn import functional

from epcore.errors import UserError
from epcore.evaluation.propagation_classifier import logits_of, support_labels
from epcore.plan.models import Propagation
from epcore.propagation import LabelPropagation


def semi_supervised_logits(
    embeddings: Tensor, way: int, shot: int, queries: int, settings: Propagation
) -> Tensor:
    """Logits `(..., way * queries, way)` of the queries, helped by unlabelled images.

    embeddings `(..., N, D)`, propagated over all of the episode together: first the support,
    `shot` images of each class in turn, then the queries, then the unlabelled images.

    As in the authors' code: balanced label propagation from the support; every unlabelled image
    takes its most likely class as its label, in one pass and with no selection; balanced label
    propagation again, now from support and unlabelled images.

    Raises:
        UserError: if the recipe classifies by prototypes, which take no unlabelled images.
    """
    if settings.classifier != "label-propagation":
        raise UserError(
            f"episodes with unlabelled images need label propagation, the recipe has "
            f"{settings.classifier}; take a protocol without unlabelled images"
        )
    classifier = LabelPropagation(
        settings.label_alpha,
        balanced=True,
        bandwidth=settings.bandwidth,
        normalize=settings.normalize_labels,
    )
    propagator = classifier.propagator(embeddings)
    first_query, first_unlabeled = way * shot, way * (shot + queries)
    labels = support_labels(embeddings, way, shot)
    guesses = classifier.log_scores(propagator, labels)[..., first_unlabeled:, :].argmax(dim=-1)
    labels[..., first_unlabeled:, :] = functional.one_hot(guesses, way).to(labels.dtype)
    log_scores = classifier.log_scores(propagator, labels)[..., first_query:first_unlabeled, :]
    return logits_of(log_scores, settings)
