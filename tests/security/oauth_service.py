"""A service of OAuth on the loopback address: keys at /jwks, and tokens at /token for a client id and a secret."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.security.tokens import Keys, claims

CLIENT_ID, CLIENT_SECRET = "an app", "planted-client-secret"


class OAuthService:
    """`fail` is a number of requests that are answered with status 503. `asked` has the path and body of each request."""

    def __init__(self, keys: Keys | None = None) -> None:
        self.keys = keys or Keys()
        self.fail = 0
        self.lifetime_s = 3600
        self.answer: bytes | None = None
        self.asked: list[tuple[str, bytes]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._respond(service.jwks)

            def do_POST(self) -> None:
                self._respond(service.token)

            def _respond(self, body_of: Any) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                service.asked.append((self.path, self.rfile.read(size)))
                status, body = body_of(self.headers.get("Authorization") or "")
                if service.fail:
                    service.fail -= 1
                    status, body = 503, b""
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def jwks(self, authorization: str) -> tuple[int, bytes]:
        return 200, self.keys.jwks().encode()

    def token(self, authorization: str) -> tuple[int, bytes]:
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if authorization != f"Basic {expected}":
            return 401, b'{"error": "invalid_client", "error_description": "' + authorization.encode() + b'"}'
        said = claims()
        said["exp"] = said["iat"] + 10 + self.lifetime_s
        body = json.dumps({"access_token": self.keys.sign(said)}).encode()
        return 200, body if self.answer is None else self.answer

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
