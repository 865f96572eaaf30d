"""From directories, or the address of controllers, to feeds: which clusters are there, and what each has to read.

Its one rule: the cluster is known before anything is read, from meta.properties or from the controllers; directories of several
clusters become feeds of several clusters. What is not there is not read; where nothing is there, that is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from barnabas.config.topic_names import is_valid
from barnabas.lake.tables.streams import Stream
from barnabas.storage.log_dirs import read_meta_properties

METADATA: Final = "kafka_metadata"
DEFAULT_OPTIONS: Final = {"maxBytesPerTrigger": "256m"}
"""What one batch may be of: memory and the size of the files in the lake follow from it."""

_METADATA_OPTIONS = ("voters", "includeuncommitted", "includebootstrap")
_CLIENT = "kafka."
_ADDRESSES = ("bootstrap.servers", "bootstrap.controllers")


@dataclass(frozen=True, slots=True)
class Feed:
    """A stream of one cluster, and how its source is to be read."""

    cluster_id: str
    stream: Stream
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"{self.cluster_id}/{self.stream.name}"

    @property
    def paths(self) -> tuple[str, ...]:
        """The directories that it reads, if it reads directories."""
        return tuple(json.loads(self.options.get("paths", "[]")))


class SourceError(ValueError):
    """A source that cannot be read from; the text says which, and what is missing."""


def is_for(source: str, option: str) -> bool:
    """Whether an option says something to this source: some are about the quorum alone."""
    return source == METADATA or not (option.lower() in _METADATA_OPTIONS or option.lower().startswith(_CLIENT))


def find_feeds(
    paths: Iterable[Path], streams: Sequence[Stream], options: Mapping[str, str], cluster_id: str | None = None
) -> list[Feed]:
    """The feeds of log dirs, and of directories of single partitions. Raises SourceError."""
    found: dict[tuple[str, int], list[Path]] = {}
    for path in map(Path.absolute, paths):
        there = [number for number, stream in enumerate(streams) if _has(path, stream.topic)]
        if not there:
            wanted = ", ".join(stream.topic for stream in streams if stream.topic)
            raise SourceError(
                f"{path} is neither a log dir with one of {wanted}, nor the directory of such a partition"
            )
        for number in there:
            found.setdefault((_cluster_of(path, cluster_id), number), []).append(path)
    return [
        Feed(
            cluster,
            streams[number],
            {**_options(streams[number], options), "paths": json.dumps([str(path) for path in places])},
        )
        for (cluster, number), places in sorted(found.items())
    ]


def live_feed(client: Mapping[str, str], streams: Sequence[Stream], options: Mapping[str, str]) -> Feed:
    """The metadata log of the quorum that runs behind `bootstrap.controllers`. Raises what the client raises."""
    stream = next(stream for stream in streams if stream.source == METADATA)
    return Feed(cluster_behind(client), stream, {**_options(stream, options), **_of_client(client)})


def observing_feeds(client: Mapping[str, str], streams: Sequence[Stream]) -> list[Feed]:
    """What the cluster behind an address says of itself; controllers do not know all of it. Raises what the client raises."""
    from barnabas.lake.reading.cluster_rows import OF_CONTROLLERS

    cluster_id = cluster_behind(client)
    known = [stream for stream in streams if "bootstrap.servers" in client or stream.part in OF_CONTROLLERS]
    return [Feed(cluster_id, stream, {**stream.options, **_of_client(client)}) for stream in known]


def cluster_behind(client: Mapping[str, str]) -> str:
    from barnabas.client.sync import Admin

    with Admin(dict(client)) as admin:
        return str(admin.describe_cluster().cluster_id)


def _of_client(client: Mapping[str, str]) -> dict[str, str]:
    """Settings of the client as options of a source."""
    return {name if name in _ADDRESSES else f"{_CLIENT}{name}": value for name, value in client.items()}


def _options(stream: Stream, options: Mapping[str, str]) -> dict[str, str]:
    given = {name.lower() for name in options}
    defaults = {**DEFAULT_OPTIONS, **stream.options}
    return {
        **{name: value for name, value in defaults.items() if name.lower() not in given},
        **{name: value for name, value in options.items() if is_for(stream.source, name)},
    }


def _has(path: Path, topic: str) -> bool:
    if not path.is_dir():
        raise SourceError(f"{path} is not a directory")
    if _is_partition_of(path.name, topic):
        return True
    return any(_is_partition_of(entry.name, topic) for entry in path.iterdir() if entry.is_dir())


def _is_partition_of(name: str, topic: str) -> bool:
    """Of this topic, or, where none is named, of any that is not Kafka's own."""
    before, _, number = name.rpartition("-")
    is_wanted = before == topic if topic else is_valid(before) and not before.startswith("__")
    return is_wanted and number.isdecimal()


def _cluster_of(path: Path, given: str | None) -> str:
    meta = read_meta_properties(path) or read_meta_properties(path.parent)
    found = given if meta is None or meta.cluster_id is None else meta.cluster_id
    if found is None:
        raise SourceError(f"{path} has no meta.properties that names its cluster; say which it is with --cluster-id")
    return found
