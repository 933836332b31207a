"""Which GPUs of this machine a job may use: Snakemake counts them, but assigns none."""

import errno
import os
import re
import socket
import subprocess
import sys
import time

from epcore.errors import UserError

PREFIX = "epcore-gpu-"  # of the leases' names, the same for all users of the machine
POLL = 1.0  # seconds


def local_gpus() -> list[str]:
    """Identifiers of this machine's GPUs, those in CUDA_VISIBLE_DEVICES if it is set.

    None where `nvidia-smi` is missing or finds none.
    """
    try:
        listed = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    cards = dict(re.findall(r"^GPU (\d+): .*\(UUID: (\S+)\)$", listed, re.M))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return [*cards.values()]
    chosen = [cards.get(name.strip(), name.strip()) for name in visible.split(",")]
    return [name for name in chosen if name in cards.values()]


def claim(count: int, allow_cpu: bool) -> int:
    """Makes `count` GPUs, and no others, visible to this process, which keeps them until it ends.

    Returns how many it has: `count`, or 0 where it may compute without; it then sees none, nor
    those that SLURM gave to others, which not every site hides.

    A SLURM job has its own already, which the jobs of a group share out. Elsewhere they are leased,
    so that jobs of one machine, of several users and runs too, each have a card of their own; while
    all are taken this waits.
    `allow_cpu` lets a job that was given GPUs compute without them. Where the environment has
    EPCORE_GRES_ONLY, a SLURM job that counts 0 takes what it was given by --gres.

    Raises:
        UserError: if there are fewer than `count`, or GPUs although `count` is 0.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if job is not None:
        cards = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
        place = f"SLURM job {job}"
        if count == 0 and os.environ.get("EPCORE_GRES_ONLY"):
            count = len(cards) or 1
    else:
        cards, place = local_gpus(), "this machine"
    if count == 0 and cards:
        raise UserError(
            f"this job was told to use no GPU, but {place} has {', '.join(cards)}",
            "give it one (--gpus 1, in the workflow the resource gpu), or hide them: "
            "CUDA_VISIBLE_DEVICES=",
        )
    if count > len(cards):
        if not allow_cpu:
            raise UserError(
                f"this job was given {count} GPU, but {place} has {len(cards) or 'none'}",
                "see what `epcore doctor` says, or allow the CPU: --allow-cpu, for Snakemake "
                "--config allow_cpu=true",
            )
        count = 0
    if count and (job is None or count < len(cards)):
        cards = lease(cards, count, f"job-{job}-" if job else "")
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(cards)
    if count and _torch_sees(count, cards, allow_cpu):
        return count
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    return 0


def lease(gpus: list[str], count: int, owner: str = "") -> list[str]:
    """The first `count` of the GPUs that become free together, held until this process ends.

    owner: a SLURM job, in which GPUs may have numbers of their own.
    """
    announced = False
    while True:
        held: dict[str, int] = {}
        for gpu in gpus:
            if len(held) < count and (descriptor := _hold(owner + gpu)) is not None:
                held[gpu] = descriptor
        if len(held) == count:
            return list(held)
        for descriptor in held.values():
            os.close(descriptor)
        if not announced:
            print(f"epcore: waiting for {count} free GPU of {len(gpus)}", file=sys.stderr)
            announced = True
        time.sleep(POLL)


def _hold(gpu: str) -> int | None:
    """The descriptor that holds the lease of a GPU, or none if another process has it.

    It is a socket with a name that Linux keeps apart from files, once on a machine, and frees when
    the process that holds it ends, however it ends.
    """
    held = socket.socket(socket.AF_UNIX)
    try:
        held.bind(f"\0{PREFIX}{gpu}")
    except OSError as error:
        held.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return held.detach()


def _torch_sees(count: int, cards: list[str], allow_cpu: bool) -> bool:
    """Whether torch can compute on so many GPUs; an error if it must."""
    import torch

    if (visible := torch.cuda.device_count()) < count and not allow_cpu:
        raise UserError(
            f"this job was given {', '.join(cards)}, but torch {torch.__version__} sees "
            f"{visible or 'no GPU'}: a build without CUDA, or a driver that is too old for it",
            "`epcore doctor` says which",
        )
    return visible >= count
