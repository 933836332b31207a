"""Signals that ask a process to leave: at once, or as soon as its work is safe."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A person (SIGINT) or a scheduler (SIGTERM) wants this process to end; `number` says who."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Request:
    """Whether a signal has arrived, and whether the next one may wait."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.urgent = False

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A signal raises `Interrupted` at once, one that came before does at the block's start."""
        self.urgent = True
        try:
            self.raise_if_signalled()
            yield
        finally:
            self.urgent = False

    def raise_if_signalled(self) -> None:
        """Raises `Interrupted` if a signal has arrived."""
        if self.number is not None:
            raise Interrupted(self.number)


def leave_on_signals() -> None:
    """From now on a signal raises `Interrupted`, so that half-written files are removed."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    _install(leave)


@contextmanager
def postponed() -> Iterator[Request]:
    """In this block the first signal is only noted; a second one raises `Interrupted` at once."""
    request = Request()

    def note(number: int, frame: FrameType | None) -> None:
        if request.urgent or request.number is not None:
            raise Interrupted(number)
        request.number = number

    before = {number: signal.getsignal(number) for number in SIGNALS}
    _install(note)
    try:
        yield request
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


def _install(handler: Callable[[int, FrameType | None], None]) -> None:
    # Python takes handlers from the main thread alone.
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, handler)
