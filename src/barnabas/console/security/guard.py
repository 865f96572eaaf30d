"""The outer layer of the console: refuses foreign hosts and origins, limits requests, and adds headers to each response.

Its one rule: nothing behind it sees a request with a wrong Host, or one that changes something and comes from another origin.
"""

from __future__ import annotations

import logging

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.console.security.hosts import is_known_host, is_same_origin
from barnabas.console.settings import ConsoleSettings

_log = logging.getLogger(__name__)

MAX_BODY_BYTES = 2 * 1024 * 1024
"""Forms are small; the value of a record to produce is the largest field."""
_SAFE_METHODS = ("GET", "HEAD")
_METHODS = (*_SAFE_METHODS, "POST")
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: browsers would send `Origin: null` with forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, settings: ConsoleSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"the console serves no {scope['type']}")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                # The report has a policy of its own, which is stricter in other ways.
                headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        problem = self._problem(scope)
        if problem is not None:
            status, text = problem
            _log.warning("refused %s %s: %s", scope["method"], scope["path"], text)
            response = PlainTextResponse(f"{text}\n", status, {"Connection": "close"})
            await response(scope, receive, send_guarded)
            return
        await self._app(scope, _limited(receive), send_guarded)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        own_address = (scope.get("server") or ("", 0))[0]
        if len(hosts) != 1 or not is_known_host(hosts[0], self._settings.host_names, own_address):
            return 421, "this console is not known under that host name; see --host-name"
        if scope["method"] not in _METHODS:
            return 405, "this method is not used here"
        origin = headers.get("origin")
        if origin is not None and not is_same_origin(origin, self._settings.scheme, hosts[0]):
            return 403, "this request comes from another origin"
        if scope["method"] not in _SAFE_METHODS:
            if origin is None and headers.get("sec-fetch-site") != "same-origin":
                return 403, "this request does not say that it comes from this console"
            length = headers.get("content-length", "")
            if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
                return 413, f"a form has at most {MAX_BODY_BYTES} bytes"
        return None


def _limited(receive: Receive) -> Receive:
    """Return a `receive` that does not pass on more bytes than a form may have, whatever its headers say."""
    got = 0

    async def receive_limited() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > MAX_BODY_BYTES:
            return {"type": "http.disconnect"}
        return message

    return receive_limited
