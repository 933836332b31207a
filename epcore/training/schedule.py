"""The optimizer, how its rate falls, when training stops and which epoch is kept."""

import math

from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    LambdaLR,
    LRScheduler,
    ReduceLROnPlateau,
)

from epcore.training.optimization import (
    ClippedParts,
    EpisodicOptimization,
    Optimization,
    SteppedSgd,
)

OptimizerSettings = Optimization | SteppedSgd | EpisodicOptimization


class Schedule:
    """Sets the learning rate of an optimizer after every epoch.

    least: the learning rate at which training ends.
    keeps_last: whether the last epoch is kept, or the one of the best validation accuracy.
    """

    def __init__(
        self, scheduler: LRScheduler, least: float = -math.inf, keeps_last: bool = False
    ) -> None:
        self._scheduler, self._least, self.keeps_last = scheduler, least, keeps_last
        self.state_dict, self.load_state_dict = scheduler.state_dict, scheduler.load_state_dict

    @property
    def over(self) -> bool:
        """Whether the rate fell so far that training ends."""
        rate: float = self._scheduler.optimizer.param_groups[0]["lr"]
        return rate <= self._least

    def step(self, accuracy: float, loss: float) -> None:
        """After an epoch with these validation results; only a plateau's schedule uses them."""
        if isinstance(self._scheduler, ReduceLROnPlateau):
            self._scheduler.step(accuracy if self._scheduler.mode == "max" else loss)
        else:
            self._scheduler.step()


def optimizer_of(model: nn.Module, settings: OptimizerSettings) -> Optimizer:
    """SGD with Nesterov momentum, or Adam, over all weights."""
    if isinstance(settings, EpisodicOptimization) and settings.momentum is None:
        return Adam(
            model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
    return SGD(
        model.parameters(),
        lr=settings.learning_rate,
        momentum=settings.momentum or 0,
        nesterov=bool(settings.momentum),
        fused=True,  # one pass over the weights
        weight_decay=settings.weight_decay,
    )


def clip_gradients(model: nn.Module, settings: OptimizerSettings) -> None:
    """Shortens the gradient to a norm, or each part of it, where the settings ask for it."""
    clip = settings.clip if isinstance(settings, EpisodicOptimization) else None
    if isinstance(clip, ClippedParts):
        clip_grad_value_(model.parameters(), clip.each)
    elif clip is not None:
        clip_grad_norm_(model.parameters(), clip)


def schedule_of(optimizer: Optimizer, settings: OptimizerSettings) -> Schedule:
    """The schedule that the settings ask for, which but for the plateau's asks no validation.

    In episodic training it is halved after every so many epochs (code of ProtoNet, RelationNet, TPN
    and GNN), or falls after given ones (code of MetaOptNet); that of stepped descent falls after
    given ones (code of LwoF and wDAE-GNN); a cosine's falls along half a wave, to almost nothing in
    the last epoch (SGDR, equation 5).
    """
    if isinstance(settings, EpisodicOptimization):
        return Schedule(LambdaLR(optimizer, settings.rate))
    if isinstance(settings, SteppedSgd):
        first = settings.learning_rate
        falling = LambdaLR(optimizer, lambda epoch: settings.rate(epoch) / first)
        return Schedule(falling, keeps_last=settings.keep == "last")
    if settings.schedule == "cosine":
        return Schedule(CosineAnnealingLR(optimizer, T_max=settings.epochs))
    plateau = settings.plateau  # falls where the metric stops to gain (official code, A33 and A34)
    scheduler = ReduceLROnPlateau(
        optimizer,
        mode="max" if plateau.metric == "accuracy" else "min",
        factor=plateau.factor,
        patience=plateau.patience,
    )
    return Schedule(scheduler, least=settings.learning_rate * settings.stop_ratio)
