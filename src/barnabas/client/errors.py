"""Errors of calls, other than Kafka's error codes (`barnabas.wire.KafkaError`).

`ConnectionLostError` may be temporary: `Cluster.call` retries requests that only read. `NotKafkaError`, `TlsError` and
`AuthenticationError` need another setting, and `UnsupportedByNodeError` needs a newer node. `CallTimeoutError` has the last
error.
"""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode, KafkaError, UnsupportedVersionError


class ConnectionLostError(ConnectionError):
    """The connection was closed before the response came. The request may have been carried out."""


class NotConnectedError(ConnectionLostError):
    """There was no connection, so nothing was sent. The request was not carried out."""


class UnknownHostError(NotConnectedError):
    """The host name cannot be resolved."""


class NotKafkaError(NotConnectedError):
    """The server at that address uses another protocol."""


class TlsError(NotConnectedError):
    """The TLS handshake failed, for example because a certificate is not trusted."""


class AuthenticationError(KafkaError):
    """The node refused the login or the mechanism, or did not prove that it knows the password."""


class UnsupportedByNodeError(UnsupportedVersionError):
    """A node does not serve this API, or not in a version that can encode the request."""


class NotABrokerError(UnsupportedByNodeError):
    """A bootstrap server is a controller."""


class NoNodesError(NotConnectedError):
    """No known node and no bootstrap server could be reached. `reasons` has the error of each address."""

    def __init__(self, message: str, reasons: dict[str, Exception]) -> None:
        super().__init__(message)
        self.reasons = reasons


class NoAnswerError(TimeoutError):
    """A node did not answer a request in time. The request may have been carried out."""


class CallTimeoutError(TimeoutError):
    """A call timed out. `last_error` is the error of the last attempt, or None. `maybe_done` is True if a request was sent and
    not answered."""

    def __init__(self, message: str, last_error: Exception | None = None, *, maybe_done: bool = False) -> None:
        super().__init__(message)
        self.last_error = last_error
        self.maybe_done = maybe_done


class DeserializationError(ValueError):
    """A deserializer failed. The position of the partition is still at the record: seek to `offset` + 1 to skip it."""

    def __init__(self, partition: tuple[str, int], offset: int, reason: Exception) -> None:
        super().__init__(f"{partition} at offset {offset} cannot be deserialized: {reason}")
        self.partition = partition
        self.offset = offset


class ClosedError(RuntimeError):
    """The client was closed before or during the call."""


PERMANENT = (NotKafkaError, TlsError, AuthenticationError, UnsupportedVersionError)
"""Errors that retrying cannot fix."""


def error_code(number: int) -> ErrorCode:
    """Return the error code of a number; unknown numbers become UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
