"""The assignment of a member while it is built. As in Kafka, the first change copies it, which determines its order."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.groups.assignors.specification import Assignment
from barnabas.groups.hash_tables import MIN_CAPACITY, HashTable, copied, number_hash, uuid_hash
from barnabas.steps import ROWS_PER_STEP, Slices
from barnabas.wire import Uuid


class Draft:
    """The new assignment of a member. It starts with the partitions that the member has.

    Tables of partitions are made when they are first used, because a member may have thousands of topics.
    """

    __slots__ = ("_before", "_given", "_order", "_tables", "_touched")

    def __init__(self, assignment: Assignment) -> None:
        self._given = assignment
        self._order = HashTable(uuid_hash, members=assignment)
        self._tables: dict[Uuid, HashTable[int]] = {}
        self._before: dict[Uuid, HashTable[int]] = {}  # tables that were used before the first change
        self._touched = False

    def topics(self) -> Slices[list[Uuid]]:
        return self._order.in_order()

    def partitions(self, topic_id: Uuid) -> Iterable[int]:
        return self._table(topic_id)

    def _table(self, topic_id: Uuid) -> HashTable[int]:
        table = self._tables.get(topic_id)
        if table is None:
            table = self._before.get(topic_id) or copied(number_hash, self._given[topic_id])
            if self._touched:
                table = copied(number_hash, table)
            self._tables[topic_id] = table
        return table

    def touch(self) -> None:
        if not self._touched:
            self._touched = True
            self._order = HashTable(uuid_hash, len(self._order), self._order)
            self._before, self._tables = self._tables, {}

    def remove_topic(self, topic_id: Uuid) -> None:
        self.touch()
        self._order.remove(topic_id)
        self._tables.pop(topic_id, None)

    def remove(self, topic_id: Uuid, partition: int) -> None:
        self.touch()
        if topic_id in self._order:
            partitions = self._table(topic_id)
            partitions.remove(partition)
            if not len(partitions):
                self.remove_topic(topic_id)

    def add(self, topic_id: Uuid, partition: int, capacity: int = MIN_CAPACITY) -> None:
        """Add a partition. `capacity` is the size of the table if the topic is new to the member."""
        self.touch()
        if topic_id not in self._order:
            self._tables[topic_id] = HashTable(number_hash, capacity)
        self._order.compute(topic_id)
        self._table(topic_id).add(partition)

    def finish(self) -> Slices[Assignment]:
        found = {}
        for number, topic_id in enumerate((yield from self._order.in_order())):
            if number % ROWS_PER_STEP == 0:
                yield
            found[topic_id] = tuple(self._table(topic_id))
        return found


def finished(drafts: Iterable[tuple[str, Draft]]) -> Slices[dict[str, Assignment]]:
    """Return the assignments of members, by member id."""
    found = {}
    for member_id, draft in drafts:
        found[member_id] = yield from draft.finish()
    return found
