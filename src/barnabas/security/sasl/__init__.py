"""SASL mechanisms as exchanges of bytes: the first message, and the answers to challenges. No I/O, randomness or clock.

One file per mechanism. `ClientMechanism` is the client side; its user transports the bytes and knows when the server
has accepted the login. Passwords never appear in a repr or in an error.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.wire.errors import ErrorCode, KafkaError

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class SaslError(KafkaError):
    """The login failed: the server sent an invalid message, or rejected the credentials."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.SASL_AUTHENTICATION_FAILED, message)


class ClientMechanism(Protocol):
    """One login: `first`, then `answer` to each message of the server until `is_complete`."""

    @property
    def name(self) -> str:
        """The name of the mechanism in SaslHandshake."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the exchange is finished. For SCRAM, whether the server has proved that it knows the password."""
        ...

    def first(self) -> bytes: ...

    def answer(self, challenge: bytes) -> bytes | None:
        """Return the next message, or None if there is none. Raises `SaslError`."""
        ...
