"""What a training stage of ImageNet-FS resumes from and leaves behind."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from epcore.files import Provenance
from epcore.plan.stages import Stage
from epcore.resume import state_file
from epcore.training.loop import Outcome


class TrainingSession:
    """One run of a stage that trains one or several models, each named."""

    def __init__(self, name: str, stage: Stage, inputs: list[Path], out: Path) -> None:
        self.out = out
        self.provenance = Provenance(name, stage.model_dump(mode="json"), inputs)

    def state(self, model: str = "") -> Path:
        """The file that the training of a model can go on from."""
        return state_file(self.out, self.provenance, model)

    def finish(
        self, outcomes: Mapping[str, Outcome], save: Callable[[], None], **facts: Any
    ) -> None:
        """Writes curves, checkpoint and meta."""
        curves = []
        for model, outcome in outcomes.items():
            curves.append(self.out.with_name(f"{self.out.stem}{model}.csv"))
            outcome.write_curve(curves[-1])
        save()
        self.provenance.write(
            self.out,
            *curves,
            best={model: outcome.best for model, outcome in outcomes.items()},
            resumed_from_epoch={model: outcome.resumed_from for model, outcome in outcomes.items()},
            **facts,
        )
