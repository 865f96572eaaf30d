"""The file `partition.metadata`, which has the topic id of a partition's directory.

Its one rule: it is written once, before the first record. A directory with another id belongs to an earlier topic of
the same name. Ids are read in either base64 alphabet and written as Kafka does. An empty file is left by a power
failure right after the directory was created, and counts as missing.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.storage.errors import StorageError
from barnabas.storage.files import fsync_file, read_whole, write_atomically, write_whole
from barnabas.wire.primitives import ZERO_UUID, Uuid

PARTITION_METADATA = "partition.metadata"
_VERSION = 0


def read_topic_id(directory: Path) -> Uuid | None:
    """Return the topic id, or None if the file is missing or empty. Raises StorageError if it is invalid."""
    path = directory / PARTITION_METADATA
    content = read_whole(path)
    if content is None or not content.strip(b"\0"):
        return None
    fields = {}
    for line in content.decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if not colon:
            raise _damaged(path, f"has a malformed line: {line!r}")
        fields[name.strip()] = value.strip()
    if fields.get("version") != str(_VERSION):
        raise StorageError(f"{path} has version {fields.get('version')}; only version {_VERSION} is supported")
    try:
        topic_id = Uuid.parse(fields.get("topic_id", ""))
    except ValueError as error:
        raise _damaged(path, f"has no valid topic id: {error}") from None
    if topic_id == ZERO_UUID:
        raise _damaged(path, f"has the reserved topic id {topic_id}")
    return topic_id


def _damaged(path: Path, fault: str) -> StorageError:
    return StorageError(f"{path} {fault}; if the directory belongs to the topic of its name, delete this file")


def write_topic_id(directory: Path, topic_id: Uuid, *, durable: bool = True) -> None:
    """Write the topic id. For a new log it need not be durable: the log's first `flush` makes it so."""
    write = write_atomically if durable else write_whole
    write(f"{directory}/{PARTITION_METADATA}", f"version: {_VERSION}\ntopic_id: {topic_id}".encode())


def flush_topic_id(directory: Path) -> None:
    fsync_file(directory / PARTITION_METADATA)
