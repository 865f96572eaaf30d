"""From directories, or the address of controllers, to feeds: which clusters are there, and what each has to read.

Its one rule: the cluster is known before anything is read, from meta.properties or from the controllers; directories of several
clusters become feeds of several clusters. What is not there is not read; where nothing is there, that is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from barnabas.lake.streams import Feed, Stream
from barnabas.storage.log_dirs import read_meta_properties

METADATA: Final = "kafka_metadata"
DEFAULT_OPTIONS: Final = {"maxBytesPerTrigger": "256m"}
"""What one batch may be of: memory and the size of the files in the lake follow from it."""

_METADATA_OPTIONS = ("voters", "includeuncommitted", "includebootstrap")
_CLIENT = "kafka."


class SourceError(ValueError):
    """A source that cannot be read from; the text says which, and what is missing."""


def is_for(source: str, option: str) -> bool:
    """Whether an option says something to this source: some are about the quorum alone."""
    return source == METADATA or not (option.lower() in _METADATA_OPTIONS or option.lower().startswith(_CLIENT))


def find_feeds(
    paths: Iterable[Path], streams: Sequence[Stream], options: Mapping[str, str], cluster_id: str | None = None
) -> list[Feed]:
    """The feeds of log dirs, and of directories of single partitions. Raises SourceError."""
    found: dict[tuple[str, str], list[Path]] = {}
    for path in map(Path.absolute, paths):
        sources = [stream.source for stream in streams if _has(path, stream.topic)]
        if not sources:
            wanted = ", ".join(stream.topic for stream in streams)
            raise SourceError(
                f"{path} is neither a log dir with one of {wanted}, nor the directory of such a partition"
            )
        for source in sources:
            found.setdefault((_cluster_of(path, cluster_id), source), []).append(path)
    by_source = {stream.source: stream for stream in streams}
    order = list(by_source)
    return [
        Feed(
            cluster,
            by_source[source],
            {**_options(source, options), "paths": json.dumps([str(path) for path in places])},
        )
        for (cluster, source), places in sorted(found.items(), key=lambda item: (item[0][0], order.index(item[0][1])))
    ]


def live_feed(client: Mapping[str, str], streams: Sequence[Stream], options: Mapping[str, str]) -> Feed:
    """The metadata log of the quorum that runs behind `bootstrap.controllers`. Raises what the client raises."""
    from barnabas.client.sync import Admin  # noqa: PLC0415

    with Admin(dict(client)) as admin:
        cluster_id = admin.describe_cluster().cluster_id
    stream = next(stream for stream in streams if stream.source == METADATA)
    given = {f"{_CLIENT}{name}": value for name, value in client.items() if name != "bootstrap.controllers"}
    controllers = {"bootstrap.controllers": client["bootstrap.controllers"]}
    return Feed(str(cluster_id), stream, {**_options(METADATA, options), **given, **controllers})


def _options(source: str, options: Mapping[str, str]) -> dict[str, str]:
    given = {name.lower() for name in options}
    defaults = {name: value for name, value in DEFAULT_OPTIONS.items() if name.lower() not in given}
    return {**defaults, **{name: value for name, value in options.items() if is_for(source, name)}}


def _has(path: Path, topic: str) -> bool:
    if not path.is_dir():
        raise SourceError(f"{path} is not a directory")
    if _is_partition_of(path.name, topic):
        return True
    return any(_is_partition_of(entry.name, topic) for entry in path.iterdir() if entry.is_dir())


def _is_partition_of(name: str, topic: str) -> bool:
    before, _, number = name.rpartition("-")
    return before == topic and number.isdecimal()


def _cluster_of(path: Path, given: str | None) -> str:
    meta = read_meta_properties(path) or read_meta_properties(path.parent)
    found = given if meta is None or meta.cluster_id is None else meta.cluster_id
    if found is None:
        raise SourceError(f"{path} has no meta.properties that names its cluster; say which it is with --cluster-id")
    return found
