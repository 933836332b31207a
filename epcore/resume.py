"""What a training goes on from: saved beside its checkpoint, kept until that was put to use.

A checkpoint that is there may still be lost: Snakemake deletes the outputs of a whole group of jobs
when one of them fails, and starts the group from its beginning when SLURM requeues it. From the
state of its last epoch a training makes its outputs again in seconds. So stages of other groups say
that it was used: of a training and its embedding, fine-tuning and what is tested on the features.
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

    def _delete(self, chosen: Callable[[Path], bool]) -> None:
        # Another job may do the same at the same time, and the files may be somebody else's: what
        # this job has made counts more.
        with contextlib.suppress(OSError):
            for path in filter(chosen, list(self.folder.glob(f"*{self.key}*"))):
                path.unlink(missing_ok=True)
            self.folder.rmdir()  # fails if there is something else in it


def put_to_use(made: Path) -> None:
    """Deletes what the training of a checkpoint, or of the features of one, could go on from."""
    try:
        facts = json.loads(meta_of(made).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # made elsewhere, or damaged since
    if (key := facts.get("resume_key")) is not None:
        ResumeFiles(_folder(made), key).delete()
        return
    for name in facts.get("inputs", ()):
        if name.endswith(".pt"):
            put_to_use(Path(name))


def _folder(checkpoint: Path) -> Path:
    return checkpoint.parent / f"{checkpoint.stem}.state"
