"""TransMatch (Yu et al. 2020): a pretrained network that each test episode tunes."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch
from epcore.errors import UserError
from epcore.methods._shifts import Shifts
from epcore.methods.base import EpisodicMethod, Pretrained
from epcore.propagation import at_least_float32
from epcore.settings import Settings

# Constants of the authors' code.
BATCH = 16  # images; a step has a batch of labeled ones, and one of unlabeled ones in two views
COPIES = 10  # augmented ones of a support image, for the first weights
REPEATS = 20  # of the support, before batches are drawn from it
MOMENTUM = 0.9
SHRINKAGE = 0.02  # times the rate: of each weight in a step, by a moving average that nothing uses


@dataclass(frozen=True)
class Draw:
    """The random choices of a step.

    labeled, unlabeled: places `(16,)` of images among all of their kind. shifts: of 48 images, the
    labeled ones, the unlabeled ones in one view, and in the other. partners: the image `(48,)` that
    each is mixed with; share: of an image in its mixture.
    """

    labeled: np.ndarray
    unlabeled: np.ndarray
    shifts: Shifts
    partners: np.ndarray
    share: float


class TunedClassifier(nn.Module):
    """A network and a cosine layer behind it; weights: `(way, D)`, of unit length."""

    def __init__(self, backbone: nn.Module, weights: Tensor, scale: float) -> None:
        super().__init__()
        self.backbone = backbone
        self.weights = nn.Parameter(functional.normalize(weights, dim=-1))
        self.scale = nn.Parameter(weights.new_tensor(scale))

    def forward(self, images: Tensor) -> Tensor:
        """Logits `(n, way)`."""
        features = at_least_float32(self.backbone(images))
        with torch.autocast(images.device.type, enabled=False):
            return self.scale * functional.normalize(features, dim=-1) @ self.weights.mT


class TransMatch(EpisodicMethod):
    """A network and a cosine layer, which MixMatch tunes on the images of a test episode.

    Its "embeddings" are the pixels. The layer starts at the class means of unit features of
    augmented support images; its scale is that of the cosine layer that the network was pretrained
    with. A step guesses the class distribution of each unlabeled image from two augmented views,
    sharpens it, and mixes images and distributions of random pairs. The loss is the cross-entropy
    of the mixtures that are mostly labeled, plus `unlabeled_weight` times the mean squared error of
    the others' probabilities. It changes the network, the layer and its scale; after each step the
    layer's weights are brought to unit length. BatchNorm and dropout are in training mode but for
    the first weights and the queries.

    In the authors' code a linear layer makes 256 features of the network's 640, the network's last
    BatchNorm has momentum 0.9, and crops of 80 pixels come from images of 92; here the features are
    the network's, all momenta are 0.1, and the view is moved by up to as many pixels, its border
    mirrored. Their batches begin anew after each 64 steps. The training of their network was not
    published, its weights were.

    Zhongjie Yu, Lin Chen, Zhongwei Cheng, Jiebo Luo: TransMatch: A Transfer-Learning Scheme for
    Semi-Supervised Few-Shot Learning, CVPR 2020, https://arxiv.org/abs/1912.09033. Defaults are
    those of ZhongjieYu's TransMatch_code, main.py.

    Its scores raise `UserError` for episodes without unlabeled images.
    """

    class Options(Settings):
        """How an episode tunes it."""

        steps: PositiveInt = Field(
            default=1280,
            description="20 epochs of 64 steps, published for 1 shot; for 5 shots there are 25",
        )
        learning_rate: PositiveFloat = Field(default=0.001, description="of all weights")
        weight_decay: NonNegativeFloat = Field(default=0.04, description="of all weights")
        temperature: PositiveFloat = Field(
            default=0.5, description="guessed distributions are raised to 1 / temperature"
        )
        mixup: PositiveFloat = Field(
            default=0.75, description="shares of mixtures are Beta(mixup, mixup)"
        )
        unlabeled_weight: NonNegativeFloat = Field(
            default=5.0, description="weight of the squared error"
        )
        moved: float = Field(
            default=6 / 80, ge=0, lt=0.5, description="most that an image is moved, of its side"
        )
        mirrored: bool = Field(default=True, description="whether half of the images are mirrored")
        seed: int = Field(default=0, ge=0, lt=4000, description="of the random choices")

    pretrained = True
    trained = False
    unlabeled = True
    low_precision_scores = True
    episodes_at_once = 1

    def __init__(self, options: Options, pixels: int, way: int, start: Pretrained) -> None:
        super().__init__()
        self.options, self.pixels = options, pixels
        self.backbone, self.scale = start.backbone, start.scale

    def embed(self, images: Tensor) -> Tensor:
        return images.flatten(1)

    @torch.no_grad()
    def scores(self, episodes: EpisodeBatch) -> Tensor:
        if not episodes.unlabeled:
            raise UserError(
                "transmatch takes episodes with unlabeled images, and these have none",
                "choose a protocol that has them",
            )
        kind = episodes.points.device.type
        cast = torch.is_autocast_enabled(kind)
        # With its cache autocast would go on with the weights that it cast before the first step.
        with torch.autocast(kind, enabled=cast, cache_enabled=False):
            return torch.stack(
                [
                    self._scores_of_one(episodes, points, generator.initial_seed())
                    for points, generator in zip(
                        episodes.points, episodes.generators(self.options.seed), strict=True
                    )
                ]
            )

    def _scores_of_one(self, episodes: EpisodeBatch, points: Tensor, seed: int) -> Tensor:
        """Logits `(queries, way)` of the episode with these points `(N, D)`."""
        random = np.random.default_rng(seed)
        images = points.reshape(-1, 3, self.pixels, self.pixels)
        parts = [episodes.labeled, episodes.queries, episodes.unlabeled]
        support, query, unlabeled = torch.split(images, parts)
        labels = episodes.support_labels
        model = self._imprinted(support, labels, random)
        cards = [points.device] if points.device.type == "cuda" else []
        with torch.enable_grad(), torch.random.fork_rng(cards):
            torch.manual_seed(seed)  # dropout
            self._tune(model, support, labels, unlabeled, random)
        scores: Tensor = model.eval()(query)
        return scores

    def _tune(
        self,
        model: TunedClassifier,
        support: Tensor,
        labels: Tensor,
        unlabeled: Tensor,
        random: np.random.Generator,
    ) -> None:
        """Takes the steps of an episode; labels: one-hot, `(labeled, way)`."""
        options = self.options
        optimizer = torch.optim.SGD(
            model.parameters(), options.learning_rate, MOMENTUM, weight_decay=options.weight_decay
        )
        model.train()
        for draw in self.draws(random, len(support), len(unlabeled)):
            optimizer.zero_grad()
            loss = self._loss_of_step(model, support, labels, unlabeled, draw)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            with torch.no_grad():
                for weight in model.parameters():
                    weight.mul_(1 - SHRINKAGE * options.learning_rate)
                model.weights.copy_(functional.normalize(model.weights, dim=-1))

    def _imprinted(
        self, support: Tensor, labels: Tensor, random: np.random.Generator
    ) -> TunedClassifier:
        """The classifier that an episode begins with: a copy of the network, and class means."""
        network = deepcopy(self.backbone).eval()
        features = [
            functional.normalize(at_least_float32(network(shifts.of(support))), dim=-1)
            for shifts in (self._shifts(random, len(support)) for _ in range(COPIES))
        ]
        of_images = torch.stack(features).mean(dim=0)  # (labeled, D)
        weights = (labels[..., None] * of_images[:, None]).sum(dim=0)  # no product that is cast
        return TunedClassifier(network.requires_grad_(), weights, self.scale)

    def _loss_of_step(
        self,
        model: nn.Module,
        support: Tensor,
        labels: Tensor,
        unlabeled: Tensor,
        draw: Draw,
    ) -> Tensor:
        """The loss of a step; model: images to logits."""
        options = self.options
        drawn = torch.cat([support[draw.labeled], unlabeled[np.tile(draw.unlabeled, 2)]])
        images = draw.shifts.of(drawn)
        with torch.no_grad():
            views = torch.split(images[BATCH:], BATCH)
            guesses = torch.stack([model(view).softmax(dim=-1) for view in views]).mean(dim=0)
            guesses = functional.normalize(guesses ** (1 / options.temperature), p=1, dim=-1)
        targets = torch.cat([labels[draw.labeled], guesses, guesses])
        images, targets = (
            draw.share * values + (1 - draw.share) * values[draw.partners]
            for values in (images, targets)
        )
        order = _interleaved(BATCH, parts=3)
        outputs = torch.cat([model(part) for part in torch.split(images[order], BATCH)])[order]
        labeled_loss = functional.cross_entropy(outputs[:BATCH], targets[:BATCH])
        unlabeled_loss = functional.mse_loss(outputs[BATCH:].softmax(dim=-1), targets[BATCH:])
        return labeled_loss + options.unlabeled_weight * unlabeled_loss

    def draws(self, random: np.random.Generator, labeled: int, unlabeled: int) -> Iterator[Draw]:
        """The random choices of all steps of an episode with so many images."""
        labeled_batches = _batches(random, labeled, REPEATS)
        unlabeled_batches = _batches(random, unlabeled, copies=-(-BATCH // unlabeled))
        for _ in range(self.options.steps):
            rows = next(labeled_batches), next(unlabeled_batches)
            shifts = self._shifts(random, 3 * BATCH)
            share = random.beta(self.options.mixup, self.options.mixup)
            partners = random.permutation(3 * BATCH)
            yield Draw(*rows, shifts, partners, max(share, 1 - share))

    def _shifts(self, random: np.random.Generator, count: int) -> Shifts:
        most = round(self.options.moved * self.pixels)
        return Shifts.draw(random, count, most, self.options.mirrored)


def _batches(random: np.random.Generator, count: int, copies: int) -> Iterator[np.ndarray]:
    """Places of 16 images, for ever: all copies in a random order, then in another one."""
    places = np.tile(np.arange(count), copies)
    whole = len(places) // BATCH
    while True:
        yield from np.split(random.permutation(places)[: whole * BATCH], whole)


def _interleaved(batch: int, parts: int) -> Tensor:
    """An order of `parts` batches, in which the first one has images of each; twice, it is none.

    The authors' code has it so that BatchNorm sees labeled and unlabeled images together.
    """
    order = torch.arange(parts * batch).reshape(parts, batch)
    for part in range(1, parts):
        block = slice(batch * part // parts, batch * (part + 1) // parts)
        order[[0, part], block] = order[[part, 0], block]
    return order.flatten()
