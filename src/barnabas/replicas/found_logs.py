"""The logs that are in the log dirs: those that a start finds, and what is set aside.

Its one rule: the image decides whose a directory is. One of a partition that the image does not assign to this broker is
renamed to a stray, as in Kafka, and never deleted here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from barnabas.metadata.image import MetadataImage
from barnabas.replicas.log_dir_checkpoints import LogDirCheckpoints
from barnabas.replicas.log_directories import LogDirectories
from barnabas.steps import ROWS_PER_STEP, Slices, stepwise
from barnabas.storage import StorageError, TopicPartition, read_topic_id
from barnabas.storage.files import fsync_directory, rename
from barnabas.storage.log_dirs import (
    CLEAN_SHUTDOWN_FILE,
    DirectoryState,
    PartitionDirectory,
    ScannedDir,
    delete_clean_shutdown,
    directory_name,
    scan_log_dir,
)
from barnabas.storage.offline import end_offset_of
from barnabas.wire import Uuid, random_uuid

_log = logging.getLogger(__name__)


class FoundLogs:
    """Where the log of each partition is, and future logs whose moves go on.

    `checkpoints` has those of each log dir that could be read. `deleted` has the directories to delete, with the time when
    each was renamed; `Replicas` adds to all of them.
    """

    def __init__(self, node_id: int, directories: LogDirectories, random: Random, now_ms: Callable[[], int]) -> None:
        self._node_id = node_id
        self._directories = directories
        self._random = random
        self._now_ms = now_ms
        self.log_dirs: dict[TopicPartition, str] = {}
        self.futures: dict[TopicPartition, tuple[str, Path]] = {}
        self.checkpoints: dict[str, LogDirCheckpoints] = {}
        self.deleted: list[tuple[int, Path]] = []

    def find(self, image: MetadataImage, scanned: Mapping[str, ScannedDir | StorageError] | None) -> Slices[None]:
        """Look at all log dirs that are online. One that cannot be read goes offline."""
        for path in self._directories.paths:
            if self._directories.is_online(path):
                try:
                    found = scan_log_dir(Path(path)) if scanned is None else scanned[path]
                    if isinstance(found, StorageError):
                        raise found
                    yield from self._look_at(path, found, image)
                except StorageError as error:
                    self._directories.fail(path, error)
        yield from self._settle_futures(image)
        yield from self._drop_lost(image)

    def _look_at(self, path: str, found: ScannedDir, image: MetadataImage) -> Slices[None]:
        if found.was_clean and found.clean_shutdown_epoch is None:
            what = "%s has no broker epoch: the shutdown counts as clean for logs, but not for the controller"
            _log.warning(what, Path(path) / CLEAN_SHUTDOWN_FILE)
        self.checkpoints[path] = LogDirCheckpoints(Path(path), found)
        for number, (directory, topic_id) in enumerate(found.partitions, 1):
            if number % ROWS_PER_STEP == 0:
                yield
            name = directory.partition
            if directory.state is DirectoryState.DELETED:
                self.deleted.append((0, directory.path))
            elif not self._is_ours(name, topic_id, image):
                _log.warning("%s is not a replica of this broker", directory.path)
                self.rename_aside(directory.path, name, DirectoryState.STRAY)
            elif directory.state is DirectoryState.FUTURE:
                if name in self.futures:  # left over from a move that another one replaced
                    self.rename_aside(directory.path, name, DirectoryState.DELETED)
                else:
                    self.futures[name] = path, directory.path
            elif self.log_dirs.setdefault(name, path) != path:
                self._choose_one(directory, Path(self.log_dirs[name]) / directory_name(name), image)
        delete_clean_shutdown(Path(path))

    def _drop_lost(self, image: MetadataImage) -> Slices[None]:
        """Drop the checkpoints of partitions that are in no log dir, with a warning if they had records."""
        for path, checkpoints in self.checkpoints.items():
            here: set[TopicPartition] = set()
            for some in stepwise(self.log_dirs.items()):
                here.update(name for name, log_dir in some if log_dir == path)
                yield
            here |= {name for name, (log_dir, _) in self.futures.items() if log_dir == path}
            for some_names in stepwise(checkpoints.recovery_points):
                for name in some_names:
                    if name not in self.log_dirs and name not in here and self._is_ours(name, None, image):
                        checkpoints.warn_of_loss(name, 0)
                yield
            yield from checkpoints.keep_only(here)

    def _choose_one(self, found: PartitionDirectory, other: Path, image: MetadataImage) -> None:
        """Keep one of two directories of a partition, left by a crash between the two renames that end a move.

        Both then have all records. If one of the log dirs failed, the other log may have continued: the longer one is
        kept.
        """
        name = found.partition
        ids = {read_topic_id(each) for each in (found.path, other)}
        if len(ids) != 1 or None in ids:
            raise StorageError(
                f"{name} is in both {other.parent} and {found.path.parent}: remove one of the directories"
            )
        ends = {each: end_offset_of(each) for each in (found.path, other)}
        kept = max(ends, key=lambda each: (ends[each], self._is_assigned(name, str(each.parent), image)))
        gone = other if kept == found.path else found.path
        is_same = ends[kept] == ends[gone]
        _log.warning("%s was being moved: using its log in %s, renaming %s", name, kept.parent, gone)
        self.log_dirs[name] = str(kept.parent)
        self.rename_aside(gone, name, DirectoryState.DELETED if is_same else DirectoryState.STRAY)
        self.checkpoints[str(gone.parent)].forget(name)

    def _settle_futures(self, image: MetadataImage) -> Slices[None]:
        """Decide about the future logs found at startup. Those of moves to resume stay in `_futures`."""
        is_complete = all(map(self._directories.is_online, self._directories.paths))
        for name, (path, directory) in list(self.futures.items()):
            yield
            current = self.log_dirs.get(name)
            try:
                if current == path:
                    del self.futures[name]
                    self.rename_aside(directory, name, DirectoryState.DELETED)
                elif current is None and self._is_assigned(name, path, image):
                    # The controller has accepted the move, and the current log is gone.
                    _log.warning("%s was being moved: its log is now in %s", name, path)
                    del self.futures[name]
                    self.log_dirs[name] = path
                    rename(directory, directory.parent / directory_name(name))
                    fsync_directory(directory.parent)
                elif current is None and is_complete:
                    _log.warning("%s is an incomplete copy of %s, whose original is gone", directory, name)
                    del self.futures[name]
                    self.rename_aside(directory, name, DirectoryState.STRAY)
                    self.checkpoints[path].forget(name)
                elif current is None:
                    del self.futures[name]  # the original is in a log dir that is offline
            except StorageError as error:
                self._directories.fail(path, error)

    def rename_aside(self, path: Path, name: TopicPartition, state: DirectoryState) -> None:
        """Rename an unused directory to one that is marked for deletion, or to a stray."""
        aside = path.parent / directory_name(name, state, random_uuid(self._random).hex())
        rename(path, aside)
        fsync_directory(path.parent)
        if state is DirectoryState.DELETED:
            self.deleted.append((self._now_ms(), aside))
        else:
            _log.warning("renamed %s to %s", path, aside.name)

    def _is_ours(self, name: TopicPartition, topic_id: Uuid | None, image: MetadataImage) -> bool:
        topic = image.topics.get(name.topic)
        if topic is None or not 0 <= name.partition < len(topic.partitions):
            return False
        is_same = topic_id is None or topic_id == topic.topic_id
        return is_same and self._node_id in topic.partitions[name.partition].replicas

    def _is_assigned(self, name: TopicPartition, log_dir: str, image: MetadataImage) -> bool:
        """Whether the metadata has this replica in that log dir."""
        topic, directory_id = image.topics.get(name.topic), self._directories.id_of(log_dir)
        return topic is not None and topic.partitions[name.partition].directory(self._node_id) == directory_id
