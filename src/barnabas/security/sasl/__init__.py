"""SASL mechanisms as exchanges of bytes: the first message, and the answers to challenges. No I/O, randomness or clock.

One file per mechanism. `ClientMechanism` is the client side; its user transports the bytes and knows when the server
has accepted the login. `ServerMechanism` is the server side, and `exchange` the order of the messages around it. Passwords
never appear in a repr or in an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.wire.errors import ErrorCode, KafkaError

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class SaslError(KafkaError):
    """The login failed: the server sent an invalid message, or rejected the credentials.

    `reason` is for the server's log, and is not sent.
    """

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(ErrorCode.SASL_AUTHENTICATION_FAILED, message)
        self.reason = reason


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


class InvalidCredentialsError(Exception):
    """The server rejects a login. The client does not learn the reason, which could tell whether the user exists."""


class ServerMechanism(Protocol):
    """One login: `evaluate` each message of the client until `is_complete`."""

    @property
    def is_complete(self) -> bool: ...

    @property
    def authorization_id(self) -> str:
        """The name of the user, once the exchange is complete."""
        ...

    @property
    def expires_at_ms(self) -> int | None:
        """The time when the credential expires, once the exchange is complete; None if it never does."""
        ...

    @property
    def is_token(self) -> bool:
        """True if the user has logged in with a delegation token."""
        ...

    @property
    def claimed_name(self) -> str:
        """The user or token that the client has named, true or not; empty if none is known. It never is a secret."""
        ...

    def work_before(self, message: bytes) -> Callable[[], object] | None:
        """Return slow work to be done before this message is evaluated, in a thread for instance; None if there is none."""
        ...

    def evaluate(self, message: bytes) -> bytes:
        """Return the answer. Raises `InvalidCredentialsError`, or `SaslError` with a text for the client."""
        ...
