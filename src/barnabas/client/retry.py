"""Decide whether a failed request is retried. Pure.

There are three kinds of failure. If the request was certainly not carried out (no connection, wrong node), retry it. If it may
have been (connection lost, no response, REQUEST_TIMED_OUT), retry it only if it is idempotent. Anything else is left to the
caller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum
from typing import Any

from barnabas.client.errors import (
    PERMANENT,
    CallTimeoutError,
    ConnectionLostError,
    NoAnswerError,
    NotConnectedError,
    error_code,
)
from barnabas.wire import ErrorCode, KafkaError, Message

NOT_DONE = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)
"""Codes of a node that was the wrong one, or not ready: nothing was done."""


class Kind(Enum):
    """What an error code of a whole response means for the request."""

    NOT_DONE = "retry"  # nothing was done: retried, after the route was refreshed
    TEMPORARY = "retry if idempotent"  # Kafka's retriable errors
    FINAL = "raise"


_READS = ("Describe", "List", "Find", "OffsetFetch", "OffsetForLeaderEpoch")
_REPEATABLE = frozenset(
    {
        *("Metadata", "ApiVersions", "Fetch", "FetchSnapshot", "GetTelemetrySubscriptions"),
        *("ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe"),
        *("AlterConfigs", "IncrementalAlterConfigs", "AlterClientQuotas", "AlterReplicaLogDirs", "CreateAcls"),
        *("OffsetCommit", "DeleteRecords", "InitProducerId"),
        *("AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"),
    }
)


def is_repeatable(request: Message) -> bool:
    """Return whether a request is idempotent: sent twice, it has the same effect and response."""
    name = type(request).__name__.removesuffix("Request")
    return name in _REPEATABLE or name.startswith(_READS)


def kind_of(code: ErrorCode) -> Kind:
    """Classify an error code.

    >>> kind_of(ErrorCode.NOT_CONTROLLER), kind_of(ErrorCode.REQUEST_TIMED_OUT), kind_of(ErrorCode.INVALID_REQUEST)
    (<Kind.NOT_DONE: 'retry'>, <Kind.TEMPORARY: 'retry if idempotent'>, <Kind.FINAL: 'raise'>)
    """
    if code in NOT_DONE:
        return Kind.NOT_DONE
    return Kind.TEMPORARY if code.retriable else Kind.FINAL


def whole_error(response: Any) -> KafkaError | None:
    """Return the error of the whole response, or None."""
    number = getattr(response, "error_code", 0)
    return KafkaError(error_code(number), getattr(response, "error_message", None)) if number else None


def rows_not_done(response: Any) -> ErrorCode | None:
    """Return a code in `NOT_DONE` if every row has one, else None."""
    first: ErrorCode | None = None
    for number in _row_codes(response):
        code = error_code(number)
        if code not in NOT_DONE:
            return None
        first = first or code
    return first


def _row_codes(value: Any) -> Iterator[int]:
    for name in type(value).__slots__:
        rows = getattr(value, name)
        if not isinstance(rows, list) or not rows or not hasattr(rows[0], "unknown_tagged_fields"):
            continue
        for row in rows:
            if hasattr(row, "error_code"):
                yield row.error_code
            else:
                yield from _row_codes(row)


def may_retry(error: Exception, *, repeatable: bool, give_up_on: Collection[ErrorCode] = ()) -> bool:
    if isinstance(error, KafkaError):
        if error.code in give_up_on or isinstance(error, PERMANENT):
            return False
        kind = kind_of(error.code)
        return kind is Kind.NOT_DONE or (kind is Kind.TEMPORARY and repeatable)
    if isinstance(error, PERMANENT):
        return False
    if isinstance(error, NotConnectedError):
        return True
    return isinstance(error, ConnectionLostError | NoAnswerError) and repeatable


def maybe_done(error: BaseException) -> bool:
    """Return whether the request may have been carried out despite this error."""
    if isinstance(error, CallTimeoutError):
        return error.maybe_done
    if isinstance(error, KafkaError):
        return error.code is ErrorCode.REQUEST_TIMED_OUT
    if isinstance(error, ConnectionLostError):
        return not isinstance(error, NotConnectedError)
    return isinstance(error, NoAnswerError)
