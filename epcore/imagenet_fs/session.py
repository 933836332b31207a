"""What a training stage of ImageNet-FS resumes from and leaves behind."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from epcore.files import Provenance, canonical_json, fingerprint
from epcore.plan.stages import Stage
from epcore.training.loop import Outcome


class TrainingSession:
    """One run of a stage that trains one or several models, each named.

    Resume files lie beside the checkpoint, undeclared to Snakemake, which wipes declared outputs
    on failure; their name holds the fingerprint of config and inputs.
    """

    def __init__(self, name: str, stage: Stage, inputs: list[Path], out: Path) -> None:
        self.out = out
        config = stage.model_dump(mode="json")
        self.provenance = Provenance(name, config, inputs)
        self._key = fingerprint(canonical_json(config), *self.provenance.inputs.values())
        self._folder = out.parent / f"{out.stem}.state"

    def state(self, model: str = "") -> Path:
        """The resume file of a model."""
        return self._folder / f"{self._key}{model}.pt"

    def finish(
        self, outcomes: Mapping[str, Outcome], save: Callable[[], None], **facts: Any
    ) -> None:
        """Writes curves, checkpoint and meta; then forgets the resume files."""
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
        for left in self._folder.glob(f"*{self._key}*"):  # with those of killed writes
            left.unlink()
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()
