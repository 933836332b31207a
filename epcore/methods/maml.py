"""Model-agnostic meta-learning (Finn et al. 2017), its first-order form, and ANIL."""

from typing import Literal

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods.base import EpisodicMethod, query_classes
from epcore.settings import Settings

Weights = dict[str, Tensor]
NORM_EPSILON = 1e-3


class Maml(EpisodicMethod):
    """A network that some steps of gradient descent on the support turn into a classifier.

    Its "embeddings" are the pixels: every episode has weights of its own. Conv-4 with 32 channels,
    flattened, and a linear layer. As in the authors' code BatchNorm has a shift and no scale, and
    the steps leave the shift as it is; its epsilon and all first weights are theirs as well.

    BatchNorm has no running statistics but those of a batch. Which, says `statistics`: `support`,
    those of the support, under the weights of the moment, for queries as well, so that a query is
    classified by itself (MetaBN of Bronskill et al. 2020); `batch`, the queries' own, as in the
    authors' code, where a query's prediction depends on the other queries.
    """

    class Options(Settings):
        """How it adapts."""

        steps: PositiveInt = Field(default=5, description="of an episode in training")
        test_steps: PositiveInt = Field(default=10, description="of an episode in validation, test")
        inner_rate: PositiveFloat = Field(default=0.05, description="learning rate of these steps")
        gradient: Literal["second-order", "first-order"] = Field(
            default="second-order",
            description="whether training differentiates through the steps, or takes the "
            "gradient at the adapted weights",
        )
        adapted: Literal["all", "head"] = Field(
            default="all",
            description="the weights that steps change: those of convolutions and head, or, as in "
            "ANIL, of the head",
        )
        statistics: Literal["support", "batch"] = Field(
            default="support", description="what BatchNorm normalizes queries with"
        )

    channels = 32
    episodes_at_once = 8

    def __init__(self, options: Options, pixels: int, way: int) -> None:
        super().__init__()
        self.options, self.pixels, self.way = options, pixels, way
        self.transductive = options.statistics == "batch"
        side = pixels // 16
        if not side:
            raise ValueError(f"images of {pixels} pixels are too small for it")
        inputs = 3
        for number in range(4):
            convolution = nn.Conv2d(inputs, self.channels, 3, padding=1)
            nn.init.xavier_uniform_(convolution.weight)
            self.register_parameter(f"convolution{number}_weight", nn.Parameter(convolution.weight))
            self.register_parameter(
                f"convolution{number}_bias", nn.Parameter(torch.zeros(self.channels))
            )
            self.register_parameter(f"norm{number}_bias", nn.Parameter(torch.zeros(self.channels)))
            inputs = self.channels
        head = nn.Linear(self.channels * side**2, way)
        self.head_weight = nn.Parameter(nn.init.xavier_uniform_(head.weight))
        self.head_bias = nn.Parameter(torch.zeros(way))

    def embed(self, images: Tensor) -> Tensor:
        return images.flatten(1)

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        with torch.enable_grad():
            scores = [
                self._classify(episodes, number, self.options.test_steps, create_graph=False)
                for number in range(len(episodes.points))
            ]
        return torch.stack([logits.detach() for logits in scores])

    def loss(self, episodes: EpisodeBatch) -> Tensor:
        """The mean over episodes of the queries' cross-entropy under the adapted weights."""
        through = self.options.gradient == "second-order"
        expected = query_classes(episodes)[0]
        losses = [
            functional.cross_entropy(
                self._classify(episodes, number, self.options.steps, create_graph=through), expected
            )
            for number in range(len(episodes.points))
        ]
        return torch.stack(losses).mean()

    def _classify(
        self, episodes: EpisodeBatch, number: int, steps: int, create_graph: bool
    ) -> Tensor:
        """Logits `(queries, way)` of one episode."""
        shape = (-1, 3, self.pixels, self.pixels)
        support = episodes.support[number].reshape(shape)
        query = episodes.query[number].reshape(shape)
        weights = self.adapt(support, episodes.support_labels.argmax(dim=-1), steps, create_graph)
        if self.options.statistics == "batch":
            return self.forward(weights, query, len(query))
        return self.forward(weights, torch.cat([support, query]), len(support))[len(support) :]

    def adapt(self, support: Tensor, labels: Tensor, steps: int, create_graph: bool) -> Weights:
        """The weights after steps on the support's cross-entropy.

        Without `create_graph` the gradients of the steps are constants: what is differentiated
        through the result passes to the first weights unchanged.
        """
        weights: Weights = dict(self.named_parameters())
        parts = ("convolution", "head") if self.options.adapted == "all" else ("head",)
        changed = [name for name in weights if name.startswith(parts)]
        for _ in range(steps):
            logits = self.forward(weights, support, len(support), twice=create_graph)
            loss = functional.cross_entropy(logits, labels)
            gradients = torch.autograd.grad(
                loss, [weights[name] for name in changed], create_graph=create_graph
            )
            moved = {
                name: weights[name] - self.options.inner_rate * gradient
                for name, gradient in zip(changed, gradients, strict=True)
            }
            weights = weights | moved
        return weights

    def forward(
        self, weights: Weights, images: Tensor, reference: int, twice: bool = False
    ) -> Tensor:
        """Logits `(n, way)`; BatchNorm takes its statistics from the first `reference` images.

        `twice`: whether the result's gradient will be differentiated again. Torch's own BatchNorm
        is slow in that, and otherwise the faster.
        """
        values = images.contiguous(memory_format=torch.channels_last)
        for number in range(4):
            kernel, bias = (weights[f"convolution{number}_{part}"] for part in ("weight", "bias"))
            values = functional.conv2d(values, kernel, bias, padding=1)
            shift = weights[f"norm{number}_bias"]
            if twice or reference < len(values):
                values = normalized(values, values[:reference], shift)
            else:
                values = functional.batch_norm(
                    values, None, None, bias=shift, training=True, eps=NORM_EPSILON
                )
            values = functional.max_pool2d(values, 2).relu()
        return functional.linear(values.flatten(1), weights["head_weight"], weights["head_bias"])


def normalized(values: Tensor, reference: Tensor, shift: Tensor) -> Tensor:
    """BatchNorm of maps `(n, channels, h, w)` with the statistics of `reference`."""
    spread, mean = torch.var_mean(reference, dim=(0, 2, 3), correction=0, keepdim=True)
    scale = (spread + NORM_EPSILON).rsqrt()
    return torch.addcmul(shift[:, None, None] - mean * scale, values, scale)
