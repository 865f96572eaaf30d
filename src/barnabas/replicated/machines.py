"""The machines of a coordinator, one per partition of its topic. Each is loaded when this node becomes its leader.

Its one rule: a machine serves requests only after it is loaded and while this node leads the partition. During the load
callers get COORDINATOR_LOAD_IN_PROGRESS, and otherwise NOT_COORDINATOR. `groups` and `transactions` define the content
of a machine (its image, decisions and timers); `replicas` keeps its log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from barnabas import wire
from barnabas.batches import (
    HEADER_SIZE,
    BatchHeader,
    ControlType,
    CorruptBatchError,
    Record,
    check_crc,
    decode_end_txn_marker,
    decode_payload,
    decode_records,
    decode_records_in_chunks,
    iterate_batches,
)
from barnabas.batches.builder import PayloadBuilder
from barnabas.batches.compression import most_decompressed_bytes
from barnabas.batches.format import Compression
from barnabas.replicated.decision import KeyValue, Producer, Records
from barnabas.replicated.loop import Apply, Batch, Decision, Loop, Marker
from barnabas.slices import in_slices, waited
from barnabas.steps import ROWS_PER_STEP, Slices, result_of, stepwise
from barnabas.wire import ErrorCode, KafkaError, MalformedError, UnsupportedVersionError

_log = logging.getLogger(__name__)

Image = TypeVar("Image")
R = TypeVar("R")

LOAD_BYTES = 1 << 20


class Appended(Protocol):
    """The offsets that a batch was appended at."""

    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...


class MachineLog(Protocol):
    """The log of a partition that this node leads."""

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...

    async def open(self) -> None:
        """Open the log, unless it is open."""
        ...

    async def load(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from `offset` on, or nothing at the end of the log."""
        ...

    def append_records(self, batch: bytes, leader_epoch: int, guard: int | None = None) -> Appended:
        """Append a batch.

        Raises KafkaError if this node does not lead that epoch, too few replicas are in sync, or the batch is too
        large.
        """
        ...

    def append_marker(
        self, producer: Producer, marker: Marker, leader_epoch: int, transaction_version: int
    ) -> Appended:
        """Write the marker that ends a producer's transaction."""
        ...

    def watch(self, listener: Callable[[int], None]) -> Callable[[], None]:
        """Call `listener` with each new high watermark, until the returned function is called."""
        ...


class Coordinator(NamedTuple, Generic[Image]):
    """The definition of a coordinator, of groups or of transactions: its topic, its image and its callbacks."""

    topic: str
    record_group: str  # group of its keys in barnabas.wire: "group" or "transaction"
    empty: Image
    apply: Apply[Image]
    loaded: Callable[[Machine[Image]], None]  # called when the machine starts to serve
    unloaded: Callable[[Machine[Image]], None]  # called when it stops; its soft state is dropped
    compression: Compression = Compression.NONE


class Machine(Generic[Image]):
    """One partition of the coordinator's topic, led by this node in one epoch.

    Implements `loop.TransactionalAppender`.
    """

    def __init__(
        self,
        coordinator: Coordinator[Image],
        partition_id: int,
        leader_epoch: int,
        machine_log: MachineLog,
        now_ms: Callable[[], int],
    ) -> None:
        self.partition_id = partition_id
        self.leader_epoch = leader_epoch
        self.log = machine_log
        self.is_loaded = False
        self.failure: KafkaError | None = None
        self.loop: Loop[Image] = Loop(
            coordinator.empty, coordinator.apply, self, now_ms, not_leader=ErrorCode.NOT_COORDINATOR
        )
        self._coordinator = coordinator
        self._now_ms = now_ms
        self._stop_watching: Callable[[], None] = lambda: None
        self._loading: asyncio.Task[None] | None = None

    @property
    def image(self) -> Image:
        """The committed image."""
        return self.loop.image

    @property
    def head(self) -> Image:
        """The image with uncommitted changes, which decisions read.

        Raises NOT_COORDINATOR if this node does not lead.
        """
        if self.loop.head is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return self.loop.head

    async def write(self, decide: Decision[Image, R]) -> R:
        """Decide on the head, append, and return the response after the commit.

        A decision that raises changes nothing.
        """
        return await self.loop.write(decide)

    async def write_soon(self, decide: Decision[Image, R], accepted: Callable[[R], None] = lambda response: None) -> R:
        """Decide and append in slices. Return the response without waiting for the commit.

        `accepted` is called with the response before any other decision.
        """
        return await self.loop.write_soon(decide, accepted)

    def write_nowait(self, decide: Decision[Image, R]) -> R:
        """Decide and append at once. Return the response without waiting for the commit."""
        return self.loop.write_nowait(decide)

    async def wait_head_committed(self) -> None:
        """Wait until everything that was appended so far is committed. Raises NOT_COORDINATOR."""
        await self.loop.wait_head_committed()

    async def write_marker(self, producer: Producer, marker: Marker, transaction_version: int) -> None:
        """End a producer's transaction in the log and in the image, and return once that is committed."""
        self.loop.finish_writing()
        self._check_leads()
        appended = self.log.append_marker(producer, marker, self.leader_epoch, transaction_version)
        batch = Batch(
            appended.base_offset, appended.last_offset, self.leader_epoch, self._now_ms(), (), producer, marker
        )
        self.loop.appended(batch)
        await self.loop.wait_committed(appended.last_offset)

    def append(self, epoch: int, records: Records, producer: Producer | None = None) -> Slices[int]:
        """Encode the records in slices, and append them in one step."""
        now_ms = self._now_ms()
        payload = PayloadBuilder()
        for some in stepwise(enumerate(records)):
            payload.add(
                Record(
                    number,
                    now_ms,
                    wire.encode_record(record.key, 0),
                    None if record.value is None else wire.encode_record(record.value, version),
                )
                for number, (record, version) in some
            )
            if some[-1][0] + 1 < len(records):
                yield
        compression = self._coordinator.compression
        if producer is None:
            batch = payload.batch(compression=compression)
        else:
            batch = payload.batch(
                compression=compression,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                is_transactional=True,
            )
        return self.log.append_records(batch, epoch, None if producer is None else producer.guard).last_offset

    # --- loading and unloading

    def load(self) -> asyncio.Task[None]:
        """Start to load, unless that has begun already, and return the task."""
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._load())
        return self._loading

    def unload(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
        self._stop_watching()
        was_loaded, self.is_loaded = self.is_loaded, False
        self.loop.lost()
        if was_loaded:
            self._coordinator.unloaded(self)

    async def _load(self) -> None:
        try:
            await self._replay()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            where = f"{self._coordinator.topic}-{self.partition_id}"
            # What is wrong with a disk or a log is said in one line; anything else is a bug.
            trace = None if isinstance(error, KafkaError | MalformedError) else error
            _log.error("could not load %s: its groups or transactions are not served: %s", where, error, exc_info=trace)
            self.failure = KafkaError(ErrorCode.NOT_COORDINATOR, f"{where} cannot be loaded")
            return
        self.loop.gained(self.leader_epoch, self.log.log_end_offset)
        self.is_loaded = True
        self._stop_watching = self.log.watch(self._advanced)
        self._coordinator.loaded(self)

    async def _replay(self) -> None:
        await self.log.open()
        offset = self.log.log_start_offset
        while data := await self.log.load(offset, LOAD_BYTES):
            offset = await in_slices(self._replay_batches(data))
        await self._wait_committed(self.log.log_end_offset)

    async def _wait_committed(self, end_offset: int) -> None:
        """Wait until the high watermark of a new leader reaches the end of what was loaded, so that all of it stays."""
        if self.log.high_watermark >= end_offset:
            return
        done = asyncio.get_running_loop().create_future()

        def look(high_watermark: int) -> None:
            if high_watermark >= end_offset and not done.done():
                done.set_result(None)

        stop = self.log.watch(look)
        try:
            await done
        finally:
            stop()

    def _replay_batches(self, data: bytes) -> Slices[int]:
        """Apply batches of the log, and return the offset after them."""
        offset = -1
        for position, header in iterate_batches(data):
            try:
                check_crc(header, data, position)
                batch = yield from self._decode(data, position, header)
            except MalformedError as error:
                where = f"offset {header.base_offset}"
                why = (
                    f"the batch has a wrong checksum at {where}"
                    if isinstance(error, CorruptBatchError)
                    else f"{where}: {error}"
                )
                raise MalformedError(
                    f"{why}; see barnabas doctor --deep with the log dir, and restore the log"
                ) from error
            if batch is not None:
                image = yield from result_of(self._coordinator.apply(self.loop.image, batch))
                self.loop.advance(image, header.last_offset)
            offset = header.next_offset
            yield
        return offset

    def _decode(self, data: bytes, position: int, header: BatchHeader) -> Slices[Batch | None]:
        producer = Producer(header.producer_id, header.producer_epoch) if header.is_transactional else None
        place = (header.base_offset, header.last_offset, header.partition_leader_epoch, header.max_timestamp)
        if header.is_control:
            decoded = decode_records(data, position, header)
            marker = decode_end_txn_marker(decoded[0]) if decoded else None
            if marker is None or producer is None:
                return None
            return Batch(*place, (), producer, Marker(marker.type is ControlType.COMMIT, marker.coordinator_epoch))
        records: list[KeyValue] = []
        payload = yield from _payload(data, position, header)
        for some in decode_records_in_chunks(payload, header, ROWS_PER_STEP):
            found = (decode_key_value(record, self._coordinator.record_group) for record in some)
            records += [record for record in found if record is not None]
            yield
        return Batch(*place, records, producer)

    def _advanced(self, high_watermark: int) -> None:
        self.loop.committed(high_watermark - 1)

    def _check_leads(self) -> None:
        if not self.is_loaded:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)


def _payload(data: bytes, position: int, header: BatchHeader) -> Slices[bytes]:
    """Return the decompressed records of a batch. What may be large is decompressed in a thread."""
    compressed = memoryview(data)[position + HEADER_SIZE : position + header.size_in_bytes]
    if header.compression is Compression.NONE or most_decompressed_bytes(header.compression, compressed) <= LOAD_BYTES:
        return decode_payload(data, position, header)
    return (yield from waited(asyncio.to_thread(decode_payload, data, position, header)))


def decode_key_value(record: Record, record_group: str) -> KeyValue | None:
    """Decode a record of a coordinator's log. Returns None for a record type that this version does not know."""
    try:
        key = wire.decode_record(record.key or b"", record_group).record
    except UnsupportedVersionError:
        return None
    if record.value is None:
        return KeyValue(key, None)
    return KeyValue(key, wire.decode_record(record.value, type(key).__name__.removesuffix("Key") + "Value").record)


class Machines(Generic[Image]):
    """All machines of one coordinator on this node."""

    def __init__(self, coordinator: Coordinator[Image], now_ms: Callable[[], int]) -> None:
        self.coordinator = coordinator
        self._now_ms = now_ms
        self._machines: dict[int, Machine[Image]] = {}

    def elected(self, partition_id: int, leader_epoch: int, machine_log: MachineLog) -> None:
        """Load the machine of a partition that this node now leads, unless it is already there in this epoch."""
        known = self._machines.get(partition_id)
        if known is not None:
            if known.leader_epoch >= leader_epoch:
                return
            known.unload()
        machine = Machine(self.coordinator, partition_id, leader_epoch, machine_log, self._now_ms)
        self._machines[partition_id] = machine
        machine.load()

    def resigned(self, partition_id: int) -> None:
        """Unload the machine of a partition that this node no longer leads, or that was deleted."""
        machine = self._machines.pop(partition_id, None)
        if machine is not None:
            machine.unload()

    def machine(self, partition_id: int) -> Machine[Image]:
        """Return the loaded machine of a partition. Raises NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        machine = self._machines.get(partition_id)
        if machine is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if not machine.is_loaded:
            raise machine.failure or KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return machine

    def loaded(self) -> list[Machine[Image]]:
        """Return the machines that are loaded."""
        return [machine for machine in self._machines.values() if machine.is_loaded]

    def states(self) -> dict[str, int]:
        """Return the number of machines that are loaded, loading, and failed to load."""
        machines = self._machines.values()
        loaded, failed = sum(each.is_loaded for each in machines), sum(each.failure is not None for each in machines)
        return {"loaded": loaded, "loading": len(machines) - loaded - failed, "failed": failed}

    async def wait_loaded(self) -> None:
        """Wait until no machine is loading."""
        await asyncio.gather(*(machine.load() for machine in self._machines.values()), return_exceptions=True)

    @property
    def is_loading(self) -> bool:
        return any(not machine.is_loaded and machine.failure is None for machine in self._machines.values())

    def stop(self) -> None:
        for partition_id in list(self._machines):
            self.resigned(partition_id)
