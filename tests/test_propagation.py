"""Embedding and label propagation against a brute-force transcription of the paper's equations."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from epcore import EmbeddingPropagation, LabelPropagation
from epcore.propagation import Propagator, similarity_graph

BANDWIDTHS = ("std", "var")
PARTS = ("full", "off-diagonal", "diagonal")
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}


def embed(points):
    return EmbeddingPropagation()(points)


def spread(points):
    return LabelPropagation()(points, torch.zeros(*points.shape[:-1], 2))


MODULES = (embed, spread)


# -- the paper's equations, one loop an index --------------------------------------------------


def brute_propagator(points, alpha, bandwidth="std", rbf_scale=1.0):
    """P of equations 1 and 2 for points `(n, d)`; the degree offset 1e-4 is the authors'."""
    points = np.asarray(points, dtype=np.float64)
    n = len(points)
    ordered_pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    distance = {(i, j): ((points[i] - points[j]) ** 2).sum() for i, j in ordered_pairs}
    counted = [d for d in distance.values() if bandwidth == "var" or d != 0]
    mean = math.fsum(counted) / len(counted)
    variance = math.fsum((d - mean) ** 2 for d in counted) / (len(counted) - 1)
    scale = (math.sqrt(variance) if bandwidth == "std" else variance) / rbf_scale
    adjacency = np.zeros((n, n))
    for pair, d in distance.items():
        # Equal distances: the limit of exp(-d / scale) for a scale that falls to zero.
        adjacency[pair] = math.exp(-d / scale) if variance > (1e-12 * mean) ** 2 else d == 0
    degree = [adjacency[i].sum() + 1e-4 for i in range(n)]
    laplacian = np.zeros((n, n))
    for i, j in ordered_pairs:
        laplacian[i, j] = adjacency[i, j] / math.sqrt(degree[i] * degree[j])
    return np.linalg.inv(np.eye(n) - alpha * laplacian)


def brute_embeddings(points, alpha, bandwidth="std", part="full"):
    """Equation 3 over all j, over j != i or over j = i."""
    points = np.asarray(points, dtype=np.float64)
    matrix, n = brute_propagator(points, alpha, bandwidth), len(points)
    wanted = {"full": lambda i, j: True, "off-diagonal": lambda i, j: i != j}.get(
        part, lambda i, j: i == j
    )
    return np.array(
        [sum((matrix[i, j] * points[j] for j in range(n) if wanted(i, j)), 0 * points[i])
         for i in range(n)]
    )  # fmt: skip


def brute_scores(points, labels, alpha, bandwidth="std", balanced=False, normalize=True):
    matrix = brute_propagator(points, alpha, bandwidth)
    labels = np.asarray(labels, dtype=np.float64)
    if balanced:
        labels = labels / np.maximum(labels.sum(axis=0), 1)
    if normalize:
        matrix = matrix / matrix.sum(axis=1, keepdims=True)
    return np.log(matrix @ labels + 1e-6)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).to(dtype)


def support_labels(points, classes=3, labeled=6):
    """The first points are labeled 0, 0, 1, 1, 2, 2, ...; the rest have zero rows."""
    labels = functional.one_hot(torch.arange(labeled) // 2 % classes, classes)
    return functional.pad(labels, (0, 0, 0, points - labeled)).double()


def assert_close(actual, expected, tolerance=1e-10):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    assert actual.shape == expected.shape
    difference = (actual.detach().double() - expected).abs().max()
    assert difference <= tolerance * max(1, expected.abs().max())


# -- agreement with the equations --------------------------------------------------------------


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
@pytest.mark.parametrize("alpha", [0, 0.2, 0.5, 0.99])
def test_embedding_propagation_is_equations_1_to_3(alpha, bandwidth, part, dtype):
    points = normal(12, 7, dtype=dtype)
    actual = EmbeddingPropagation(alpha, bandwidth, part)(points)
    assert actual.dtype == dtype
    expected = brute_embeddings(points, alpha, bandwidth, part)
    assert_close(actual, expected, 10 * TOLERANCE[dtype] if alpha == 0.99 else TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_label_propagation_is_the_log_of_p_times_the_labels(bandwidth, balanced, normalize, dtype):
    points = normal(12, 4, dtype=dtype)
    labels = support_labels(12)
    labels[6, 0] = 1  # three points of class 0, two of each other class
    module = LabelPropagation(0.2, balanced, bandwidth, normalize)
    actual = module(points, labels)
    assert actual.dtype == dtype
    expected = brute_scores(points, labels, 0.2, bandwidth, balanced, normalize)
    assert_close(actual, expected, TOLERANCE[dtype])


def test_the_defaults_are_those_of_the_authors_code():
    points, labels = normal(12, 4), support_labels(12)
    assert_close(EmbeddingPropagation()(points), brute_embeddings(points, 0.5, "std"))
    assert_close(LabelPropagation()(points, labels), brute_scores(points, labels, 0.2, "std"))


@pytest.mark.parametrize("part", PARTS)
def test_normalized_embeddings_are_divided_by_the_sums_of_the_rows_of_p(part):
    points = normal(12, 7)
    sums = brute_propagator(points, 0.5).sum(axis=1, keepdims=True)
    actual = EmbeddingPropagation(part=part, normalize=True)(points)
    assert_close(actual, brute_embeddings(points, 0.5, part=part) / sums)


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
@pytest.mark.parametrize("rbf_scale", [0.3, 4])
def test_the_scale_of_the_kernel_multiplies_the_exponents(bandwidth, rbf_scale):
    points, labels = normal(12, 4), support_labels(12)
    matrix = brute_propagator(points, 0.5, bandwidth, rbf_scale)
    module = EmbeddingPropagation(0.5, bandwidth, rbf_scale=rbf_scale)
    assert_close(module(points), matrix @ points.numpy())
    matrix = brute_propagator(points, 0.2, bandwidth, rbf_scale)
    spread = LabelPropagation(0.2, bandwidth=bandwidth, normalize=False, rbf_scale=rbf_scale)
    assert_close(spread(points, labels), np.log(matrix @ labels.numpy() + 1e-6))


@pytest.mark.parametrize("rbf_scale", [0, -1, math.inf, math.nan])
def test_a_scale_of_the_kernel_that_makes_no_graph_is_refused(rbf_scale):
    for module in (EmbeddingPropagation, LabelPropagation):
        with pytest.raises(ValueError, match="rbf_scale must be positive"):
            module(rbf_scale=rbf_scale)


@pytest.mark.parametrize("sets", [(), (2,)])
def test_classes_as_integers_are_one_hot_labels(sets):
    points = normal(*sets, 12, 4)
    one_hot = support_labels(12).expand(*sets, 12, 3)
    classes = torch.where(one_hot.sum(-1) > 0, one_hot.argmax(-1), -1)
    assert torch.equal(LabelPropagation()(points, classes), LabelPropagation()(points, one_hot))


def test_integers_without_any_class_are_refused():
    with pytest.raises(ValueError, match="labels have no class, all are negative"):
        LabelPropagation()(normal(6, 3), torch.full((6,), -1))


@pytest.mark.parametrize(("bandwidth", "scale"), [("std", 14 / math.sqrt(15)), ("var", 196 / 15)])
def test_three_points_on_a_line_agree_with_arithmetic_by_hand(bandwidth, scale):
    # Points 0, 1, 3: squared distances 1, 4, 9, each in two ordered pairs, mean 14/3, unbiased
    # variance 2 (121 + 4 + 169) / 9 / 5 = 196/15.
    a01, a12, a02 = math.exp(-1 / scale), math.exp(-4 / scale), math.exp(-9 / scale)
    d0, d1, d2 = a01 + a02 + 1e-4, a01 + a12 + 1e-4, a02 + a12 + 1e-4
    p, q, r = (
        0.5 * a / math.sqrt(d * e) for a, d, e in ((a01, d0, d1), (a02, d0, d2), (a12, d1, d2))
    )
    determinant = 1 - p * p - q * q - r * r - 2 * p * q * r
    inverse = [
        [1 - r * r, p + q * r, q + p * r],
        [p + q * r, 1 - q * q, r + p * q],
        [q + p * r, r + p * q, 1 - p * p],
    ]
    line = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)
    actual = Propagator(line, 0.5, bandwidth).matrix()
    assert_close(actual, torch.tensor(inverse, dtype=torch.float64) / determinant, 1e-14)
    embeddings = [[(row[1] + 3 * row[2]) / determinant] for row in inverse]
    module = EmbeddingPropagation(0.5, bandwidth)
    assert_close(module(line), torch.tensor(embeddings, dtype=torch.float64), 1e-14)
    # The outer points are labeled; the middle one sees each by its entry of P, rows summing to 1.
    scores = [row[k] / sum(row) for row in inverse for k in (0, 2)]
    logs = torch.tensor(scores, dtype=torch.float64).view(3, 2).add(1e-6).log()
    labels = torch.tensor([[1, 0], [0, 0], [0, 1]])
    assert_close(LabelPropagation(0.5, bandwidth=bandwidth)(line, labels), logs, 1e-14)


def test_the_bandwidth_is_no_other_moment_of_the_distances():
    line = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)
    graph = similarity_graph(line)
    assert -1 / math.log(graph[0, 1]) == pytest.approx(math.sqrt(196 / 15), rel=1e-12)
    graph = similarity_graph(line, "var")
    assert -1 / math.log(graph[0, 1]) == pytest.approx(196 / 15, rel=1e-12)


def test_alpha_zero_changes_nothing():
    points = normal(9, 5)
    for bandwidth in BANDWIDTHS:
        assert torch.equal(EmbeddingPropagation(0, bandwidth)(points), points)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
@pytest.mark.parametrize("corners", [2, 3, 5, 8])
def test_points_at_equal_distances_have_no_edges(corners, bandwidth, dtype):
    simplex = torch.eye(corners, dtype=dtype) * 3
    assert similarity_graph(simplex, bandwidth).count_nonzero() == 0
    assert_close(EmbeddingPropagation(0.5, bandwidth)(simplex), simplex, TOLERANCE[dtype] / 100)


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_gradients_at_equal_distances_are_those_of_the_identity(bandwidth):
    two = normal(2, 3, dtype=torch.float32).requires_grad_()
    (gradient,) = torch.autograd.grad(EmbeddingPropagation(0.5, bandwidth)(two).sum(), two)
    assert_close(gradient, torch.ones(2, 3), 1e-6)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_tight_and_distant_clusters_agree_with_the_equations(dtype):
    # Within a cluster the points differ by a ten-thousandth of the distance between clusters.
    centers = torch.tensor([[0.0, 0], [1, 0], [0, 2]], dtype=dtype).repeat_interleave(3, 0)
    points = centers + 1e-4 * normal(9, 2, dtype=dtype)
    assert_close(EmbeddingPropagation()(points), brute_embeddings(points, 0.5), TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_equal_points_stay_equal_and_are_left_out_of_the_std_only(bandwidth, dtype):
    points = normal(6, 40, dtype=dtype).relu()
    points = torch.cat([points, points[:3], points[:1]])
    embeddings = EmbeddingPropagation(0.5, bandwidth)(points)
    assert_close(embeddings[[6, 7, 8, 9]], embeddings[[0, 1, 2, 0]].double(), TOLERANCE[dtype])
    assert_close(embeddings, brute_embeddings(points, 0.5, bandwidth), TOLERANCE[dtype])


def test_exact_duplicates_among_many_wide_features_are_recognized_in_float32():
    points = normal(150, 640, dtype=torch.float32).relu()
    graph = similarity_graph(torch.cat([points, points.flip(0)]))
    assert (graph[torch.arange(150), 299 - torch.arange(150)] == 1).all()


# -- properties --------------------------------------------------------------------------------


@st.composite
def point_sets(draw):
    """A tensor `(n, d)`, some of its points repeated, of any scale from 1e-3 to 1e3."""
    distinct = draw(st.integers(2, 9))
    points = normal(distinct, draw(st.integers(1, 8)), seed=draw(st.integers(0, 2**32 - 1)))
    points = points * 10 ** draw(st.floats(-3, 3))
    repeated = draw(st.lists(st.integers(0, distinct - 1), max_size=3))
    dtype = draw(st.sampled_from(list(TOLERANCE)))
    return torch.cat([points, points[repeated]]).to(dtype)


ANY_ALPHA = st.floats(0, 0.95)


@settings(deadline=None, max_examples=300)
@given(point_sets(), ANY_ALPHA, st.sampled_from(BANDWIDTHS), st.sampled_from(PARTS))
def test_any_points_are_embedded_as_the_equations_say(points, alpha, bandwidth, part):
    points.requires_grad_()
    embeddings = EmbeddingPropagation(alpha, bandwidth, part)(points)
    assert embeddings.shape == points.shape
    assert embeddings.dtype == points.dtype
    (gradient,) = torch.autograd.grad(embeddings.square().sum(), points)
    assert gradient.isfinite().all()
    expected = torch.from_numpy(brute_embeddings(points.detach(), alpha, bandwidth, part))
    error = (embeddings.detach() - expected).abs().max() / points.detach().abs().max()
    assert error <= 20 * TOLERANCE[points.dtype]  # the condition of I - 0.95 L is up to 39


@settings(deadline=None, max_examples=200)
@given(point_sets(), ANY_ALPHA, st.sampled_from(BANDWIDTHS), st.booleans(), st.booleans())
def test_any_labels_spread_as_the_equations_say(points, alpha, bandwidth, balanced, normalize):
    labels = torch.zeros(len(points), 3)
    labels[0, 2] = labels[1, 0] = 1
    scores = LabelPropagation(alpha, balanced, bandwidth, normalize)(points, labels)
    assert scores.dtype == points.dtype
    expected = brute_scores(points, labels, alpha, bandwidth, balanced, normalize)
    assert scores.shape == expected.shape
    error = (scores.double().exp() - torch.from_numpy(expected).exp()).abs().max()
    assert error <= 20 * TOLERANCE[points.dtype]
    assert (scores >= scores.new_tensor(1e-6).log()).all()


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_the_order_of_the_points_does_not_matter(bandwidth):
    points, labels = normal(10, 4), support_labels(10)
    order = torch.from_numpy(np.random.default_rng(1).permutation(10))
    for part in PARTS:
        module = EmbeddingPropagation(0.5, bandwidth, part)
        assert_close(module(points[order]), module(points)[order])
    module = LabelPropagation(bandwidth=bandwidth)
    assert_close(module(points[order], labels[order]), module(points, labels)[order])


@pytest.mark.parametrize("leading", [(4,), (2, 3), (2, 1, 3), (0,), (1,)])
def test_sets_in_a_batch_do_not_see_each_other(leading):
    # Scales differ, so that a bandwidth shared by the batch would show.
    count = math.prod(leading)
    points = normal(count, 8, 3) * torch.logspace(-1, 2, count, dtype=torch.float64)[:, None, None]
    labels = support_labels(8).expand(count, 8, 3)
    for bandwidth in BANDWIDTHS:
        embed = EmbeddingPropagation(0.5, bandwidth)
        spread = LabelPropagation(0.2, True, bandwidth)
        embeddings = embed(points.view(*leading, 8, 3))
        scores = spread(points.view(*leading, 8, 3), labels.reshape(*leading, 8, 3))
        assert embeddings.shape == scores.shape == (*leading, 8, 3)
        for k in range(count):
            assert_close(embeddings.view(count, 8, 3)[k], embed(points[k]), 1e-12)
            assert_close(scores.view(count, 8, 3)[k], spread(points[k], labels[k]), 1e-12)


def test_with_std_the_graph_does_not_depend_on_the_scale_of_the_features():
    points = normal(8, 4)
    for factor in (1e-3, 0.1, 7, 1e3):
        assert_close(Propagator(factor * points, 0.5).matrix(), Propagator(points, 0.5).matrix())
        assert_close(
            EmbeddingPropagation()(factor * points) / factor, EmbeddingPropagation()(points)
        )


def test_with_var_small_features_have_no_edges_and_large_ones_a_complete_graph():
    points = normal(8, 4)
    complete = 1 - torch.eye(8, dtype=torch.float64)
    assert_close(similarity_graph(1e-3 * points, "var"), torch.zeros(8, 8))
    assert_close(similarity_graph(1e3 * points, "var"), complete, 1e-4)
    middle = similarity_graph(points, "var")
    assert 0.1 < middle.sum() / complete.sum() < 0.9


@pytest.mark.parametrize(("dtype", "offset"), [(torch.float32, 2**12), (torch.float64, 2**40)])
def test_the_graph_does_not_depend_on_where_the_features_lie(dtype, offset):
    points = (64 * normal(8, 4)).round().to(dtype) / 64  # so that the sum below is exact
    for bandwidth in BANDWIDTHS:
        moved = Propagator(points + offset, 0.5, bandwidth).matrix()
        assert_close(moved, brute_propagator(points, 0.5, bandwidth), TOLERANCE[dtype] / 100)


def test_the_graph_is_symmetric_without_loops_and_between_0_and_1():
    for bandwidth in BANDWIDTHS:
        graph = similarity_graph(normal(9, 3), bandwidth)
        assert torch.equal(graph, graph.mT)
        assert (graph.diagonal() == 0).all()
        assert (graph >= 0).all()
        assert (graph <= 1).all()


def test_the_diagonal_and_the_off_diagonal_part_sum_to_the_whole():
    points = normal(2, 9, 4)
    for bandwidth in BANDWIDTHS:
        full, off, diagonal = (EmbeddingPropagation(0.5, bandwidth, p)(points) for p in PARTS)
        assert_close(off + diagonal, full)
        assert (off - full).abs().max() > 0.1


def test_scores_are_a_distribution_when_every_point_is_labeled():
    points = normal(9, 3)
    labels = torch.eye(3, dtype=torch.float64).repeat(3, 1)
    for bandwidth in BANDWIDTHS:
        shares = LabelPropagation(bandwidth=bandwidth)(points, labels).exp() - 1e-6
        assert_close(shares.sum(-1), torch.ones(9))
        raw = LabelPropagation(bandwidth=bandwidth, normalize=False)(points, labels).exp() - 1e-6
        assert_close(raw.sum(-1), brute_propagator(points, 0.2, bandwidth).sum(axis=1))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_queries_take_the_label_of_their_cluster(dtype):
    centers = 4 * normal(5, 16, dtype=dtype)
    points = (centers + normal(20, 5, 16, seed=1, dtype=dtype)).flatten(
        0, 1
    )  # one shot, 19 queries
    labels = functional.pad(torch.eye(5), (0, 0, 0, 95))
    answers = LabelPropagation()(EmbeddingPropagation()(points), labels).argmax(-1)
    assert answers.tolist() == list(range(5)) * 20


def test_normalize_never_changes_the_answer():
    for seed in range(30):
        points, labels = normal(4, 20, 3, seed=seed), support_labels(20).expand(4, -1, -1)
        for balanced in (True, False):
            shares = LabelPropagation(balanced=balanced)(points, labels)
            raw = LabelPropagation(balanced=balanced, normalize=False)(points, labels)
            assert torch.equal(shares.argmax(-1), raw.argmax(-1))
            assert (shares - raw).abs().max() > 0.01


def test_without_labels_every_class_scores_the_least():
    scores = LabelPropagation()(normal(6, 3), torch.zeros(6, 2))
    assert_close(scores, torch.full((6, 2), math.log(1e-6), dtype=torch.float64))


# -- gradients ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
@pytest.mark.parametrize("part", PARTS)
def test_embedding_propagation_has_the_gradient_of_finite_differences(part, bandwidth):
    points = normal(2, 5, 3).requires_grad_()
    assert torch.autograd.gradcheck(EmbeddingPropagation(0.5, bandwidth, part), points)


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
@pytest.mark.parametrize("normalize", [True, False])
def test_label_propagation_has_the_gradient_of_finite_differences(normalize, bandwidth):
    points, labels = normal(7, 3).requires_grad_(), support_labels(7).requires_grad_()
    module = LabelPropagation(0.2, False, bandwidth, normalize)
    assert torch.autograd.gradcheck(module, (points, labels))


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_gradients_flow_through_the_bandwidth(bandwidth):
    def gradient(embed):
        points = normal(8, 3).requires_grad_()
        return torch.autograd.grad((embed(points) * normal(8, 3, seed=1)).sum(), points)[0]

    def written_out(points, detach):
        distances = (points[:, None] - points[None]).square().sum(-1)
        off_diagonal = ~torch.eye(8, dtype=torch.bool)
        pairs = distances[off_diagonal]
        scale = pairs.std() if bandwidth == "std" else pairs.var()
        adjacency = torch.exp(-distances / (scale.detach() if detach else scale)) * off_diagonal
        root = torch.diag((adjacency.sum(1) + 1e-4) ** -0.5)
        identity = torch.eye(8, dtype=torch.float64)
        return torch.linalg.inv(identity - 0.5 * root @ adjacency @ root) @ points

    actual = gradient(EmbeddingPropagation(0.5, bandwidth))
    assert_close(actual, gradient(lambda points: written_out(points, detach=False)))
    detached = gradient(lambda points: written_out(points, detach=True))
    assert (actual - detached).norm() > 0.01 * actual.norm()


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused(value):
    points = normal(3, 5, 4)
    points[1, 2, 3] = value
    for module in MODULES:
        with pytest.raises(ValueError, match=r"features of shape \(3, 5, 4\) hold 1 NaN or infin"):
            module(points)


@pytest.mark.parametrize("shape", [(1, 4), (3, 1, 4), (4,), ()])
def test_fewer_than_two_points_are_refused(shape):
    message = r"features must have shape \(\.\.\., N, D\) with N >= 2 points, got \("
    for module in MODULES:
        with pytest.raises(ValueError, match=message):
            module(torch.ones(shape))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("value", [0, 0.1])
def test_a_set_of_equal_points_is_refused_even_among_good_sets(dtype, value):
    equal = torch.full((5, 3), value, dtype=dtype)
    for module in MODULES:
        for points in (equal, torch.stack([normal(5, 3, dtype=dtype), equal])):
            with pytest.raises(ValueError, match=r"points that differ.*all 5 points .* are equal"):
                module(points)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (torch.eye(3, dtype=torch.int64), "torch.int64"),
        (torch.eye(3, dtype=torch.complex64), "torch.complex64"),
        (np.eye(3), "ndarray"),
    ],
)
def test_anything_but_a_floating_point_tensor_is_refused(given, named):
    message = f"^features must be a floating-point torch.Tensor, got {named}$"
    for module in (EmbeddingPropagation(), LabelPropagation().propagator):
        with pytest.raises(ValueError, match=message):
            module(given)


@pytest.mark.parametrize(
    ("features", "labels"),
    [((6, 3), (5, 2)), ((6, 3), (6,)), ((2, 6, 3), (6, 2)), ((2, 6, 3), (1, 6, 2))],
)
def test_labels_of_another_shape_are_refused(features, labels):
    message = r"labels must be int64 of shape \(.* or one-hot .* got torch\.float32 of shape \("
    with pytest.raises(ValueError, match=message):
        LabelPropagation()(normal(*features), torch.zeros(labels))


def test_labels_that_are_not_finite_are_refused():
    labels = support_labels(7)
    labels[0, 0] = math.nan
    with pytest.raises(ValueError, match=r"labels of shape \(7, 3\) hold NaN or infinite"):
        LabelPropagation()(normal(7, 3), labels)


@pytest.mark.parametrize("alpha", [-0.1, 1, math.nan])
def test_alpha_outside_0_to_1_is_refused(alpha):
    for module in (EmbeddingPropagation, LabelPropagation):
        with pytest.raises(ValueError, match=rf"alpha must lie in \[0, 1\), got {alpha}"):
            module(alpha=alpha)


def test_unknown_choices_are_refused_with_those_that_exist():
    for module in (EmbeddingPropagation, LabelPropagation):
        with pytest.raises(ValueError, match="bandwidth must be one of std, var; got 'median'"):
            module(bandwidth="median")
    message = "part must be one of full, off-diagonal, diagonal; got 'upper'"
    with pytest.raises(ValueError, match=message):
        EmbeddingPropagation(part="upper")


# -- as modules of a network -------------------------------------------------------------------


def test_it_is_a_layer_without_state_that_trains_with_its_network():
    layer = EmbeddingPropagation()
    assert layer.state_dict() == {}
    assert list(layer.parameters()) == []
    assert LabelPropagation().state_dict() == {}
    network = nn.Sequential(nn.Linear(4, 8), layer, nn.Linear(8, 2))
    assert network(normal(3, 6, 4, dtype=torch.float32)).shape == (3, 6, 2)
    network(normal(6, 4, dtype=torch.float32)).square().sum().backward()
    assert network[0].weight.grad.abs().sum() > 0


def test_autocast_does_not_lower_the_precision():
    points, labels = normal(9, 4, dtype=torch.float32), support_labels(9)
    modules = [EmbeddingPropagation(part=part) for part in PARTS]
    modules.append(lambda points: LabelPropagation()(points, labels))
    for module in modules:
        expected = module(points)
        with torch.autocast("cpu", torch.bfloat16):
            actual = module(points)
        assert actual.dtype == torch.float32
        assert torch.equal(actual, expected)


HALVES = {torch.float16: 2**-11, torch.bfloat16: 2**-8}  # largest relative error of rounding


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("part", PARTS)
def test_half_precision_is_propagated_in_float32_and_comes_back_in_half(part, dtype):
    halves = normal(9, 4, dtype=dtype).requires_grad_()
    embeddings = EmbeddingPropagation(part=part)(halves)
    assert embeddings.dtype == dtype
    expected = torch.from_numpy(brute_embeddings(halves.detach().double(), 0.5, "std", part))
    error = (embeddings.detach() - expected).abs()
    assert (error <= HALVES[dtype] * expected.abs() + 1e-5).all()
    points = halves.detach().double().requires_grad_()
    (gradient,) = torch.autograd.grad(embeddings.sum(), halves)
    (wanted,) = torch.autograd.grad(EmbeddingPropagation(part=part)(points).sum(), points)
    assert gradient.dtype == dtype
    assert ((gradient - wanted).abs() <= HALVES[dtype] * wanted.abs() + 1e-5).all()


@pytest.mark.parametrize("dtype", HALVES)
def test_labels_spread_over_half_precision_features_in_float32(dtype):
    halves, labels = normal(9, 4, dtype=dtype).requires_grad_(), support_labels(9)
    scores = LabelPropagation()(halves, labels)
    assert scores.dtype == torch.float32
    assert_close(scores, brute_scores(halves.detach().double(), labels, 0.2), 1e-4)
    assert torch.autograd.grad(scores.sum(), halves)[0].any()


@pytest.mark.parametrize("dtype", HALVES)
def test_it_is_a_layer_of_a_network_under_autocast(dtype):
    linear, points = nn.Linear(4, 8), normal(9, 4, dtype=torch.float32)
    with torch.autocast("cpu", dtype):
        features = linear(points)
        embeddings = EmbeddingPropagation()(features)
        scores = LabelPropagation()(embeddings, support_labels(9))
    assert features.dtype == embeddings.dtype == dtype
    torch.testing.assert_close(embeddings, EmbeddingPropagation()(features.float()).to(dtype))
    scores.sum().backward()
    assert linear.weight.grad.isfinite().all()
    assert linear.weight.grad.any()


def test_the_input_is_left_as_it_was():
    points, labels = normal(9, 4), support_labels(9)
    before = points.clone(), labels.clone()
    EmbeddingPropagation()(points)
    LabelPropagation(balanced=True)(points, labels)
    assert torch.equal(points, before[0])
    assert torch.equal(labels, before[1])


def test_balanced_labels_let_one_label_stand_against_fifty():
    """The accuracies that the docstring gives, of 500 draws."""
    labels = torch.tensor([0] + [1] * 50 + [0] * 15 + [1] * 15)
    known = labels.where(torch.arange(81) < 51, -1)
    means = torch.zeros(2, 16)
    means[1, 0] = 3
    noise = torch.randn(500, 81, 16, generator=torch.Generator().manual_seed(0)) / 2
    accuracies = {}
    for balanced in (False, True):
        scores = LabelPropagation(balanced=balanced)(means[labels] + noise, known.expand(500, -1))
        predicted = scores[:, 51:].argmax(dim=-1)
        accuracies[balanced] = (predicted == labels[51:]).float().mean().item()
    assert accuracies[False] == 0.5
    assert accuracies[True] == pytest.approx(0.98, abs=0.01)


def test_labels_may_be_whole_numbers():
    points, labels = normal(9, 4), support_labels(9)
    assert torch.equal(
        LabelPropagation()(points, labels.long()), LabelPropagation()(points, labels)
    )


def test_importing_the_package_alone_does_not_load_torch():
    program = "import sys, epcore; assert 'torch' not in sys.modules; epcore.LabelPropagation"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12, 1e18])
def test_features_of_any_size_that_float32_can_hold_have_the_same_graph(scale):
    features = torch.randn(12, 5, generator=torch.Generator().manual_seed(3))
    expected = similarity_graph(features)
    torch.testing.assert_close(similarity_graph(scale * features), expected, rtol=1e-4, atol=1e-6)
    assert torch.isfinite(EmbeddingPropagation()(scale * features)).all()


# -- float32 and float64 ---------------------------------------------------------------------------


def with_float64(features, layer):
    """Embeddings and gradients of float32 features, and of the same in float64."""
    found = []
    for points in (features.clone(), features.double()):
        points.requires_grad_()
        embeddings = layer(points)
        embeddings.square().sum().backward()
        found.append((embeddings.detach().double(), points.grad.double()))
    return zip(*found, strict=True)


@pytest.mark.parametrize("size", [4, 64, 640])
@pytest.mark.parametrize("points", [6, 80, 512])
def test_float32_gives_what_float64_gives(points, size):
    """With as many columns as make the solution go through the inverse, and with fewer."""
    features = torch.randn(2, points, size, generator=torch.Generator().manual_seed(size)).relu()
    for found, expected in with_float64(features, EmbeddingPropagation()):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(expected.std()))


def inexact(kind):
    """Twelve points of which float32 alone would not make the graph."""
    features = torch.randn(12, 8, generator=torch.Generator().manual_seed(5))
    match kind:
        case "twins":
            features[3] = features[7]
        case "nearly twins":
            features[3] = features[7] * (1 + 3e-4)
        case "far from zero":
            features += 3e3
        case "nearly equal distances":
            features = torch.eye(12) + 1e-4 * torch.randn(12, 12)
        case "huge":
            features *= 1e15
        case "tiny":
            features *= 3e-12
    return features


ROUNDING = [
    "torch.set_float32_matmul_precision('high')",
    "torch.set_float32_matmul_precision('medium')",
    "torch.backends.fp32_precision = 'tf32'",
    "torch.backends.mkldnn.fp32_precision = 'bf16'",
    "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'",
]
FULL = [
    "",
    "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    "torch.backends.cudnn.conv.fp32_precision = 'tf32'",
    "torch.backends.fp32_precision = 'ieee'",
]


@pytest.mark.slow
def test_where_products_may_round_their_inputs_the_graph_is_made_in_float64():
    """On the CPU, by either interface of torch, each in a fork of its own: they exclude each other.

    Elsewhere float32 is used, which differs from float64 in the last bits.
    """
    program = f"""if True:
    import os, torch
    from epcore import EmbeddingPropagation
    from epcore.propagation import similarity_graph

    def check(setting, rounds):
        exec(setting)
        features = torch.randn(20, 8, generator=torch.Generator().manual_seed(0))
        expected = similarity_graph(features.double()).float()
        assert torch.equal(similarity_graph(features), expected) == rounds, setting
        for part in ("full", "off-diagonal"):
            for columns in (8, 64):  # few, and so many that torch may solve by the inverse
                points = features.repeat(1, columns // 8)
                layer = EmbeddingPropagation(part=part)
                exact = layer(points.double()).float()
                torch.testing.assert_close(layer(points), exact, rtol=1e-4, atol=1e-5)

    for settings, rounds in {[(ROUNDING, True), (FULL, False)]}:
        for setting in settings:
            child = os.fork()
            if child == 0:
                check(setting, rounds)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0, setting
    """
    single = os.environ | {"OMP_NUM_THREADS": "1"}  # a fork has no threads of its parent
    subprocess.run([sys.executable, "-c", program], check=True, env=single)


@pytest.mark.parametrize(
    "kind", ["twins", "nearly twins", "far from zero", "nearly equal distances", "huge", "tiny"]
)
def test_where_float32_is_not_enough_the_graph_is_made_in_float64(kind):
    """Beside a set for which it is, whose graph and gradient stay what they are alone."""
    hard = inexact(kind)
    easy = torch.randn(hard.shape, generator=torch.Generator().manual_seed(6)) * hard.std()
    weights = torch.rand(2, len(hard), len(hard), generator=torch.Generator().manual_seed(7))
    both, exact = (
        torch.stack([easy, hard]).to(d).requires_grad_() for d in (torch.float32, torch.float64)
    )
    graph, expected = similarity_graph(both), similarity_graph(exact)
    torch.testing.assert_close(graph.double(), expected, rtol=1e-4, atol=1e-6)
    assert torch.equal(graph[0], similarity_graph(easy))
    (graph * weights).sum().backward()
    (expected * weights).sum().backward()
    for found, wanted in zip(both.grad.double(), exact.grad, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4 * float(wanted.abs().max()))


def test_the_gradient_of_a_solution_is_that_of_the_inverse():
    """Also of second order, and with more columns than go through triangular systems."""
    points = torch.randn(2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for columns in (2, 11):
        values = torch.randn(2, 5, columns, dtype=torch.float64).requires_grad_()
        features = points.clone().requires_grad_()

        def solution(features, values):
            return Propagator(features, 0.5).apply(values)

        assert torch.autograd.gradcheck(solution, (features, values))
        assert torch.autograd.gradgradcheck(solution, (features, values))


# -- compilers -------------------------------------------------------------------------------------


@pytest.fixture
def inputs():
    draw = torch.Generator().manual_seed(0)
    features = torch.randn(4, 20, 8, generator=draw)
    labels = torch.zeros(4, 20, 5)
    labels[:, torch.arange(5), torch.arange(5)] = 1
    return features, labels


LAYERS = [
    (EmbeddingPropagation(), 1),
    (EmbeddingPropagation(part="off-diagonal", bandwidth="var"), 1),
    (LabelPropagation(balanced=True), 2),
]


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "taken"), LAYERS, ids=repr)
def test_it_is_one_graph_to_torch_compile_with_the_same_gradient(inputs, layer, taken):
    """Without code for a machine, so that no compiler is needed."""
    torch.compiler.reset()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    gradients = []
    for function in (layer, compiled):
        features = inputs[0].clone().requires_grad_()
        out = function(features, *inputs[1:taken])
        out.square().sum().backward()
        gradients.append((out.detach(), features.grad))
    for expected, found in zip(*gradients, strict=True):
        # Compiled, the graph is made in float64, else in float32.
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("layer", "taken"), LAYERS, ids=repr)
def test_it_can_be_exported_for_any_number_of_episodes(inputs, layer, taken):
    given = inputs[:taken]
    episodes = torch.export.Dim("episodes", min=2)
    program = torch.export.export(layer, given, dynamic_shapes=[{0: episodes}] * taken)
    more = tuple(torch.cat([each, each[:1]]) for each in given)
    torch.testing.assert_close(program.module()(*more), layer(*more), rtol=1e-5, atol=1e-6)
