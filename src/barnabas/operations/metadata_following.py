"""The metadata of a running cluster as its log grows: the image, the last records, and the last changes in words.

Its one rule: a follower reads each record once, and shows no secret. What it keeps of the past is bounded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from barnabas.metadata.changed_fields import is_routine
from barnabas.metadata.changes import Change, ConfigChanged, changes
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import MetadataImage, Provenance
from barnabas.metadata.loader import MetadataBatch, MetadataLoader
from barnabas.metadata.masking import MASK, SECRET_TYPES, masked
from barnabas.offline.metadata import Step, steps
from barnabas.operations.configs.history import is_hidden
from barnabas.operations.errors import OperationError
from barnabas.operations.metadata_image import begin_of_log, last_contained_log_timestamp, records_of
from barnabas.operations.quorum.controller_client import controllers_of
from barnabas.wire import MalformedError, decode_record
from barnabas.wire.errors import UnsupportedVersionError
from barnabas.wire.json_text import json_text

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.metadata_log import LogBatch, LogSnapshot

MAX_RECORDS = 500
MAX_CHANGES = 2_000
HIDDEN = "[hidden]"
_EMPTY = "NoOpRecord"
"""Active controllers write two in a second, so that the log ends at a new offset. They would fill the list."""


class LoggedRecord(NamedTuple):
    """A record of the metadata log, as JSON without secrets."""

    offset: int
    timestamp_ms: int
    type: str
    version: int
    text: str


class LoggedChange(NamedTuple):
    """A change in words, with the place of its record and of its batch, which is applied as a whole. Routine changes follow
    every restart."""

    offset: int
    batch_offset: int
    epoch: int
    timestamp_ms: int
    kind: str
    sentence: str
    is_routine: bool


class Followed(NamedTuple):
    """The metadata up to an offset, which is exclusive."""

    image: MetadataImage
    end_offset: int
    records: list[LoggedRecord]
    changes: list[LoggedChange]
    first_offset: int
    """The offset of the first record that was read. Earlier ones are merged into a snapshot."""


class MetadataFollower:
    """Follows the metadata log of one cluster."""

    def __init__(self) -> None:
        self._updating = asyncio.Lock()
        self._begin()

    def _begin(self) -> None:
        self._loader = MetadataLoader()
        self._next = self._first = 0
        self._records: deque[LoggedRecord] = deque(maxlen=MAX_RECORDS)
        self._changes: deque[LoggedChange] = deque(maxlen=MAX_CHANGES)

    async def update(self, cluster: Cluster) -> Followed:
        """Read what is new. Raises OperationError, also if the log was truncated; the next call begins anew."""
        async with self._updating:
            return await self._update(cluster)

    async def _update(self, cluster: Cluster) -> Followed:
        from barnabas.client.metadata_log import LogSnapshot, read_metadata_log

        try:
            async with controllers_of(cluster) as controllers:
                self._next = self._next or await begin_of_log(controllers)
                async for part in read_metadata_log(controllers, self._next):
                    if isinstance(part, LogSnapshot):
                        self._load(part)
                    else:
                        self._add(part)
        except (ReplayError, MalformedError, UnsupportedVersionError) as error:
            self._begin()
            raise OperationError(str(error), resource=str(cluster.state.cluster_id)) from error
        except BaseException:
            self._begin()
            raise
        return Followed(
            self._loader.image, self._next, list(self._records)[::-1], list(self._changes)[::-1], self._first
        )

    def _load(self, snapshot: LogSnapshot) -> None:
        self._begin()
        records = [record for batch in snapshot.batches for record in records_of(batch)]
        at = Provenance(snapshot.end_offset - 1, snapshot.epoch, last_contained_log_timestamp(snapshot))
        self._loader.load_snapshot(records, at)
        self._next = self._first = snapshot.end_offset

    def _add(self, batch: LogBatch) -> None:
        timestamp_ms = batch.header.max_timestamp
        if not batch.is_control:
            for at, record in enumerate(batch.records):
                logged = logged_record(batch.base_offset + at, timestamp_ms, record.value or b"")
                if logged.type != _EMPTY:
                    self._records.append(logged)
        whole = MetadataBatch(batch.base_offset, batch.last_offset, batch.epoch, timestamp_ms, records_of(batch))
        for step in steps(self._loader, whole, by_record=True):
            self._changes += logged_changes(step)
        self._next = batch.last_offset + 1


def logged_record(offset: int, timestamp_ms: int, value: bytes) -> LoggedRecord:
    """Decode a record, without its secrets. Pure."""
    try:
        record, version = decode_record(value)
        name = type(record).__name__
        if name in SECRET_TYPES:
            safe = masked(value)
            if safe is None:
                return LoggedRecord(offset, timestamp_ms, name, version, MASK)
            record, version = decode_record(safe)
        return LoggedRecord(offset, timestamp_ms, name, version, json_text(record, version))
    except (MalformedError, UnsupportedVersionError) as error:
        return LoggedRecord(offset, timestamp_ms, "unknown", -1, str(error))


def logged_changes(step: Step) -> list[LoggedChange]:
    """Return the changes of one step in words. Pure."""
    published = step.published
    at = published.image.provenance
    return [
        LoggedChange(
            at.last_contained_offset,
            step.offset,
            at.last_contained_epoch,
            at.last_contained_timestamp_ms,
            type(each).__name__,
            str(without_secrets(each)),
            is_routine(each),
        )
        for each in changes(published.before, published.image, published.touched)
    ]


def without_secrets(change: Change) -> Change:
    """Return the change with hidden values in place of secrets."""
    if isinstance(change, ConfigChanged) and is_hidden(change.resource.type, change.name):
        hidden = (None if value is None else HIDDEN for value in (change.before, change.after))
        return ConfigChanged(change.resource, change.name, *hidden)
    return change
