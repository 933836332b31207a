"""A server of files that misbehaves as it is told."""

import re
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
    ranges: bool = True  # whether it understands Range
    refuses: bool = False  # answers every Range with 416
    cuts: list = field(default_factory=list)  # bytes of the body until each request breaks off
    hangs: bool = False  # says nothing any more, instead of breaking off
    pause: float = 0.0  # seconds between two pieces
    headers: dict = field(default_factory=dict)  # others than it would send; None sends none
    always: int | None = None  # a status of all answers


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        page = self.server.pages.get(self.path, Page(b"not found", 404))
        wanted = self.headers["Range"]
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted else 0
        answer = {"path": self.path, "start": start, "sent": 0}
        self.server.asked.append(dict(self.headers))
        self.server.answers.append(answer)
        status, body = page.status, page.body
        if status == 200 and wanted and (page.refuses or (start >= len(body) and page.ranges)):
            status, body = 416, b""
        elif status == 200 and wanted and page.ranges and self.same(page):
            status, body = 206, body[start:]
        cut = next(page.cuts, len(body)) if page.cuts else len(body)
        if cut == "silence":
            self.server.stopped.wait()
            return
        headers = {"Content-Length": str(len(body))}
        if status == 206:
            end = len(page.body)
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{end}"
        self.send_response(page.always or status)
        for name, value in (headers | page.headers).items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        try:
            for place in range(0, min(cut, len(body)), PIECE):
                piece = body[place : min(place + PIECE, cut)]
                answer["sent"] += len(piece)  # before the client has it and asks for this number
                self.wfile.write(piece)
                self.server.stopped.wait(page.pause)
        except OSError:  # the client is gone
            self.close_connection = True
        self.close_connection |= bool(page.headers)  # which ends a body of no length
        if cut < len(body):
            if page.hangs:
                self.server.stopped.wait()
            self.close_connection = True

    def same(self, page):
        """Whether If-Range lets it send a part."""
        tag = self.headers["If-Range"]
        return tag is None or tag in (page.headers.get("ETag"), page.headers.get("Last-Modified"))

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.answers, self.asked, self.stopped = {}, [], [], threading.Event()

    def page(self, path, *arguments, cuts=(), **settings):
        """Lays a page; its address."""
        self.pages[path] = Page(*arguments, cuts=iter(cuts), **settings)
        return f"http://127.0.0.1:{self.server_port}{path}"

    def sent(self, path="/a"):
        return [answer["sent"] for answer in self.answers if answer["path"] == path]

    def starts(self, path="/a"):
        return [answer["start"] for answer in self.answers if answer["path"] == path]


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
