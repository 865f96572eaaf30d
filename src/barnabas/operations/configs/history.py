"""What was set when: the settings of resources as the metadata log tells of them, and how to get back to an earlier state.

Its one rule: the log is read and never written; a rollback is a list of changes that somebody else asks the cluster for. How
far back it goes depends on the log: what is older than its oldest snapshot is known only in sum, and has the offset of that.
Passwords of brokers are in the log; whoever shows an event hides them (`config_resources.is_hidden`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.terminal.failures import Failure, failures
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, Config, ConfigResource
from barnabas.config.resource_type import ConfigResourceType
from barnabas.metadata import configs as metadata_configs
from barnabas.metadata.changes import ConfigChanged, changes
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.loader import MetadataBatch, MetadataLoader, Published
from barnabas.offline.metadata import AsOf, OfflineMetadata, follow
from barnabas.storage.log_dirs import CLUSTER_METADATA, read_meta_properties
from barnabas.wire import MalformedError, Message, UnsupportedVersionError, decode_record

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.metadata_log import LogBatch


class ConfigEvent(NamedTuple):
    """A setting got another value with the batch that ends at this offset; None is not set."""

    offset: int
    timestamp_ms: int
    resource: ConfigResource
    name: str
    before: str | None
    after: str | None


class History(NamedTuple):
    """All events, the first image that is known, those at a moment and at the end, and what is wrong with the log."""

    events: list[ConfigEvent]
    first: MetadataImage
    then: MetadataImage
    last: MetadataImage
    problem: str | None = None


def log_directory(source: Path) -> Path:
    """The directory of the metadata log, given that or a log dir that has it. Raises Failure."""
    below = source / str(CLUSTER_METADATA)
    directory = below if below.is_dir() else source
    if not directory.is_dir() or not (any(directory.glob("*.log")) or any(directory.glob("*.checkpoint"))):
        advice = f"give {CLUSTER_METADATA} of a controller, or the log dir that has it"
        raise Failure("there is no metadata log", resource=str(source), advice=advice)
    return directory


def cluster_id_of(directory: Path) -> str | None:
    """The cluster whose log this is, where the log dir says so."""
    with failures(str(directory)):
        found = read_meta_properties(directory.parent)
    return None if found is None else found.cluster_id


def read_history(source: Path, as_of: AsOf) -> History:
    """From the files of a log. Raises Failure."""
    directory = log_directory(source)
    found, collected = OfflineMetadata(), _Collected(as_of)
    try:
        with failures(str(source)):
            for published in follow(directory, found):
                collected.add(published)
    except (ReplayError, MalformedError, UnsupportedVersionError) as error:
        raise Failure(str(error), resource=str(source)) from error
    return collected.history(found.problem)


async def read_live_history(cluster: Cluster, as_of: AsOf) -> History:
    """From the controllers of a quorum that runs."""
    collected = _Collected(as_of)
    async for published in _follow_live(cluster):
        collected.add(published)
    return collected.history()


async def _follow_live(cluster: Cluster) -> AsyncIterator[Published]:
    from barnabas.client.metadata_log import LogSnapshot, read_metadata_log
    from barnabas.operations.metadata_image import last_contained_log_timestamp

    loader = MetadataLoader()
    async for part in read_metadata_log(cluster):
        if isinstance(part, LogSnapshot):
            records = [record for batch in part.batches for record in _records(batch)]
            at = Provenance(part.end_offset - 1, part.epoch, last_contained_log_timestamp(part))
            yield loader.load_snapshot(records, at)
        else:
            header = part.header
            batch = MetadataBatch(part.base_offset, part.last_offset, part.epoch, header.max_timestamp, _records(part))
            for published in loader.load([batch]):
                yield published


def _records(batch: LogBatch) -> list[Message]:
    return [] if batch.is_control else [decode_record(record.value or b"").record for record in batch.records]


class _Collected:
    """Events and images on the way through a log."""

    def __init__(self, as_of: AsOf) -> None:
        self._as_of = as_of
        self._events: list[ConfigEvent] = []
        self._first: MetadataImage | None = None
        self._then = self._last = EMPTY_IMAGE

    def add(self, published: Published) -> None:
        self._events += events_of(published)
        self._last = published.image
        if self._first is None:
            self._first = published.image
        at = published.image.provenance
        if self._as_of.includes(at.last_contained_offset, at.last_contained_timestamp_ms):
            self._then = published.image

    def history(self, problem: str | None = None) -> History:
        return History(self._events, self._first or EMPTY_IMAGE, self._then, self._last, problem)


def events_of(published: Published) -> Iterator[ConfigEvent]:
    """The settings that one step of the log has changed."""
    touched = published.touched
    if touched is not None and not touched.get("configs"):
        return
    at = published.image.provenance
    for change in changes(published.before, published.image, touched):
        if isinstance(change, ConfigChanged) and change.resource.type in set(ConfigResourceType):
            resource = ConfigResource(ConfigResourceType(change.resource.type), change.resource.name)
            yield ConfigEvent(
                at.last_contained_offset,
                at.last_contained_timestamp_ms,
                resource,
                change.name,
                change.before,
                change.after,
            )


def rollback(
    resource: ConfigResource, then: Mapping[str, str], last: Mapping[str, str], present: Config
) -> list[AlterConfigOp]:
    """The changes by which a resource has again what was set `then`.

    What is set now is read from `present`, what a broker says; of passwords it says nothing, so there the `last` state of the
    log is compared.
    """
    own = {entry.name: entry for entry in present.values() if entry.source is resource.own_source}
    ops = []
    for name in sorted({*then, *own}):
        hidden = name in own and own[name].is_sensitive
        now = last.get(name) if hidden else own[name].value if name in own else None
        if name not in then:
            ops.append(AlterConfigOp(name, AlterConfigOpType.DELETE))
        elif name not in own or then[name] != now:
            ops.append(AlterConfigOp(name, AlterConfigOpType.SET, then[name]))
    return ops


def own_config(image: MetadataImage, resource: ConfigResource) -> Mapping[str, str]:
    """What an image has for a resource."""
    return image.configs.get(metadata_configs.ConfigResource(resource.type, resource.name)) or {}
