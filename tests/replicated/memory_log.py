"""A coordinator's log in memory: a list of batches that commits at once, or when told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.batches import build_end_txn_marker, iterate_batches
from barnabas.batches.stamping import stamp
from barnabas.replicated.decision import Producer
from barnabas.replicated.loop import Marker
from barnabas.wire import KafkaError


class Place(NamedTuple):
    base_offset: int
    last_offset: int


class MemoryLog:
    """Implements `replicated.machines.MachineLog`."""

    log_start_offset = 0

    def __init__(self, batches: Iterable[bytes] = (), *, commits_at_once: bool = True) -> None:
        self.batches: list[bytes] = []
        self.log_end_offset = 0
        self.high_watermark = 0
        self.commits_at_once = commits_at_once
        self.refuses: KafkaError | None = None
        self._listeners: list[Callable[[int], None]] = []
        for batch in batches:
            self._append(batch, 0)

    async def open(self) -> None:
        pass

    async def load(self, offset: int, max_bytes: int) -> bytes:
        found = b""
        for batch in self.batches:
            _, header = next(iter(iterate_batches(batch)))
            if header.last_offset < offset:
                continue
            if found and len(found) + len(batch) > max_bytes:
                break
            found += batch
        return found

    def append_records(self, batch: bytes, leader_epoch: int, guard: int | None = None) -> Place:
        return self._append(batch, leader_epoch)

    def append_marker(self, producer: Producer, marker: Marker, leader_epoch: int, transaction_version: int) -> Place:
        batch = build_end_txn_marker(
            commit=marker.is_commit,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=0,
        )
        return self._append(batch, leader_epoch)

    def watch(self, listener: Callable[[int], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def commit(self, offset: int | None = None) -> None:
        """Everything before an offset is on all replicas; without one, everything."""
        self.high_watermark = self.log_end_offset if offset is None else offset
        for listener in list(self._listeners):
            listener(self.high_watermark)

    def _append(self, batch: bytes, leader_epoch: int) -> Place:
        if self.refuses is not None:
            raise self.refuses
        stamped = bytearray(batch)
        stamp(stamped, self.log_end_offset, leader_epoch)
        _, header = next(iter(iterate_batches(stamped)))
        self.batches.append(bytes(stamped))
        self.log_end_offset = header.next_offset
        if self.commits_at_once:
            self.commit()
        return Place(header.base_offset, header.last_offset)
