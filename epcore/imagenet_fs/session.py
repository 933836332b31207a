"""What a training stage of ImageNet-FS resumes from and leaves behind."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from epcore.files import Provenance
from epcore.plan.stages import Stage
from epcore.resume import ResumeFiles
from epcore.training.loop import Outcome


class TrainingSession:
    """One run of a stage that trains one or several models, each named."""

    def __init__(self, name: str, stage: Stage, inputs: list[Path], out: Path) -> None:
        self.out = out
        config = stage.model_dump(mode="json")
        self.provenance = Provenance(name, config, inputs)
        self._resume = ResumeFiles.of(out, config, self.provenance.inputs.values())

    def state(self, model: str = "") -> Path:
        """The resume file of a model."""
        return self._resume.state(model)

    def finish(
        self, outcomes: Mapping[str, Outcome], save: Callable[[], None], **facts: Any
    ) -> None:
        """Writes curves, checkpoint and meta. The resume files stay until these are used."""
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
            resume_key=self._resume.key,
            **facts,
        )
        self._resume.ended()
