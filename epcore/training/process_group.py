"""Several processes that train one network together, each with a GPU of its own.

Every process computes the features of its share of a batch, with BatchNorm statistics of the
whole batch; the features are gathered, and every process computes the same loss of them all, so
that embedding propagation sees the batch that a single process would. The weights come out as
those of a single process but for rounding (and for the masks of dropout, which each process draws
for its own share).
"""

import multiprocessing
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.multiprocessing.spawn import ProcessExitedException, spawn
from torch.nn.parallel import DistributedDataParallel

from epcore.errors import UserError
from epcore.runtime.interruption import Interrupted, leave_on_signals, postponed

# How long the others wait for the process that validates.
PATIENCE = timedelta(hours=2)
# Seconds in which the first process may still save once another has left.
GRACE = 30


@dataclass(frozen=True)
class ProcessGroup:
    """A process's place, `rank`, among `size`; `leave` is the signal that the parent got, or 0.

    A team of one computes nothing and waits for nobody.
    """

    rank: int = 0
    size: int = 1
    leave: "Synchronized[int] | None" = None

    def device(self) -> torch.device:
        """The process's GPU; the CPU where there is none."""
        if torch.cuda.is_available():
            return torch.device("cuda", self.rank)
        return torch.device("cpu")

    def synchronize(self, model: nn.Module) -> None:
        """Makes the BatchNorm layers of a model those of all processes' batches."""
        if self.size > 1:
            nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]

    def parallel(self, loss: nn.Module, all_weights_used: bool) -> nn.Module:
        """A module that computes a loss of gathered features: backward averages the gradients."""
        if self.size == 1:
            return loss
        return DistributedDataParallel(
            loss, forward_sync_buffers=False, find_unused_parameters=not all_weights_used
        )

    def share(self, batch: Tensor) -> Tensor:
        """The process's part of a batch `(n, ...)`, whose `n` the team's size divides."""
        return batch.chunk(self.size)[self.rank]

    def gathered(self, features: Tensor) -> Tensor:
        """Features `(n, D)` of the whole batch, in its order, from this process's `(n / size, D)`.

        Only the own part has a gradient, which is complete, because every process computes the
        loss of all. It is multiplied by the size, by which averaging over processes divides it.
        """
        if self.size == 1:
            return features
        parts = [torch.empty_like(features) for _ in range(self.size)]
        distributed.all_gather(parts, features.detach().contiguous())
        parts[self.rank] = features
        if features.requires_grad:
            features.register_hook(  # type: ignore[no-untyped-call]
                lambda gradient: gradient * self.size
            )
        return torch.cat(parts)

    def agree(self, number: int | None) -> int | None:
        """The signal that any process, or the parent, has got; each learns it at the same step."""
        if self.size == 1:
            return number
        signal_number = self.leave.value if self.leave is not None else 0
        greatest = torch.tensor(max(number or 0, signal_number))
        distributed.all_reduce(greatest, distributed.ReduceOp.MAX)
        return int(greatest) or None

    def of_first(self, compute: Callable[[], tuple[float, float]]) -> tuple[float, float]:
        """Two numbers computed by the first process, while the others wait."""
        if self.size == 1:
            return compute()
        numbers = torch.zeros(2, dtype=torch.float64)
        if self.rank == 0:
            numbers = torch.tensor(compute(), dtype=torch.float64)
        distributed.broadcast(numbers, src=0)
        first, second = numbers.tolist()
        return first, second


ALONE = ProcessGroup()


def launch(size: int, work: Callable[..., None], *arguments: Any) -> None:
    """Runs `work(team, *arguments)` in `size` processes on this machine, until all have ended.

    A signal to this process makes all of them save and leave.

    Raises:
        UserError: what a process raised, or that one was killed.
        Interrupted: after a signal, once all have left.
    """
    context = multiprocessing.get_context("spawn")
    errors: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    leave = context.Value("i", 0)
    with tempfile.TemporaryDirectory() as folder, postponed() as request:
        place = (size, leave, Path(folder, "rendezvous").as_uri())
        members = spawn(  # type: ignore[no-untyped-call]
            _member, (place, errors, work, arguments), nprocs=size, join=False
        )
        try:
            while not members.join(timeout=0.2, grace_period=GRACE):
                leave.value = request.number or 0
        except ProcessExitedException as error:
            if not errors.empty():
                raise UserError(errors.get()) from None
            request.raise_if_signalled()
            raise UserError(
                f"one of the {size} training processes ended: {error}",
                "run the same command again, training goes on from where it last saved",
            ) from None
        finally:
            for process in members.processes:
                process.kill()


def _member(
    rank: int,
    place: "tuple[int, Synchronized[int], str]",
    errors: "multiprocessing.SimpleQueue[str]",
    work: Callable[..., None],
    arguments: tuple[Any, ...],
) -> None:
    leave_on_signals()
    size, leave, rendezvous = place
    team = ProcessGroup(rank, size, leave)
    if team.device().type == "cuda":
        torch.cuda.set_device(team.device())
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    distributed.init_process_group(
        backend, rendezvous, timeout=PATIENCE, rank=rank, world_size=size
    )
    try:
        work(team, *arguments)
        distributed.destroy_process_group()
    except UserError as error:
        errors.put(str(error))
        raise SystemExit(2) from None
    except OSError as error:
        location = f"{error.filename}: " if error.filename else ""
        errors.put(f"{location}{error.strerror or error}")
        raise SystemExit(2) from None
    except Interrupted as request:
        raise SystemExit(128 + request.number) from None
