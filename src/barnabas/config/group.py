"""The configs of a group, and their validation against the bounds that the broker sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from barnabas.config import broker
from barnabas.config.definitions import ConfigError, Definition, Value, parse_all, parse_table
from barnabas.config.hash_order import hash_order


class Bounds(NamedTuple):
    """A group config and the broker configs that bound it, in the order in which they are checked."""

    name: str
    min_name: str | None
    max_name: str


@cache
def definitions() -> Mapping[str, Definition]:
    """Return the group configs. Their `synonyms` are the broker configs that provide the default."""
    return parse_table(_TABLE)


@cache
def bounds() -> Mapping[str, Bounds]:
    """Return the group configs that have bounds."""

    def bound(kind: str, rest: str) -> Bounds:
        if rest == "num.standby.replicas":
            return Bounds(f"{kind}.{rest}", None, f"group.{kind}.max.standby.replicas")
        return Bounds(f"{kind}.{rest}", f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}")

    timing = ("heartbeat.interval.ms", "session.timeout.ms")
    records = ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks")
    kinds = {
        "consumer": (*timing, "assignment.interval.ms"),
        "share": (*timing, *records, "assignment.interval.ms"),
        "streams": (*timing, "num.standby.replicas", "assignment.interval.ms"),
    }
    rows = (bound(kind, rest) for kind, names in kinds.items() for rest in names)
    return {row.name: row for row in rows}


def broker_default(name: str) -> Value:
    """Return the default of a broker config, for callers without a broker."""
    return broker.definitions()[name].default_value()


def effective(name: str, of_group: Mapping[str, str], broker_number: Callable[[str], int]) -> int:
    """Return the number of a group, limited to the bounds that the broker has now, or the broker's if it has none."""
    text = of_group.get(name)
    if text is None:
        return broker_number(definitions()[name].synonyms[0].name)
    _, min_name, max_name = bounds()[name]
    value = min(int(text), broker_number(max_name))
    return value if min_name is None else max(value, broker_number(min_name))


def validate(configs: Mapping[str, str | None], broker_value: Callable[[str], Value] = broker_default) -> None:
    """Validate all configs of a group. `broker_value` returns bounds and defaults. Raises `ConfigError`."""
    if nulls := [name for name, text in configs.items() if text is None]:
        raise ConfigError(nulls[0], f"Null value not supported for group configs: {','.join(nulls)}")
    for name in hash_order(configs):
        if name not in definitions():
            raise ConfigError(name, f"Unknown group config name: {name}")
    values = parse_all(definitions(), configs)
    for name, definition in definitions().items():
        if name not in configs and definition.synonyms:
            values[name] = broker_value(definition.synonyms[0].name)

    def number(name: str) -> int:
        value = values[name] if name in values else broker_value(name)
        assert isinstance(value, int), name
        return value

    for name, min_name, max_name in bounds().values():
        if min_name is not None and number(name) < number(min_name):
            raise ConfigError(name, f"{name} must be greater than or equal to {min_name}")
        if number(name) > number(max_name):
            raise ConfigError(name, f"{name} must be less than or equal to {max_name}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if number(session) <= number(heartbeat):
            raise ConfigError(session, f"{session} must be greater than {heartbeat}")


_TABLE = """\
consumer.session.timeout.ms int 45000 medium >=1 <- group.consumer.session.timeout.ms
    Members of a consumer group without a heartbeat for this long are removed.
consumer.heartbeat.interval.ms int 5000 medium >=1 <- group.consumer.heartbeat.interval.ms
    How often members of a consumer group send a heartbeat.
consumer.assignment.interval.ms int 1000 medium >=0 <- group.consumer.assignment.interval.ms
    Minimum time between two assignments of a consumer group.
share.session.timeout.ms int 45000 medium >=1 <- group.share.session.timeout.ms
    Members of a share group without a heartbeat for this long are removed.
share.heartbeat.interval.ms int 5000 medium >=1 <- group.share.heartbeat.interval.ms
    How often members of a share group send a heartbeat.
share.record.lock.duration.ms int 30000 medium >=1000 <- group.share.record.lock.duration.ms
    How long the records that a share consumer acquired stay locked.
share.delivery.count.limit int 5 medium >=2 <- group.share.delivery.count.limit
    Maximum number of times a record is delivered.
share.partition.max.record.locks int 2000 medium >=100 <- group.share.partition.max.record.locks
    Maximum number of in-flight records of a share partition.
share.auto.offset.reset string latest medium offset-reset
    Start offset of a share group: earliest, latest, or by_duration: and an ISO 8601 duration.
share.isolation.level string read_uncommitted medium in:read_committed|read_uncommitted
    Isolation level of a share group: read_committed or read_uncommitted.
share.renew.acknowledge.enable boolean true medium
    Whether consumers of a share group may renew the lock on a record.
share.assignment.interval.ms int 1000 medium >=0 <- group.share.assignment.interval.ms
    Minimum time between two assignments of a share group.
streams.session.timeout.ms int 45000 medium >=1 <- group.streams.session.timeout.ms
    Members of a streams group without a heartbeat for this long are removed.
streams.heartbeat.interval.ms int 5000 medium >=1 <- group.streams.heartbeat.interval.ms
    How often members of a streams group send a heartbeat.
streams.num.standby.replicas int 0 medium >=0 <- group.streams.num.standby.replicas
    Number of standby replicas of each task of a streams group.
streams.initial.rebalance.delay.ms int 3000 medium >=0 <- group.streams.initial.rebalance.delay.ms
    How long a new streams group waits for more members before its first assignment.
streams.assignment.interval.ms int 1000 medium >=0 <- group.streams.assignment.interval.ms
    Minimum time between two assignments of a streams group.
"""
