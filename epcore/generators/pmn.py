"""PMN: prototype matching networks, with hallucinated examples of novel classes.

Wang, Girshick, Hebert and Hariharan, "Low-shot learning from imaginary data", CVPR 2018. Their code
was never published. Two of them published matching networks for the same benchmark, from which we
have the sizes of the LSTMs, their skip connections and the number of reads
(github.com/facebookresearch/low-shot-shrink-hallucinate, `matching_network.py`). What the text
leaves open and we chose is called ours.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.backbones.cosine import cosine_logits
from epcore.generators.base import Task, WeightGenerator, mean_directions
from epcore.generators.config import PmnSettings

TEST_SEED = 0  # of the noise at test, the same in every trial


class Hallucinator(nn.Module):
    """Generates an example from a unit vector x and Gaussian noise z of its size: three layers.

    Ours: features may be negative, so the hidden layers begin as the positive and the negative part
    of x. Their ReLUs then lose nothing, and the generator starts as the identity but for what z
    adds to x, a vector about as long as `noise`.
    """

    def __init__(self, size: int, noise: float) -> None:
        super().__init__()
        self.first = nn.Linear(2 * size, 2 * size)
        self.second = nn.Linear(2 * size, 2 * size)
        self.last = nn.Linear(2 * size, size)
        signs = torch.cat([torch.eye(size), -torch.eye(size)])  # (2 D, D)
        of_noise = noise / size * torch.randn(2 * size, size)
        with torch.no_grad():
            self.first.weight.copy_(torch.cat([signs, of_noise], dim=1))
            self.second.weight.copy_(torch.eye(2 * size))
            self.last.weight.copy_(signs.T)
            for layer in (self.first, self.second, self.last):
                layer.bias.zero_()

    def forward(self, directions: Tensor, noise: Tensor) -> Tensor:
        """Generated examples `(..., D)` of unit vectors and noise, both `(..., D)`."""
        hidden = functional.relu(self.first(torch.cat([directions, noise], dim=-1)))
        generated: Tensor = self.last(functional.relu(self.second(hidden)))
        return generated


class PmnGenerator(WeightGenerator):
    """Prototypes in the context of all classes; queries in the context of the prototypes.

    A bidirectional LSTM runs over the classes, and its outputs of both directions are added to its
    input. Ours: a class is one position, the unit vector of its mean example, or, for a base class,
    of its weight in stage 1, which stands for hundreds of images. Base classes come first, and both
    kinds are in the order of their labels.

    A query's LSTM reads the prototypes several times by attention. Ours: queries are unit vectors,
    attention is the softmax of the scaled cosines that also classify in the end, and a query reads
    the prototypes of those classes alone that it is compared with.

    Generated examples fill every novel class up to a number of examples, each from an exemplar
    drawn at random. Everything but the base weights learns, by one loss. Ours: noise and draws at
    test are the same for every task, so that no trial depends on another.
    """

    base_weights: Tensor

    def __init__(self, settings: PmnSettings, base_weights: Tensor, scale: Tensor) -> None:
        super().__init__(scale)
        self.settings = settings
        self.register_buffer("base_weights", base_weights.detach().clone())
        size = base_weights.shape[1]
        self.context = nn.LSTM(size, size, batch_first=True, bidirectional=True)
        self.reader = nn.LSTMCell(2 * size, size)
        self.hallucinator = Hallucinator(size, settings.noise) if settings.examples else None

    def forward(self, task: Task, step_size: float = 1.0) -> Tensor:
        novel = mean_directions(self._filled(task.exemplars))
        means = torch.cat([self.base_weights[task.base], novel], dim=-2)
        classes = functional.normalize(means, dim=-1)  # (e, b + n, D)
        forth, back = self.context(classes)[0].chunk(2, dim=-1)
        prototypes: Tensor = classes + forth + back
        return prototypes

    def logits(self, features: Tensor, weights: Tensor) -> Tensor:
        queries = functional.normalize(features, dim=-1)  # (..., q, D)
        hidden, cell = queries, torch.zeros_like(queries)
        for _ in range(self.settings.reads):
            attention = cosine_logits(hidden, weights, self.scale).softmax(dim=-1)  # (..., q, C)
            inputs = torch.cat([queries, attention @ weights], dim=-1)  # (..., q, 2 D)
            states = (hidden.flatten(0, -2), cell.flatten(0, -2))
            hidden, cell = (
                state.view_as(queries) for state in self.reader(inputs.flatten(0, -2), states)
            )
            hidden = hidden + queries
        return cosine_logits(hidden, weights, self.scale)

    def _filled(self, exemplars: Tensor) -> Tensor:
        """Exemplars `(e, n, K, D)` and the examples generated from them, `(e, n, examples, D)`."""
        episodes, novel, shots, size = exemplars.shape
        missing = self.settings.examples - shots
        if self.hallucinator is None or missing <= 0:
            return exemplars
        device = exemplars.device
        draws = None if self.training else torch.Generator(device).manual_seed(TEST_SEED)
        shape = (episodes if self.training else 1, novel, missing)
        places = torch.randint(shots, shape, generator=draws, device=device)
        noise = torch.randn(*shape, size, generator=draws, device=device, dtype=exemplars.dtype)
        directions = functional.normalize(exemplars, dim=-1)
        drawn = directions.gather(2, places[..., None].expand(episodes, -1, -1, size))
        generated = self.hallucinator(drawn, noise.expand_as(drawn))
        return torch.cat([directions, generated], dim=2)
