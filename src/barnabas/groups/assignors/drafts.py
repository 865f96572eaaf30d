"""The assignment of a member while it is built. As in Kafka, the first change copies it, which determines its order."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.groups.assignors.specification import Assignment
from barnabas.groups.hash_tables import MIN_CAPACITY, HashTable, copied, number_hash, uuid_hash
from barnabas.wire import Uuid


class Draft:
    """The new assignment of a member. It starts with the partitions that the member has."""

    __slots__ = ("_order", "_partitions", "_touched")

    def __init__(self, assignment: Assignment) -> None:
        self._partitions = {topic_id: copied(number_hash, partitions) for topic_id, partitions in assignment.items()}
        self._order = HashTable(uuid_hash, members=assignment)
        self._touched = False

    def topics(self) -> list[Uuid]:
        return list(self._order)

    def partitions(self, topic_id: Uuid) -> Iterable[int]:
        return self._partitions[topic_id]

    def touch(self) -> None:
        if not self._touched:
            self._touched = True
            self._order = HashTable(uuid_hash, len(self._order), self._order)
            self._partitions = {topic_id: copied(number_hash, table) for topic_id, table in self._partitions.items()}

    def remove_topic(self, topic_id: Uuid) -> None:
        self.touch()
        self._order.remove(topic_id)
        self._partitions.pop(topic_id, None)

    def remove(self, topic_id: Uuid, partition: int) -> None:
        self.touch()
        partitions = self._partitions.get(topic_id)
        if partitions is not None:
            partitions.remove(partition)
            if not len(partitions):
                self.remove_topic(topic_id)

    def add(self, topic_id: Uuid, partition: int, capacity: int = MIN_CAPACITY) -> None:
        """Add a partition. `capacity` is the size of the table if the topic is new to the member."""
        self.touch()
        self._order.compute(topic_id)
        if topic_id not in self._partitions:
            self._partitions[topic_id] = HashTable(number_hash, capacity)
        self._partitions[topic_id].add(partition)

    def finish(self) -> Assignment:
        return {topic_id: tuple(self._partitions[topic_id]) for topic_id in self._order}
