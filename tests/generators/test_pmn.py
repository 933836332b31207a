"""PMN against LSTMs written out gate by gate, its hallucinator, and a toy with a nuisance."""

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax
from torch.nn import functional

from epcore.generators.base import ClassMeansGenerator, Task
from epcore.generators.config import PmnSettings
from epcore.generators.pmn import Hallucinator, PmnGenerator

D, CLASSES, BASE, NOVEL, SHOTS, QUERIES = 6, 9, 7, 4, 3, 5


def settings(**changes):
    return PmnSettings(**({"kind": "pmn", "examples": 8, "reads": 3} | changes))


def generator(**changes):
    """With weights far from where training starts, as a state dict may have them."""
    torch.manual_seed(0)
    module = PmnGenerator(settings(**changes), torch.randn(CLASSES, D), torch.tensor(4.0)).double()
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if name != "scale":
                weight += 0.3 * torch.randn_like(weight)
    return module.eval()


def task(episodes=2):
    torch.manual_seed(1)
    base = torch.stack([torch.randperm(CLASSES)[:BASE] for _ in range(episodes)])
    return Task(base, torch.randn(episodes, NOVEL, SHOTS, D).double())


def queries(episodes=2):
    return torch.randn(episodes, QUERIES, D, generator=torch.Generator().manual_seed(2)).double()


def array(tensor):
    return tensor.detach().numpy()


def unit(vector):
    return vector / np.sqrt((vector**2).sum())


def scores(module, given=None, asked=None):
    with torch.no_grad():
        return module.logits(queries() if asked is None else asked, module(given or task()))


# -- the heart ------------------------------------------------------------------------------------


def lstm(state, suffix, x, hidden, cell):
    """One step: gates in the order input, forget, candidate, output."""
    weights = [state[f"{name}{suffix}"] for name in ("weight_ih", "weight_hh")]
    bias = state[f"bias_ih{suffix}"] + state[f"bias_hh{suffix}"]
    gates = np.split(weights[0] @ x + weights[1] @ hidden + bias, 4)
    cell = expit(gates[1]) * cell + expit(gates[0]) * np.tanh(gates[2])
    return expit(gates[3]) * np.tanh(cell), cell


def prototypes(module, base, exemplars, generated):
    """Of one episode: the sum of a class, the LSTM from the left and that from the right."""
    state = {name: array(value) for name, value in module.context.state_dict().items()}
    classes = [unit(array(module.base_weights[position])) for position in base]
    for real, imagined in zip(exemplars, generated, strict=True):
        examples = [unit(array(example)) for example in (*real, *imagined)]
        classes.append(unit(np.mean(examples, axis=0)))
    total = np.array(classes)
    for suffix, order in (("_l0", 1), ("_l0_reverse", -1)):
        hidden, cell = np.zeros(D), np.zeros(D)
        for place in range(len(classes))[::order]:
            hidden, cell = lstm(state, suffix, classes[place], hidden, cell)
            total[place] += hidden
    return total


def written_out(module, features, weights):
    """Scaled cosines of one query that has read the prototypes."""
    state = {name: array(value) for name, value in module.reader.state_dict().items()}
    directions, scale = np.array([unit(weight) for weight in weights]), module.scale.item()
    query = unit(features)
    hidden, cell = query, np.zeros(D)
    for _ in range(module.settings.reads):
        attention = softmax(scale * directions @ unit(hidden))
        inputs = np.concatenate([query, attention @ weights])
        hidden, cell = lstm(state, "", inputs, hidden, cell)
        hidden = hidden + query
    return scale * directions @ unit(hidden)


@pytest.mark.parametrize("examples", [0, 8])
def test_scores_are_those_of_the_lstms_written_out(examples):
    module, given = generator(examples=examples), task()
    seen = [torch.zeros(2, NOVEL, 0, D)]
    if module.hallucinator is not None:
        module.hallucinator.register_forward_hook(lambda _, inputs, out: seen.append(out))
    with torch.no_grad():
        weights = module(given)
    assert seen[-1].shape[2] == max(0, examples - SHOTS)
    found = scores(module)
    for episode in range(2):
        expected = prototypes(
            module, given.base[episode], given.exemplars[episode], seen[-1][episode]
        )
        assert array(weights[episode]) == pytest.approx(expected, abs=1e-12)
        for query, of_query in zip(queries()[episode], found[episode], strict=True):
            assert array(of_query) == pytest.approx(
                written_out(module, array(query), expected), abs=1e-11
            )


def test_an_untrained_one_tells_images_that_look_like_their_exemplar_apart():
    """The skip connections carry them through LSTMs that are still small."""
    torch.manual_seed(0)
    module = PmnGenerator(settings(), torch.randn(30, 64), torch.tensor(10.0)).eval()
    given = Task(torch.arange(30)[None], torch.randn(1, 20, 1, 64))
    asked = given.exemplars[:, :, 0] + 0.5 * torch.randn(1, 20, 64)
    assert torch.equal(scores(module, given, asked).argmax(dim=-1)[0], 30 + torch.arange(20))


def test_each_query_is_scored_by_itself_and_each_episode_too():
    module, order = generator(), torch.tensor([3, 0, 4, 1, 2])
    found = scores(module)
    assert torch.allclose(scores(module, asked=queries()[:, order]), found[:, order])
    assert torch.allclose(scores(module, asked=queries()[:, :1]), found[:, :1])
    for episode in range(2):
        alone = Task(task().base[[episode]], task().exemplars[[episode]])
        assert torch.allclose(scores(module, alone, queries()[[episode]])[0], found[episode])
    with torch.no_grad():
        unbatched = module.logits(queries()[0], module(task())[0])
    assert torch.allclose(unbatched, found[0])


def test_lengths_and_the_order_of_exemplars_do_not_matter():
    module, given = generator(examples=0), task()
    lengths = torch.rand(2, NOVEL, SHOTS, 1).double() + 0.5
    other = Task(given.base, (given.exemplars * lengths)[:, :, [2, 0, 1]])
    assert torch.allclose(scores(module, other, 3 * queries()), scores(module))


@pytest.mark.parametrize("changes", [{"examples": 12}, {"examples": 0}, {"reads": 1}])
def test_a_setting_changes_the_scores(changes):
    assert not torch.allclose(scores(generator(**changes)), scores(generator()), atol=1e-3)


def test_all_parts_learn_but_the_base_weights():
    module = generator().train()
    functional.cross_entropy(
        module.logits(queries(), module(task())).flatten(0, 1), torch.arange(2 * QUERIES)
    ).backward()
    assert not any("base_weights" in name for name, _ in module.named_parameters())
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())


# -- hallucination --------------------------------------------------------------------------------


def test_the_hallucinator_starts_at_the_identity_plus_noise_of_the_length_asked_for():
    torch.manual_seed(0)
    module = Hallucinator(64, noise=0.2)
    directions, noise = functional.normalize(torch.randn(500, 64), dim=-1), torch.randn(500, 64)
    with torch.no_grad():
        assert torch.equal(module(directions, torch.zeros_like(noise)), directions)
        added = module(directions, noise) - directions
    assert added.norm(dim=-1).mean().item() == pytest.approx(0.2, rel=0.1)
    assert abs(functional.cosine_similarity(added, directions).mean().item()) < 0.1


def test_the_hallucinator_is_three_layers_with_two_relus():
    torch.manual_seed(0)
    module = Hallucinator(D, noise=0.5).double()
    with torch.no_grad():
        for weight in module.parameters():
            weight += torch.randn_like(weight)
    x, z = torch.randn(2, D).double()
    layers = [(array(part.weight), array(part.bias)) for part in module.children()]
    expected = np.concatenate([array(x), array(z)])
    for number, (weight, bias) in enumerate(layers):
        expected = weight @ expected + bias
        expected = np.maximum(expected, 0) if number < 2 else expected
    assert len(layers) == 3
    assert array(module(x, z)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("examples", [1, SHOTS])
def test_with_exemplars_enough_nothing_is_generated(examples):
    without = generator(examples=0)
    filled = generator(examples=examples)
    filled.load_state_dict(without.state_dict(), strict=False)
    assert torch.equal(scores(filled), scores(without))


def test_examples_are_generated_from_exemplars_of_their_own_class_drawn_uniformly():
    module, seen = generator(examples=SHOTS + 600).train(), []
    module.hallucinator.register_forward_hook(lambda _, inputs, out: seen.append(inputs))
    module(task())
    (drawn, noise), directions = seen[0], functional.normalize(task().exemplars, dim=-1)
    same = (drawn[:, :, :, None] == directions[:, :, None]).all(dim=-1)  # (e, n, generated, K)
    assert (same.sum(dim=-1) == 1).all()
    shares = same.double().mean(dim=2)
    assert array(shares) == pytest.approx(np.full(shares.shape, 1 / SHOTS), abs=0.08)
    assert (noise.mean().item(), noise.std().item()) == pytest.approx((0, 1), abs=0.02)


def test_noise_of_a_trial_is_the_same_in_any_order_and_leaves_the_global_state():
    module, trials = generator(), [Task(task().base[[0]], task(7).exemplars[[n]]) for n in range(7)]
    state = torch.get_rng_state()
    with torch.no_grad():
        found = [module(trial) for trial in trials]
        torch.manual_seed(5)
        again = [module(trial) for trial in reversed(trials)][::-1]
        torch.set_rng_state(state)
        assert all(map(torch.equal, found, again))
        module(trials[0])
    assert torch.equal(torch.get_rng_state(), state)


def test_noise_of_training_is_new_each_time_and_repeats_with_the_seed():
    module, given = generator().train(), task()
    with torch.no_grad():
        torch.manual_seed(3)
        first, second = module(given), module(given)
        torch.manual_seed(3)
        assert torch.equal(module(given), first)
    assert not torch.allclose(first, second)


# -- a toy ----------------------------------------------------------------------------------------

HALF, SEEN, NEW = 6, 40, 10  # dimensions of the class and of the nuisance; classes


def toy(draws, signals, shots, per_class, shuffled):
    """Exemplars `(n, K, D)` and queries `(n * per_class, D)` of classes with these signals.

    Half of a feature is the class, half a nuisance with more variance. Shuffled exemplars are of
    other classes than their queries.
    """
    n = len(signals)
    images = signals.repeat_interleave(shots + per_class, 0)
    nuisance = 0.6 * torch.randn(images.shape, generator=draws)
    images = torch.cat([images, nuisance], dim=1).view(n, shots + per_class, 2 * HALF)
    order = torch.randperm(n, generator=draws) if shuffled else torch.arange(n)
    return images[order, :shots], images[:, shots:].flatten(0, 1)


def accuracy(module, shuffled):
    """Of new classes among themselves, in 30 trials with one exemplar."""
    draws, hits = torch.Generator().manual_seed(9), []
    expected = torch.arange(NEW).repeat_interleave(10)
    for _ in range(30):
        signals = functional.normalize(torch.randn(NEW, HALF, generator=draws), dim=-1)
        exemplars, asked = toy(draws, signals, 1, 10, shuffled)
        with torch.no_grad():
            weights = module.eval()(Task(torch.arange(SEEN)[None], exemplars[None]))[0, SEEN:]
            hits.append((module.logits(asked, weights).argmax(dim=1) == expected).double().mean())
    return torch.stack(hits).mean().item()


def trained(examples, shuffled=False):
    draws = torch.Generator().manual_seed(0)
    signals = functional.normalize(torch.randn(SEEN, HALF, generator=draws), dim=-1)
    base_weights = torch.cat([signals, torch.zeros(SEEN, HALF)], dim=1)
    torch.manual_seed(0)
    module = PmnGenerator(settings(examples=examples), base_weights, torch.tensor(10.0)).train()
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    expected = SEEN - NEW + torch.arange(NEW).repeat_interleave(10)
    for _ in range(200):
        novel, base = torch.randperm(SEEN, generator=draws).split([NEW, SEEN - NEW])
        exemplars, asked = toy(draws, signals[novel], 1, 10, shuffled)
        weights = module(Task(base.sort().values[None], exemplars[None]))[0]
        loss = functional.cross_entropy(module.logits(asked, weights), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return module, ClassMeansGenerator(base_weights, torch.tensor(10.0))


@pytest.mark.parametrize("examples", [0, 5])
def test_it_learns_what_in_a_feature_says_nothing_of_the_class(examples):
    module, means = trained(examples)
    assert accuracy(means, shuffled=False) < 0.5 < 0.8 < accuracy(module, shuffled=False)


def test_with_exemplars_of_other_classes_it_stays_at_chance():
    module, _ = trained(5, shuffled=True)
    assert accuracy(module, shuffled=True) == pytest.approx(1 / NEW, abs=0.03)
