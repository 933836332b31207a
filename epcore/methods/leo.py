"""Latent embedding optimization (Rusu et al. 2019), on frozen features."""

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods.base import FrozenMethod, Pretrained, query_classes
from epcore.settings import Probability


class Leo(FrozenMethod):
    """A few numbers of each class become its weights, and descend on the support with them.

    Features of a pretrained network, of unit length, are encoded; a network compares each pair of
    the support, and the mean of what it says of a class is the class's latent vector. A linear
    decoder makes it the class's weights. Some steps of gradient descent on the support change the
    latent vectors, some more the weights, with a learned rate of each of their numbers.

    This is the paper's deterministic form. The other one draws latent vectors and weights from
    normal distributions. Its steps may end in numbers that are not finite; the authors' code then
    trains by the penalty of the weights alone.

    Defaults are those of the authors' code for 1-shot *mini*ImageNet.
    """

    class Options(FrozenMethod.Options):
        """The latent space, the steps in it and behind it, and the penalties."""

        latents: PositiveInt = Field(default=64, description="numbers of a latent vector")
        latent_steps: PositiveInt = Field(default=5, description="of the latent vectors")
        weight_steps: NonNegativeInt = Field(default=5, description="of the classes' weights")
        latent_rate: PositiveFloat = Field(default=1.0, description="first rate of the former")
        weight_rate: PositiveFloat = Field(default=0.001, description="first rate of the latter")
        dropout: Probability = Field(default=0.307651, description="of features")
        encoder_weight: NonNegativeFloat = Field(
            default=5.756821e-6, description="of how far the steps move latent vectors"
        )
        l2_weight: NonNegativeFloat = Field(default=3.623413e-10, description="of all weights")
        orthogonality_weight: NonNegativeFloat = Field(
            default=0.188103, description="of equal directions among the decoder's inputs"
        )

    episodes_at_once = 8

    def __init__(self, options: Options, pixels: int, way: int, start: Pretrained) -> None:
        super().__init__(start)
        self.options = options
        size, latents = start.backbone.feature_size, options.latents
        self.encoder = nn.Linear(size, latents, bias=False)
        self.relation = nn.Sequential(
            nn.Linear(2 * latents, 2 * latents, bias=False),
            nn.ReLU(),
            nn.Linear(2 * latents, 2 * latents, bias=False),
            nn.ReLU(),
            nn.Linear(2 * latents, latents, bias=False),
        )
        self.decoder = nn.Linear(latents, size, bias=False)
        for layer in self._layers():
            nn.init.xavier_uniform_(layer.weight)
        self.latent_rates = nn.Parameter(torch.full((latents,), options.latent_rate))
        self.weight_rates = nn.Parameter(torch.full((size,), options.weight_rate))

    def embed(self, images: Tensor) -> Tensor:
        return functional.normalize(super().embed(images), dim=-1)

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        with torch.enable_grad():
            scores, _ = self._adaptation(episodes)
        return scores if self.training else scores.detach()

    def loss(self, episodes: EpisodeBatch) -> Tensor:
        """The queries' cross-entropy, and three penalties (authors' code)."""
        scores, moved = self._adaptation(episodes)
        options, expected = self.options, query_classes(episodes)
        squares = torch.stack([layer.weight.square().sum() for layer in self._layers()]).sum()
        return (
            functional.cross_entropy(scores.flatten(0, 1), expected.flatten())
            + options.encoder_weight * moved
            + options.l2_weight / 2 * squares
            + options.orthogonality_weight * self._correlation()
        )

    def _adaptation(self, episodes: EpisodeBatch) -> tuple[Tensor, Tensor]:
        """Scores `(E, q, way)` of the queries after all steps, and how far these moved latents."""
        start = latents = self._latents(episodes)
        # Theirs has a vector for each image of a class, all alike, which share the slope.
        share = episodes.way / episodes.labeled
        for _ in range(self.options.latent_steps):
            loss = self._support_loss(episodes, self.decoder(latents))
            latents = latents - share * self.latent_rates * self._slope(loss, latents)
        weights = self.decoder(latents)
        for _ in range(self.options.weight_steps):
            loss = self._support_loss(episodes, weights)
            weights = weights - share * self.weight_rates * self._slope(loss, weights)
        moved = functional.mse_loss(start, latents.detach())
        return self._dropout(episodes.query) @ weights.mT, moved

    def _layers(self) -> list[nn.Linear]:
        layers = (self.encoder, *self.relation, self.decoder)
        return [layer for layer in layers if isinstance(layer, nn.Linear)]

    def _latents(self, episodes: EpisodeBatch) -> Tensor:
        """The latent vector of each class, `(E, way, latents)`."""
        codes = self.encoder(self._dropout(episodes.support))
        shape = (*codes.shape[:2], *codes.shape[1:])
        pairs = torch.cat([codes[:, :, None].expand(shape), codes[:, None].expand(shape)], dim=-1)
        of_images: Tensor = self.relation(pairs).mean(dim=2)  # (E, labeled, latents)
        return episodes.support_labels.mT @ of_images / episodes.counts[:, None]

    def _support_loss(self, episodes: EpisodeBatch, weights: Tensor) -> Tensor:
        """The sum of the support's cross-entropies."""
        scores = self._dropout(episodes.support) @ weights.mT
        labels = episodes.support_labels.argmax(dim=-1).repeat(len(scores))
        return functional.cross_entropy(scores.flatten(0, 1), labels, reduction="sum")

    def _dropout(self, points: Tensor) -> Tensor:
        return functional.dropout(points, float(self.options.dropout), self.training)

    def _slope(self, loss: Tensor, values: Tensor) -> Tensor:
        (slope,) = torch.autograd.grad(loss, values, create_graph=self.training)
        return slope

    def _correlation(self) -> Tensor:
        """How far cosines of what the decoder's inputs add are from those of orthogonal vectors."""
        rows = functional.normalize(self.decoder.weight.mT, dim=-1)  # (latents, D)
        identity = torch.eye(len(rows), dtype=rows.dtype, device=rows.device)
        return functional.mse_loss(rows @ rows.mT, identity)
