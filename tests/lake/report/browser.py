"""A real browser for the tests of the report: Chromium without a window, spoken to by its own protocol over two pipes.

Nothing but the standard library is needed. Its messages are JSON, each ended by a zero byte; `complaints` has what the browser
complained of: errors of scripts, refused loads, and anything that it asked the network for.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from base64 import b64decode
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_ON_THE_PIPES = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
"""Chromium reads at descriptor 3 and writes at 4."""


def find() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One process of Chromium, with one page."""

    def __init__(self, program: str, profile: Path) -> None:
        its_input, self._write = os.pipe()
        self._read, its_output = os.pipe()
        # fds 3 and 4 may be those of the pipes themselves, so they are moved away first
        fds = [os.dup(its_input), os.dup(its_output)]
        high = [_above(fd) for fd in fds]
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
        arguments += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _ON_THE_PIPES, *map(str, high), program, *arguments],
            pass_fds=high,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (its_input, its_output, *fds, *high):
            os.close(fd)
        self._last_id = 0
        self._pending = b""
        self.complaints: list[str] = []
        self._loaded = False
        targets = self._call("Target.getTargets")["targetInfos"]
        target = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._write)
        self._process.terminate()
        self._process.wait(20)
        os.close(self._read)

    def open(self, page: Path, *, width: int, height: int = 900, scheme: str = "light") -> None:
        """Load a page of this size; `scheme` is what the system is said to prefer."""
        self.complaints.clear()
        self._loaded = False
        narrow = width < 600
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=narrow)
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._call("Page.navigate", url=page.as_uri())
        deadline = time.monotonic() + 30
        while not self._loaded:
            self._take(deadline)

    def evaluate(self, expression: str) -> Any:
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def picture(self, path: Path) -> None:
        """Of the whole page."""
        answer = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(b64decode(answer["data"]))

    def _call(self, method: str, **params: Any) -> Any:
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": params}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            answer = self._take(deadline)
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _take(self, deadline: float) -> dict[str, Any]:
        """The next message; events are noted."""
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._read], [], [], max(deadline - time.monotonic(), 0))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError(f"the browser does not answer (exit code {self._process.poll()})")
            self._pending += data
        raw, _, self._pending = self._pending.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(params["args"]))
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith("file:"):
            self.complaints.append(f"asked the network for {params['request']['url']}")


def _above(fd: int) -> int:
    """A copy of a descriptor that is neither 3 nor 4."""
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD, 10)
