"""Where a training saves the state that it can go on from, and when that is deleted.

A finished checkpoint may still be lost: Snakemake deletes the outputs of a whole group of jobs when
one of them fails, and starts the group from its beginning when SLURM requeues it. From the state of
its last epoch a training makes its outputs again in seconds. So the state stays until a run of
Snakemake has succeeded, from when on nothing deletes the checkpoint.
"""

import contextlib
from pathlib import Path

from epcore.files import Provenance


def state_file(checkpoint: Path, provenance: Provenance, model: str = "") -> Path:
    """The state of a training, in a folder that Snakemake, which wipes outputs, knows nothing of.

    Its name has a fingerprint of the config and of the sha256 of every input, so that a training
    never resumes foreign weights. `model` is one of several models that a stage trains.
    """
    return checkpoint.parent / f"{checkpoint.stem}.state" / f"{provenance.fingerprint}{model}.pt"


def discard_old_states(results: Path) -> None:
    """Deletes every state below a folder that is older than what it was saved for.

    That is a checkpoint or, of ImageNet-FS, features. These are the states of finished jobs, those
    of settings that were given up, and what killed processes left half-written. The state of a job
    that was interrupted stays.
    """
    for folder in results.glob("**/*.state"):
        files = [file for file in map(folder.with_suffix, (".pt", ".npy")) if file.exists()]
        # Nobody here makes links: what is behind one is not ours.
        if folder.is_symlink() or not files:
            continue
        # The files may be somebody else's: a run that succeeded does not fail of what it leaves.
        with contextlib.suppress(OSError):
            finished = files[0].stat().st_mtime
            for path in sorted(folder.rglob("*"), reverse=True):  # folders after what is in them
                if path.is_dir() and not path.is_symlink():
                    _remove_if_empty(path)
                elif path.lstat().st_mtime <= finished:
                    path.unlink()
            _remove_if_empty(folder)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
