"""A console in a thread, and a client of it that is no browser.

with RunningConsole(entry(broker)) as console:
    console.get("/c/test/topics").status
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
import threading
from collections.abc import Mapping
from dataclasses import replace
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

from barnabas.console.app import Console, build
from barnabas.console.server import running
from barnabas.console.settings import ClusterEntry, ConsoleSettings
from barnabas.testing import Broker

TOKEN = "token-of-these-tests"
NAME = "test"


def entry(broker: Broker, name: str = NAME, **settings: str) -> ClusterEntry:
    """The cluster of a broker, without the credentials of a user."""
    found = {key: value for key, value in broker.client_config().items() if key != "sasl.jaas.config"}
    return ClusterEntry(name, {**found, **settings}, ("-b", broker.bootstrap_servers))


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str


class RunningConsole:
    """A console on a free port. `settings` has its port once it runs."""

    def __init__(self, *entries: ClusterEntry, **settings: Any) -> None:
        self.settings = ConsoleSettings(entries, TOKEN, **{"port": 0, "patience_s": 60.0, **settings})
        self._loop = asyncio.new_event_loop()
        self._started, self._stop = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._problem: BaseException | None = None
        self.cookies: dict[str, str] = {}
        self.console: Console | None = None

    def _run(self) -> None:
        async def main() -> None:
            try:
                async with running(self.settings) as settings:
                    self.settings = settings
                    self._started.set()
                    await self._stop.wait()
            except BaseException as error:
                self._problem = error
                self._started.set()
                raise

        self._loop.run_until_complete(main())
        self._loop.close()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(30)
        if self._problem is not None:
            raise self._problem
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        assert not self._thread.is_alive(), "the console does not stop"

    @property
    def url(self) -> str:
        return f"{self.settings.scheme}://127.0.0.1:{self.settings.port}"

    @property
    def base(self) -> str:
        return f"{self.url}/c/{NAME}"

    # --- requests

    def request(
        self,
        method: str,
        path: str,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        with_cookies: bool = True,
    ) -> Response:
        """Send a request as a browser would, except for `headers`; an empty value leaves a header out."""
        given = {"Host": f"127.0.0.1:{self.settings.port}"}
        body = None
        if form is not None:
            body = urlencode(form)
            given |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.url}
        if with_cookies and self.cookies:
            given["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        given |= headers or {}
        if self.settings.has_tls:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                "127.0.0.1", self.settings.port, timeout=60, context=ssl._create_unverified_context()
            )
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.settings.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if value:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(None if body is None else body.encode())
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
            if with_cookies:
                for header in answer.headers.get_all("Set-Cookie") or ():
                    for name, morsel in SimpleCookie(header).items():
                        self.cookies[name] = morsel.value
            return Response(answer.status, {name.lower(): value for name, value in answer.headers.items()}, text)
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Response:
        return self.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def enter(self) -> Self:
        """Begin a session with the start token."""
        assert self.get(f"/?token={TOKEN}").status == 303
        return self

    def form_token(self) -> str:
        page = self.get(f"/c/{NAME}")
        return page.text.partition('name="form_token" value="')[2].partition('"')[0]

    def post(self, path: str, **form: str) -> Response:
        """Send a form with the token of the session."""
        return self.request("POST", path, {"form_token": self.form_token(), **form})


def with_declared(found: ClusterEntry, *files: Path) -> ClusterEntry:
    return replace(found, declared=files)


__all__ = ["NAME", "TOKEN", "Response", "RunningConsole", "build", "entry", "with_declared"]
