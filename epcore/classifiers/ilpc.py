"""iLPC (Lazarou et al. 2021): iterative label propagation and cleaning."""

from typing import ClassVar

import torch
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn import functional

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.preprocessing import Step
from epcore.classifiers.solvers.neighbors import neighbors
from epcore.classifiers.solvers.sinkhorn import balanced
from epcore.settings import Probability

# Of the paper and the authors' code.
EDGE_POWER = 3
# A propagated label below this, which is about the rounding of float32, counts as this.
SMALLEST_LABEL = 1e-6
# The linear classifier that finds clean labels, in the authors' code.
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.1, 0.9, 5e-4


class ILPC(EpisodeClassifier):
    """Label propagation, balanced over classes, and selection of the labels that are learned best.

    The graph has the edges `max(cos(x_i, x_j), 0)^3` from each image to its nearest neighbors; S is
    the sum of it and its transpose, normalized as `D^-1/2 W D^-1/2`. A round propagates the labels
    Y of the labeled images, `Z = (I - alpha S)^-1 Y`, and shares out the queries by Sinkhorn's
    algorithm, from the scores `Z^power`, so that each class gets as many as it still lacks of an
    equal share. A linear classifier then learns these labels, from the class means of the labeled
    images on, by gradient descent on all images. The queries of each class with the smallest loss,
    averaged over the steps, keep their labels for good and are labeled images in the next round.
    The last round is that in which fewer queries than classes are selected (in the authors' code,
    fewer than five).

    Without cleaning there is one round, and no selection.

    As in the paper edges are never negative; the authors' code keeps negative ones among the
    nearest. It solves for Z with at most 20 steps of conjugate gradients, and starts the bias of
    the linear classifier at random; here Z is exact, and the bias starts at 0.

    Michalis Lazarou, Tania Stathaki, Yannis Avrithis: Iterative label cleaning for transductive
    and semi-supervised few-shot learning, ICCV 2021, https://arxiv.org/abs/2012.07962.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, ILPC
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(ILPC()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(transductive=True, balanced=True)

    preprocessing: tuple[Step, ...] = Field(
        default=("signed-power", "unit", "center-episode", "unit"),
        description="what is done to the features first, in this order; as in the authors' code",
    )
    neighbors: PositiveInt = Field(
        default=15,
        description="how many neighbors each image has, itself left out (authors' code: K, 15 for "
        "ResNet-12 and 20 for Wide-ResNet)",
    )
    alpha: Probability = Field(
        default=0.8, description="strength of the propagation (authors' code)"
    )
    power: PositiveFloat = Field(
        default=3, description="of the scores that are balanced (authors' code: T)"
    )
    cleaning: NonNegativeInt = Field(
        default=0,
        description="steps of the linear classifier in each round, 1000 in the authors' code; 0 is "
        "without cleaning",
    )
    selected: PositiveInt = Field(
        default=3,
        description="at most how many queries of each class are selected in a round (authors' "
        "code: best_samples)",
    )

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        way, labeled = episodes.way, episodes.labeled
        labels = episodes.node_labels
        labels = labels.reshape(-1, *labels.shape[-2:])
        points = episodes.points.reshape(-1, *episodes.points.shape[-2:])
        points = functional.normalize(points, dim=-1)
        gram = points @ points.mT
        factor = self._factor(gram)
        lacking = points.new_full((len(points), way), episodes.queries / way)
        unlabeled = points.new_ones((len(points), episodes.queries), dtype=torch.bool)
        logits = points.new_zeros(len(points), episodes.queries, way)
        active = torch.arange(len(points), device=points.device)  # episodes that are not done
        while len(active):
            spread = torch.cholesky_solve(labels[active], factor[active])[:, labeled:]
            scores = self.power * spread.clamp_min(SMALLEST_LABEL).log()
            balanced_scores = balanced(scores, lacking[active], unlabeled[active])
            logits[active] = torch.where(
                unlabeled[active][..., None], balanced_scores, logits[active]
            )
            if not self.cleaning:
                break
            guesses = functional.one_hot(logits[active].argmax(dim=-1), way).to(points.dtype)
            sizes = (guesses * unlabeled[active][..., None]).sum(dim=-2)
            going = sizes.clamp_max(self.selected).sum(dim=-1) >= way
            active, guesses, sizes = active[going], guesses[going], sizes[going]
            losses = points.new_zeros(guesses.shape[:-1])
            # Where all are selected, losses have no say.
            overfull = (sizes > self.selected).any(dim=-1)
            losses[overfull] = self._losses(
                gram[active[overfull]], labels[active[overfull]], guesses[overfull]
            )
            chosen = self._choose(losses, guesses, unlabeled[active])
            selected_guesses = guesses * chosen[..., None]
            labels[active, labeled:] += selected_guesses
            lacking[active] -= selected_guesses.sum(dim=-2)
            unlabeled[active] &= ~chosen
            active = active[unlabeled[active].any(dim=-1)]
        return logits.reshape(*episodes.points.shape[:-2], episodes.queries, way)

    def _factor(self, gram: Tensor) -> Tensor:
        """Cholesky factor of `I - alpha S`, for cosines `(..., N, N)`."""
        identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
        off_diagonal = gram.masked_fill(identity.bool(), -torch.inf)
        graph = off_diagonal.clamp_min(0) ** EDGE_POWER * neighbors(off_diagonal, self.neighbors)
        graph = graph + graph.mT
        degrees = graph.sum(dim=-1)
        scaling = torch.where(degrees > 0, degrees, 1).rsqrt()
        normalized = scaling[..., :, None] * graph * scaling[..., None, :]
        factor: Tensor = torch.linalg.cholesky(identity - self.alpha * normalized)
        return factor

    def _losses(self, gram: Tensor, labels: Tensor, guesses: Tensor) -> Tensor:
        """Loss of each query `(..., queries)` for its guess, averaged over all steps.

        The gradient of the weights is a sum of images, so that a step of the logits of all images
        takes only the Gram matrix `(..., N, N)` of these, whatever D is. A constant feature, whose
        product is 1, stands for the bias. Images are in the last dimension: PyTorch's softmax of a
        few classes takes ten times as long there.
        """
        labeled = labels.shape[-2] - guesses.shape[-2]
        targets = torch.cat([labels[..., :labeled, :], guesses], dim=-2).mT.contiguous()
        # Weights start at the class means of the labeled images, of length 1.
        products = labels.mT @ gram
        lengths = (products * labels.mT).sum(dim=-1, keepdim=True).clamp_min(0).sqrt()
        logits = products / lengths.clamp_min(1e-12)
        kernel = (gram + 1) / gram.shape[-1]
        velocity = torch.zeros_like(logits)
        total = torch.zeros_like(logits)
        for _ in range(self.cleaning):
            log_probabilities = logits.log_softmax(dim=-2)
            total += log_probabilities
            slope = log_probabilities.exp_().sub_(targets)
            velocity.baddbmm_(slope, kernel, beta=MOMENTUM).add_(logits, alpha=WEIGHT_DECAY)
            logits.sub_(velocity, alpha=LEARNING_RATE)
        losses = -(total * targets).sum(dim=-2) / self.cleaning
        return losses[..., labeled:]

    def _choose(self, losses: Tensor, guesses: Tensor, unlabeled: Tensor) -> Tensor:
        """Mask `(..., queries)` of the unlabeled queries with the smallest losses in each class."""
        of_class = (guesses.mT > 0) & unlabeled[..., None, :]
        costs = losses[..., None, :].masked_fill(~of_class, torch.inf)
        smallest = costs.topk(min(self.selected, costs.shape[-1]), dim=-1, largest=False)
        chosen = torch.zeros_like(of_class)
        return chosen.scatter_(-1, smallest.indices, smallest.values.isfinite()).any(dim=-2)
