"""A server of files that misbehaves as it is told."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from epcore.data.fetch import PIECE

BODY = np.random.default_rng(0).bytes(5 * PIECE)


@dataclass
class Page:
    """What lies at an address, and how the server misbehaves there."""

    body: bytes = BODY
    status: int = 200
    cuts: list = field(default_factory=list)  # bytes of the body until each request breaks off
    hangs: bool = False  # says nothing any more, instead of breaking off
    headers: dict = field(default_factory=dict)  # others than it would send; None sends none


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        page = self.server.pages.get(self.path, Page(b"not found", 404))
        answer = {"path": self.path, "sent": 0}
        self.server.answers.append(answer)
        body = page.body
        cut = next(page.cuts, len(body)) if page.cuts else len(body)
        if cut == "silence":
            self.server.stopped.wait()
            return
        headers = {"Content-Length": str(len(body))}
        self.send_response(page.status)
        for name, value in (headers | page.headers).items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        try:
            for place in range(0, min(cut, len(body)), PIECE):
                piece = body[place : min(place + PIECE, cut)]
                answer["sent"] += len(piece)  # before the client has it and asks for this number
                self.wfile.write(piece)
        except OSError:  # the client is gone
            self.close_connection = True
        self.close_connection |= bool(page.headers)  # which ends a body of no length
        if cut < len(body):
            if page.hangs:
                self.server.stopped.wait()
            self.close_connection = True

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.answers, self.stopped = {}, [], threading.Event()

    def page(self, path, *arguments, cuts=(), **settings):
        """Lays a page; its address."""
        self.pages[path] = Page(*arguments, cuts=iter(cuts), **settings)
        return f"http://127.0.0.1:{self.server_port}{path}"

    def sent(self, path="/a"):
        return [answer["sent"] for answer in self.answers if answer["path"] == path]


@contextmanager
def serving():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.stopped.set()
    server.shutdown()
    thread.join()
    server.server_close()
