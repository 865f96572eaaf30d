"""PLAIN (RFC 4616): the user's name and password in one message, readable by whoever sees the connection."""

from __future__ import annotations

from barnabas.security.sasl import SaslError


class PlainClient:
    """
    >>> PlainClient("alice", "secret").first()
    b'\\x00alice\\x00secret'
    """

    name = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        if "\0" in username + password:
            raise SaslError("a name or password for PLAIN cannot hold a null character")
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
            raise SaslError("the server goes on after PLAIN's only message")
        return None
