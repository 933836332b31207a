"""LwoF's generator against its equations written out one exemplar at a time."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from epcore.generators.base import Task
from epcore.generators.config import LwofAttention, LwofAverage
from epcore.generators.lwof import LwofGenerator

D, CLASSES, BASE, NOVEL, SHOTS = 6, 9, 7, 4, 3
AVERAGE = LwofAverage(kind="lwof-average")
ATTENTION = LwofAttention(kind="lwof-attention", attention_scale=30)


def generator(settings, perturbed=True):
    torch.manual_seed(0)
    module = LwofGenerator(settings, torch.randn(CLASSES, D), torch.tensor(10.0)).double().eval()
    if perturbed:
        with torch.no_grad():
            for name, weight in module.named_parameters():
                if name not in ("base_weights", "scale"):
                    weight += 0.3 * torch.randn_like(weight)
    return module


def task():
    torch.manual_seed(1)
    base = torch.stack([torch.randperm(CLASSES)[:BASE] for _ in range(2)])
    return Task(base, torch.randn(2, NOVEL, SHOTS, D).double())


def array(tensor):
    return tensor.detach().numpy()


def unit(vector):
    return vector / np.sqrt((vector**2).sum())


def written_out(module, base, exemplars):
    """Equations 6 to 8 for one episode."""
    weights = [array(module.base_weights[b]) for b in base]
    novel = []
    for images in exemplars:
        directions = [unit(array(image)) for image in images]
        weight = array(module.average_gain) * np.mean(directions, axis=0)
        if module.attention is not None:
            attended = []
            for direction in directions:
                query = array(module.attention.query.weight) @ direction
                query = unit(query + array(module.attention.query.bias))
                keys = [unit(array(module.attention.keys[b])) for b in base]
                powers = [math.exp(module.attention.scale.item() * float(query @ k)) for k in keys]
                shares = [power / sum(powers) for power in powers]
                attended.append(sum(s * unit(w) for s, w in zip(shares, weights, strict=True)))
            weight = weight + array(module.attention_gain) * np.mean(attended, axis=0)
        novel.append(weight)
    return np.stack([*weights, *novel])


@pytest.mark.parametrize("settings", [AVERAGE, ATTENTION], ids=["average", "attention"])
def test_weights_are_those_of_the_equations_written_out(settings):
    module, given = generator(settings), task()
    with torch.no_grad():
        found = module(given)
    for episode in range(2):
        expected = written_out(module, given.base[episode], given.exemplars[episode])
        assert array(found[episode]) == pytest.approx(expected, abs=1e-12)


def test_untrained_averaging_is_the_mean_direction_of_the_exemplars():
    found = generator(AVERAGE, perturbed=False)(task())[:, BASE:]
    assert torch.allclose(found, functional.normalize(task().exemplars, dim=-1).mean(dim=2))


def test_attention_starts_near_the_identity_and_all_gains_at_one():
    torch.manual_seed(0)
    module = LwofGenerator(ATTENTION, torch.randn(50, 40), torch.tensor(10.0))
    query, keys = module.attention.query, module.attention.keys
    away = array(query.weight) - np.eye(40)
    assert away.std() == pytest.approx(0.001, rel=0.1)
    assert np.abs(away).max() < 0.006
    assert not query.bias.any()
    assert keys.std().item() == pytest.approx(math.sqrt(2 / 40), rel=0.1)
    assert module.attention.scale.item() == 30
    assert (module.average_gain == 1).all()
    assert (module.attention_gain == 1).all()


@pytest.mark.parametrize("settings", [AVERAGE, ATTENTION], ids=["average", "attention"])
def test_everything_learns_the_base_weights_included(settings):
    module = generator(settings)
    (functional.normalize(module(task()), dim=-1).square() * module.scale).cos().sum().backward()
    expected = {"base_weights", "scale", "average_gain"}
    if settings is ATTENTION:
        more = ("keys", "scale", "query.weight", "query.bias")
        expected |= {"attention_gain", *(f"attention.{name}" for name in more)}
    assert {name for name, p in module.named_parameters() if p.grad.abs().sum() > 0} == expected
