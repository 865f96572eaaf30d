"""The partitions that a consumer reads, each with its position and buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.client.consuming.partition import PartitionState
from barnabas.client.records import TopicPartition
from barnabas.wire import ErrorCode, KafkaError


class Assignment:
    """Partitions by name. `changed` is called after every change."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.states: dict[TopicPartition, PartitionState] = {}
        self._changed = changed

    def state(self, partition: tuple[str, int]) -> PartitionState:
        """Return the state of a partition. Raises UNKNOWN_TOPIC_OR_PARTITION if it is not assigned."""
        found = self.states.get(TopicPartition(*partition))
        if found is None:
            text = f"{TopicPartition(*partition)} is not assigned to this consumer"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        return found

    def replace(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign these partitions and no others. Those that were assigned before keep their positions."""
        wanted = list(partitions)
        for place in set(self.states) - set(wanted):
            del self.states[place]
        self.add(wanted)

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign more partitions."""
        for place in partitions:
            if place not in self.states:
                self.states[place] = PartitionState(place)
        self._changed()

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading partitions, and drop their buffers."""
        for place in partitions:
            state = self.states.pop(place, None)
            if state is not None:
                state.drop()
        self._changed()

    def clear(self) -> None:
        """Stop reading all partitions."""
        self.states.clear()
        self._changed()
