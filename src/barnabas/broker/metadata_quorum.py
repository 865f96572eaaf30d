"""This node's replica of the metadata partition: builds images from the log and writes snapshots of them.

Raft reports committed batches, and this module applies them to the image that the node sees. While this replica leads,
`controller` makes decisions, and each becomes part of the image when it is committed. If the log cannot be replayed,
the node stops: a wrong image is worse than none.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

from barnabas.broker.active_controller import ActiveController
from barnabas.broker.own_connections import NOT_PROTECTED, OwnConnections
from barnabas.broker.raft_transport import RaftTransport
from barnabas.broker.surroundings import Surroundings
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.loader import MetadataBatch, MetadataLoader
from barnabas.metadata.snapshot import to_records
from barnabas.raft.driver import Clock, CommittedBatch, RaftDriver, Snapshot
from barnabas.raft.log import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch
from barnabas.raft.quorum_state import FileQuorumState
from barnabas.raft.ready import NotLeaderError, RaftConfig
from barnabas.raft.stored_log import StoredLog
from barnabas.raft.voters import Endpoint, Node, ReplicaKey, Voter, VoterHistory, VoterSet
from barnabas.replicated.decision import Records
from barnabas.slices import in_slices
from barnabas.steps import Slices
from barnabas.storage.errors import StorageError
from barnabas.storage.files import File
from barnabas.storage.log_config import LogConfig
from barnabas.storage.snapshots import SnapshotId, SnapshotWriter, snapshot_path
from barnabas.wire import ErrorCode, KafkaError, encode_record
from barnabas.wire.errors import MalformedError

_log = logging.getLogger(__name__)

SNAPSHOT_CHECK_S = 60
LOOK_AGAIN_S = 0.02
RESIGN_S = 2.0
STOP_MS = 5000


class MetadataQuorum:
    """One voter or observer; a `raft.driver.Listener`."""

    def __init__(
        self,
        config: ServerConfig,
        raft: RaftConfig,
        directory: Path,
        *,
        surroundings: Surroundings,
        on_failure: Callable[[BaseException], None],
        activate: Callable[[], None] = lambda: None,
        check_voters: Callable[[VoterHistory], None] = lambda voters: None,
        to_controllers: OwnConnections = NOT_PROTECTED,
    ) -> None:
        """`activate` is called each time this node has become the active controller, before anyone else can write."""
        self._config = config
        self._directory = directory
        self._on_failure = on_failure
        self._activate = activate
        self._clock = Clock(surroundings.now_ms, surroundings.monotonic_ms)
        self._log = StoredLog(directory, _log_config(config), self._clock)
        for recovery in self._log.recoveries:
            if recovery.truncated_bytes:
                what = "truncated %d bytes of the metadata log in %s at offset %d: %s"
                _log.warning(what, recovery.truncated_bytes, directory, recovery.next_offset, recovery.reason)
        self._transport = RaftTransport(raft.node_id, to_controllers)
        self.driver = RaftDriver(
            raft,
            self._log,
            FileQuorumState(directory),
            self._transport,
            static_voters=VoterSet(
                Voter(ReplicaKey(v.id), (Endpoint(raft.listener_name, v.host, v.port),))
                for v in config.controller_quorum_voters
            ),
            clock=self._clock,
            random=surroundings.random_for("raft"),
            check_voters=check_voters,
        )
        self.controller = ActiveController(
            EMPTY_IMAGE,
            config,
            _MetadataAppender(self.driver),
            self._clock,
            surroundings.random_for("controller"),
            monotonic_ms=surroundings.monotonic_ms,
            cluster_id=raft.cluster_id,
            kraft_version=lambda: self.kraft_version,
            raise_kraft_version=self.driver.raise_kraft_version,
            end_offset=lambda: self.driver.end_offset,
            on_failure=on_failure,
        )
        self._loader = MetadataLoader()
        self._gathered: list[MetadataBatch] = []
        self._is_stopping = False
        self._news = asyncio.Event()  # the image or the leader has changed
        self._snapshotting: asyncio.Task[None] | None = None
        self._log_bytes_at_snapshot = self._log.size_in_bytes
        self._last_snapshot_ms = self._clock()
        self._watching: asyncio.Task[None] | None = None
        self._timing: asyncio.Task[None] | None = None
        self.driver.subscribe(self)

    @property
    def image(self) -> MetadataImage:
        """The committed image."""
        return self.controller.image

    @property
    def kraft_version(self) -> int:
        return self.driver.core.voters.kraft_version

    @property
    def has_open_transaction(self) -> bool:
        """True if the log ends within a transaction that its writer did not complete."""
        return self._loader.transaction_start_offset is not None

    # --- start and stop

    async def start(self) -> None:
        self.controller.loop.subscribe(lambda old, new, records: self._news.set())  # the last: all others have followed
        try:
            await self.driver.start()
        except (MalformedError, ValueError) as error:
            raise StorageError(f"the metadata log in {self._directory} cannot be read: {error}") from error
        self._watching = asyncio.create_task(self._watch())
        self._timing = asyncio.create_task(self._snapshot_in_time())

    async def stop(self, *, hands_over: bool = True) -> None:
        """Stop. A leader waits until another one leads, if it `hands_over`."""
        self._is_stopping = True
        for task in (self._watching, self._timing):
            if task is not None:
                task.cancel()
        if self._snapshotting is not None:
            await asyncio.wait([self._snapshotting])
        await self.driver.stop(STOP_MS if hands_over else 0)
        self._transport.close()
        self._log.close()

    @property
    def problem(self) -> str:
        """Why controllers could not be talked to, if a login or a certificate is the reason."""
        return self._transport.problem

    async def wait_loaded(self) -> None:
        """Wait until there is a leader, and this node has everything that was committed before its epoch."""
        while not self.is_loaded:
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN_S):
                    await self._news.wait()

    @property
    def is_loaded(self) -> bool:
        image = self.image
        if image.metadata_version is None:
            return False
        # A leader commits a record of its epoch first, and with it all that was committed before.
        core = self.driver.core
        is_current = core.leadership.leader_id is not None and image.provenance.last_contained_epoch == core.epoch
        return self.controller.loop.is_leader or is_current

    @property
    def leader(self) -> Node | None:
        """The leader and its address on the listener between controllers, or None if unknown."""
        return self.driver.core.leader_view(self.driver.config.listener_name).node

    async def resign(self, timeout_s: float = RESIGN_S) -> None:
        """Give up leadership, if another voter can take it, and wait until one does, for at most `timeout_s`."""
        driver = self.driver
        own_id = driver.config.node_id
        if not driver.is_leader or driver.core.voters.current.ids == {own_id}:
            return
        driver.resign(driver.epoch)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while driver.leader_id in (None, own_id):
                    await asyncio.sleep(LOOK_AGAIN_S)

    async def drop(self) -> None:
        """Stop without a word to the other voters and without a flush, as if the process had died."""
        self._is_stopping = True
        for task in (self._watching, self._timing, self._snapshotting):
            if task is not None:
                task.cancel()
        await self.driver.drop()
        self._transport.close()
        self._log.close()

    async def _watch(self) -> None:
        try:
            await self.driver.wait_closed()
        except Exception as error:
            self._on_failure(error)

    # --- callbacks of raft

    async def load_snapshot(self, snapshot: Snapshot) -> None:
        self._gathered.clear()
        end_offset, epoch = snapshot.snapshot_id
        provenance = Provenance(end_offset - 1, epoch, snapshot.last_contained_log_timestamp)
        published = await in_slices(self._loader.load_snapshot_in_slices(snapshot.records(), provenance))
        await self.controller.loop.advance(published.image, end_offset - 1).wait()

    def committed(self, batch: CommittedBatch) -> None:
        loop = self.controller.loop
        if loop.is_leader:
            loop.committed(batch.last_offset)
            self._snapshot_if_due()
            return
        self._gathered.append(MetadataBatch(*batch))

    async def follow(self) -> None:
        """Apply all collected batches as one image."""
        batches, self._gathered = self._gathered, []
        if batches:
            records = [record for batch in batches for record in batch.records]
            try:
                loaded = await in_slices(self._loader.load_in_slices(batches))
            except ReplayError as error:
                raise ReplayError(f"the metadata log cannot be replayed: {error}") from error
            for published in loaded:
                await self.controller.loop.advance(published.image, published.image.offset, records).wait()
            self._snapshot_if_due()

    def leadership_gained(self, epoch: int, end_offset: int) -> None:
        _log.info("leading the metadata quorum in epoch %d from offset %d", epoch, end_offset)
        self.controller.loop.gained(epoch, end_offset)
        try:
            self._activate()
        except KafkaError as error:  # leadership is lost again already
            _log.info("this controller could not become active in epoch %d: %s", epoch, error)
        self._news.set()

    def leadership_lost(self, epoch: int) -> None:
        was_gained = self.controller.loop.is_leader
        self.controller.loop.lost()
        if was_gained:  # otherwise the loader has everything, and may be at work
            self._loader = MetadataLoader(self.image)

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        self._news.set()

    # --- snapshots

    def _snapshot_if_due(self) -> None:
        grown = self._log.size_in_bytes - self._log_bytes_at_snapshot
        is_at_work = self._snapshotting is not None or self._is_stopping
        if is_at_work or self.image.metadata_version is None or grown <= 0:
            return
        interval_ms = self._config.get_int("metadata.log.max.snapshot.interval.ms")
        by_size = grown >= self._config.get_int("metadata.log.max.record.bytes.between.snapshots")
        by_time = interval_ms > 0 and self._clock() - self._last_snapshot_ms >= interval_ms
        if by_size or by_time:
            self._snapshotting = asyncio.create_task(self.snapshot())
            self._snapshotting.add_done_callback(self._snapshotted)

    async def _snapshot_in_time(self) -> None:
        """Write snapshots by time too, so that the last changes get into one even if no more follow."""
        interval_s = self._config.get_int("metadata.log.max.snapshot.interval.ms") / 1000
        while interval_s > 0:
            await asyncio.sleep(min(interval_s, SNAPSHOT_CHECK_S))
            self._snapshot_if_due()

    def _snapshotted(self, task: asyncio.Task[None]) -> None:
        self._snapshotting = None
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StorageError):
            _log.error("no snapshot of the metadata was written, and the log is kept: %s", error)
        elif error is not None:
            _log.error("writing a snapshot of the metadata failed; the log is kept", exc_info=error)

    async def snapshot(self) -> None:
        """Write the committed image as a snapshot, and delete what retention no longer keeps."""
        image = self.image
        snapshot_id = OffsetAndEpoch(image.offset + 1, image.provenance.last_contained_epoch)
        self._log_bytes_at_snapshot, self._last_snapshot_ms = self._log.size_in_bytes, self._clock()
        if snapshot_id not in self._log.snapshot_ids():
            await asyncio.to_thread(self._write_snapshot, image, snapshot_id)
            _log.info("wrote a snapshot of the metadata up to offset %d", image.offset)
            self.driver.snapshot_created(snapshot_id)
        self._delete_old()

    def _write_snapshot(self, image: MetadataImage, snapshot_id: OffsetAndEpoch) -> None:
        kraft_version, voters = self.driver.voters_at(snapshot_id.offset)
        with SnapshotWriter.create(
            self._directory,
            SnapshotId(*snapshot_id),
            self._clock,
            last_contained_log_timestamp=image.provenance.last_contained_timestamp_ms,
            kraft_version=kraft_version,
            voters=voters,
        ) as writer:
            writer.append(encode_record(record, version) for record, version in to_records(image))
            writer.freeze()

    def _delete_old(self) -> None:
        """Apply `metadata.max.retention.bytes` and `.ms`. The latest snapshot and the log after it are always kept."""
        max_bytes = self._config.get_int("metadata.max.retention.bytes")
        max_ms = self._config.get_int("metadata.max.retention.ms")
        ids = [found for found in self._log.snapshot_ids() if found != BOOTSTRAP_SNAPSHOT_ID]
        files = [File(snapshot_path(self._directory, SnapshotId(*found)), writable=False) for found in ids]
        begin: OffsetAndEpoch | None = None
        total = self._log.size_in_bytes + sum(file.size() for file in files)
        for file, following in zip(files, ids[1:], strict=False):
            too_old = 0 <= max_ms < self._clock() - file.modified_ms()
            if not (0 <= max_bytes < total or too_old):
                break
            begin = following
            total -= file.size()
        if begin is not None:
            self.driver.trim(begin)


class _MetadataAppender:
    """The metadata log as its controller writes to it: whoever does not lead it is not the active controller."""

    def __init__(self, driver: RaftDriver) -> None:
        self._driver = driver

    def append(self, epoch: int, records: Records) -> Slices[int]:
        try:
            return (yield from self._driver.append(epoch, records))
        except NotLeaderError as error:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, error.message) from error


def _log_config(config: ServerConfig) -> LogConfig:
    return LogConfig(
        segment_bytes=config.get_int("metadata.log.segment.bytes"),
        segment_ms=config.get_int("metadata.log.segment.ms"),
        metadata=True,
    )
