"""wDAE-GNN against its recipe written out node by node, and where EP stands in it."""

import math

import numpy as np
import pytest
import torch
from reference import propagator
from torch.nn import functional

from epcore.backbones.base import parameter_count
from epcore.generators.base import Task
from epcore.generators.config import WdaeSettings, WeightPropagation
from epcore.generators.wdae import WdaeGenerator, WeightDenoiser, neighborhood
from epcore.propagation import EmbeddingPropagation

SETTINGS = WdaeSettings(
    kind="wdae-gnn", noise=0.08, temperature=5, neighbors=3, hidden=3, dropout=0.7,
    reconstruction_weight=1,
)  # fmt: skip
OPEN = {"alpha": 0.5, "training": True, "nodes": "all", "reconstruction": "propagated",
        "step": "after", "normalize_weights": False}  # fmt: skip
D, BASE, NOVEL, SHOTS = 6, 8, 5, 3


def propagation(**changes):
    return WeightPropagation(**(OPEN | changes))


def unit_vectors(*shape, seed=0):
    vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()
    return functional.normalize(vectors, dim=-1)


def denoiser(settings=SETTINGS, size=D, seed=0):
    """With BatchNorms that are not the identity, float64, in evaluation mode."""
    torch.manual_seed(seed)
    module = WeightDenoiser(settings, size).double()
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm1d):
            torch.nn.init.normal_(part.running_mean, std=0.3)
            torch.nn.init.uniform_(part.running_var, 0.5, 2)
            torch.nn.init.normal_(part.weight, mean=1, std=0.2)
            torch.nn.init.normal_(part.bias, std=0.2)
    return module.eval()


def generator(settings=SETTINGS, seed=0, **more):
    torch.manual_seed(seed)
    weights = 2 * unit_vectors(BASE + NOVEL, D, seed=4)
    module = WdaeGenerator(settings, weights, torch.tensor(10.0), more.get("propagation"))
    module.denoiser.load_state_dict(denoiser(settings, seed=seed).state_dict())
    return module.double().eval()


def task(seed=1):
    base = torch.stack([torch.arange(BASE), torch.arange(NOVEL, BASE + NOVEL)])
    return Task(base, 3 * unit_vectors(2, NOVEL, SHOTS, D, seed=seed))


# -- the recipe, in numpy, one node and one neighbor at a time ------------------------------------


def array(tensor):
    return tensor.detach().numpy()


def unit(vector):
    return vector / np.sqrt((vector**2).sum())


def graph(weights, temperature, count):
    """For each node a list of pairs: neighbor and share."""
    found = []
    for i, one in enumerate(weights):
        powers = {
            j: math.exp(temperature * float(unit(one) @ unit(other)))
            for j, other in enumerate(weights)
            if j != i
        }
        nearest = sorted(powers, key=powers.get, reverse=True)[:count]
        total = sum(powers[j] for j in nearest)
        found.append([(j, powers[j] / total) for j in nearest])
    return found


def norm_and_leak(sequence, vector):
    """BatchNorm with running statistics, no dropout, LeakyReLU of slope 0.01."""
    norm = sequence[0]
    mean, variance = array(norm.running_mean), array(norm.running_var)
    vector = (vector - mean) / np.sqrt(variance + 1e-5) * array(norm.weight) + array(norm.bias)
    return np.where(vector > 0, vector, 0.01 * vector)


def heard(layer, nodes, neighbors):
    matrix, bias = array(layer.linear.weight), array(layer.linear.bias)
    messages = []
    for i, pairs in enumerate(neighbors):
        mine = matrix @ nodes[i] + bias
        messages.append(
            sum(
                share * norm_and_leak(layer.activation, mine + matrix @ nodes[j] + bias)
                for j, share in pairs
            )
        )
    return messages


def written_out(module, weights):
    settings = module.settings
    neighbors = graph(weights, settings.temperature, settings.neighbors)
    nodes = []
    for node, message in zip(weights, heard(module.first, weights, neighbors), strict=True):
        mapped = array(module.update.linear.weight) @ np.concatenate([node, message])
        new = unit(norm_and_leak(module.update.activation, mapped))
        nodes.append(np.concatenate([node, new]) / math.sqrt(2))
    result = []
    messages = heard(module.second, nodes, neighbors)
    for weight, node, message in zip(weights, nodes, messages, strict=True):
        out = array(module.last.weight) @ np.concatenate([node, message]) + array(module.last.bias)
        residual, gate = out[: len(weight)], out[len(weight) :]
        result.append(weight + unit(residual) / (1 + np.exp(-gate)))
    return np.stack(result)


@pytest.mark.parametrize("neighbors", [1, 3, 9])
def test_denoised_weights_are_those_of_the_recipe_written_out(neighbors):
    module = denoiser(SETTINGS.model_copy(update={"neighbors": neighbors}))
    weights = unit_vectors(2, 10, D)
    with torch.no_grad():
        found = module(weights)
    for one, inputs in zip(found, weights, strict=True):
        assert array(one) == pytest.approx(written_out(module, array(inputs)), abs=1e-12)


def test_of_512_dimensions_it_has_the_known_number_of_parameters():
    with torch.device("meta"):
        settings = SETTINGS.model_copy(update={"neighbors": 10})
        assert parameter_count(WeightDenoiser(settings, 512)) == 10_761_216


def test_shares_leave_the_node_out_sum_to_one_and_are_largest_for_the_nearest():
    weights = unit_vectors(2, 9, D)
    nodes, shares = neighborhood(weights, 5, 4)
    assert (nodes != torch.arange(9)[None, :, None]).all()
    assert torch.allclose(shares.sum(dim=-1), torch.ones(2, 9).double())
    assert (shares.diff(dim=-1) <= 0).all()
    with pytest.raises(ValueError, match="9 class weights have no 9 neighbors"):
        neighborhood(weights, 5, 9)


def test_an_episode_does_not_depend_on_the_others_of_its_batch():
    module, weights = denoiser(), unit_vectors(3, 10, D)
    with torch.no_grad():
        alone = torch.cat([module(one[None]) for one in weights])
        assert torch.allclose(module(weights), alone)


def test_noise_and_dropout_are_of_training_alone_and_the_graph_is_of_clean_weights(monkeypatch):
    module, weights = denoiser(), unit_vectors(1, 10, D)
    with torch.no_grad():
        assert torch.equal(module(weights), module(weights))
        module.train()
        assert not torch.allclose(module(weights), module(weights))
    seen = []
    original = neighborhood
    monkeypatch.setattr(
        "epcore.generators.wdae.neighborhood",
        lambda given, *rest: seen.append(given) or original(given, *rest),
    )
    module(weights)
    assert torch.equal(seen[0], weights)


def test_every_activation_drops_the_share_asked_for_in_training():
    module = denoiser(SETTINGS.model_copy(update={"noise": 0.0}), size=40).train()
    zeros = {}
    for name in ("first", "update", "second"):
        getattr(module, name).activation.register_forward_hook(
            lambda _, given, out, name=name: zeros.update({name: (out == 0).double().mean()})
        )
    module(unit_vectors(1, 50, 40))
    assert [float(share) for share in zeros.values()] == pytest.approx([0.7] * 3, abs=0.03)


def test_noise_has_the_deviation_asked_for_before_weights_are_unit_vectors_again():
    module = denoiser(SETTINGS.model_copy(update={"dropout": 0.0}), size=400).train()
    seen = []
    module.first.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    weights = unit_vectors(1, 300, 400)
    module(weights)
    assert torch.allclose(seen[0].norm(dim=-1), torch.ones(1, 300).double())
    # |w + noise| is about sqrt(1 + 400 * 0.08^2), so the cosine to w is about its inverse.
    cosine = (seen[0] * weights).sum(dim=-1).mean().item()
    assert cosine == pytest.approx(1 / math.sqrt(1 + 400 * 0.08**2), rel=0.01)


# -- the generator --------------------------------------------------------------------------------


def inputs_of(module, given):
    base = functional.normalize(module.base_weights[given.base], dim=-1)
    means = functional.normalize(given.exemplars, dim=-1).mean(dim=2)
    return torch.cat([base, functional.normalize(means, dim=-1)], dim=1)


def test_inputs_are_unit_base_weights_and_unit_means_of_unit_exemplars():
    module, given = generator(), task()
    with torch.no_grad():
        assert torch.allclose(module(given), module.denoiser(inputs_of(module, given)))


@pytest.mark.parametrize("size", [0.2, 0.6])
def test_a_step_goes_that_part_of_the_way_to_the_unit_vector_of_the_output(size):
    module, given = generator(), task()
    with torch.no_grad():
        inputs, outputs = inputs_of(module, given), functional.normalize(module(given), dim=-1)
        expected = (1 - size) * inputs + size * outputs
        assert torch.allclose(module(given, size), expected)


def test_the_penalty_is_the_mean_squared_distance_to_the_stored_weights():
    module, given = generator(), task()
    novel = torch.stack([torch.arange(BASE, BASE + NOVEL), torch.arange(NOVEL)])
    with torch.no_grad():
        weights, penalty = module.weights_and_penalty(given, novel)
        total = 0.0
        for episode in range(2):
            positions = [*given.base[episode].tolist(), *novel[episode].tolist()]
            for found, position in zip(weights[episode], positions, strict=True):
                wanted = unit(array(module.base_weights[position]))
                total += ((unit(array(found)) - wanted) ** 2).sum()
    assert penalty.item() == pytest.approx(total / (2 * (BASE + NOVEL)))


def test_the_denoiser_and_the_scale_learn_and_the_base_weights_stay():
    module = generator().train()
    weights, penalty = module.weights_and_penalty(task(), torch.arange(NOVEL).expand(2, -1))
    (weights.sum() * module.scale + penalty).backward()
    assert {name for name, _ in module.named_parameters() if "base_weights" in name} == set()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())


# -- embedding propagation ------------------------------------------------------------------------

EP = EmbeddingPropagation(0.5)


def test_propagation_acts_on_all_weights_together_after_the_step():
    plain, ours = generator(), generator(propagation=propagation())
    with torch.no_grad():
        for size in (1.0, 0.4):
            assert torch.allclose(ours(task(), size), EP(plain(task(), size)))


def test_propagation_before_the_step_is_another_one_unless_the_step_is_whole():
    before, after = (generator(propagation=propagation(step=s)) for s in ("before", "after"))
    plain, given = generator(), task()
    with torch.no_grad():
        assert torch.allclose(before(given), after(given))
        inputs = inputs_of(plain, given)
        propagated = functional.normalize(EP(plain(given)), dim=-1)
        assert torch.allclose(before(given, 0.4), inputs + 0.4 * (propagated - inputs))
        assert not torch.allclose(before(given, 0.4), after(given, 0.4))


def test_propagation_of_novel_weights_leaves_the_base_weights_alone():
    plain, ours = generator(), generator(propagation=propagation(nodes="novel"))
    with torch.no_grad():
        expected, found = plain(task()), ours(task())
    assert torch.equal(found[:, :BASE], expected[:, :BASE])
    assert torch.allclose(found[:, BASE:], EP(expected[:, BASE:]))


@pytest.mark.parametrize("size", [1.0, 0.4])
def test_normalized_weights_make_the_graph_and_are_what_is_mixed(size):
    plain, ours = generator(), generator(propagation=propagation(normalize_weights=True))
    given = task()
    with torch.no_grad():
        generated, found = array(plain(given, size)), array(ours(given, size))
    for weights, one in zip(generated, found, strict=True):
        directions = np.stack([unit(weight) for weight in weights])
        assert one == pytest.approx(propagator(directions, 0.5) @ directions, abs=1e-10)
        # Lengths differ, so that the other readings give a cosine classifier other weights.
        for graph, mixed in ((weights, weights), (directions, weights), (weights, directions)):
            other = propagator(graph, 0.5) @ mixed
            cosines = [unit(a) @ unit(b) for a, b in zip(one, other, strict=True)]
            assert min(cosines) < 1 - 1e-6


def test_normalized_novel_weights_propagate_and_base_weights_keep_their_direction():
    changes = {"nodes": "novel", "normalize_weights": True}
    plain, ours = generator(), generator(propagation=propagation(**changes))
    with torch.no_grad():
        generated, found = plain(task()), ours(task())
    directions = functional.normalize(generated, dim=-1)
    assert torch.allclose(functional.normalize(found[:, :BASE], dim=-1), directions[:, :BASE])
    assert torch.allclose(found[:, BASE:], EP(directions[:, BASE:]))


def test_the_reconstruction_loss_sees_weights_before_or_after_propagation():
    novel = torch.stack([torch.arange(BASE, BASE + NOVEL), torch.arange(NOVEL)])
    plain = generator()
    generated, propagated = (
        generator(propagation=propagation(reconstruction=kind))
        for kind in ("generated", "propagated")
    )
    with torch.no_grad():
        of_plain = plain.weights_and_penalty(task(), novel)
        of_generated = generated.weights_and_penalty(task(), novel)
        of_propagated = propagated.weights_and_penalty(task(), novel)
    assert of_generated[1] == of_plain[1]
    assert of_propagated[1] != of_plain[1]
    assert torch.equal(of_generated[0], of_propagated[0])
    assert torch.allclose(of_generated[0], EP(of_plain[0]))
