"""A headless Chromium without a network, driven over its own debugging pipe."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--hide-scrollbars",
)


def program():
    """The path of Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page; every address that it asks for but files and data fails, and is in `requests`.

    The debugging protocol is JSON texts with a zero byte behind each, on file descriptors 3 and 4.
    """

    def __init__(self, folder: Path, width: int = 1400, height: int = 900) -> None:
        self.requests, self.errors, self._numbers = [], [], itertools.count(1)
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        where = (f"--window-size={width},{height}", f"--user-data-dir={folder}")
        command = [program(), *QUIET, *where, "--remote-debugging-pipe", "about:blank"]
        # The shell gives the pipes the numbers that Chromium expects.
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", *command],
            pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self._answers, self._session = os.fdopen(self._in, "rb"), None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        self.call("Network.enable")
        offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        self.call("Network.emulateNetworkConditions", **offline)
        self.call("Runtime.enable")
        self.call("Page.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(10)
        os.close(self._out)
        self._answers.close()

    def call(self, method, **parameters):
        """What a command of the protocol answers."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self):
        text = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser ended"
            text += byte
        answer = json.loads(text)
        if answer.get("method") == "Network.requestWillBeSent":
            url = answer["params"]["request"]["url"]
            if not url.startswith(("file:", "data:", "about:", "blob:")):
                self.requests.append(url)
        if answer.get("method") == "Runtime.exceptionThrown":
            self.errors.append(answer["params"]["exceptionDetails"].get("text", ""))
        return answer

    def open(self, path):
        answer = self.call("Page.navigate", url=Path(path).resolve().as_uri())
        assert "errorText" not in answer, answer
        self.until("document.readyState === 'complete'")

    def evaluate(self, script):
        """The value of a JavaScript expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script, seconds=20):
        """Waits until an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(script):
            assert time.monotonic() < end, f"{script} did not become true in {seconds} s"
            time.sleep(0.05)

    def click(self, text):
        """Clicks the link or button that says `text`, once it is there."""
        find = (
            "[...document.querySelectorAll('a, button')]"
            f".find(x => x.textContent.trim() === {json.dumps(text)})"
        )
        self.until(f"{find} !== undefined")
        self.evaluate(f"{find}.click()")

    def screenshot(self, path):
        picture = self.call("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(picture))
