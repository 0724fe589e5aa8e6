"""Chromium without a window, driven over its debugging pipe: a page to look at, and to use."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--remote-debugging-pipe", "about:blank",
)  # fmt: skip
_TIMEOUT = 60  # seconds, for a busy machine
_KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), " ": (32, " "), "ArrowRight": (39, "")}


class Page:
    """The one page of a browser. `problems` holds what its console says, and what it fetched."""

    def __init__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4.
        command = ["bash", "-c", f'exec "$0" "$@" 3<&{read} 4>&{write}', BROWSER]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={self._profile.name}", *_FLAGS],
            pass_fds=(read, write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self._buffer, self._number, self._session = b"", 0, None
        self.problems, self.fetched = [], []
        targets = self._send("Target.getTargets")["targetInfos"]
        target = next(each["targetId"] for each in targets if each["type"] == "page")
        attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._write)
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        self._profile.cleanup()

    def open(self, path, *, fragment="", dark=False, width=1200, height=900, scripts=True):
        """Load a file, also where it is shown already."""
        self._send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])
        self._send("Emulation.setScriptExecutionDisabled", value=not scripts)
        for url in ("about:blank", Path(path).resolve().as_uri() + fragment):
            self._loaded = False
            self._send("Page.navigate", url=url)
            while not self._loaded:
                self._receive()

    def run(self, expression):
        """Return the value of an expression, or of what it promises."""
        outcome = self._send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in outcome, outcome["exceptionDetails"]
        return outcome["result"].get("value")

    def wait(self, expression):
        """Wait until an expression is true."""
        deadline = time.monotonic() + _TIMEOUT
        while not self.run(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"{expression} stays false"
            time.sleep(0.05)

    def click(self, selector):
        """Press and release the mouse in the middle of an element."""
        x, y = self._middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self._send(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )  # fmt: skip

    def point(self, selector):
        """Move the mouse to the middle of an element."""
        x, y = self._middle(selector)
        self._send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def type(self, text):
        """Enter text where the focus is."""
        self._send("Input.insertText", text=text)

    def press(self, key):
        """Press a key of the keyboard."""
        code, text = _KEYS[key]
        common = {"key": key, "windowsVirtualKeyCode": code}
        self._send("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self._send("Input.dispatchKeyEvent", type="keyUp", **common)

    def screenshot(self, path, whole=False):
        """Write a picture of what is seen, or of the whole page."""
        shot = self._send("Page.captureScreenshot", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def printed(self):
        """Return the page as it is printed: a PDF."""
        return base64.b64decode(self._send("Page.printToPDF")["data"])

    def _middle(self, selector):
        script = f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{block: "center", behavior: "instant"}});
            const {{x, y, width, height}} = element.getBoundingClientRect();
            return [x + width / 2, y + height / 2];
        }})()"""
        return self.run(script)

    def _send(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _receive(self):
        """Return the next message; keep what events tell."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], _TIMEOUT)
            assert ready, "Chromium says nothing"
            part = os.read(self._read, 2**20)
            assert part, "Chromium ended"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        params = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.consoleAPICalled":
                self.problems.append(str(params["args"]))
            case "Runtime.exceptionThrown":
                self.problems.append(str(params["exceptionDetails"]))
            case "Log.entryAdded":
                self.problems.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.fetched.append(params["request"]["url"])
        return message
