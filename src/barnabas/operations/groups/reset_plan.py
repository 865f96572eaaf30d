"""Where a group's offsets go in a reset: by a rule, from what is committed and what the log has. Pure.

Its one rule: an offset that the log does not have becomes the nearest that it has, and that is said.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from barnabas.client.records import TopicPartition


class Rule(Enum):
    """How a new offset is found."""

    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    OFFSET = "offset"
    SHIFT = "shift"
    TIME = "time"
    FILE = "file"


class Reset(NamedTuple):
    """A rule, with the number it needs: an offset, a number of records, a time in ms."""

    rule: Rule
    value: int = 0


class Log(NamedTuple):
    """What a partition has: its ends, and the first offset at or after the time of the reset, if there is one."""

    start: int
    end: int
    at_time: int | None = None


class Planned(NamedTuple):
    """The new offset of a partition; `instead_of` is what the rule gave, where the log does not have that."""

    offset: int
    instead_of: int | None = None


class NoOffsetError(ValueError):
    """A rule that starts from the committed offset, and a partition that has none."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"Cannot shift offset for partition {partition} since there is no current committed offset")


def plan(
    reset: Reset,
    logs: Mapping[TopicPartition, Log],
    committed: Mapping[TopicPartition, int],
    file: Mapping[TopicPartition, int] | None = None,
) -> dict[TopicPartition, Planned]:
    """The new offset of each partition.

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


# --- what people write


def parse_topic(text: str) -> tuple[str, list[int] | None]:
    """
    >>> parse_topic("orders"), parse_topic("orders:0,2")
    (('orders', None), ('orders', [0, 2]))
    """
    name, sign, numbers = text.partition(":")
    if not sign:
        return name, None
    try:
        return name, [int(number) for number in numbers.split(",")]
    except ValueError:
        raise ValueError(f"{text!r} is not TOPIC or TOPIC:0,1,2") from None


def parse_file(text: str, group_id: str) -> dict[TopicPartition, int]:
    """The offsets of a group in a CSV file: `topic,partition,offset`, or `group,topic,partition,offset` for several.

    Raises ValueError, which names the line.
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
