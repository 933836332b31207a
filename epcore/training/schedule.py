"""How the learning rate falls, when training stops and which epoch is kept."""

from typing import Any

from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, ReduceLROnPlateau

from epcore.plan.models import Optimization, SgdSettings, SteppedDescent


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

    def __init__(self, optimizer: SGD, settings: Optimization) -> None:
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

    def __init__(self, optimizer: SGD, settings: Optimization) -> None:
        super().__init__(CosineAnnealingLR(optimizer, T_max=settings.epochs))


class StepSchedule(Schedule):
    """Falls after given epochs, whatever the validation says (code of LwoF and wDAE-GNN)."""

    def __init__(self, optimizer: SGD, settings: SteppedDescent) -> None:
        first = settings.learning_rate
        super().__init__(LambdaLR(optimizer, lambda epoch: settings.rate(epoch) / first))
        self.keeps_last = settings.keep == "last"


def schedule_of(optimizer: SGD, settings: SgdSettings) -> Schedule:
    """The schedule that the settings ask for."""
    if isinstance(settings, SteppedDescent):
        return StepSchedule(optimizer, settings)
    if isinstance(settings, Optimization):
        kinds = {"plateau": PlateauSchedule, "cosine": CosineSchedule}
        return kinds[settings.schedule](optimizer, settings)
    raise TypeError(f"no schedule for {type(settings).__name__}")
