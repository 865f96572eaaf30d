"""What must hold at each moment, checked at the events themselves: a leader is elected, records are committed.

`Truth` has what all nodes together have seen. Nodes report to it through the listeners of raft and of partitions, to which this
module adds its own while a run lasts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

from barnabas.batches import iterate_batches
from barnabas.broker.metadata_quorum import MetadataQuorum
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.loader import MetadataBatch, MetadataLoader
from barnabas.metadata.snapshot import to_records
from barnabas.raft.driver import CommittedBatch, RaftDriver, Snapshot
from barnabas.raft.log import OffsetAndEpoch
from barnabas.raft.stored_log import StoredLog
from barnabas.replicas.cleaner import Cleaner
from barnabas.replicas.partition import Partition
from barnabas.wire import Message, encode_record
from tests.simulation.loop import RUNNING
from tests.simulation.world import World

CHECKED_BYTES = 1 << 20


class Truth:
    """One leader in each epoch, one history of the metadata, and one of each partition below its high watermark.

    `images` has what the metadata is after each of its records. What the truth itself does is done within `aside()`, so that
    it does not count as work of a node.
    """

    def __init__(self, world: World, aside: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self.world = world
        self.aside = aside
        self.counts: Counter[str] = Counter()
        self.at_snapshot: Callable[[int], None] = lambda node_id: None  # called while a node writes a snapshot
        self.images: dict[int, MetadataImage] = {}
        self._loader = MetadataLoader()
        self.leaders: dict[int, int] = {}
        self.metadata: dict[int, tuple[int, Message]] = {}  # offset to epoch and record
        self.metadata_end = 0
        self.partitions: dict[tuple[str, int], dict[int, tuple[int, int]]] = defaultdict(dict)
        self.committed_batches = 0
        self._waiting: list[asyncio.Future[int]] = []

    @property
    def leader(self) -> int | None:
        """The leader of the last epoch of the metadata."""
        return self.leaders[max(self.leaders)] if self.leaders else None

    def next_leader(self) -> asyncio.Future[int]:
        """Return the leader of the metadata that is elected next, at the moment of its election."""
        elected: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(elected)
        return elected

    def leads(self, node_id: int, epoch: int) -> None:
        is_new = epoch not in self.leaders
        before = self.leaders.setdefault(epoch, node_id)
        if is_new:
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                if not each.done():
                    each.set_result(node_id)
        if before != node_id:
            self.world.violated(f"{before} and {node_id} both lead epoch {epoch} of the metadata")

    def gained(self, node_id: int, epoch: int, end_offset: int) -> None:
        self.leads(node_id, epoch)
        if end_offset < self.metadata_end:
            what = f"{node_id} leads epoch {epoch} from offset {end_offset}"
            self.world.violated(f"{what}, but the metadata is committed up to {self.metadata_end}")

    def committed(self, node_id: int, batch: CommittedBatch) -> None:
        self.committed_batches += 1
        for offset, record in enumerate(
            batch.records, batch.base_offset
        ):  # a batch in memory may be part of one on disk
            before = self.metadata.setdefault(offset, (batch.epoch, record))
            if before != (batch.epoch, record):
                what = f"{node_id} commits another record of the metadata at {offset}"
                self.world.violated(f"{what}: {record} in epoch {batch.epoch}, before {before}")
        if batch.base_offset <= self.metadata_end <= batch.last_offset:
            self._apply(batch)
        self.metadata_end = max(self.metadata_end, batch.last_offset + 1)

    def _apply(self, batch: CommittedBatch) -> None:
        for each in MetadataBatch(*batch).by_record():
            if each.last_offset >= self.metadata_end:
                for published in self._loader.load([each]):
                    self.images[published.image.offset] = published.image

    def has_image(self, who: object, what: str, offset: int, records: Iterable[Message]) -> None:
        """Compare an image, given as its records, with what the committed records up to an offset make."""
        image = self.images.get(offset)
        if image is None:
            return
        self.counts["images compared"] += 1
        expected = Counter(encode_record(record, version) for record, version in to_records(image))
        versions = {type(record): version for record, version in to_records(image)}
        found = Counter(encode_record(record, versions.get(type(record), 0)) for record in records)
        if found != expected:
            missing, more = len(expected - found), len(found - expected)
            self.world.violated(f"{who} {what} up to {offset}: {missing} records are missing, {more} are others")

    def advanced(self, partition: Partition, begin: int, high_watermark: int) -> None:
        """Compare what a replica has between two high watermarks with what others had there."""
        if partition.settings.log.compact:
            return
        known = self.partitions[str(partition.topic_id), partition.partition_id]
        offset = max(begin, partition.log_start_offset)
        while offset < high_watermark:
            end = offset
            for _, header in iterate_batches(partition.read(offset, CHECKED_BYTES)):
                end = header.last_offset + 1
                if end > high_watermark:
                    break
                found = end, header.crc
                if known.setdefault(header.base_offset, found) != found:
                    before = known[header.base_offset]
                    what = f"{RUNNING.get()} has another batch of {partition} at {header.base_offset}"
                    self.world.violated(f"{what}, below its high watermark {high_watermark}: {found}, before {before}")
            if end == offset:
                break
            offset = end


class MetadataWatcher:
    """A `raft.driver.Listener` that only looks."""

    def __init__(self, truth: Truth, node_id: int) -> None:
        self._truth = truth
        self._node_id = node_id

    async def load_snapshot(self, snapshot: Snapshot) -> None:
        with self._truth.aside():
            self._truth.counts["snapshots loaded"] += 1
            offset = snapshot.snapshot_id.offset - 1
            self._truth.has_image(self._node_id, "loads a snapshot", offset, snapshot.records())

    def committed(self, batch: CommittedBatch) -> None:
        with self._truth.aside():
            self._truth.committed(self._node_id, batch)

    async def follow(self) -> None:
        pass

    def leadership_gained(self, epoch: int, end_offset: int) -> None:
        self._truth.gained(self._node_id, epoch, end_offset)

    def leadership_lost(self, epoch: int) -> None:
        pass

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        if leader_id is not None:
            self._truth.leads(leader_id, epoch)


@contextlib.contextmanager
def observed(truth: Truth) -> Iterator[None]:
    """Watch all nodes that are started meanwhile."""
    start, tell, make = RaftDriver.start, RaftDriver._tell_leadership, Partition.__init__
    write, trim, clean = MetadataQuorum._write_snapshot, StoredLog.trim, Cleaner._clean

    async def watched_start(driver: RaftDriver) -> None:
        driver.subscribe(MetadataWatcher(truth, driver.config.node_id))
        await start(driver)

    def watched_tell(driver: RaftDriver, leadership: Any) -> None:
        if leadership.start_offset is not None:  # at the election itself, which others may never hear of
            truth.leads(driver.config.node_id, leadership.epoch)
        tell(driver, leadership)

    def watched_make(partition: Partition, *arguments: Any, **more: Any) -> None:
        make(partition, *arguments, **more)
        seen = [-1]

        def advanced(high_watermark: int) -> None:
            if high_watermark < seen[0]:
                truth.world.violated(f"the high watermark of {partition} falls from {seen[0]} to {high_watermark}")
            with truth.aside():
                truth.advanced(partition, seen[0], high_watermark)
            seen[0] = high_watermark

        partition.watch(advanced)

    def watched_write(quorum: MetadataQuorum, image: MetadataImage, snapshot_id: OffsetAndEpoch) -> None:
        truth.counts["snapshots"] += 1
        records = (record for record, _ in to_records(image))
        truth.has_image(RUNNING.get(), "writes a snapshot", snapshot_id.offset - 1, records)
        write(quorum, image, snapshot_id)
        truth.at_snapshot(quorum.driver.config.node_id)

    def watched_trim(log: StoredLog, snapshot_id: OffsetAndEpoch) -> None:
        truth.counts["trims"] += 1
        trim(log, snapshot_id)

    async def watched_clean(cleaner: Cleaner, *arguments: Any) -> None:
        truth.counts["compactions"] += 1
        await clean(cleaner, *arguments)

    with (
        patch.object(RaftDriver, "start", watched_start),
        patch.object(RaftDriver, "_tell_leadership", watched_tell),
        patch.object(Partition, "__init__", watched_make),
        patch.object(MetadataQuorum, "_write_snapshot", watched_write),
        patch.object(StoredLog, "trim", watched_trim),
        patch.object(Cleaner, "_clean", watched_clean),
    ):
        yield
