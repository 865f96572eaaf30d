"""Feeds: what to read for each cluster, found in directories or at the address of controllers.

Its one rule: the cluster is known before anything is read, from meta.properties or from the controllers. Directories of several
clusters become feeds of several clusters. A log dir without anything to read is skipped, and so is a stream; if nothing is left
to read, it is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from barnabas.config.topic_names import is_valid
from barnabas.lake.tables.streams import Stream
from barnabas.storage.log_dirs import parse_directory_name, read_meta_properties

METADATA: Final = "kafka_metadata"
DEFAULT_OPTIONS: Final = {"maxBytesPerTrigger": "256m"}
"""Limits the size of one batch, and so memory and the size of the lake's files."""

_METADATA_OPTIONS = ("voters", "includeuncommitted", "includebootstrap")
_CLIENT = "kafka."
_ADDRESSES = ("bootstrap.servers", "bootstrap.controllers")


@dataclass(frozen=True, slots=True)
class Feed:
    """A stream of one cluster, with the options of its source."""

    cluster_id: str
    stream: Stream
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"{self.cluster_id}/{self.stream.name}"

    @property
    def paths(self) -> tuple[str, ...]:
        """The directories that it reads; empty if it reads none."""
        return tuple(json.loads(self.options.get("paths", "[]")))


class SourceError(ValueError):
    """A source that cannot be read. The text names it, and what is missing."""


def is_for(source: str, option: str) -> bool:
    """Return whether an option applies to this source: some are only for the metadata log."""
    return source == METADATA or not (option.lower() in _METADATA_OPTIONS or option.lower().startswith(_CLIENT))


def find_feeds(
    paths: Iterable[Path], streams: Sequence[Stream], options: Mapping[str, str], cluster_id: str | None = None
) -> list[Feed]:
    """Return the feeds of log dirs, and of directories of single partitions. Raises SourceError."""
    found: dict[tuple[str, int], list[Path]] = {}
    for path in (given := [path.absolute() for path in paths]):
        there = [number for number, stream in enumerate(streams) if _has(path, stream.topic)]
        if not there and not is_log_dir(path):
            raise SourceError(f"{path} is neither a log dir, nor the directory of a partition of {_topics(streams)}")
        for number in there:
            found.setdefault((cluster_of(path, cluster_id), number), []).append(path)
    if given and not found:
        places = str(given[0]) if len(given) == 1 else f"the directories {', '.join(map(str, given))}"
        more = "" if not any(_has(path, "") for path in given) else "; records of topics are read with --traffic"
        raise SourceError(f"{places}: no partition of {_topics(streams)}{more}")
    return [
        Feed(
            cluster,
            streams[number],
            {**_options(streams[number], options), "paths": json.dumps([str(path) for path in places])},
        )
        for (cluster, number), places in sorted(found.items())
    ]


def live_feed(client: Mapping[str, str], streams: Sequence[Stream], options: Mapping[str, str]) -> Feed:
    """Return the feed of a live metadata log, from the quorum at `bootstrap.controllers`. Raises the client's errors."""
    stream = next(stream for stream in streams if stream.source == METADATA)
    return Feed(cluster_behind(client), stream, {**_options(stream, options), **_of_client(client)})


def observing_feeds(client: Mapping[str, str], streams: Sequence[Stream]) -> list[Feed]:
    """Return the feeds that observe a live cluster. Controllers know only some tables. Raises the client's errors."""
    from barnabas.lake.reading.cluster_rows import OF_CONTROLLERS

    cluster_id = cluster_behind(client)
    known = [stream for stream in streams if "bootstrap.servers" in client or stream.part in OF_CONTROLLERS]
    return [Feed(cluster_id, stream, {**stream.options, **_of_client(client)}) for stream in known]


def cluster_behind(client: Mapping[str, str]) -> str:
    from barnabas.client.sync import Admin

    with Admin(dict(client)) as admin:
        return str(admin.describe_cluster().cluster_id)


def _of_client(client: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the client as options of a source."""
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
    """Return whether this directory is of the topic or, if none is named, of any that is not internal."""
    before, _, number = name.rpartition("-")
    is_wanted = before == topic if topic else is_valid(before) and not before.startswith("__")
    return is_wanted and number.isdecimal()


def is_log_dir(path: Path) -> bool:
    """Return whether a directory belongs to a node: its meta.properties says so, or it has a partition of any topic."""
    if read_meta_properties(path) is not None:
        return True
    return any(parse_directory_name(entry.name) is not None for entry in path.iterdir() if entry.is_dir())


def _topics(streams: Sequence[Stream]) -> str:
    return ", ".join(stream.topic or "any other topic" for stream in streams)


def cluster_of(path: Path, given: str | None) -> str:
    """Return the cluster id of a log dir, or of the directory of a partition. Raises SourceError if it is not known."""
    meta = read_meta_properties(path) or read_meta_properties(path.parent)
    found = given if meta is None or meta.cluster_id is None else meta.cluster_id
    if found is None:
        raise SourceError(f"{path} has no meta.properties that names its cluster; name it with --cluster-id")
    return found
