"""The result of a decision: records and a response. It is apart from the loop, so that decisions import no event loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from barnabas.wire import Message

R_co = TypeVar("R_co", covariant=True)


class KeyValue(NamedTuple):
    """A record of a coordinator: what it is about, and what holds of it now; None takes it back."""

    key: Message
    value: Message | None


# Each with the version to write it in; a coordinator's record is a KeyValue, and the version that of its value.
Records = Sequence[tuple[Any, int]]


class Producer(NamedTuple):
    """Whose transaction records belong to; the guard is what a log wants with the first ones of a transaction."""

    producer_id: int
    producer_epoch: int
    guard: int | None = None


class Result(NamedTuple, Generic[R_co]):
    """The records that make the decision true, and the answer once they are committed.

    With a producer they are part of its transaction: they hold when a marker commits it.
    """

    records: Records
    response: R_co
    producer: Producer | None = None
