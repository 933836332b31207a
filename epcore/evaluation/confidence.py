"""How far the confidence of a classifier can be trusted."""

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

BINS = 15


def calibration_error(confidences: np.ndarray, correct: np.ndarray) -> float:
    """Expected calibration error in [0, 1]: how far confidence is from accuracy, on average.

    Predictions fall into 15 bins of equal width by their confidence; the distance of a bin's mean
    confidence and accuracy counts by its share of the predictions (Guo et al., "On Calibration of
    Modern Neural Networks", ICML 2017, equation 3, <https://arxiv.org/abs/1706.04599>).

    Args:
        confidences: probability of the predicted class, of each prediction.
        correct: whether it is the right one.

    >>> round(calibration_error(np.array([0.9, 0.9, 0.65, 0.65]), np.array([1, 1, 1, 0])), 6)
    0.125
    """
    bins = np.ceil(confidences.ravel() * BINS).astype(int)  # a bin holds its upper end
    gaps = np.bincount(bins, (correct.ravel() - confidences.ravel()), BINS + 1)
    return float(np.abs(gaps).sum() / confidences.size)


def log_doubts(logits: Tensor) -> Tensor:
    """log(1 - p), p the probability of the most likely class: exact where p is nearly 1.

    Args:
        logits: `(..., classes)`.
    """
    logits = logits.double()
    likeliest = logits.argmax(dim=-1, keepdim=True)
    rest = logits.scatter(-1, likeliest, -torch.inf)
    return rest.logsumexp(dim=-1) - logits.logsumexp(dim=-1)


def auroc(known: np.ndarray, unknown: np.ndarray) -> np.ndarray:
    """The chance that a query of a known class has more confidence than one of no known class.

    It is the area under the ROC curve by Mann and Whitney's rank sum, ties counted half.

    Args:
        known: confidences of the queries of known classes `(..., K)`, on any scale.
        unknown: of the others `(..., U)`, on the same.

    Returns:
        `(...)` in [0, 1].

    >>> float(auroc(np.array([0.9, 0.5]), np.array([0.5, 0.3])))
    0.875
    """
    count = known.shape[-1]
    ranks = rankdata(np.concatenate([known, unknown], axis=-1), axis=-1)
    above = ranks[..., :count].sum(axis=-1) - count * (count + 1) / 2
    area: np.ndarray = above / (count * unknown.shape[-1])
    return area
