"""The file `partition.metadata`, which says to which topic, by id, a directory belongs.

Its one rule: it is written once, before the first record; a directory with another id is that of an earlier topic of the
same name. Ids are read in either alphabet of base64 and written as Kafka does. A file without content is that of a directory
which was just made when the power was cut: it is as good as none.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.storage.errors import StorageError
from barnabas.storage.files import fsync_file, read_whole, write_atomically, write_whole
from barnabas.wire.primitives import ZERO_UUID, Uuid

PARTITION_METADATA = "partition.metadata"
_VERSION = 0


def read_topic_id(directory: Path) -> Uuid | None:
    """The id of the topic, or None where there is no such file."""
    path = directory / PARTITION_METADATA
    content = read_whole(path)
    if content is None or not content.strip(b"\0"):
        return None
    fields = {}
    for line in content.decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if not colon:
            raise StorageError(f"{path} has a malformed line: {line!r}")
        fields[name.strip()] = value.strip()
    if fields.get("version") != str(_VERSION):
        raise StorageError(f"{path} has version {fields.get('version')}; only version {_VERSION} is known")
    try:
        topic_id = Uuid.parse(fields.get("topic_id", ""))
    except ValueError as error:
        raise StorageError(f"{path} has no topic id: {error}") from None
    if topic_id == ZERO_UUID:
        raise StorageError(f"{path} has the topic id {topic_id}, which no topic has")
    return topic_id


def write_topic_id(directory: Path, topic_id: Uuid, *, durable: bool = True) -> None:
    """Of a log that is new it need not be durable: that it is with the log's first `flush`."""
    write = write_atomically if durable else write_whole
    write(f"{directory}/{PARTITION_METADATA}", f"version: {_VERSION}\ntopic_id: {topic_id}".encode())


def flush_topic_id(directory: Path) -> None:
    fsync_file(directory / PARTITION_METADATA)
