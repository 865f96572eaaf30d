"""New offsets of a group in a reset: computed by a rule from the committed offsets and the ends of the log. Pure.

Its one rule: an offset outside the log becomes the nearest one inside, and the result says so (`instead_of`).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from barnabas.client.records import TopicPartition


class Rule(Enum):
    """The rule that determines the new offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    OFFSET = "offset"
    SHIFT = "shift"
    TIME = "time"
    FILE = "file"


class Reset(NamedTuple):
    """A rule and its argument: an offset, a number of records, or a time in ms."""

    rule: Rule
    value: int = 0


class Log(NamedTuple):
    """The start and end offset of a partition, and the first offset at or after the time of the reset, if any."""

    start: int
    end: int
    at_time: int | None = None


class Planned(NamedTuple):
    """The new offset of a partition; `instead_of` is the rule's offset if that is outside the log."""

    offset: int
    instead_of: int | None = None


class NoOffsetError(ValueError):
    """The rule starts from the committed offset, and the partition has none."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"Cannot shift offset for partition {partition} since there is no current committed offset")


def plan(
    reset: Reset,
    logs: Mapping[TopicPartition, Log],
    committed: Mapping[TopicPartition, int],
    file: Mapping[TopicPartition, int] | None = None,
) -> dict[TopicPartition, Planned]:
    """Compute the new offset of each partition.

    >>> here = TopicPartition("orders", 0)
    >>> plan(Reset(Rule.SHIFT, -3), {here: Log(10, 100)}, {here: 11})[here]
    Planned(offset=10, instead_of=8)
    """
    return {each: _planned(reset, each, log, committed.get(each), file or {}) for each, log in logs.items()}


def _planned(
    reset: Reset, each: TopicPartition, log: Log, committed: int | None, file: Mapping[TopicPartition, int]
) -> Planned:
    match reset.rule:
        case Rule.EARLIEST:
            return Planned(log.start)
        case Rule.LATEST:
            return Planned(log.end)
        case Rule.CURRENT:
            return Planned(log.end if committed is None else committed)
        case Rule.TIME:
            return Planned(log.end if log.at_time is None else log.at_time)
        case Rule.OFFSET:
            wanted = reset.value
        case Rule.FILE:
            wanted = file[each]
        case Rule.SHIFT:
            if committed is None:
                raise NoOffsetError(each)
            wanted = committed + reset.value
    offset = min(max(wanted, log.start), log.end)
    return Planned(offset) if offset == wanted else Planned(offset, wanted)


# --- files


def parse_file(text: str, group_id: str) -> dict[TopicPartition, int]:
    """Parse the offsets of a group from CSV: `topic,partition,offset`, or `group,topic,partition,offset` for several.

    Raises ValueError that names the line.
    """
    offsets: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        if not row:
            continue
        try:
            *group, topic, partition, offset = row
            if len(group) > 1:
                raise ValueError
            if not group or group[0] == group_id:
                offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise ValueError(f"line {number}: {','.join(row)!r} is not [group,]topic,partition,offset") from None
    return offsets
