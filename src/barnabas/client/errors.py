"""How a call can fail, beside Kafka's own error codes (`barnabas.wire.KafkaError`).

Each says whose turn it is: `ConnectionLostError` may pass, and a request that only reads is sent again by `Cluster.call`;
`NotKafkaError`, `TlsError` and `AuthenticationError` stay until someone changes a setting; `UnsupportedByNodeError` until
someone upgrades a node; `CallTimeoutError` says what was tried, and what went wrong last.
"""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode, KafkaError, UnsupportedVersionError


class ConnectionLostError(ConnectionError):
    """The connection ended before the answer came; whether the request was carried out is not known."""


class NotConnectedError(ConnectionLostError):
    """There was no connection: nothing was sent, so the request was certainly not carried out."""


class UnknownHostError(NotConnectedError):
    """There is no host of that name."""


class NotKafkaError(NotConnectedError):
    """What answers at that address speaks another protocol."""


class TlsError(NotConnectedError):
    """TLS could not be agreed on, or one side does not trust the other."""


class AuthenticationError(KafkaError):
    """The node refused the login, or its mechanism, or did not prove that it knows the password."""


class UnsupportedByNodeError(UnsupportedVersionError):
    """A node does not serve this API, or not in a version that can say what is asked."""


class NoNodesError(NotConnectedError):
    """None of the nodes that are known, and none of the bootstrap servers, could be reached; `reasons` has them by address."""

    def __init__(self, message: str, reasons: dict[str, Exception]) -> None:
        super().__init__(message)
        self.reasons = reasons


class NoAnswerError(TimeoutError):
    """A node did not answer a request in time; whether it was carried out is not known."""


class CallTimeoutError(TimeoutError):
    """A call was not done in the time it had. `last_error` is what went wrong last, if anything did; `maybe_done` says
    that a request was sent, and its answer did not come."""

    def __init__(self, message: str, last_error: Exception | None = None, *, maybe_done: bool = False) -> None:
        super().__init__(message)
        self.last_error = last_error
        self.maybe_done = maybe_done


class ClosedError(RuntimeError):
    """The client was closed, before the call or while it waited."""


PERMANENT = (NotKafkaError, TlsError, AuthenticationError, UnsupportedVersionError)
"""What waiting does not heal."""


def error_code(number: int) -> ErrorCode:
    """The code of a number; one that a newer broker has made up is UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
