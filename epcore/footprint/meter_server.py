"""The meter of a Snakemake run: a process that measures this machine for all jobs of the run.

A question is a line of JSON, what to measure; the answer is one too, a reading or an error. The
process ends with the run, and with the last job that still asks.
"""

import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path

from epcore.footprint.meter import Meter, Scope


def start_meter() -> Path:
    """Starts the meter of this process, which is the run; returns its socket.

    Jobs may ask at once, and wait for the answer until the meter has started.

    Raises:
        OSError: if there is no place for a socket, or its path is too long for one.
    """
    folder = Path(tempfile.mkdtemp(prefix="epcore-"))
    path = folder / "meter"
    try:
        _start(path)
    except OSError:
        shutil.rmtree(folder)
        raise
    return path


def _start(path: Path) -> None:
    # Its writing end stays open in this process alone: when that ends, however, the meter reads
    # the end of the file.
    alive, _ = os.pipe()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        subprocess.Popen(
            [sys.executable, "-m", __name__, str(path), str(listener.fileno())],
            stdin=alive,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            # Ctrl-C is not for it: interrupted jobs still read what they used.
            start_new_session=True,
        )
    os.close(alive)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A thread for each job; its end waits for them."""

    def __init__(self, path: str, listener: socket.socket) -> None:
        super().__init__(path, _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._lock = threading.Lock()
        self._meters: dict[bytes, Meter] = {}

    def answer(self, question: bytes) -> bytes:
        """A line for a line."""
        with self._lock:
            try:
                if question not in self._meters:
                    self._meters[question] = _meter(Scope(**json.loads(question)))
                answer = asdict(self._meters[question].read())
            except Exception as error:  # whatever codecarbon meets
                answer = {"error": repr(error)}
        return json.dumps(answer).encode() + b"\n"

    def stop(self) -> None:
        """Ends when the last job has closed its connection."""
        self.shutdown()
        self.server_close()


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        for question in self.rfile:
            self.wfile.write(self.server.answer(question))


def _meter(scope: Scope) -> Meter:
    from epcore.footprint.own_meter import OwnMeter

    return OwnMeter(scope)


def main() -> None:
    """Serves until standard input ends."""
    path, listening = sys.argv[1:]
    server = _Server(path, socket.socket(fileno=int(listening)))
    threading.Thread(target=server.serve_forever).start()
    sys.stdin.read()
    server.stop()
    shutil.rmtree(Path(path).parent, ignore_errors=True)


if __name__ == "__main__":
    main()
