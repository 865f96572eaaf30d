"""Takes buffered records out of partitions, one partition after the other, so that none of them starves.

It also notes which partitions returned records since the last poll: by the next poll the application has processed
them.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.batches import BatchError, Record
from barnabas.client.consuming.fetching import Fetcher
from barnabas.client.consuming.partition import PartitionState
from barnabas.client.consuming.settings import READ_COMMITTED, ConsumerSettings
from barnabas.client.records import ConsumerRecord, TopicPartition
from barnabas.wire import KafkaError

_new = tuple.__new__


class Collector:
    """Records of all assigned partitions in turn."""

    def __init__(
        self, settings: ConsumerSettings, states: Mapping[TopicPartition, PartitionState], fetcher: Fetcher
    ) -> None:
        self.touched: set[PartitionState] = set()  # returned records since the last poll
        self._states = states
        self._fetcher = fetcher
        self._check_crcs = settings.check_crcs
        self._committed_only = settings.isolation_level == READ_COMMITTED
        self._order: list[PartitionState] = []
        self._at = 0

    def reassigned(self) -> None:
        """Follow a change of the assignment."""
        self._order = list(self._states.values())
        self.touched &= set(self._order)
        self._at = 0

    def mark_processed(self) -> None:
        """Note that all records returned so far are processed, and may be committed."""
        for state in self.touched:
            state.processed = state.position
        self.touched.clear()

    @property
    def has_buffered(self) -> bool:
        return any(state.has_buffered and not state.is_paused for state in self._order)

    def take_one(self) -> ConsumerRecord | None:
        """Return the next record, or None if none is buffered.

        Raises KafkaError for a batch that cannot be read, if no other partition has a record.
        """
        order, count = self._order, len(self._order)
        failure: KafkaError | None = None
        for _ in range(count):
            state = order[self._at % count]
            if not state.is_paused and state.position is not None:
                had_room = state.has_room
                try:
                    record = state.take_one(check_crcs=self._check_crcs, committed_only=self._committed_only)
                except BatchError as error:
                    record, failure = None, failure or _unreadable(state, error)
                if not had_room and state.has_room:
                    self._fetcher.wake()
                if record is not None:
                    self.touched.add(state)
                    return _new(ConsumerRecord, (*state.place, *record))
            self._at += 1
        if failure is not None:
            raise failure
        return None

    def take(self, limit: int) -> dict[TopicPartition, list[Record]]:
        """Return the next records by partition, at most `limit`.

        Raises KafkaError for a batch that cannot be read, if no other partition has records.
        """
        found: dict[TopicPartition, list[Record]] = {}
        failure: KafkaError | None = None
        is_drained = False
        count = len(self._order)
        for _ in range(count):
            state = self._order[self._at % count]
            if not state.is_paused and state.position is not None and state.has_buffered:
                had_room = state.has_room
                try:
                    taken = state.take(limit, check_crcs=self._check_crcs, committed_only=self._committed_only)
                except BatchError as error:
                    taken, failure = [], failure or _unreadable(state, error)
                is_drained = is_drained or (state.has_room and not had_room)
                self.touched.add(state)  # even without records: the position moves behind markers
                if taken:
                    found[state.place] = taken
                    limit -= len(taken)
                    if limit <= 0:
                        break
            self._at += 1
        if is_drained:
            self._fetcher.wake()
        if failure is not None and not found:
            raise failure
        return found


def _unreadable(state: PartitionState, error: BatchError) -> KafkaError:
    return KafkaError(error.code, f"{state.place} at {state.position}: {error}")
