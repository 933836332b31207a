"""Where a training saves the state that it can go on from, and when that is deleted.

A finished checkpoint may still be lost: Snakemake deletes the outputs of a whole group of jobs when
one of them fails, and starts the group from its beginning when SLURM requeues it. From the state of
its last epoch a training makes its outputs again in seconds. So the state stays until a run of
Snakemake has succeeded, from when on nothing deletes the checkpoint.
"""

import contextlib
from pathlib import Path

from epcore.files import Provenance, canonical_json, fingerprint


def state_file(checkpoint: Path, provenance: Provenance, model: str = "") -> Path:
    """The state of a training, in a folder that Snakemake, which wipes outputs, knows nothing of.

    Its name has a fingerprint of the config and of the sha256 of every input, so that a training
    never resumes foreign weights. `model` is one of several models that a stage trains.
    """
    key = fingerprint(canonical_json(provenance.config), *provenance.inputs.values())
    return checkpoint.parent / f"{checkpoint.stem}.state" / f"{key}{model}.pt"


def discard_old_states(results: Path) -> None:
    """Deletes every state below a folder that is older than the checkpoint it was saved for.

    These are the states of finished trainings, those of settings that were given up, and what
    killed processes left half-written. The state of a training that was interrupted stays.
    """
    for folder in results.glob("**/*.state"):
        if folder.is_symlink():  # nobody here makes links: what is behind it is not ours
            continue
        # The files may be somebody else's: a run that succeeded does not fail of what it leaves.
        with contextlib.suppress(OSError):
            finished = folder.with_suffix(".pt").stat().st_mtime
            for path in folder.iterdir():
                if path.stat().st_mtime <= finished:
                    path.unlink()
            folder.rmdir()  # fails if there is something else in it
