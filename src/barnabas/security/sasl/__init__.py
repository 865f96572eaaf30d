"""SASL mechanisms as conversations of bytes: what to say first, and what to answer. No I/O, no randomness, no clock.

One file per mechanism. `ClientMechanism` is the side that logs in; whoever holds it carries the bytes and says when the server
is content. Passwords never show in a repr or in an error.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.wire.errors import ErrorCode, KafkaError

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class SaslError(KafkaError):
    """The conversation cannot go on: the other side said something that the mechanism does not allow, or refused."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.SASL_AUTHENTICATION_FAILED, message)


class ClientMechanism(Protocol):
    """One login: `first`, then `answer` to each message of the server until `is_complete`."""

    @property
    def name(self) -> str:
        """As SaslHandshake names it."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether nothing more is to be said; for SCRAM, whether the server has proved that it knows the password."""
        ...

    def first(self) -> bytes: ...

    def answer(self, challenge: bytes) -> bytes | None:
        """What to say next, or None when all is said. Raises `SaslError`."""
        ...
