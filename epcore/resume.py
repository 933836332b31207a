"""What a training goes on from: saved beside its checkpoint, kept until that was put to use.

A checkpoint that is there may still be lost: Snakemake deletes the outputs of a whole group of jobs
when one of them fails, and starts the group from its beginning when SLURM requeues it. From the
state of its last epoch a training makes its outputs again in seconds.
"""

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epcore.files import canonical_json, fingerprint, meta_of


@dataclass(frozen=True)
class ResumeFiles:
    """The resume files of one training, undeclared to Snakemake, which wipes declared outputs.

    key: the fingerprint of config and inputs, part of every file's name, so that a changed config
    never resumes foreign weights.
    """

    folder: Path
    key: str

    @classmethod
    def of(cls, out: Path, config: Mapping[str, Any], inputs: Iterable[str]) -> "ResumeFiles":
        """For the checkpoint `out`; `inputs` are the digests of what the training reads."""
        return cls(_folder(out), fingerprint(canonical_json(config), *inputs))

    def state(self, model: str = "") -> Path:
        """Of one of the models that the stage trains."""
        return self.folder / f"{self.key}{model}.pt"

    def ended(self) -> None:
        """Deletes all but the states: heartbeats, and what killed writes left."""
        self._delete(lambda path: path.suffix != ".pt" or path.name.startswith("."))

    def delete(self) -> None:
        self._delete(lambda path: True)
        with contextlib.suppress(OSError):  # not there, or there is the state of another config
            self.folder.rmdir()

    def _delete(self, chosen: Callable[[Path], bool]) -> None:
        for path in self.folder.glob(f"*{self.key}*"):
            if chosen(path):
                path.unlink(missing_ok=True)


def put_to_use(checkpoint: Path) -> None:
    """Deletes what a checkpoint's training could go on from; called by a stage that has used it."""
    try:
        facts = json.loads(meta_of(checkpoint).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return  # made elsewhere
    if (key := facts.get("resume_key")) is not None:
        ResumeFiles(_folder(checkpoint), key).delete()


def _folder(checkpoint: Path) -> Path:
    return checkpoint.parent / f"{checkpoint.stem}.state"
