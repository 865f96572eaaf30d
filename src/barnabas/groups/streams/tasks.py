"""Tasks of a streams group: which a member should have, and which it has.

A task is a subtopology and a partition. An active task processes records; a standby task keeps a copy of its state. The
protocol has warm-up tasks too, but Kafka 4.3 assigns none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from barnabas.groups.consumer_group import PARTITION_BYTES, TOPIC_BYTES

TaskSets = Mapping[str, frozenset[int]]
"""Partitions by subtopology."""
TaskEpochs = Mapping[str, Mapping[int, int]]
"""Partitions by subtopology, each with the epoch in which it was assigned."""
Task = tuple[str, int]
NO_TASKS: Final[Mapping[str, Any]] = {}


class Tasks(NamedTuple):
    """Tasks of a member in the target assignment, or in a heartbeat."""

    active: TaskSets = NO_TASKS
    standby: TaskSets = NO_TASKS
    warmup: TaskSets = NO_TASKS

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    @property
    def held_bytes(self) -> int:
        """About their memory."""
        return sum(map(_bytes_of, self))


class AssignedTasks(NamedTuple):
    """Tasks that a member has. Active ones have the epoch in which they were assigned."""

    active: TaskEpochs = NO_TASKS
    standby: TaskSets = NO_TASKS
    warmup: TaskSets = NO_TASKS

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    @property
    def held_bytes(self) -> int:
        """About their memory."""
        return sum(map(_bytes_of, self))


NOTHING_OWNED: Final = AssignedTasks()
NO_TARGET: Final = Tasks()


def _bytes_of(tasks: Mapping[str, Any]) -> int:
    return TOPIC_BYTES * len(tasks) + PARTITION_BYTES * sum(map(len, tasks.values()))


def task_sets(rows: Iterable[Any]) -> dict[str, frozenset[int]]:
    """Return the tasks of a request or record."""
    return {row.subtopology_id: frozenset(row.partitions) for row in rows}


def have_common(some: Tasks, others: AssignedTasks) -> bool:
    """Whether tasks of one role are in both."""
    return any(
        not partitions.isdisjoint(theirs[subtopology_id])
        for ours, theirs in zip(some, others, strict=True)
        for subtopology_id, partitions in ours.items()
        if subtopology_id in theirs
    )


def each_task(tasks: Mapping[str, Iterable[int]]) -> Iterable[Task]:
    for subtopology_id, partitions in tasks.items():
        for partition in partitions:
            yield subtopology_id, partition
