"""The limit on the number of records that one request may write: they must fit into one batch of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.wire import ErrorCode, KafkaError, Message

MAX_RECORDS_PER_USER_OPERATION: Final = 10_000

Versioned = tuple[Message, int]
"""A record and the version to write it in."""


def check_size(records: Sequence[Versioned]) -> None:
    """Raise POLICY_VIOLATION if there are more records than one operation may write."""
    if len(records) > MAX_RECORDS_PER_USER_OPERATION:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
