"""Embedding propagation and label propagation: the contribution of the paper.

Notation: a set of N points with D features is a tensor `(..., N, D)`; the leading dimensions
are any number of independent sets (episodes). Equations are those of the paper's section
"Embedding propagation"; where the authors' code differs from the text, the code is the default
and the text is a named option.

Every linear system is solved by Cholesky: for `alpha` below 1 the matrix `I - alpha * L` is
symmetric positive definite, because the eigenvalues of `L` lie in [-1, 1].
"""

import math
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

Bandwidth = Literal["std", "var"]
Part = Literal["full", "off-diagonal", "diagonal"]

# The authors' code adds this to every degree before the inverse square root, and this to every
# score before the logarithm.
DEGREE_OFFSET = 1e-4
SCORE_OFFSET = 1e-6
# Squared distances up to this share of the points' squared norms are zero: rounding in float64
# cannot tell them from it.
EQUAL = 8 * torch.finfo(torch.float64).eps
# The same share in float32, which knows squared distances to about 1e-7 of the squared norms: two
# points that are closer may be equal, and are compared in float64.
NEAR = 1e-5
# Smallest bandwidth, as a share of the mean squared distance, at which float32 knows the graph to
# five digits.
NARROW = 0.01
# Smallest variance of squared distances that float32 knows: the squares that add up to it are
# subnormal below, and lose digits.
SMALLEST_VARIANCE = torch.finfo(torch.float32).tiny / torch.finfo(torch.float32).eps


class DegenerateFeaturesError(ValueError):
    """Features of which no graph can be made: NaN, infinite, or all points equal."""


def _pairwise(points: Tensor, near: float) -> tuple[Tensor, Tensor]:
    """Squared Euclidean distances `d^2_ij` `(..., N, N)` of points `(..., N, D)`, and which are 0.

    Through the Gram matrix of the centered points: memory N^2, never N^2 * D. Distances of at most
    `near` of their points' squared norms (a point with itself, exact duplicates) are set to zero,
    which the second tensor, bool, tells.
    """
    centered = points - points.mean(dim=-2, keepdim=True)
    gram = centered @ centered.mT
    norms = gram.diagonal(dim1=-2, dim2=-1)
    sums = norms[..., :, None] + norms[..., None, :]
    distances = torch.add(sums, gram, alpha=-2)
    equal = distances <= near * sums.detach()
    return distances.masked_fill_(equal, 0), equal


def similarity_graph(
    features: Tensor, bandwidth: Bandwidth = "std", rbf_scale: float = 1.0
) -> Tensor:
    """Adjacency `A_ij = exp(-d^2_ij / s)`, `A_ii = 0`: `(..., N, N)` from features `(..., N, D)`.

    `bandwidth="std"` (the authors' code; they confirmed that the paper's Var is a slip): `s` is
    the unbiased standard deviation of `d^2` over all ordered pairs of distinct points, as in
    `d^2 != 0`; the graph is then invariant to the scale of the features. `bandwidth="var"` (the
    paper's text): `s` is the unbiased variance of `d^2` over all pairs i != j.
    Gradients flow through `s`, as in the authors' code. `rbf_scale`, 1 in that code, divides `s`:
    a larger one leaves edges between nearer points alone.
    Points at equal distances from one another have `s = 0`: the limit, no edges, is returned.

    The graph of float32 features is computed in float32, which takes half of the time, and again
    in float64 for the sets (episodes) of which float32 may not be exact enough: if points may be
    equal, or if `s` is small beside the distances or near the smallest float32 number. The graph of
    features of another dtype is computed in float64, and so is every graph under `torch.compile`,
    or where torch may round the inputs of float32 products to TF32 or bfloat16.
    """
    if features.dtype != torch.float32 or _may_round_products(features):
        return _in_float64(features, bandwidth, rbf_scale)
    graph, exact = _graph(features, bandwidth, NEAR, rbf_scale)
    if not bool(exact.all()):
        # Anew: what overflows has no gradient, not even one of which nothing is used.
        graph = torch.zeros_like(graph)
        graph[exact] = _graph(features[exact], bandwidth, NEAR, rbf_scale)[0]
        graph[~exact] = _in_float64(features[~exact], bandwidth, rbf_scale)
    return graph


def _may_round_products(values: Tensor) -> bool:
    """Whether torch may round the inputs of float32 matrix products on the device of the values.

    The backend knows the settings of both of torch's interfaces; `get_float32_matmul_precision`
    raises once the newer one, `fp32_precision`, has been used. True while torch compiles, because
    a compiled program may run under another setting.
    """
    if torch.compiler.is_compiling():
        return True
    backend = torch.backends.cuda if values.is_cuda else torch.backends.mkldnn
    return backend.matmul.fp32_precision not in ("none", "ieee")


def _in_float64(features: Tensor, bandwidth: Bandwidth, rbf_scale: float) -> Tensor:
    """The graph of any features, in their dtype."""
    graph, _ = _graph(features.to(torch.float64), bandwidth, EQUAL, rbf_scale)
    return graph.to(features.dtype)


def _graph(
    points: Tensor, bandwidth: Bandwidth, near: float, rbf_scale: float
) -> tuple[Tensor, Tensor]:
    """The graph in the points' precision, and of which sets float32 is exact enough for it."""
    distances, equal = _pairwise(points, near)
    n = distances.shape[-1]
    diagonal = torch.eye(n, dtype=torch.bool, device=distances.device)
    apart = n * n - torch.count_nonzero(equal, dim=(-2, -1))
    if points.dtype == torch.float64 and not _holds(apart.all()):
        raise DegenerateFeaturesError(
            f"embedding propagation needs points that differ: all {n} points of at least one set, "
            f"of {points.shape[-1]} features each, are equal"
        )
    # As few passes over N^2 numbers as there can be: for many points they are most of the work.
    left_out, count = (
        (equal, apart[..., None, None]) if bandwidth == "std" else (diagonal, n * (n - 1))
    )
    mean = distances.sum(dim=(-2, -1), keepdim=True) / count
    deviations = (distances - mean).masked_fill_(left_out, 0)
    variance = deviations.square().sum(dim=(-2, -1), keepdim=True) / (count - 1)
    smallest = (torch.finfo(distances.dtype).eps * mean.detach()).square()
    variance = torch.maximum(variance, smallest)
    scale = (variance.sqrt() if bandwidth == "std" else variance) / rbf_scale
    wide = (scale > NARROW * mean) & (variance > SMALLEST_VARIANCE) & scale.isfinite()
    exact = (apart == n * n - n) & wide[..., 0, 0]
    return (distances / -scale).exp_().masked_fill(diagonal, 0), exact


def normalized_adjacency(adjacency: Tensor) -> Tensor:
    """`L = D^-1/2 A D^-1/2` (equation 1), degrees with the authors' offset of 1e-4."""
    scaling = (adjacency.sum(dim=-1) + DEGREE_OFFSET).rsqrt()
    return scaling[..., :, None] * adjacency * scaling[..., None, :]


class _Solve(torch.autograd.Function):
    """`M^-1 V` of symmetric `M` `(..., N, N)`, given with its Cholesky factor, and `(..., N, K)` V.

    Its gradient, for the gradient G of the result X, is `S = M^-1 G` of V and `-S X^T` of M: one
    more solution with the same factor, where that of the factorization itself takes two triangular
    systems of N columns and twice the time.
    """

    @staticmethod
    def forward(matrix: Tensor, factor: Tensor, values: Tensor) -> Tensor:
        return _solved(factor, values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        matrix, factor, _ = inputs
        ctx.save_for_backward(matrix, factor, output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, Tensor]:
        matrix, factor, solution = ctx.saved_tensors
        solved = _solve(matrix, factor, gradients[0])
        return -solved @ solution.mT, None, solved


def _solve(matrix: Tensor, factor: Tensor, values: Tensor) -> Tensor:
    solution: Tensor = _Solve.apply(matrix, factor, values)  # type: ignore[no-untyped-call]
    return solution


def _solved(factor: Tensor, values: Tensor) -> Tensor:
    """`M^-1 V` `(..., N, K)`, of many columns by the inverse: two triangular systems cost more."""
    solved: Tensor
    if values.shape[-1] > 2 * factor.shape[-1] and not _may_round_products(values):
        solved = torch.cholesky_inverse(factor) @ values
    else:
        solved = torch.cholesky_solve(values, factor)
    return solved


class Propagator:
    """`P = (I - alpha L)^-1` (equation 2) of the graph of features `(..., N, D)`.

    Held as the matrix `I - alpha L` and its Cholesky factor, so that it can be applied many times.
    """

    def __init__(
        self,
        features: Tensor,
        alpha: float,
        bandwidth: Bandwidth = "std",
        rbf_scale: float = 1.0,
    ) -> None:
        laplacian = normalized_adjacency(similarity_graph(features, bandwidth, rbf_scale))
        identity = torch.eye(laplacian.shape[-1], dtype=laplacian.dtype, device=laplacian.device)
        self._system = identity - alpha * laplacian
        self._factor: Tensor = torch.linalg.cholesky(self._system.detach())

    @property
    def shape(self) -> torch.Size:
        """`(..., N, N)`."""
        return self._factor.shape

    @property
    def dtype(self) -> torch.dtype:
        return self._factor.dtype

    def apply(self, values: Tensor) -> Tensor:
        """`P @ values` for values `(..., N, K)`."""
        return _solve(self._system, self._factor, values)

    def matrix(self) -> Tensor:
        """`P` itself `(..., N, N)`."""
        identity = torch.eye(self.shape[-1], dtype=self.dtype, device=self._factor.device)
        return self.apply(identity.expand_as(self._factor))


def one_hot(labels: Tensor) -> Tensor:
    """Classes int64 `(..., N)` as `(..., N, C)`, a zero row for -1; C is the largest class + 1.

    Raises:
        ValueError: if no point has a class.
    """
    classes = int(labels.max()) + 1
    if classes < 1:
        raise ValueError("labels have no class, all are negative; label some points")
    rows = nn.functional.one_hot(labels.long().clamp_min(0), classes)
    return rows * (labels >= 0)[..., None]


def _holds(condition: Tensor) -> bool:
    """Whether a condition on values is true, which `torch.compile` and `torch.export` assume."""
    return torch.compiler.is_compiling() or bool(condition)


def _check_alpha(alpha: float) -> None:
    if not 0 <= alpha < 1:
        raise ValueError(f"alpha must lie in [0, 1), got {alpha}")


def _check_rbf_scale(rbf_scale: float) -> None:
    if not 0 < rbf_scale < math.inf:
        raise ValueError(f"rbf_scale must be positive, got {rbf_scale}")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")


def _check_features(features: Tensor) -> None:
    if not isinstance(features, Tensor) or not features.is_floating_point():
        kind = features.dtype if isinstance(features, Tensor) else type(features).__name__
        raise ValueError(f"features must be a floating-point torch.Tensor, got {kind}")
    if features.dim() < 2 or features.shape[-2] < 2:
        raise ValueError(
            f"features must have shape (..., N, D) with N >= 2 points, got {tuple(features.shape)}"
        )
    # One sum is a third of the work of looking at each value; it overflows only if values are huge.
    if not _holds(torch.isfinite(features.detach().sum())):
        bad = int((~torch.isfinite(features)).sum())
        if bad == 0:
            return
        raise DegenerateFeaturesError(
            f"features of shape {tuple(features.shape)} hold {bad} NaN or infinite values"
        )


def at_least_float32(values: Tensor) -> Tensor:
    """The values in float32 if they are in half precision, else as they are."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def no_autocast(values: Tensor) -> torch.autocast:
    """A context in which autocast is off, on the device of the values.

    For what decides between classes, as scores in half precision have ties, and for losses, of
    which CUDA's autocast refuses binary cross-entropy.
    """
    return torch.autocast(values.device.type, enabled=False)


class EmbeddingPropagation(nn.Module):
    """Replaces each feature vector by a weighted sum of its neighbors (equation 3).

    Input: features `(..., N, D)` of any floating-point dtype. Output: embeddings of the same
    shape and dtype, `Z~ = P Z`; half precision, as under autocast, is propagated in float32. It
    has no parameters and is differentiable, the graph included. As in the authors' code the rows
    of P are not normalized unless `normalize` says so, and embeddings come out scaled by about
    `1 / (1 - alpha)`.

    A graph is one episode's: its support and queries together. Any other dimension in front of
    the last two is taken for episodes, so feature maps `(B, C, H, W)` are flattened or averaged
    first, and images of several episodes stand in several graphs. Whether it helps depends on
    the phase: docs/findings.md has it in training and at test.

    Args:
        alpha: strength of the propagation, in [0, 1). The paper gives no value; 0.5 is the
            authors' code.
        bandwidth: `"std"` (the authors' code) or `"var"` (the paper's text), see
            `similarity_graph`.
        part: which part of P to apply: `"full"`, `"off-diagonal"` (only the neighbors) or
            `"diagonal"` (only the point itself), as in the paper's propagator ablation.
        normalize: divide each row of P by its sum over all points; `norm_prop` of the authors.
        rbf_scale: see `similarity_graph`.

    Raises:
        ValueError: for NaN or infinite features, fewer than two points, points that are all
            equal, or anything but a floating-point tensor. Under `torch.compile` and in a program
            of `torch.export` values are not looked at.
    """

    def __init__(
        self,
        alpha: float = 0.5,
        bandwidth: Bandwidth = "std",
        part: Part = "full",
        normalize: bool = False,
        rbf_scale: float = 1.0,
    ) -> None:
        super().__init__()
        _check_alpha(alpha)
        _check_choice("bandwidth", bandwidth, get_args(Bandwidth))
        _check_choice("part", part, get_args(Part))
        _check_rbf_scale(rbf_scale)
        self.alpha, self.bandwidth, self.part = alpha, bandwidth, part
        self.normalize, self.rbf_scale = normalize, rbf_scale

    def forward(self, features: Tensor) -> Tensor:
        _check_features(features)
        with no_autocast(features):
            return self._propagated(at_least_float32(features)).to(features.dtype)

    def _propagated(self, features: Tensor) -> Tensor:
        propagator = Propagator(features, self.alpha, self.bandwidth, self.rbf_scale)
        embeddings = self._part_of(propagator, features)
        if self.normalize:
            embeddings = embeddings / propagator.apply(torch.ones_like(features[..., :1]))
        return embeddings

    def _part_of(self, propagator: Propagator, features: Tensor) -> Tensor:
        if self.part == "full":
            return propagator.apply(features)
        matrix = propagator.matrix()
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)[..., None] * features
        return diagonal if self.part == "diagonal" else propagator.apply(features) - diagonal

    def extra_repr(self) -> str:
        return (
            f"alpha={self.alpha}, bandwidth={self.bandwidth!r}, part={self.part!r}, "
            f"normalize={self.normalize}, rbf_scale={self.rbf_scale}"
        )


class LabelPropagation(nn.Module):
    """Transductive classifier: propagates the labels of some points to all of them.

    Input: features `(..., N, D)` and labels: int64 classes `(..., N)`, -1 for unlabeled (query)
    points, or one-hot `(..., N, C)` with zero rows for these, which `torch.export` asks for, as the
    number of classes is not read from values then. Output: log-scores `(..., N, C)`,
    `log(P Y + 1e-6)`; their `.softmax(-1)` is the class distribution of the authors' code. They
    are of the features' dtype, but float32 for half precision, which would round close scores to
    ties. The graph is built anew from the features given, so after `EmbeddingPropagation` it is the
    graph of the embeddings, as in that code.

    Args:
        alpha: strength of the propagation, in [0, 1); 0.2 in the authors' code.
        balanced: divide each class's column of labels by its number of labeled points, as the
            authors do in the semi-supervised setting. Without it a class with many labels
            outweighs one with few: with 50 labels of one class and 1 of another, six standard
            deviations apart, all points get the first class (50 % are right, balanced 98 %).
        bandwidth: see `similarity_graph`.
        normalize: divide each row of P by its sum over all points (the authors' code); False
            is the paper's text. It never changes which class has the highest score.
        rbf_scale: see `similarity_graph`.

    Raises:
        ValueError: as `EmbeddingPropagation`, and for labels that are not finite or whose shape
            does not match.
    """

    def __init__(
        self,
        alpha: float = 0.2,
        balanced: bool = False,
        bandwidth: Bandwidth = "std",
        normalize: bool = True,
        rbf_scale: float = 1.0,
    ) -> None:
        super().__init__()
        _check_alpha(alpha)
        _check_choice("bandwidth", bandwidth, get_args(Bandwidth))
        _check_rbf_scale(rbf_scale)
        self.alpha, self.balanced = alpha, balanced
        self.bandwidth, self.normalize, self.rbf_scale = bandwidth, normalize, rbf_scale

    def forward(self, features: Tensor, labels: Tensor) -> Tensor:
        return self.log_scores(self.propagator(features), labels)

    def propagator(self, features: Tensor) -> Propagator:
        """The propagator of features `(..., N, D)`, for more than one set of labels."""
        _check_features(features)
        with no_autocast(features):
            return Propagator(
                at_least_float32(features), self.alpha, self.bandwidth, self.rbf_scale
            )

    def log_scores(self, propagator: Propagator, labels: Tensor) -> Tensor:
        """Log-scores `(..., N, C)` of labels, one-hot or int64, of the propagator's points."""
        if labels.dim() == len(propagator.shape) - 1 and not labels.is_floating_point():
            labels = one_hot(labels)
        if labels.dim() != len(propagator.shape) or labels.shape[:-1] != propagator.shape[:-1]:
            raise ValueError(
                f"labels must be int64 of shape {tuple(propagator.shape[:-1])}, -1 where there is "
                "none, or one-hot with the classes as one more dimension; got "
                f"{labels.dtype} of shape {tuple(labels.shape)}"
            )
        labels = labels.to(propagator.dtype)
        if not _holds(torch.isfinite(labels).all()):
            raise ValueError(f"labels of shape {tuple(labels.shape)} hold NaN or infinite values")
        if self.balanced:
            labels = labels / labels.sum(dim=-2, keepdim=True).clamp_min(1)
        ones = torch.ones_like(labels[..., :1])
        with no_autocast(labels):
            spread = propagator.apply(torch.cat([labels, ones], dim=-1))
            scores, row_sums = spread[..., :-1], spread[..., -1:]
            if self.normalize:
                scores = scores / row_sums
            # P has no negative entries; rounding may leave some of about -1e-8.
            return torch.log(scores.clamp_min(0) + SCORE_OFFSET)

    def extra_repr(self) -> str:
        return (
            f"alpha={self.alpha}, balanced={self.balanced}, bandwidth={self.bandwidth!r}, "
            f"normalize={self.normalize}, rbf_scale={self.rbf_scale}"
        )
