"""A mirror: a copy of a running cluster's metadata log on disk, which keeps what the cluster cleans up.

Its one rule: what it has is committed, on disk, and byte for byte what the leader has; nothing of it is ever removed. A
mirror is a log dir without a node, so everything that reads log dirs reads it: `metadata`, `dump`, `lake`, and
`serve --read-only`. No node starts on it.

If the cluster has cleaned up the records that come next, the mirror goes on with a snapshot of the cluster. What it had
before stands in a directory of its own, `until-OFFSET`, which is a mirror too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.operations.errors import OperationError
from barnabas.raft.log import OffsetAndEpoch
from barnabas.raft.stored_log import StoredLog, metadata_log_directory
from barnabas.storage.errors import StorageError
from barnabas.storage.files import exists, fsync_directory, rename
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_dirs import (
    META_PROPERTIES,
    DirectoryLock,
    MetaProperties,
    read_meta_properties,
    refuse_to_format,
    write_meta_properties,
)
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

FLUSH_BYTES = 4 * 1024 * 1024
RETRY_S = 1.0
TIMEOUT_MS = 10_000  # until a cluster that does not answer is a problem to tell


class Mirrored(NamedTuple):
    """The state of a mirror that has all that is committed, or that cannot reach the cluster now."""

    start_offset: int
    end_offset: int
    batches: int
    """Those that were added since it was opened."""
    set_aside: tuple[Path, ...]
    """What it had before it went on with a snapshot."""
    problem: str | None = None


class Mirror:
    """The mirror in one directory, locked until it is closed."""

    def __init__(self, directory: Path, cluster_id: str) -> None:
        """Open or create it. Raises OperationError if the directory has something else."""
        self.directory = directory
        self.batches = 0
        self.set_aside: list[Path] = []
        self._cluster_id = cluster_id
        self._unflushed_bytes = 0
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)  # the log has the keys of users
            self._lock = DirectoryLock(directory)
        except (StorageError, OSError) as error:
            raise OperationError(str(error), resource=str(directory)) from error
        try:
            self._require_mine()
            self._log = self._open()
        except (StorageError, OSError) as error:
            self._lock.release()
            raise OperationError(str(error), resource=str(directory)) from error
        except BaseException:
            self._lock.release()
            raise

    def _require_mine(self) -> None:
        found = read_meta_properties(self.directory)
        if found is None:
            refuse_to_format(self.directory)
            self._format(self.directory)
        elif not found.is_mirror:
            text = f"{self.directory / META_PROPERTIES} is that of a node: choose an empty directory for the mirror"
            raise OperationError(text, resource=str(self.directory))
        elif found.cluster_id != self._cluster_id:
            text = f"the mirror is of cluster {found.cluster_id}, not of {self._cluster_id}"
            raise OperationError(text, resource=str(self.directory))

    def _format(self, directory: Path) -> None:
        meta = MetaProperties(self._cluster_id, None, version=0, is_mirror=True)
        write_meta_properties(directory, meta, time.time_ns() // 1_000_000)

    def _open(self) -> StoredLog:
        return StoredLog(metadata_log_directory(self.directory), LogConfig(metadata=True), _now_ms)

    @property
    def start_offset(self) -> int:
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    def end_epoch(self) -> int | None:
        """Return the epoch of the last record, or None if that is not known."""
        epochs = self._log.epochs()
        if epochs:
            return epochs[-1].epoch
        snapshots = self._log.snapshot_ids()
        return snapshots[-1].epoch if snapshots else None

    def append(self, batch: bytes) -> None:
        """Add the next batch, and flush if much was added."""
        self._log.append(batch)
        self.batches += 1
        self._unflushed_bytes += len(batch)
        if self._unflushed_bytes >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._unflushed_bytes:
            self._log.flush()
            self._unflushed_bytes = 0

    def begin_with(self, snapshot_id: OffsetAndEpoch, data: bytes) -> None:
        """Go on after a snapshot. What is there is set aside first."""
        if self.end_offset > 0:
            self._set_aside()
        writer = self._log.create_snapshot(snapshot_id)
        writer.append(data)
        writer.freeze()
        writer.close()
        self._log.replace_by_snapshot(snapshot_id)

    def _set_aside(self) -> None:
        aside = self.directory / f"until-{self.end_offset}"
        self._log.close()
        if not exists(aside):
            aside.mkdir()
            self._format(aside)
        rename(metadata_log_directory(self.directory), metadata_log_directory(aside))
        fsync_directory(aside)
        fsync_directory(self.directory)
        self.set_aside.append(aside)
        self._log = self._open()

    def close(self) -> None:
        try:
            self.flush()
            self._log.close()
        finally:
            self._lock.release()

    def state(self, problem: str | None = None) -> Mirrored:
        return Mirrored(self.start_offset, self.end_offset, self.batches, tuple(self.set_aside), problem)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


async def mirror(cluster: Cluster, directory: Path, *, follow: bool) -> AsyncGenerator[Mirrored, None]:
    """Copy the metadata log of a cluster, given by its controllers; with `follow`, until it is cancelled.

    Yields whenever all that is committed is on disk, and when the cluster cannot be reached: it is asked again then, if
    `follow`. Raises OperationError.
    """
    found = await asyncio.to_thread(Mirror, directory, await _cluster_id(cluster))
    has_worked = False
    try:
        while True:
            try:
                async for state in _copied(cluster, found, follow=follow):
                    has_worked = True
                    yield state
                return
            except (OSError, KafkaError) as error:
                if isinstance(error, KafkaError) and error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    text = (
                        f"{error.message}, but the mirror ends at {found.end_offset}: the cluster has lost committed "
                        "records or was restored from a backup; choose another directory for its mirror"
                    )
                    raise OperationError(text, resource=str(directory)) from error
                # A controller that has just started may refuse what it serves as soon as it has loaded the metadata.
                is_final = isinstance(error, KafkaError) and not error.code.retriable and not has_worked
                if not follow or is_final:
                    raise
                yield found.state(str(error) or type(error).__name__)
                await asyncio.sleep(RETRY_S)
    except StorageError as error:
        raise OperationError(str(error), resource=str(directory)) from error
    finally:
        await asyncio.shield(asyncio.to_thread(found.close))


async def _copied(cluster: Cluster, found: Mirror, *, follow: bool) -> AsyncIterator[Mirrored]:
    from barnabas.client.metadata_log import CaughtUp, RawBatch, fetch_metadata_log

    parts = fetch_metadata_log(
        cluster, found.end_offset, epoch=found.end_epoch(), follow=follow, timeout_ms=TIMEOUT_MS if follow else None
    )
    async for part in parts:
        if isinstance(part, RawBatch):
            if part.header.base_offset >= found.end_offset:
                await asyncio.to_thread(found.append, part.data)
        elif isinstance(part, CaughtUp):
            await asyncio.to_thread(found.flush)
            yield found.state()
        else:
            await asyncio.to_thread(found.begin_with, OffsetAndEpoch(part.end_offset, part.epoch), part.data)


async def _cluster_id(cluster: Cluster) -> str:
    from barnabas.client.admin.admin import Admin

    found = (await Admin(cluster).describe_cluster()).cluster_id
    if found is None:
        raise OperationError("the cluster tells no cluster id, so its mirror could not be told from others")
    return found
