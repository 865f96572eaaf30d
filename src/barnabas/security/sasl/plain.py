"""PLAIN (RFC 4616): user name and password in one message, which is readable by anyone who sees the connection."""

from __future__ import annotations

from barnabas.security.sasl import SaslError


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
