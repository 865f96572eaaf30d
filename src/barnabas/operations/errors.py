"""The exception of this package: the resource, the problem, and advice on what to do next."""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode, KafkaError


class OperationError(Exception):
    """An operation that is not possible. `code` is Kafka's error, if a broker returned one."""

    def __init__(
        self,
        message: str,
        *,
        resource: str | None = None,
        advice: str | None = None,
        code: ErrorCode | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.resource = resource
        self.advice = advice
        self.code = code

    def __str__(self) -> str:
        return self.message if self.resource is None else f"{self.resource}: {self.message}"


def refused(error: KafkaError, resource: str) -> OperationError:
    """Return Kafka's error for a resource as an `OperationError`."""
    return OperationError(f"{error.code.name}: {error.message}", resource=resource, code=error.code)
