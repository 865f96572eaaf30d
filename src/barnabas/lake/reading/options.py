"""Options of the data sources: parsed once, and rejected if they are unknown or invalid.

Its one rule: no option is ignored. Names are case-insensitive, as in Spark. An unknown one is an error that names the known
ones. `ReadOptions` has the options of all sources over logs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from glob import glob, has_magic
from pathlib import Path
from typing import Any
from urllib.parse import unquote

EARLIEST = -2
LATEST = -1

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)i?b?", re.IGNORECASE)


class OptionError(ValueError):
    """An unknown option, or one with an invalid value."""


class Options:
    """The options given to a source, with a parser for each type of value. An empty value counts as not given."""

    def __init__(self, source: str, given: Mapping[str, str], known: Iterable[str]) -> None:
        self.source = source
        self._names = {name.lower(): name for name in known}
        self._values = {name.lower(): value for name, value in given.items() if value is not None and value != ""}
        unknown = sorted(name for name in given if name.lower() not in self._names)
        if unknown:
            known_names = ", ".join(sorted(self._names.values(), key=str.lower))
            raise OptionError(f"{source} has no option {', '.join(unknown)}; known options are {known_names}")

    def text(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def choice(self, name: str, choices: Iterable[str], default: str) -> str:
        """Return one of the choices, spelled as here."""
        given = self.text(name)
        if given is None:
            return default
        words = {word.lower(): word for word in choices}
        if given.strip().lower() not in words:
            raise self.error(name, f"must be one of {', '.join(words.values())}")
        return words[given.strip().lower()]

    def boolean(self, name: str, default: bool) -> bool:
        return self.choice(name, ("true", "false"), str(default).lower()) == "true"

    def number(self, name: str, *, least: int = 0) -> int | None:
        given = self.text(name)
        if given is None:
            return None
        try:
            value = int(given.strip())
        except ValueError:
            raise self.error(name, "must be a number") from None
        if value < least:
            raise self.error(name, f"must be at least {least}")
        return value

    def size(self, name: str) -> int | None:
        """Return a size in bytes, given as `67108864`, `64m` or `64MiB`."""
        given = self.text(name)
        if given is None:
            return None
        match = _SIZE.fullmatch(given.strip())
        if match is None or int(match[1]) == 0:
            raise self.error(name, "must be a size in bytes, such as 67108864 or 64m")
        return int(match[1]) * _UNITS[match[2].lower()]

    def words(self, name: str) -> tuple[str, ...] | None:
        """Return a list, given with commas or as JSON."""
        given = self.text(name)
        if given is None:
            return None
        if given.lstrip().startswith("["):
            try:
                return tuple(str(word) for word in json.loads(given))
            except ValueError:
                raise self.error(name, "must be a list, with commas or as JSON") from None
        return tuple(word for word in (part.strip() for part in given.split(",")) if word)

    def numbers(self, name: str) -> frozenset[int] | None:
        given = self.words(name)
        try:
            return None if given is None else frozenset(int(word) for word in given)
        except ValueError:
            raise self.error(name, "must be a list of numbers, such as 0,2") from None

    def pattern(self, name: str) -> str | None:
        given = self.text(name)
        try:
            re.compile(given or "")
        except re.error as error:
            raise self.error(name, f"must be a regular expression: {error}") from None
        return given

    def paths(self) -> tuple[Path, ...]:
        """Return the directories of `path` and `paths`, in order, without duplicates; `*` is expanded."""
        found: dict[Path, None] = {}
        for word in (*(self.words("path") or ()), *(self.words("paths") or ())):
            name = unquote(re.sub(r"^file:(//)?(?=/)", "", word)) if word.startswith("file:") else word
            names = sorted(glob(name)) if has_magic(name) and not Path(name).exists() else [name]  # noqa: PTH207
            if not names:
                raise OptionError(f"{self.source}: no directory matches {word}")
            found.update(dict.fromkeys(map(Path, names)))
        if not found:
            raise OptionError(f"{self.source} needs a path: load(path), or the option path or paths")
        return tuple(found)

    def timestamp(self, name: str) -> int | None:
        """Return a time in milliseconds, given so or in ISO 8601; UTC if it has no zone."""
        given = self.text(name)
        if given is None:
            return None
        if re.fullmatch(r"-?\d+", given.strip()):
            return int(given)
        try:
            time = datetime.fromisoformat(given.strip())
        except ValueError:
            raise self.error(name, "must be milliseconds, or a time such as 2026-01-31T12:00:00Z") from None
        return to_ms(time)

    def offsets(self, name: str, default: int) -> OffsetBounds:
        """Parse earliest, latest, a number, or JSON as in Spark's Kafka source: {"topic": {"0": 12}}."""
        given = self.text(name)
        if given is None:
            return OffsetBounds(default)
        word = given.strip().lower()
        if word in ("earliest", "latest"):
            return OffsetBounds(EARLIEST if word == "earliest" else LATEST)
        try:
            parsed = json.loads(given)
            if isinstance(parsed, int) and parsed >= 0:
                return OffsetBounds(parsed)
            pairs = {
                (topic, int(partition)): int(offset)
                for topic, offsets in parsed.items()
                for partition, offset in offsets.items()
            }
            if any(offset < EARLIEST for offset in pairs.values()):
                raise ValueError
        except (ValueError, AttributeError, TypeError):
            raise self.error(name, 'must be earliest, latest, a number, or JSON such as {"topic": {"0": 12}}') from None
        return OffsetBounds(default, tuple(sorted(pairs.items())))

    def error(self, name: str, reason: str) -> OptionError:
        return OptionError(f"{self.source}: {self._names[name.lower()]} is {self.text(name)!r}, but {reason}")


@dataclass(frozen=True, slots=True)
class OffsetBounds:
    """The start or end of partitions: one default, and others for some partitions."""

    default: int
    others: tuple[tuple[tuple[str, int], int], ...] = ()

    def of(self, topic: str, partition: int) -> int:
        """Return an offset, EARLIEST or LATEST."""
        return dict(self.others).get((topic, partition), self.default)


LOG_OPTIONS = (
    "path",
    "paths",
    "topics",
    "topicsPattern",
    "partitions",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "maxPartitionBytes",
    "mode",
    "isolation",
    "copies",
    "failOnDataLoss",
    "includeSecrets",
    "pushFilters",
    "maxBytesPerTrigger",
    "maxRowsPerTrigger",
    "clusterId",
    "nodeId",
)
"""The options of every source over log directories."""
DEFAULT_MAX_PARTITION_BYTES = 64 << 20
READ_COMMITTED = "read_committed"
READ_UNCOMMITTED = "read_uncommitted"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The common options of all sources over logs. Times are in milliseconds."""

    paths: tuple[Path, ...] = ()
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    max_partition_bytes: int = DEFAULT_MAX_PARTITION_BYTES
    fail_fast: bool = False
    fail_on_data_loss: bool = True
    include_secrets: bool = False
    push_filters: bool = False
    """Whether filters prune what is read; only for a DataFrame whose queries all have the same filters (see sources.log)."""
    max_bytes_per_trigger: int | None = None
    max_rows_per_trigger: int | None = None
    cluster_id: str | None = None
    node_id: int | None = None


def read_options(options: Options) -> dict[str, Any]:
    """Parse the fields of `ReadOptions`, except for the paths."""
    return {
        "starting_timestamp": options.timestamp("startingTimestamp"),
        "ending_timestamp": options.timestamp("endingTimestamp"),
        "max_partition_bytes": options.size("maxPartitionBytes") or DEFAULT_MAX_PARTITION_BYTES,
        "fail_fast": options.choice("mode", ("PERMISSIVE", "FAILFAST"), "PERMISSIVE") == "FAILFAST",
        "fail_on_data_loss": options.boolean("failOnDataLoss", True),
        "include_secrets": options.boolean("includeSecrets", False),
        "push_filters": options.boolean("pushFilters", False),
        "max_bytes_per_trigger": options.size("maxBytesPerTrigger"),
        "max_rows_per_trigger": options.number("maxRowsPerTrigger", least=1),
        "cluster_id": options.text("clusterId"),
        "node_id": options.number("nodeId"),
    }


@dataclass(frozen=True, slots=True)
class LogOptions(ReadOptions):
    """The options of a source over log directories."""

    topics: frozenset[str] | None = None
    topics_pattern: str | None = None
    partitions: frozenset[int] | None = None
    starting_offsets: OffsetBounds = OffsetBounds(EARLIEST)
    ending_offsets: OffsetBounds = OffsetBounds(LATEST)
    isolation: str | None = None
    """read_committed, read_uncommitted, or None: every record of the files, also control records."""
    all_copies: bool = False

    def takes(self, topic: str, partition: int) -> bool:
        """Return whether a partition is wanted."""
        return (
            (self.topics is None or topic in self.topics)
            and (self.topics_pattern is None or re.fullmatch(self.topics_pattern, topic) is not None)
            and (self.partitions is None or partition in self.partitions)
        )


def parse_log_options(source: str, given: Mapping[str, str], more: Iterable[str] = ()) -> LogOptions:
    """Parse the options of a source over log directories; `more` are names of options that the source parses itself."""
    return log_options(Options(source, given, (*LOG_OPTIONS, *more)))


def log_options(options: Options) -> LogOptions:
    topics = options.words("topics")
    isolation = options.choice("isolation", (READ_COMMITTED, READ_UNCOMMITTED), "")
    parsed = LogOptions(
        paths=options.paths(),
        topics=None if topics is None else frozenset(topics),
        topics_pattern=options.pattern("topicsPattern"),
        partitions=options.numbers("partitions"),
        starting_offsets=options.offsets("startingOffsets", EARLIEST),
        ending_offsets=options.offsets("endingOffsets", LATEST),
        isolation=isolation or None,
        all_copies=options.choice("copies", ("best", "all"), "best") == "all",
        **read_options(options),
    )
    for edge in ("starting", "ending"):
        if options.text(f"{edge}Offsets") is not None and options.text(f"{edge}Timestamp") is not None:
            raise OptionError(f"{options.source}: set only one of {edge}Offsets and {edge}Timestamp")
    return parsed


def to_ms(time: datetime) -> int:
    """Return milliseconds since 1970, rounded down; a time without zone is UTC."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    past = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return past.days * 86_400_000 + past.seconds * 1000 + past.microseconds // 1000
