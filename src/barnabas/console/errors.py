"""Errors that a page shows: what is wrong, and what to do."""

from __future__ import annotations

from barnabas.client.errors import CallTimeoutError, ClosedError
from barnabas.config.values import ConfigError
from barnabas.declared.yaml_nodes import DocumentError
from barnabas.operations.errors import OperationError
from barnabas.wire.errors import KafkaError, MalformedError, UnsupportedVersionError

EXPECTED = (
    KafkaError,
    OperationError,
    CallTimeoutError,
    ClosedError,
    ConfigError,
    DocumentError,
    UnsupportedVersionError,
    MalformedError,
    OSError,
    TimeoutError,
)
"""What a cluster or a connection may answer. Anything else is an error of the console."""


def expected(error: BaseException) -> BaseException | None:
    """Return an error that a cluster may answer, or the first one of questions that were asked together; None for others."""
    if isinstance(error, BaseExceptionGroup):
        found = [expected(each) for each in error.exceptions]
        return None if None in found else found[0]
    return error if isinstance(error, EXPECTED) else None


def problem_of(error: BaseException) -> str:
    """Return an error as a sentence."""
    if isinstance(error, OperationError):
        return f"{error}; {error.advice}" if error.advice else str(error)
    if isinstance(error, KafkaError):
        return f"{error.code.name}: {error.message}"
    return str(error) or type(error).__name__


def is_refusal(error: BaseException) -> bool:
    """Return whether the cluster has answered, and what was asked for is not there, not allowed or not possible."""
    return isinstance(error, OperationError | KafkaError)


class RefusedError(Exception):
    """A visit that is refused, with the status of the response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
