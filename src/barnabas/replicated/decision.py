"""The result of a decision: records and a response. It is apart from the loop, so that decisions import no event loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from barnabas.wire import Message

R_co = TypeVar("R_co", covariant=True)


class KeyValue(NamedTuple):
    """A record of a coordinator's log: its key and its value. A value of None is a tombstone, which deletes the key."""

    key: Message
    value: Message | None


# Pairs of (record, version to write it in). A coordinator's record is a KeyValue, and the version is that of its value.
Records = Sequence[tuple[Any, int]]


class Producer(NamedTuple):
    """The transactional producer of some records. The log requires `guard` with the first records of a transaction."""

    producer_id: int
    producer_epoch: int
    guard: int | None = None


class Result(NamedTuple, Generic[R_co]):
    """The records to append, and the response to return once they are committed.

    With a producer, the records belong to its transaction and take effect when a marker commits it.
    """

    records: Records
    response: R_co
    producer: Producer | None = None
