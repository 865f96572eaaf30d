"""All partitions that this broker has a replica of: a table that follows the metadata image, stored in the log dirs.

Its one rule: the image decides which replicas exist, not the directories. A partition that the image assigns to this
broker enters the table at once; its directory is created in the background, or on first use. `found_logs` sets aside the
directories of others.

The directory where a replica's files are is its location. If the controller has another one, it is told (`assign`). A
replica that is being moved has a second directory with a future log, until that replaces the first (`moving`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

from barnabas.batches.format import MAX_INT64
from barnabas.config.definitions import Value
from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.brokers import Broker
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.pmap import differences
from barnabas.metadata.topics import Topic, touched_topics
from barnabas.replicas.closing import close_all
from barnabas.replicas.found_logs import FoundLogs
from barnabas.replicas.large_payloads import LargePayloads
from barnabas.replicas.leading import Proposal
from barnabas.replicas.log_dir_checkpoints import LogDirCheckpoints
from barnabas.replicas.log_directories import LogDirectories
from barnabas.replicas.moving import Moves
from barnabas.replicas.partition import Partition, Replication
from barnabas.replicas.throttle import Throttle
from barnabas.replicas.topic_settings import TopicSettings, topic_settings
from barnabas.replicas.traffic import Traffic
from barnabas.replicas.unopened_logs import UnopenedLogs, shorter
from barnabas.replicas.unwritten_epochs import UnwrittenEpochs
from barnabas.slices import in_slices
from barnabas.steps import ROWS_PER_STEP, Slices, at_once, in_order
from barnabas.storage import (
    Log,
    StorageError,
    TopicPartition,
    read_topic_id,
    write_topic_id,
)
from barnabas.storage.files import is_directory, rename
from barnabas.storage.log_dirs import (
    DirectoryState,
    ScannedDir,
    directory_name,
    write_clean_shutdown,
)
from barnabas.wire import ErrorCode, KafkaError, Uuid, random_uuid
from barnabas.wire.records.metadata import ConfigRecord

_log = logging.getLogger(__name__)

CHECKED_AT_ONCE = 64
LET_GO_S = 10.0

DEFAULT_MAX_LAG_MS = 30_000

Led = Callable[[Partition, bool], None]
Assign = Callable[[Partition, Uuid, Callable[[], None]], None]


class Replicas:
    """The table of this broker's replicas.

    `topic_values` returns all configs of a topic. `led` is called whenever this broker starts or stops leading a
    partition. `assign` tells the controller in which directory a replica is, and calls back once that is accepted.
    `followed` is called when this broker starts or stops following a partition, or the leader or its epoch has changed.
    `propose` sends a change of the ISR to the controller.
    """

    def __init__(
        self,
        node_id: int,
        directories: LogDirectories,
        topic_values: Callable[[str], Mapping[str, Value]],
        *,
        now_ms: Callable[[], int],
        random: Random,
        config: Callable[[], ServerConfig | None] = lambda: None,
        led: Led = lambda partition, leads: None,
        offline: Callable[[], None] = lambda: None,
        assign: Assign = lambda partition, directory_id, accepted: accepted(),
        followed: Callable[[Partition], None] = lambda partition: None,
        propose: Callable[[Partition, Proposal], None] = lambda partition, proposal: None,
        broker_epoch: Callable[[], int] = lambda: -1,
    ) -> None:
        self.node_id = node_id
        self._directories = directories
        self._topic_values = topic_values
        self._now_ms = now_ms
        self._random = random
        self._jitter = Random(random.random())  # a fast generator is enough here
        self.payloads = LargePayloads(lambda: self._number("barnabas.decompressed.batches.max.count", 2))
        self.traffic = Traffic()
        self.isr_shrinks = self.isr_expands = 0  # of partitions that this broker leads
        # Arguments of every partition, bound once because there may be very many.
        self._shared: dict[str, Any] = {
            "node_id": node_id,
            "settings": self.settings,
            "open_log": self._open_log,
            "opening": self.opening,
            "failed": self._failed,
            "payloads": self.payloads,
            "rolled": self._flush_soon,
            "began_leading": UnwrittenEpochs(self._spawn, self._failed).write_soon,
            "now_ms": now_ms,
            "replication": Replication(self._broker, broker_epoch, propose, self._max_lag_ms),
        }
        self._config = config
        self._led = led
        self._followed = followed
        self._told_offline = offline
        self._assign = assign
        self._by_topic: dict[str, dict[int, Partition]] = {}
        self._settings: dict[str, TopicSettings] = {}
        self._found_logs = FoundLogs(node_id, directories, random, now_ms)
        self._checkpoints = self._found_logs.checkpoints
        self._found = self._found_logs.log_dirs
        self._counts: Counter[str] = Counter()
        self.unopened = UnopenedLogs()
        self.wants_creation: Callable[[], None] = lambda: None
        self._tasks: set[asyncio.Future[Any]] = set()
        self._opening: dict[TopicPartition, asyncio.Task[None]] = {}
        self._openers: ThreadPoolExecutor | None = None
        self._left: set[Log] = set()
        self._is_started = False
        self.deleted = self._found_logs.deleted
        self.moves = Moves(self, lambda: self._rate("replica.alter.log.dirs.io.max.bytes.per.second"))
        self.leader_throttle = Throttle(lambda: self._rate("leader.replication.throttled.rate"), now_ms)
        self.follower_throttle = Throttle(lambda: self._rate("follower.replication.throttled.rate"), now_ms)
        self.carry_cleaner_offset: Callable[[Partition, str], None] = lambda partition, log_dir: None
        self._image: MetadataImage | None = None

    # --- lookup

    def get(self, topic: str, partition_id: int) -> Partition | None:
        partitions = self._by_topic.get(topic)
        return None if partitions is None else partitions.get(partition_id)

    def partition(self, topic: str, partition_id: int) -> Partition:
        """Return the partition. Raises Kafka's error if it is not on this broker or offline."""
        found = self.get(topic, partition_id)
        if found is None:
            assert self._image is not None
            known = self._image.topics.get(topic)
            is_known = known is not None and 0 <= partition_id < len(known.partitions)
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if found.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return found

    def opening_of(self, topic: str, partition_id: int) -> Awaitable[None] | None:
        """Return what to wait for before the log of a partition is used, or None. See `opening`."""
        found = self.get(topic, partition_id)
        return None if found is None else found.opening()

    def leader(self, topic: str, partition_id: int, current_leader_epoch: int = -1) -> Partition:
        """Return the partition if this broker leads it, in that epoch if one is passed. Raises KafkaError otherwise."""
        found = self.partition(topic, partition_id)
        found.require_leader(current_leader_epoch)
        return found

    def __iter__(self) -> Iterator[Partition]:
        """Yield all partitions. The table may change meanwhile."""
        for topic in list(self._by_topic):
            yield from list(self._by_topic.get(topic, {}).values())

    def settings(self, topic: str) -> TopicSettings:
        found = self._settings.get(topic)
        if found is None:
            found = self._settings[topic] = topic_settings(self._topic_values(topic), self._config())
        return found

    # --- following the image

    def take_scanned(self, scanned: Mapping[str, ScannedDir | StorageError]) -> int:
        """Fail the log dirs whose scan failed. Returns the broker epoch of the last clean shutdown, or -1 if it was unclean."""
        for path in filter(self._directories.is_online, self._directories.paths):
            if isinstance(found := scanned[path], StorageError):
                self._directories.fail(path, found)
        epochs = [-1 if isinstance(each, StorageError) else each.clean_shutdown_epoch for each in scanned.values()]
        return min((-1 if each is None else each for each in epochs), default=-1)

    def start(self, image: MetadataImage, scanned: Mapping[str, ScannedDir | StorageError] | None = None) -> None:
        """Do the same as `start_in_slices`, without a pause."""
        at_once(self.start_in_slices(image, scanned))

    def start_in_slices(
        self, image: MetadataImage, scanned: Mapping[str, ScannedDir | StorageError] | None = None
    ) -> Slices[None]:
        """Add the replicas that the image assigns to this broker, and the logs found in the log dirs.

        `scanned` has the results of `scan_log_dir` by path; without it, the log dirs are scanned here. A log that is not one
        of the image's is set aside, so the image must have all that was committed before. Images that are published
        meanwhile are followed at the end.
        """
        self._image = image
        yield from self._found_logs.find(image, scanned)
        for topic_id in (yield from in_order(image.topics.by_id)):
            yield from self._topic_changed(None, image.topics.by_id[topic_id])
        while self._image is not image:
            before, image = image, self._image
            yield from self._follow(before, image, ())
        self._is_started = True

    def image_changed(self, old: MetadataImage, new: MetadataImage, records: Sequence[Any]) -> Slices[None]:
        """Follow a new image. Subscribed to the metadata loop."""
        self._image = new
        if self._is_started:
            yield from self._follow(old, new, records)

    def _follow(self, old: MetadataImage, new: MetadataImage, records: Sequence[Any]) -> Slices[None]:
        if new.topics is old.topics and new.configs is old.configs:
            return
        changed = list(differences(old.topics.by_id, new.topics.by_id, touched_topics(records)))
        # Deletions first: the same commit may create a topic of the same name. By id, so that the order is always the same.
        for _, was, now in sorted(changed, key=lambda item: (item[2] is not None, item[0])):
            yield from self._topic_changed(was, now)
        if new.configs is not old.configs:
            named = {
                ConfigResource(record.resource_type, record.resource_name)
                for record in records
                if isinstance(record, ConfigRecord)
            }
            for resource, _, _ in differences(old.configs, new.configs, named if records else None):
                if resource.type == ConfigResourceType.TOPIC:
                    yield from self.settings_changed((resource.name,))

    def settings_changed(self, topics: Iterable[str] | None = None) -> Slices[None]:
        """Apply changed settings of these topics, or of all topics if the broker's own settings changed."""
        for topic in list(self._settings) if topics is None else topics:
            if self._settings.pop(topic, None) is not None:
                for partition in list(self._by_topic.get(topic, {}).values()):
                    partition.configure()
                    self.moves.configure(partition)
                    yield

    def _topic_changed(self, old: Topic | None, new: Topic | None) -> Slices[None]:
        if old is not None and new is None:
            for partition in list(self._by_topic.get(old.name, {}).values()):
                self._remove(partition)
                yield
            self._settings.pop(old.name, None)
        if new is None:
            return
        for partition_id, state in enumerate(new.partitions):
            if partition_id % ROWS_PER_STEP == 0:
                yield
            if old is not None and partition_id < len(old.partitions) and old.partitions[partition_id] is state:
                continue
            known = self.get(new.name, partition_id)
            if self.node_id not in state.replicas:
                if known is not None:
                    self._remove(known)
            elif known is None:
                self._add(new, partition_id)
            else:
                was, in_sync = (known.is_leader, known.leader_epoch), len(known.state.isr)
                known.decided(state)
                if known.is_leader:
                    self.isr_shrinks += len(state.isr) < in_sync
                    self.isr_expands += len(state.isr) > in_sync
                self._tell_place(known)
                if was != (known.is_leader, known.leader_epoch):
                    self._led(known, known.is_leader)
                    self._followed(known)

    def _add(self, topic: Topic, partition_id: int) -> None:
        state = topic.partitions[partition_id]
        name = TopicPartition(topic.name, partition_id)
        log_dir = self._found.get(name) or self._choose_dir(name, state.directory(self.node_id))
        partition = Partition(
            topic.name,
            partition_id,
            topic.topic_id,
            state,
            log_dir=log_dir,
            jitter=self._jitter.random(),
            traffic=self.traffic.of(topic.name),
            **self._shared,
        )
        self._counts[log_dir] += 1
        checkpoints = self._checkpoints.get(log_dir)
        if checkpoints is None:
            partition.is_offline = True
        else:
            partition.high_watermark = checkpoints.high_watermarks.get(name, 0)
            if name not in self._found or not checkpoints.was_clean:
                self._open_soon(partition, recovers=name in self._found)
        self._by_topic.setdefault(topic.name, {})[partition_id] = partition
        if partition.is_leader:
            self._led(partition, True)
        else:
            self._followed(partition)
        future = self._found_logs.futures.pop(name, None)
        if future is not None and not partition.is_offline:
            self.moves.resume(partition, *future)
        self._tell_place(partition)

    def _tell_place(self, partition: Partition) -> None:
        """Tell the controller where a replica is, unless it knows that, or knows where the replica is moving to."""
        known = partition.state.directory(self.node_id)
        move = self.moves.get(partition)
        if move is not None and known == self._directories.id_of(move.log_dir):
            return
        if not partition.is_offline and known != self._directories.id_of(partition.log_dir):
            self.assign(partition, partition.log_dir, lambda: None)

    def assign(self, partition: Partition, log_dir: str, accepted: Callable[[], None]) -> None:
        """Tell the controller in which log dir a replica is, or is about to be."""
        directory_id = self._directories.id_of(log_dir)
        if directory_id is None:
            accepted()  # a log dir without an id, formatted before they existed
        else:
            self._assign(partition, directory_id, accepted)

    def _choose_dir(self, name: TopicPartition, directory_id: Uuid | None) -> str:
        assigned = self._directories.chosen(name) or self._directories.assigned(directory_id)
        if assigned is not None:
            return assigned
        online = [path for path in self._checkpoints if self._directories.is_online(path)]
        free = [path for path in online if not self._directories.is_cordoned(path)] or online
        return min(free or self._directories.paths, key=lambda path: self._counts[path])

    def _remove(self, partition: Partition) -> None:
        """Remove a partition that was deleted, or reassigned to other brokers."""
        self.moves.cancel(partition)
        del self._by_topic[partition.topic][partition.partition_id]
        if not self._by_topic[partition.topic]:
            del self._by_topic[partition.topic]
            self.traffic.forget(partition.topic)
        self.unopened.discard(partition)
        self._counts[partition.log_dir] -= 1
        if partition.is_leader:
            self._led(partition, False)
        name = partition.name
        self._found.pop(name, None)
        checkpoints = self._checkpoints.get(partition.log_dir)
        if checkpoints is not None:
            checkpoints.forget(name)
        opened = partition.opened_log
        is_working = not partition.is_offline
        partition.fail()
        self._followed(partition)
        if is_working and not partition.is_opening:  # otherwise a thread has the files, and they are renamed after it
            self._set_aside(Path(partition.log_dir), name, opened)

    def _set_aside(self, log_dir: Path, name: TopicPartition, opened: Log | None) -> None:
        path = log_dir / directory_name(name)
        unique = random_uuid(self._random).hex()
        gone = log_dir / directory_name(name, DirectoryState.DELETED, unique)
        try:
            if opened is not None or is_directory(path):
                rename(path, gone)
                self.deleted.append((self._now_ms(), gone))
        except StorageError as error:
            self.fail_dir(str(log_dir), error)

    # --- opening and creating logs

    def _open_log(self, partition: Partition) -> Log:
        """Open a log at once, on the event loop."""
        if partition.name in self._opening:  # of a deleted topic that had the same name
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the log of {partition} is being opened")
        opened = self._opener(partition)()
        self._was_opened(partition)
        return opened

    def opening(self, partition: Partition) -> Awaitable[None]:
        """Open a log in a thread, if that has not begun yet. Return what to wait for, which never raises."""
        name = partition.name
        task = self._opening.get(name)
        if task is None or not partition.is_opening:
            partition.is_opening = True
            task = self._opening[name] = asyncio.get_running_loop().create_task(self._open_in_thread(partition, task))
        return asyncio.shield(task)

    async def _open_in_thread(self, partition: Partition, before: asyncio.Task[None] | None) -> None:
        """Open a log, after the one of a deleted topic that had the same name."""
        if before is not None:
            await before
        if self._openers is None:
            self._openers = ThreadPoolExecutor(self._max_openers(), "open-log")
        opened: Log | None = None
        try:
            if not partition.is_offline:
                run = asyncio.get_running_loop().run_in_executor
                opened = await run(self._openers, self._opener(partition))
                if not partition.is_offline:
                    partition.use(opened)
                    self._was_opened(partition)
        except StorageError as error:
            if not partition.is_offline:  # false if it was deleted meanwhile
                self._failed(partition, error)
        except Exception:
            _log.exception("could not open the log of %s", partition)
        finally:
            self._was_worked_on(partition, opened)

    def _was_worked_on(self, partition: Partition, log: Log | None) -> None:
        """Take a log back from a thread. If the partition was deleted or reassigned meanwhile, its files are set aside."""
        partition.is_opening = False
        if self._opening.get(partition.name) is asyncio.current_task():
            del self._opening[partition.name]
        self.unopened.discard(partition)
        if log is not None and partition.opened_log is not log:
            log.abandon()
            if self._directories.is_online(partition.log_dir):
                self._set_aside(Path(partition.log_dir), partition.name, log)

    def _max_openers(self) -> int:
        return self._number("num.recovery.threads.per.data.dir", 2) * max(1, len(self._directories.paths))

    async def _stop_opening(self) -> None:
        """Wait for the logs that threads are opening."""
        self.unopened.clear()
        while self._opening:
            await asyncio.wait(self._opening.values())
        if self._openers is not None:
            self._openers.shutdown()

    def _opener(self, partition: Partition) -> Callable[[], Log]:
        """Return a function that opens the log, in any thread."""
        name = partition.name
        directory = Path(partition.log_dir) / directory_name(name)
        leader_epoch = partition.leader_epoch if partition.is_leader else None
        open_log = self._opener_in(partition, partition.log_dir, directory, is_new=name not in self._found)

        def open_and_lead() -> Log:
            opened = open_log()
            if leader_epoch is not None and opened.epochs.latest_epoch != leader_epoch:
                opened.assign_epoch(leader_epoch, opened.log_end_offset)
            return opened

        return open_and_lead

    def _was_opened(self, partition: Partition) -> None:
        name = partition.name
        self._found[name] = partition.log_dir
        self._directories.forget_choice(name)
        self.unopened.discard(partition)

    def _opener_in(self, partition: Partition, log_dir: str, directory: Path, *, is_new: bool) -> Callable[[], Log]:
        name, topic_id, config = partition.name, partition.topic_id, partition.log_config
        checkpoints = self._checkpoints[log_dir]
        recovery_point = checkpoints.recovery_points.get(name, 0)
        log_start_offset = checkpoints.log_start_offsets.get(name, 0)

        def open_log() -> Log:
            opened = Log.open(
                directory,
                config,
                clock=self._now_ms,
                clean_shutdown=checkpoints.was_clean,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
            )
            if is_new or read_topic_id(directory) is None:
                write_topic_id(directory, topic_id, durable=not is_new)
            for recovery in opened.recoveries:
                if recovery.truncated_bytes:
                    what = "%s: truncated %d bytes at the end of the log: %s"
                    _log.warning(what, name, recovery.truncated_bytes, recovery.reason)
            for fault in opened.faults:
                _log.warning("%s: %s", name, fault)
            checkpoints.warn_of_loss(name, opened.log_end_offset)
            return opened

        return open_log

    def _open_soon(self, partition: Partition, *, recovers: bool) -> None:
        self.unopened.add(partition, recovers=recovers)
        self.wants_creation()

    async def open_shorter(self) -> None:
        """Open the logs that end before the recovery point of a clean shutdown, or that cannot be read.

        Other logs are opened when they are first used. Opening reports what is wrong.
        """
        clean = [
            each for each in self if (found := self._checkpoints.get(each.log_dir)) is not None and found.was_clean
        ]
        for start in range(0, len(clean), CHECKED_AT_ONCE):
            some = [
                (each, Path(each.log_dir) / directory_name(each.name), recovery_point)
                for each in clean[start : start + CHECKED_AT_ONCE]
                if each.opened_log is None
                and not each.is_offline
                and self._found.get(each.name) == each.log_dir
                and (recovery_point := self._checkpoints[each.log_dir].recovery_points.get(each.name, 0))
            ]
            for partition in await asyncio.to_thread(shorter, some):
                if not partition.is_offline:  # false if it was deleted meanwhile
                    self._open_soon(partition, recovers=True)

    async def create_next(self) -> bool:
        """Create or recover one of the waiting logs. Return False if none is waiting."""
        partition = self.unopened.first()
        if partition is None:
            return False
        await partition.open()
        self.unopened.discard(partition)
        return True

    # --- moving

    def move(self, partition: Partition, log_dir: str) -> None:
        """Start to move a replica, unless it is there or already moving there. Raises StorageError.

        A move to another directory is cancelled first. No move starts while a log dir is offline, because that one may
        have the partition too.
        """
        under_way = self.moves.get(partition)
        if under_way is not None and under_way.log_dir != log_dir:
            self.moves.cancel(partition)
            under_way = None
        if under_way is not None or partition.log_dir == log_dir:
            return
        offline = [path for path in self._directories.paths if not self._directories.is_online(path)]
        if offline:
            raise StorageError(f"{partition} cannot be moved while {', '.join(offline)} is offline")
        _ = partition.log
        name = partition.name
        unique = random_uuid(self._random).hex()
        self._checkpoints[log_dir].forget(name)
        try:
            self.moves.begin(partition, log_dir, Path(log_dir) / directory_name(name, DirectoryState.FUTURE, unique))
        except StorageError as error:
            self.fail_dir(log_dir, error)
            raise
        self._directories.forget_choice(name)

    def open_future(self, partition: Partition, log_dir: str, directory: Path) -> Log:
        return self._opener_in(partition, log_dir, directory, is_new=False)()

    def discard_future(self, partition: Partition, log_dir: str, directory: Path) -> None:
        """Delete the future log of a cancelled move."""
        name = partition.name
        self._checkpoints[log_dir].forget(name)
        try:
            self._found_logs.rename_aside(directory, name, DirectoryState.DELETED)
        except StorageError as error:
            self.fail_dir(log_dir, error)

    def moved(self, partition: Partition, future: Log, log_dir: str) -> None:
        """Replace the current log by the future log, which already has the current one's directory name."""
        old_dir, name = partition.log_dir, partition.name
        old = partition.swap_log(future, log_dir)
        assert old is not None
        self._counts[old_dir] -= 1
        self._counts[log_dir] += 1
        self._found[name] = log_dir
        self._checkpoints[old_dir].forget(name)
        self._checkpoints[log_dir].take(name, partition, future)
        gone = Path(old_dir) / directory_name(name, DirectoryState.DELETED, random_uuid(self._random).hex())
        try:
            old.rename(gone)
            self.deleted.append((self._now_ms(), gone))
        except StorageError as error:
            self.fail_dir(old_dir, error)
        # Ongoing reads and flushes of the old log finish before it is closed.
        self._left.add(old)
        asyncio.get_running_loop().call_later(LET_GO_S, self._let_go, old)
        _log.info("moved %s to %s", name, log_dir)
        partition.wake_all()

    def _let_go(self, old: Log) -> None:
        self._left.discard(old)
        old.abandon()

    def _rate(self, name: str) -> int:
        """Return a limit that exists only as a dynamic config."""
        config = self._config()
        text = None if config is None else config.given.get(name)
        return MAX_INT64 if text is None else int(text)

    # --- replicas on other brokers

    def _broker(self, broker_id: int) -> Broker | None:
        return None if self._image is None else self._image.brokers.get(broker_id)

    def _max_lag_ms(self) -> int:
        return self._number("replica.lag.time.max.ms", DEFAULT_MAX_LAG_MS)

    def _number(self, name: str, default: int) -> int:
        config = self._config()
        return default if config is None else config.get_int(name)

    async def truncate(self, partition: Partition, change: Callable[[Log], object]) -> None:
        """Shorten the log of a follower in a thread. Meanwhile whoever needs the log waits, as while it is opened."""
        log = partition.swap_log(None, partition.log_dir)
        if log is None:
            return
        partition.is_opening = True
        task = asyncio.get_running_loop().create_task(self._truncate(partition, log, change))
        self._opening[partition.name] = task
        await asyncio.shield(task)

    async def _truncate(self, partition: Partition, log: Log, change: Callable[[Log], object]) -> None:
        try:
            await asyncio.to_thread(change, log)
            if not partition.is_offline:
                partition.use(log)
        except StorageError as error:
            if not partition.is_offline:  # false if it was deleted meanwhile
                self._failed(partition, error)
        finally:
            self._was_worked_on(partition, log)

    # --- flushing and disk failures

    async def flush(self, partition: Partition, up_to_offset: int | None = None) -> None:
        """Flush a log in a thread. On a disk error its dir goes offline, and KAFKA_STORAGE_ERROR is raised."""
        opened = None
        while opened is not partition.opened_log and not partition.is_offline:  # the log may be moved meanwhile
            opened = partition.opened_log
            assert opened is not None
            try:
                await asyncio.to_thread(opened.flush, up_to_offset)
            except StorageError as error:
                if opened is partition.opened_log and not partition.is_offline:  # false if it was deleted meanwhile
                    self._failed(partition, error)
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error
        if not partition.is_offline:
            partition.flushed()

    def _flush_soon(self, partition: Partition, up_to_offset: int) -> None:
        self._spawn(self.flush(partition, up_to_offset))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._flushed)

    def _flushed(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieve the exception; it was logged when the log dir went offline

    def _failed(self, partition: Partition, error: StorageError) -> None:
        self.fail_dir(partition.log_dir, error)

    def fail_dir(self, path: str, error: StorageError) -> None:
        """Take a log dir and all its partitions offline, until the node restarts."""
        self._directories.fail(path, error)
        self.moves.dir_failed(path)
        for partition in self:
            if partition.log_dir == path and not partition.is_offline:
                was_leader = partition.is_leader
                partition.fail()
                self._followed(partition)
                if was_leader:
                    self._led(partition, False)
        self._told_offline()

    # --- checkpoints and shutdown

    async def write_checkpoints(self) -> None:
        """Write the changed checkpoints of every log dir durably. A dir that fails goes offline."""
        for path, checkpoints in self._checkpoints.items():
            if self._directories.is_online(path):
                await in_slices(self._take_checkpoints(path, checkpoints))
                for move in self.moves:
                    if move.log_dir == path and move.log is not None:
                        name = move.partition.name
                        checkpoints.take(name, move.partition, move.log)
                try:
                    await asyncio.to_thread(checkpoints.write)
                except StorageError as error:
                    self.fail_dir(path, error)

    def _take_checkpoints(self, path: str, checkpoints: LogDirCheckpoints) -> Slices[None]:
        for partition in list(self):
            yield
            if partition.log_dir == path and partition.opened_log is not None and not partition.is_offline:
                checkpoints.take(partition.name, partition, partition.opened_log)

    async def stop(self, broker_epoch: int = -1) -> None:
        """Close every log and mark each log dir as cleanly shut down, unless a log in it was never recovered."""
        unrecovered = set(self.unopened)
        await self._stop_opening()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for old in tuple(self._left):
            self._let_go(old)
        for path in self._checkpoints:
            if not self._directories.is_online(path):
                continue
            logs = [each.opened_log for each in self if each.log_dir == path]
            logs += [each.log for each in self.moves if each.log_dir == path]
            try:
                await close_all([each for each in logs if each is not None])
            except StorageError as error:
                self.fail_dir(path, error)
        await self.write_checkpoints()
        for path, checkpoints in self._checkpoints.items():
            unseen = not checkpoints.was_clean and (
                not self._is_started
                or any(each.log_dir == path and each.opened_log is None for each in unrecovered)
                or any(move.log_dir == path and move.log is None for move in self.moves)
            )
            if self._directories.is_online(path) and not unseen:
                try:
                    write_clean_shutdown(Path(path), broker_epoch)
                except StorageError as error:
                    self.fail_dir(path, error)

    async def drop(self) -> None:
        """Close every file without writing, as if the process had died."""
        await self._stop_opening()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for old in tuple(self._left):
            self._let_go(old)
        for log in (*(each.opened_log for each in self), *(each.log for each in self.moves)):
            if log is not None:
                log.abandon()
