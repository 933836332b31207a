"""The paper's formulas in float64 numpy, written for reading: what tests compare with."""

import numpy as np


def normalized_graph(features: np.ndarray, bandwidth: str = "std") -> np.ndarray:
    distances = ((features[:, None] - features[None]) ** 2).sum(-1)
    others = ~np.eye(len(features), dtype=bool)
    if bandwidth == "std":
        scale = distances[distances != 0].std(ddof=1)
    else:
        scale = distances[others].var(ddof=1)
    adjacency = np.exp(-distances / scale) * others
    degrees = adjacency.sum(1) + 1e-4
    return adjacency / np.sqrt(np.outer(degrees, degrees))


def propagator(features: np.ndarray, alpha: float, bandwidth: str = "std") -> np.ndarray:
    return np.linalg.inv(np.eye(len(features)) - alpha * normalized_graph(features, bandwidth))


def embeddings(features: np.ndarray, bandwidth: str = "std") -> np.ndarray:
    """Embedding propagation with alpha 0.5."""
    return propagator(features, 0.5, bandwidth) @ features


def label_scores(
    points: np.ndarray, way: int, shot: int, bandwidth: str = "std", normalize: bool = True
) -> np.ndarray:
    """Label propagation with alpha 0.2: scores of all points, whose first are the support."""
    matrix = propagator(points, 0.2, bandwidth)
    if normalize:
        matrix = matrix / matrix.sum(1, keepdims=True)
    labels = np.zeros((len(points), way))
    for row in range(way * shot):
        labels[row, row // shot] = 1
    return matrix @ labels


def cross_entropy(logits: np.ndarray, labels: list[int]) -> float:
    """Mean over the rows of -log softmax(logits)[label]."""
    losses = []
    for row, label in zip(logits, labels, strict=True):
        shifted = row - row.max()
        losses.append(np.log(np.exp(shifted).sum()) - shifted[label])
    return float(np.mean(losses))
