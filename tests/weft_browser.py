# SPDX-License-Identifier: GPL-2.0-only
"""Chromium without a screen, driven over its own protocol (https://chromedevtools.github.io/devtools-protocol) on two pipes.
Nothing waits for a fixed time: it waits for an answer, or for a page to be ready."""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = "chromium"
KEY_CODES = {"Tab": 9, "Enter": 13, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
SECONDS = 180  # for one answer, on a machine under load

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-default-apps",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-pipe",
)


class BrowserError(AssertionError):
    """Chromium did not start or did not answer."""


def high_pipe():
    """A pipe whose descriptors are not those that Chromium expects."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high


class Browser:
    """One Chromium with one page. `requests`, `complaints`: the requests of the page, and its errors."""

    def __init__(self, width=1280, height=900):
        self.folder = tempfile.mkdtemp(prefix="weft-chromium-")
        self.size = (width, height)
        self.process = None
        try:
            self.start()
        except BrowserError:
            # On a machine under load the first start may fail; a second one finds everything in memory.
            self.stop()
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        profile = tempfile.mkdtemp(dir=self.folder)
        to_read, self.to = high_pipe()
        self.back, to_write = high_pipe()
        # Chromium reads from descriptor 3 and writes to descriptor 4.
        line = f'exec "$@" 3<&{to_read} 4>&{to_write} {to_read}<&- {to_write}>&-'
        self.process = subprocess.Popen(
            ["bash", "-c", line, "bash", CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(to_read, to_write), start_new_session=True, env={**os.environ, "HOME": profile},
        )
        os.close(to_read)
        os.close(to_write)
        self.number, self.buffer, self.session = 0, b"", None
        self.requests, self.complaints = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(*self.size)

    def stop(self):
        if self.process is None:
            return
        for descriptor in (self.to, self.back):
            os.close(descriptor)
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process = None

    # ---- the protocol: JSON with a zero byte after each message

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        try:
            os.write(self.to, json.dumps(message).encode() + b"\0")
        except OSError as error:
            raise BrowserError(f"{CHROMIUM} has ended: {error}") from None
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self.message(deadline, method)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def message(self, deadline, method):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(deadline - time.monotonic(), 0))
            more = os.read(self.back, 1 << 20) if ready else b""
            if not more:
                raise BrowserError(f"no answer of {CHROMIUM} to {method}")
            self.buffer += more
        first, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(first)

    def note(self, event):
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(parameters["entry"]["text"])

    # ---- what tests do

    def resize(self, width, height):
        self.size = (width, height)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, wanted):
        value = "dark" if wanted else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def open(self, path, query=""):
        """Opens a page and waits until it is ready, by `data-ready` of its root, or has failed."""
        self.value("delete document.documentElement.dataset.ready")  # of the page before
        self.requests.clear()
        self.complaints.clear()
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri() + query)
        deadline = time.monotonic() + SECONDS
        while not self.value("document.documentElement?.dataset.ready === '1' && document.readyState === 'complete'"):
            if self.complaints or time.monotonic() > deadline:
                raise BrowserError(f"{path} does not become ready: {self.complaints}")
            time.sleep(0.05)
        self.settle()

    def settle(self):
        """Waits until the page has drawn twice, so that what observes sizes has been called."""
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def value(self, expression):
        """The value of a JavaScript expression, as JSON; it waits for promises."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            details = done["exceptionDetails"]
            raise BrowserError(f"{expression}: {details.get('exception', {}).get('description', details['text'])}")
        return done["result"].get("value")

    def press(self, *keys):
        """Keys by their names, such as "Tab", "ArrowLeft", "+"."""
        for key in keys:
            text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            code = KEY_CODES.get(key, 0)
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def move_mouse(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path, whole=True):
        """A PNG of the page; `whole`: from top to bottom."""
        done = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(done["data"]))
