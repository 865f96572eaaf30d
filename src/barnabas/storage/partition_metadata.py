"""The file `partition.metadata`, which says to which topic, by id, a directory belongs.

Its one rule: it is written once, before the first record; a directory with another id is that of an earlier topic of the
same name. Ids are read in either alphabet of base64 and written as Kafka does.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.storage.errors import StorageError
from barnabas.storage.files import read_whole, write_atomically
from barnabas.wire.primitives import ZERO_UUID, Uuid

PARTITION_METADATA = "partition.metadata"
_VERSION = 0


def read_topic_id(directory: Path) -> Uuid | None:
    """The id of the topic, or None where there is no such file."""
    path = directory / PARTITION_METADATA
    content = read_whole(path)
    if content is None:
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


def write_topic_id(directory: Path, topic_id: Uuid) -> None:
    write_atomically(directory / PARTITION_METADATA, f"version: {_VERSION}\ntopic_id: {topic_id}".encode())
