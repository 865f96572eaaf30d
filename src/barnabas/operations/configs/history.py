"""History of settings from the metadata log, and the changes that restore an earlier state.

Its one rule: the log is only read. A rollback is a list of changes; the caller sends them. The history begins with the oldest
snapshot: earlier changes are merged into it and carry its offset. Passwords of brokers are in the log: callers that show
events hide them (`is_hidden`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, Config, ConfigResource
from barnabas.config.resource_type import ConfigResourceType
from barnabas.metadata import configs as metadata_configs
from barnabas.metadata.as_of import EVERYTHING, AsOf
from barnabas.metadata.changes import ConfigChanged, changes
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.metadata.loader import Published
from barnabas.offline.metadata import OfflineMetadata, Step, follow
from barnabas.operations.errors import OperationError
from barnabas.operations.metadata_image import begin_of_log, follow_live, log_directory
from barnabas.operations.rollback import restored
from barnabas.storage.errors import StorageError
from barnabas.storage.log_dirs import read_meta_properties
from barnabas.wire import MalformedError, UnsupportedVersionError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster


class ConfigEvent(NamedTuple):
    """A change of one setting, with the offset of its record and the leader epoch. None means not set."""

    offset: int
    timestamp_ms: int
    resource: ConfigResource
    name: str
    before: str | None
    after: str | None
    epoch: int = -1


class History(NamedTuple):
    """All events; the first known image, the one at the chosen moment and the last; a problem with the log, if any."""

    events: list[ConfigEvent]
    first: MetadataImage
    then: MetadataImage
    last: MetadataImage
    problem: str | None = None


def cluster_id_of(directory: Path) -> str | None:
    """Return the id of the cluster that the log belongs to, or None if the log dir has none. Raises OperationError."""
    try:
        found = read_meta_properties(directory.parent)
    except StorageError as error:
        raise OperationError(str(error), resource=str(directory)) from error
    return None if found is None else found.cluster_id


def read_history(source: Path, as_of: AsOf) -> History:
    """Read the history from files: a log dir, or the directory of the metadata log. Raises OperationError."""
    directory = log_directory(source)
    found, collected = OfflineMetadata(), _Collected(as_of)
    try:
        for step in follow(directory, found):
            collected.add(step)
    except (ReplayError, MalformedError, UnsupportedVersionError, StorageError) as error:
        raise OperationError(str(error), resource=str(source)) from error
    return collected.history(found.problem)


async def read_live_history(cluster: Cluster, as_of: AsOf) -> History:
    """Read the history from the controllers of a running quorum, also of the time before its last snapshot."""
    collected = _Collected(as_of)
    # A moment before the snapshot needs the log before it, however long that is.
    offset = 1 if as_of != EVERYTHING else await begin_of_log(cluster)
    async for step in follow_live(cluster, offset=offset):
        collected.add(step)
    return collected.history()


class _Collected:
    """Events and images collected while a log is replayed."""

    def __init__(self, as_of: AsOf) -> None:
        self._as_of = as_of
        self._events: list[ConfigEvent] = []
        self._first: MetadataImage | None = None
        self._then = self._last = EMPTY_IMAGE

    def add(self, step: Step) -> None:
        published = step.published
        self._events += events_of(published)
        self._last = published.image
        if self._first is None:
            self._first = published.image
        if self._as_of.includes(step.offset, published.image.provenance.last_contained_timestamp_ms):
            self._then = published.image

    def history(self, problem: str | None = None) -> History:
        return History(self._events, self._first or EMPTY_IMAGE, self._then, self._last, problem)


async def config_history(cluster: Cluster, resource: ConfigResource, max_events: int) -> list[ConfigEvent]:
    """Return the last changes of a resource's settings, newest first, from the controllers that the brokers report."""
    from barnabas.operations.quorum.controller_client import controllers_of

    async with controllers_of(cluster) as controllers:
        found = await read_live_history(controllers, EVERYTHING)
    return [each for each in found.events if each.resource == resource][-max_events:][::-1]


def require_that_it_was_there(resource: ConfigResource, name: str, found: History) -> None:
    """Raise OperationError if the log does not reach back to that moment, or if the topic did not exist then."""
    if found.then.provenance.last_contained_offset < 0:
        first = found.first.provenance.last_contained_offset
        text = f"the metadata log does not reach back that far: it starts with the snapshot at offset {first}"
        raise OperationError(text, resource=name)
    if resource.type is ConfigResourceType.TOPIC and found.then.topics.get(resource.name) is None:
        raise OperationError("the topic did not exist then", resource=name)


def events_of(published: Published) -> Iterator[ConfigEvent]:
    """Yield the changes of settings in one step of the log."""
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
                at.last_contained_epoch,
            )


def rollback(
    resource: ConfigResource, then: Mapping[str, str], last: Mapping[str, str], present: Config
) -> list[AlterConfigOp]:
    """Compute the changes that restore the settings a resource had `then`.

    The current values are those of `present`, which a broker described. Brokers hide passwords, so for these the `last` state
    of the log is compared.
    """
    own = {entry.name: entry for entry in present.values() if entry.source is resource.own_source}
    now = {name: last.get(name) if entry.is_sensitive else entry.value for name, entry in own.items()}
    return [
        AlterConfigOp(name, AlterConfigOpType.DELETE)
        if value is None
        else AlterConfigOp(name, AlterConfigOpType.SET, value)
        for name, value in restored(then, now).items()
    ]


def own_config(image: MetadataImage, resource: ConfigResource) -> Mapping[str, str]:
    """Return the settings of a resource in an image."""
    return image.configs.get(metadata_configs.ConfigResource(resource.type, resource.name)) or {}


def is_hidden(resource_type: int, name: str) -> bool:
    """Return True if a value must not be shown: broker passwords and, as in Kafka, unknown broker settings."""
    from barnabas.config import broker

    return resource_type == ConfigResourceType.BROKER and broker.is_sensitive(name)
