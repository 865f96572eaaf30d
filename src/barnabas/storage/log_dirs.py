"""Log dirs: their owner (`meta.properties`), their lock (`.lock`), the clean shutdown file, and the partitions in them.

Its one rule: a directory of another node or cluster is never opened, and one with data but without `meta.properties` is
never formatted; the error says what to do. Files are read as written by Kafka or by hand, and written as Kafka does. The
content of a partition's log is handled by `log`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import struct
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Final, NamedTuple, NoReturn, Self

from barnabas.config import properties
from barnabas.config.internal_topics import CLUSTER_METADATA_TOPIC
from barnabas.config.values import ConfigError
from barnabas.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
    read_offset_checkpoint,
)
from barnabas.storage.errors import StorageError
from barnabas.storage.files import (
    Entry,
    delete_file,
    entries_of,
    exists,
    fsync_directory,
    lock_file,
    read_whole,
    unlock_file,
    write_atomically,
)
from barnabas.storage.partition_metadata import read_topic_id
from barnabas.wire.primitives import Uuid

META_PROPERTIES = "meta.properties"
LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
CLUSTER_METADATA = TopicPartition(CLUSTER_METADATA_TOPIC, 0)
MAX_DIRECTORY_NAME = 255

_CLEAN_SHUTDOWN_VERSION = 0
_RESERVED_DIRECTORY_IDS = 100
_MIRROR = "barnabas.mirror"
_MAX_SHOWN = 3
_REMOTE_INDEX_CACHE = "remote-log-index-cache"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class MetaProperties(NamedTuple):
    """The cluster and node that a log dir belongs to. Version 0, from before KRaft, may lack some fields."""

    cluster_id: str | None
    node_id: int | None
    directory_id: Uuid | None = None
    version: int = 1
    is_mirror: bool = False
    """The dir has a copy of a cluster's metadata log, of which all is committed. It belongs to no node."""


class FormattedDirs(NamedTuple):
    """The log dirs of one node: those with a `meta.properties`, and those that are new."""

    formatted: dict[Path, MetaProperties]
    empty: tuple[Path, ...]


class DirectoryState(Enum):
    """The state of a partition's directory, as the suffix of its name."""

    CURRENT = ""
    FUTURE = "-future"  # replaces the current one when it has caught up
    DELETED = "-delete"
    STRAY = "-stray"  # of a partition that the cluster does not know


class PartitionDirectory(NamedTuple):
    """The directory of a partition's log."""

    path: Path
    partition: TopicPartition
    state: DirectoryState = DirectoryState.CURRENT


class Listing(NamedTuple):
    """The directories in a log dir: those of partitions, and all others."""

    partitions: tuple[PartitionDirectory, ...]
    strangers: tuple[Path, ...]


# Owner


def read_meta_properties(log_dir: Path) -> MetaProperties | None:
    """Return the content of `meta.properties`, or None if the directory is not formatted."""
    path = log_dir / META_PROPERTIES
    content = read_whole(path)
    if content is None:
        return None
    try:
        found = properties.loads(content.decode("latin-1"))
        version = int(found.get("version", "0").strip())
        if version not in (0, 1):
            raise ValueError(f"version {version} is not supported")
        node_id = found.get("node.id" if version else "broker.id", found.get("node.id"))
        directory_id = found.get("directory.id")
        meta = MetaProperties(
            cluster_id=found.get("cluster.id"),
            node_id=None if node_id is None else int(node_id),
            directory_id=None if directory_id is None else Uuid.parse(directory_id.strip()),
            version=version,
            is_mirror=found.get(_MIRROR) == "true",
        )
        if version and (meta.cluster_id is None or meta.node_id is None):
            raise ValueError("cluster.id or node.id is missing")
    except (ValueError, ConfigError) as error:
        raise StorageError(f"{path} cannot be read: {error}; compare it with that of another log dir") from error
    return meta


def write_meta_properties(log_dir: Path, meta: MetaProperties, now_ms: int) -> None:
    """Format a directory. The lines are in Kafka's order."""
    now = time.gmtime(now_ms // 1000)
    clock = f"{now.tm_hour:02d}:{now.tm_min:02d}:{now.tm_sec:02d}"
    date = f"{_DAYS[now.tm_wday]} {_MONTHS[now.tm_mon - 1]} {now.tm_mday:02d} {clock} UTC {now.tm_year}"
    values = {
        "node.id" if meta.version else "broker.id": meta.node_id,
        "directory.id": meta.directory_id,
        "version": meta.version,
        "cluster.id": meta.cluster_id,
        _MIRROR: "true" if meta.is_mirror else None,
    }
    items = [(name, str(value)) for name, value in values.items() if value is not None]
    write_atomically(log_dir / META_PROPERTIES, properties.dumps(items, f"\n{date}").encode("ascii"))


def check_log_dirs(
    log_dirs: Iterable[Path], cluster_id: str | None = None, node_id: int | None = None
) -> FormattedDirs:
    """Read `meta.properties` of all log dirs of a node.

    Raises StorageError unless they agree and match the arguments.
    """
    formatted: dict[Path, MetaProperties] = {}
    empty = []
    seen: dict[Uuid, Path] = {}
    for log_dir in log_dirs:
        meta = read_meta_properties(log_dir)
        if meta is None:
            empty.append(log_dir)
            continue
        path = log_dir / META_PROPERTIES
        cluster_id = cluster_id if cluster_id is not None else meta.cluster_id
        node_id = node_id if node_id is not None else meta.node_id
        if meta.cluster_id not in (None, cluster_id):
            raise StorageError(
                f"{path} belongs to cluster {meta.cluster_id}, not {cluster_id}: "
                "remove the directory from log.dirs, or empty it if its data is not needed"
            )
        if meta.node_id not in (None, node_id):
            raise StorageError(
                f"{path} belongs to node {meta.node_id}, not node {node_id}: set node.id to {meta.node_id}, "
                "or give the new node a directory of its own"
            )
        if meta.directory_id is not None:
            if is_reserved_directory_id(meta.directory_id):
                raise StorageError(
                    f"{path} has the directory.id {meta.directory_id}, which is reserved: format the directory again"
                )
            if meta.directory_id in seen:
                raise StorageError(
                    f"{path} has the same directory.id as {seen[meta.directory_id]}: one is a copy of the other, "
                    "so remove the copy from log.dirs"
                )
            seen[meta.directory_id] = log_dir
        formatted[log_dir] = meta
    return FormattedDirs(formatted, tuple(empty))


def refuse_to_format(log_dir: Path) -> None:
    """Raise StorageError if a directory without `meta.properties` has files of Kafka. A missing directory has none.

    Files of others, such as `lost+found`, do not matter.
    """
    found = _files_of_kafka(log_dir)
    if found:
        more = f" and {len(found) - _MAX_SHOWN} more" if len(found) > _MAX_SHOWN else ""
        raise StorageError(
            f"{log_dir} has no {META_PROPERTIES}, but it has {', '.join(found[:_MAX_SHOWN])}{more}, so it is not formatted: "
            f"restore {META_PROPERTIES} from a backup, or format an empty directory"
        )


def _files_of_kafka(log_dir: Path) -> list[str]:
    """Return the names of the files and directories in a log dir that Kafka writes, except `.lock`."""
    return [entry.name for entry in entries_of(log_dir) if _is_of_kafka(entry)] if exists(log_dir) else []


def _is_of_kafka(entry: Entry) -> bool:
    if entry.name in (META_PROPERTIES, CLEAN_SHUTDOWN_FILE) or entry.name.endswith((".checkpoint", "-checkpoint")):
        return True
    return entry.is_directory and parse_directory_name(entry.name) is not None


def require_owner(log_dir: Path, meta: MetaProperties) -> None:
    """Raise StorageError unless `meta.properties` names the cluster and the node, as it does not if it was emptied."""
    if meta.is_mirror:
        raise StorageError(
            f"{log_dir} is a mirror of the metadata of cluster {meta.cluster_id}, not the log dir of a node: "
            f"read it with serve --read-only {log_dir}, or choose another directory"
        )
    missing = [name for name, value in (("cluster.id", meta.cluster_id), ("node.id", meta.node_id)) if value is None]
    if missing:
        raise StorageError(
            f"{log_dir / META_PROPERTIES} has no {' and no '.join(missing)}: restore it from a backup, "
            "or format an empty directory"
        )


def check_owner(log_dirs: Sequence[Path], node_id: int) -> FormattedDirs:
    """Read `meta.properties` of all log dirs of a node.

    Raises StorageError unless all belong to this node, or none has files of Kafka.
    """
    found = check_log_dirs(log_dirs, node_id=node_id)
    for log_dir, meta in found.formatted.items():
        require_owner(log_dir, meta)
    for log_dir in found.empty:
        refuse_to_format(log_dir)
    if found.formatted and found.empty:
        raise StorageError(
            f"{', '.join(map(str, found.empty))} was not formatted, but other log dirs were: "
            "format it, or take it out of log.dirs"
        )
    return found


def is_reserved_directory_id(directory_id: Uuid) -> bool:
    """Whether the id is one of the first hundred, which mean unassigned, lost, migrating or are reserved."""
    return int.from_bytes(directory_id) < _RESERVED_DIRECTORY_IDS


# Lock


class HeldLocks:
    """The locks of one process. The system's lock is one of processes, so a second use in this one is found here."""

    def __init__(self) -> None:
        self.guard = Lock()
        self.paths: set[Path] = set()


THIS_PROCESS: Final = HeldLocks()


class DirectoryLock:
    """An exclusive lock on a log dir, against other processes (Kafka too) and against a second use in this one."""

    def __init__(self, log_dir: Path, held: HeldLocks = THIS_PROCESS) -> None:
        self._held = held
        self._key = log_dir.resolve()
        path = log_dir / LOCK_FILE
        busy = f"{log_dir} is in use: {path} is held by another process. Stop it, or use another directory in log.dirs"
        with held.guard:
            descriptor = None if self._key in held.paths else lock_file(path)
            if descriptor is None:
                raise StorageError(busy)
            self._descriptor = descriptor
            held.paths.add(self._key)

    def release(self) -> None:
        with self._held.guard:
            if self._key in self._held.paths:
                self._held.paths.discard(self._key)
                unlock_file(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


_FLOCK = struct.Struct("hhqqi4x")  # of Linux: type, whence, start, length, process


def lock_holder(log_dir: Path) -> int | None:
    """Return the process that has the lock of a log dir, or None. Nothing is written or locked.

    Only Linux can tell: elsewhere the answer is None.
    """
    with THIS_PROCESS.guard:
        if log_dir.resolve() in THIS_PROCESS.paths:
            return os.getpid()
        if not sys.platform.startswith("linux"):
            return None
        try:
            descriptor = os.open(log_dir / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, *_, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
            return None if kind == fcntl.F_UNLCK else process
        except OSError:
            return None
        finally:
            os.close(descriptor)


# Clean shutdown


def had_clean_shutdown(log_dir: Path) -> bool:
    """Whether the last shutdown of this directory's logs was clean."""
    return exists(log_dir / CLEAN_SHUTDOWN_FILE)


def read_clean_shutdown_epoch(log_dir: Path) -> int | None:
    """Return the broker epoch of the last clean shutdown, or None if it was unclean or has no epoch."""
    content = read_whole(log_dir / CLEAN_SHUTDOWN_FILE)
    with suppress(ValueError, TypeError, KeyError):
        return int(json.loads(content or b"")["brokerEpoch"])
    return None


def write_clean_shutdown(log_dir: Path, broker_epoch: int) -> None:
    """Mark the shutdown as clean. Called last, after all logs are closed."""
    content = json.dumps({"version": _CLEAN_SHUTDOWN_VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    write_atomically(log_dir / CLEAN_SHUTDOWN_FILE, content.encode())


def delete_clean_shutdown(log_dir: Path) -> None:
    """Remove the mark of a clean shutdown, before anything is written to the logs."""
    delete_file(log_dir / CLEAN_SHUTDOWN_FILE)
    fsync_directory(log_dir)


# Partitions


def list_partitions(log_dir: Path) -> Listing:
    """List the partitions in a log dir, including the metadata log. Directories with other names are strangers."""
    partitions = []
    strangers = []
    for name, is_directory in entries_of(log_dir):
        if not is_directory or name == _REMOTE_INDEX_CACHE:
            continue
        found = parse_directory_name(name)
        if found is None:
            strangers.append(log_dir / name)
        else:
            partitions.append(PartitionDirectory(log_dir / name, *found))
    return Listing(tuple(partitions), tuple(strangers))


def parse_directory_name(name: str) -> tuple[TopicPartition, DirectoryState] | None:
    """Parse `topic-partition` or `topic-partition.unique-state`. The topic may contain dashes, dots and digits."""
    match = re.fullmatch(r"(\S+-\S+)\.\S+(-future|-delete|-stray)", name)
    state = DirectoryState(match[2]) if match else DirectoryState.CURRENT
    if match:
        name = name[: name.rindex(".")]
    topic, dash, partition = name.rpartition("-")
    if not topic or not dash or not re.fullmatch(r"[0-9]{1,10}", partition):
        return None
    return TopicPartition(topic, int(partition)), state


def directory_name(partition: TopicPartition, state: DirectoryState = DirectoryState.CURRENT, unique: str = "") -> str:
    """Return the directory name of a partition. A state other than CURRENT needs a unique part."""
    if state is DirectoryState.CURRENT:
        return str(partition)
    suffix = f"-{partition.partition}.{unique}{state.value}"
    topic = partition.topic
    if state is not DirectoryState.FUTURE:  # the topic must stay recognizable
        topic = topic[: MAX_DIRECTORY_NAME - len(suffix)]
    return topic + suffix


# The content of a log dir


class ScannedDir(NamedTuple):
    """The small files of a log dir and its partitions, as found before anything is changed."""

    was_clean: bool
    clean_shutdown_epoch: int | None
    recovery_points: dict[TopicPartition, int]
    log_start_offsets: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    partitions: tuple[tuple[PartitionDirectory, Uuid | None], ...]  # with the topic ids of those that are used


def _raise(error: StorageError) -> NoReturn:
    raise error


def scan_log_dir(log_dir: Path, damaged: Callable[[StorageError], None] = _raise) -> ScannedDir:
    """Read the checkpoints and topic ids of a log dir. `damaged` is called for each file that cannot be read."""

    def offsets(name: str) -> dict[TopicPartition, int]:
        try:
            return read_offset_checkpoint(log_dir / name)
        except StorageError as error:
            damaged(error)
            return {}

    def topic_id(directory: PartitionDirectory) -> Uuid | None:
        try:
            return None if directory.state is DirectoryState.DELETED else read_topic_id(directory.path)
        except StorageError as error:
            damaged(error)
            return None

    epoch = None
    try:
        epoch = read_clean_shutdown_epoch(log_dir)
    except StorageError as error:
        damaged(error)
    return ScannedDir(
        had_clean_shutdown(log_dir),
        epoch,
        offsets(RECOVERY_POINT_CHECKPOINT),
        offsets(LOG_START_OFFSET_CHECKPOINT),
        offsets(HIGH_WATERMARK_CHECKPOINT),
        tuple(
            (directory, topic_id(directory))
            for directory in list_partitions(log_dir).partitions
            if directory.partition != CLUSTER_METADATA and directory.state is not DirectoryState.STRAY
        ),
    )
