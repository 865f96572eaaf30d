"""The options of `kafka_metadata`: directories or a live cluster, offsets, and the format of rows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.config.internal_topics import CLUSTER_METADATA_TOPIC
from barnabas.lake.reading.options import EARLIEST, LATEST, OptionError, Options, ReadOptions, read_options

_OPTIONS = (
    "path",
    "paths",
    "copies",
    "voters",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "maxPartitionBytes",
    "mode",
    "payload",
    "pushFilters",
    "includeSecrets",
    "includeUncommitted",
    "includeBootstrap",
    "failOnDataLoss",
    "maxBytesPerTrigger",
    "maxRowsPerTrigger",
    "clusterId",
    "nodeId",
    "bootstrap.controllers",
)
_CLIENT = "kafka."


@dataclass(frozen=True, slots=True)
class MetadataOptions(ReadOptions):
    """The options of the source, checked."""

    client: Mapping[str, str] = field(default_factory=dict)
    """Settings of the client; with bootstrap.controllers the log is read from a live cluster."""
    merged: bool = False
    voters: frozenset[int] | None = None
    start: int = EARLIEST
    end: int = LATEST
    variant: bool = False
    include_uncommitted: bool = False
    include_bootstrap: bool = False

    @property
    def is_live(self) -> bool:
        return bool(self.client)


def parse_options(given: Mapping[str, str]) -> MetadataOptions:
    """Parse the options. Raises OptionError, which names the known options."""
    client = {name[len(_CLIENT) :]: value for name, value in given.items() if name.lower().startswith(_CLIENT)}
    own = {name: value for name, value in given.items() if not name.lower().startswith(_CLIENT)}
    options = Options("kafka_metadata", own, _OPTIONS)
    controllers = options.text("bootstrap.controllers") or client.get("bootstrap.controllers")
    if controllers is None and client:
        raise OptionError("kafka_metadata: options with the prefix kafka. need bootstrap.controllers as well")
    if controllers is not None and (options.text("path") or options.text("paths")):
        raise OptionError(
            "kafka_metadata reads directories or a live cluster: set either a path or bootstrap.controllers"
        )
    return MetadataOptions(
        paths=options.paths() if controllers is None else (),
        client={} if controllers is None else {**client, "bootstrap.controllers": controllers},
        merged=options.choice("copies", ("all", "merged"), "all") == "merged",
        voters=options.numbers("voters"),
        start=options.offsets("startingOffsets", EARLIEST).of(CLUSTER_METADATA_TOPIC, 0),
        end=options.offsets("endingOffsets", LATEST).of(CLUSTER_METADATA_TOPIC, 0),
        variant=options.choice("payload", ("json", "variant"), "json") == "variant",
        include_uncommitted=options.boolean("includeUncommitted", False),
        include_bootstrap=options.boolean("includeBootstrap", False),
        **read_options(options),
    )
