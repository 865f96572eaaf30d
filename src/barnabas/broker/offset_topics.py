"""The part that OffsetCommit, TxnOffsetCommit and OffsetDelete share: checks of partitions, and rows by topic.

Rows of a topic stay together, in the order in which topics first appear. Refused partitions come before those that are
processed. A topic that the caller is not authorized to READ is refused even if it does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.steps import Slices, stepwise
from barnabas.wire import ErrorCode, Uuid

T = TypeVar("T")


class TopicRows(Generic[T]):
    """The topics of a response."""

    def __init__(self, topic_row: Callable[[Any], T], partition_row: Callable[[int, ErrorCode], Any]) -> None:
        self.rows: list[T] = []
        self._topic_row = topic_row
        self._partition_row = partition_row
        self._by_key: dict[Any, Any] = {}

    def add(self, topic: Any, index: int, code: ErrorCode) -> None:
        key = _key(topic)
        row: Any = self._by_key.get(key)
        if row is None:
            row = self._by_key[key] = self._topic_row(topic)
            self.rows.append(row)
        row.partitions.append(self._partition_row(index, code))

    def add_all(self, topics: Iterable[Any], code: ErrorCode) -> Slices[None]:
        for topic in topics:
            yield
            for some in stepwise(topic.partitions):
                for partition in some:
                    self.add(topic, partition.partition_index, code)
                yield

    def merge(self, rows: Iterable[Any]) -> Slices[list[T]]:
        """Return all rows, merged with those of the processed partitions."""
        for row in rows:
            yield
            known = self._by_key.get(_key(row))
            if known is None:
                self.rows.append(row)
            else:
                known.partitions += row.partitions
        return self.rows


def _key(topic: Any) -> tuple[str, Uuid | None]:
    return topic.name, getattr(topic, "topic_id", None)


def touchable(context: Context, topics: Iterable[Any], rows: TopicRows[Any]) -> Slices[list[Any]]:
    """Return the topics with the partitions that exist and that the caller may READ. The others are added to `rows`."""
    found = []
    for topic in topics:
        yield
        known = context.image.topics.get(topic.name)
        if not context.may(AclOperation.READ, ResourceType.TOPIC, topic.name):
            yield from rows.add_all([topic], ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif known is None:
            yield from rows.add_all([topic], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            there = []
            for some in stepwise(topic.partitions):
                for each in some:
                    if 0 <= each.partition_index < len(known.partitions):
                        there.append(each)
                    else:
                        rows.add(topic, each.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                yield
            topic.partitions = there
            if there:
                found.append(topic)
    return found
