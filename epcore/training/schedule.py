"""The optimizer, how its rate falls, when training stops and which epoch is kept."""

from typing import Any

from torch import nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, ReduceLROnPlateau

from epcore.plan.compared_models import AdamSettings
from epcore.plan.recipe_models import Optimization, SgdSettings, SteppedDescent

OptimizerSettings = SgdSettings | AdamSettings


class Schedule:
    """Sets the learning rate of an optimizer after every epoch.

    keeps_last: whether the last epoch is kept, or the one of the best validation accuracy.
    over: whether the rate fell so far that training ends.
    """

    keeps_last = False
    over = False

    def __init__(self, scheduler: LRScheduler) -> None:
        self._scheduler = scheduler

    def step(self, accuracy: float, loss: float) -> None:
        """After an epoch with these validation results."""
        self._scheduler.step()

    def state_dict(self) -> dict[str, Any]:
        return self._scheduler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._scheduler.load_state_dict(state)


class PlateauSchedule(Schedule):
    """Falls where the validation metric stops to gain (official code, A33 and A34)."""

    def __init__(self, optimizer: Optimizer, settings: Optimization) -> None:
        self._optimizer, self._settings = optimizer, settings
        self._plateau = ReduceLROnPlateau(
            optimizer,
            mode="max" if settings.plateau.metric == "accuracy" else "min",
            factor=settings.plateau.factor,
            patience=settings.plateau.patience,
        )
        super().__init__(self._plateau)

    @property
    def over(self) -> bool:  # type: ignore[override]
        rate: float = self._optimizer.param_groups[0]["lr"]
        return rate <= self._settings.learning_rate * self._settings.stop_ratio

    def step(self, accuracy: float, loss: float) -> None:
        self._plateau.step(accuracy if self._settings.plateau.metric == "accuracy" else loss)


class CosineSchedule(Schedule):
    """Falls along half a cosine wave, to almost nothing in the last epoch (SGDR, equation 5)."""

    def __init__(self, optimizer: Optimizer, settings: Optimization) -> None:
        super().__init__(CosineAnnealingLR(optimizer, T_max=settings.epochs))


class StepSchedule(Schedule):
    """Falls after given epochs, whatever the validation says (code of LwoF and wDAE-GNN)."""

    def __init__(self, optimizer: Optimizer, settings: SteppedDescent) -> None:
        first = settings.learning_rate
        super().__init__(LambdaLR(optimizer, lambda epoch: settings.rate(epoch) / first))
        self.keeps_last = settings.keep == "last"


class HalvingSchedule(Schedule):
    """Halves after every so many epochs (code of ProtoNet, RelationNet, TPN and GNN)."""

    def __init__(self, optimizer: Optimizer, settings: AdamSettings) -> None:
        super().__init__(
            LambdaLR(optimizer, lambda epoch: float(0.5 ** (epoch // settings.halve_every)))
        )


def optimizer_of(model: nn.Module, settings: OptimizerSettings) -> Optimizer:
    """SGD with Nesterov momentum, or Adam, over all weights."""
    if isinstance(settings, AdamSettings):
        return Adam(
            model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
    return SGD(
        model.parameters(),
        lr=settings.learning_rate,
        momentum=settings.momentum,
        nesterov=settings.momentum > 0,
        fused=True,  # one pass over the weights
        weight_decay=settings.weight_decay,
    )


def schedule_of(optimizer: Optimizer, settings: OptimizerSettings) -> Schedule:
    """The schedule that the settings ask for."""
    if isinstance(settings, AdamSettings):
        return HalvingSchedule(optimizer, settings)
    if isinstance(settings, SteppedDescent):
        return StepSchedule(optimizer, settings)
    if isinstance(settings, Optimization):
        kinds = {"plateau": PlateauSchedule, "cosine": CosineSchedule}
        return kinds[settings.schedule](optimizer, settings)
    raise TypeError(f"no schedule for {type(settings).__name__}")
