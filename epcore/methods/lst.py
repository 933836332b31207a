"""Learning to self-train (Li et al. 2019): MTL that also learns from unlabeled images."""

from dataclasses import replace

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.rows import rows_of
from epcore.classifiers.solvers.surest import surest_of_each_class
from epcore.methods.base import Pretrained, query_classes
from epcore.methods.mtl import LabeledImages, Mtl, with_one


class Lst(Mtl):
    """MTL whose linear layer labels unlabeled images and descends on them as well.

    The layer descends on the support and gives each unlabeled image its most likely class. In a
    round the surest images of each class are kept. A relation network compares each of them with
    the mean of each class's support; the softmax of these relations over the classes multiplies the
    image's logits. The layer descends from its start on the support and the kept images, then on
    the support alone, and labels all images anew for the next round. Without unlabeled images a
    test is that of MTL.

    Training is that of the authors' code. An episode has one round, which keeps all unlabeled
    images. The queries' loss after the joint steps trains the relation network. Their loss after
    all steps trains scales, shifts and the layer's start. Both gradients go through the steps, in
    which features of support and unlabeled images are constants.

    In the authors' code the relation network sees maps of 512 channels at 5x5 positions through two
    convolutions of 64 and 1 channels and two linear layers of 8 and 1 outputs; here it sees the
    mean over positions, through linear layers of 64, 8 and 1 outputs. In tests of theirs each round
    sees other 30 unlabeled images of each class, here every round sees all. Where a class has fewer
    images than are kept, theirs repeats some.

    Xinzhe Li and others: Learning to Self-Train for Semi-Supervised Few-Shot Classification,
    NeurIPS 2019, https://arxiv.org/abs/1906.00562. Defaults are those of xinzheli1217's
    learning-to-self-train, exp_test.py and, for training, exp_train.py.
    """

    class Options(Mtl.Options):
        """How the linear layer descends, and on which images."""

        steps: PositiveInt = Field(
            default=100, description="of the last round of a test; test_base_epoch_num"
        )
        inner_rate: PositiveFloat = Field(
            default=0.05,
            description="learning rate of all steps; base_lr is 0.01, of a loss that is the sum "
            "over the five classes of each one's mean",
        )
        rounds: PositiveInt = Field(
            default=4,
            description="how often a test labels the unlabeled images; recurrent_stage_nums, where "
            "the paper has 6",
        )
        per_class: PositiveInt = Field(
            default=20,
            description="most unlabeled images of a class that a round of a test keeps; "
            "hard_selection",
        )
        label_steps: PositiveInt = Field(
            default=10, description="on the support, before the first labels; a constant of theirs"
        )
        joint_steps: PositiveInt = Field(
            default=10,
            description="the first ones of each round of a test, on support and unlabeled images; "
            "re_train_epoch_num",
        )
        round_steps: PositiveInt = Field(
            default=40, description="of each round of a test but the last; local_update_num"
        )
        training_steps: PositiveInt = Field(
            default=20, description="of the round of a training episode; train_base_epoch_num"
        )
        training_joint_steps: PositiveInt = Field(
            default=5,
            description="the first ones of a training episode, on support and unlabeled images; "
            "re_train_epoch_num",
        )

    options: Options
    unlabeled = True

    def __init__(self, options: Options, pixels: int, way: int, start: Pretrained) -> None:
        super().__init__(options, pixels, way, start)
        self.relation = nn.Sequential(
            nn.Linear(2 * start.backbone.feature_size, 64),
            nn.BatchNorm1d(64),
            nn.LeakyReLU(0.1),
            nn.Linear(64, 8),
            nn.LeakyReLU(0.1),
            nn.Linear(8, 1),
        )
        for layer in self.relation:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        options, start, support = self.options, self._start(), self._support(episodes)
        layer = self._descended(start, support, options.label_steps)
        for number in range(1, options.rounds + 1):
            images = self._with_unlabeled(episodes, layer, options.per_class)
            steps = options.steps if number == options.rounds else options.round_steps
            layer = self._descended(start, images, options.joint_steps)
            layer = self._descended(layer, support, steps - options.joint_steps)
        return with_one(episodes.query) @ layer.mT

    def loss(self, episodes: EpisodeBatch) -> Tensor:
        """The queries' cross-entropy after the joint steps, plus their cross-entropy after all."""
        options, start, support = self.options, self._start(), self._support(episodes)
        queries, joint = with_one(episodes.query), options.training_joint_steps
        layer = self._descended(start.detach(), support, options.label_steps)
        images = self._with_unlabeled(episodes, layer, per_class=episodes.unlabeled)
        after_joint = self._descended(start.detach(), images, joint)
        layer = self._descended(start, replace(images, weights=images.weights.detach()), joint)
        after_all = self._descended(layer, support, options.training_steps - joint)
        classes = query_classes(episodes).flatten()
        return functional.cross_entropy(
            (queries.detach() @ after_joint.mT).flatten(0, 1), classes
        ) + functional.cross_entropy((queries @ after_all.mT).flatten(0, 1), classes)

    def _with_unlabeled(
        self, episodes: EpisodeBatch, layer: Tensor, per_class: int
    ) -> LabeledImages:
        """The support and, of each class, the `per_class` unlabeled images of most confidence."""
        support = self._support(episodes)
        if not episodes.unlabeled:
            return support
        inputs = with_one(episodes.unlabeled_points.detach())
        sureness, guesses = (inputs @ layer.mT).softmax(dim=-1).max(dim=-1)  # (E, n)
        places, amounts = surest_of_each_class(sureness, guesses, episodes.way, per_class)
        chosen = rows_of(inputs, places)  # (E, m, D + 1)
        labels, ones = (
            values.expand(len(inputs), -1, -1) for values in (support.labels, support.weights)
        )
        pseudo = functional.one_hot(guesses.gather(-1, places), episodes.way)
        relations = self._relations(chosen[..., :-1], episodes.class_means.detach())
        weights = relations.softmax(dim=-1) * amounts[..., None]  # (E, m, way)
        return LabeledImages(
            torch.cat([support.inputs, chosen], dim=1),
            torch.cat([labels, pseudo.to(labels.dtype)], dim=1),
            torch.cat([ones, weights], dim=1),
            support.divisor,
        )

    def _relations(self, images: Tensor, means: Tensor) -> Tensor:
        """Relations `(E, n, way)` of images `(E, n, D)` with the means `(E, way, D)` of classes."""
        shape = (*images.shape[:2], *means.shape[1:])
        pairs = torch.cat([images[:, :, None].expand(shape), means[:, None].expand(shape)], dim=-1)
        relations: Tensor = self.relation(pairs.flatten(0, 2)).reshape(shape[:3])
        return relations
