"""PLAIN (RFC 4616): user name and password in one message, which is readable by anyone who sees the connection."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from barnabas.security.sasl import SaslError

OTHER_AUTHORIZATION_ID = "Authentication failed: Client requested an authorization id that is different from username"


class PlainClient:
    """The client side of PLAIN.

    >>> PlainClient("alice", "secret").first()
    b'\\x00alice\\x00secret'
    """

    name = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        if "\0" in username + password:
            raise SaslError("a user name or password for PLAIN must not contain a null character")
        self._message = b"\0".join((b"", username.encode(), password.encode()))
        self._is_sent = False

    @property
    def is_complete(self) -> bool:
        return self._is_sent

    def first(self) -> bytes:
        self._is_sent = True
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise SaslError("the server sent a message after PLAIN's only one")
        return None


class PlainServer:
    """The server side of PLAIN, with the passwords of all users."""

    expires_at_ms: int | None = None
    is_token = False
    claimed_name = ""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self._user: str | None = None

    @property
    def is_complete(self) -> bool:
        return self._user is not None

    @property
    def authorization_id(self) -> str:
        return self._user or ""

    def work_before(self, message: bytes) -> None:
        return None

    def evaluate(self, message: bytes) -> bytes:
        parts = message.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            raise SaslError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, user, password = parts
        self.claimed_name = user
        for name, value in (("username", user), ("password", password)):
            if not value:
                raise SaslError(f"Authentication failed: {name} not specified")
        expected = self._passwords.get(user)
        # An unknown user costs a comparison too, so that the time does not tell whether the user exists.
        is_equal = hmac.compare_digest((user if expected is None else expected).encode(), password.encode())
        if not is_equal or expected is None:
            raise SaslError("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise SaslError(OTHER_AUTHORIZATION_ID)
        self._user = user
        return b""
