"""The settings of a consumer, with the names of Kafka's, and the checks of their combinations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from barnabas.client.settings import ClientSettings
from barnabas.config.definitions import Definition, parse_table
from barnabas.config.validators import duration_ms, validator_of
from barnabas.config.values import ConfigError

READ_UNCOMMITTED, READ_COMMITTED = 0, 1

_ASSIGNORS = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


class ConsumerSettings(NamedTuple):
    """Checked settings."""

    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    assignors: tuple[str, ...]
    auto_offset_reset: str
    reset_duration_ms: int | None
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    isolation_level: int
    check_crcs: bool
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    max_poll_records: int
    max_poll_interval_ms: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    allow_auto_create_topics: bool
    client_rack: str
    request_timeout_ms: int


def consumer_settings(settings: ClientSettings, given: Mapping[str, object]) -> ConsumerSettings:
    """Return checked settings.

    `given` has those that are not defaults. Raises `ConfigError` where Kafka's consumer does.
    """
    group_id = settings.get_str("group.id") or None
    protocol = settings.get_str("group.protocol").lower()
    auto_commit = settings.get_bool("enable.auto.commit")
    if group_id is None:
        if auto_commit and "enable.auto.commit" in given:
            raise ConfigError("enable.auto.commit", "enable.auto.commit cannot be set to true without a group.id")
        auto_commit = False
    if protocol == "consumer":
        for name in ("partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms"):
            if name in given:
                raise ConfigError(name, f"{name} cannot be set when group.protocol=consumer: the brokers decide it")
    elif settings.get_str("group.remote.assignor"):
        raise ConfigError("group.remote.assignor", "group.remote.assignor needs group.protocol=consumer")
    reset = settings.get_str("auto.offset.reset")
    if reset != "none":
        validator_of("offset-reset").ensure("auto.offset.reset", reset)
    strategies = settings.get("partition.assignment.strategy")
    assignors = tuple(_ASSIGNORS.get(name, name) for name in (strategies if isinstance(strategies, tuple) else ()))
    for name in assignors:
        if name not in _ASSIGNORS.values():
            known = ", ".join(_ASSIGNORS.values())
            text = f"partition.assignment.strategy: {name} is not supported; supported are {known}"
            raise ConfigError("partition.assignment.strategy", text)
    return ConsumerSettings(
        group_id=group_id,
        group_instance_id=settings.get_str("group.instance.id") or None,
        group_protocol=protocol,
        group_remote_assignor=settings.get_str("group.remote.assignor") or None,
        assignors=assignors,
        auto_offset_reset=reset,
        reset_duration_ms=duration_ms(reset.removeprefix("by_duration:")) if reset.startswith("by_duration:") else None,
        enable_auto_commit=auto_commit,
        auto_commit_interval_ms=settings.get_int("auto.commit.interval.ms"),
        isolation_level=(
            READ_COMMITTED if settings.get_str("isolation.level").lower() == "read_committed" else READ_UNCOMMITTED
        ),
        check_crcs=settings.get_bool("check.crcs"),
        fetch_min_bytes=settings.get_int("fetch.min.bytes"),
        fetch_max_bytes=settings.get_int("fetch.max.bytes"),
        fetch_max_wait_ms=settings.get_int("fetch.max.wait.ms"),
        max_partition_fetch_bytes=settings.get_int("max.partition.fetch.bytes"),
        max_poll_records=settings.get_int("max.poll.records"),
        max_poll_interval_ms=settings.get_int("max.poll.interval.ms"),
        session_timeout_ms=settings.get_int("session.timeout.ms"),
        heartbeat_interval_ms=settings.get_int("heartbeat.interval.ms"),
        allow_auto_create_topics=settings.get_bool("allow.auto.create.topics"),
        client_rack=settings.get_str("client.rack"),
        request_timeout_ms=settings.get_int("request.timeout.ms"),
    )


@cache
def definitions() -> Mapping[str, Definition]:
    """Return the definitions of the settings of consumers, without those of all clients."""
    return parse_table(_TABLE)


_TABLE = """\
group.id string - high
    Group of the consumer. Its members share the partitions, and it keeps committed offsets.
group.instance.id string - medium non-empty
    Name of a static member, which keeps its partitions when it restarts.
group.protocol string classic high nocase:CLASSIC|CONSUMER
    Protocol of the group: classic (a member assigns partitions) or consumer (the broker does, KIP-848).
group.remote.assignor string - medium
    Assignor of the broker: uniform or range.
partition.assignment.strategy list range,cooperative-sticky medium list
    Assignors of a classic group by preference: range, roundrobin, cooperative-sticky.
session.timeout.ms int 45000 high
    Time without a heartbeat after which a member is removed from its group.
heartbeat.interval.ms int 3000 high
    Time between heartbeats.
enable.auto.commit boolean true medium
    Commit offsets automatically.
auto.commit.interval.ms int 5000 low >=0
    Time between automatic commits.
auto.offset.reset string latest medium
    Position if there is no committed offset, or it is out of range: earliest, latest, by_duration:PnDTnHnMnS, or none.
isolation.level string read_uncommitted medium nocase:read_committed|read_uncommitted
    read_committed skips records of open and aborted transactions.
check.crcs boolean true low
    Check the checksums of batches.
fetch.min.bytes int 1 high >=0
    Bytes that a broker waits for before it responds.
fetch.max.bytes int 52428800 medium >=0
    Maximum bytes of one response.
fetch.max.wait.ms int 500 low >=0
    Maximum time that a broker waits for fetch.min.bytes.
max.partition.fetch.bytes int 1048576 high >=0
    Maximum bytes of one partition in a response.
max.poll.records int 500 medium >=1
    Maximum number of records that one poll returns.
max.poll.interval.ms int 300000 medium >=1
    Time without a poll after which a member leaves its group.
allow.auto.create.topics boolean true medium
    Let brokers create topics that are subscribed to and do not exist.
exclude.internal.topics boolean true medium
    Exclude internal topics from patterns.
client.rack string "" low
    Rack of this client. Records are fetched from a follower in it if the leader of the partition names one.
key.deserializer string - high
    Java class; no effect. Pass key_deserializer= to Consumer.
value.deserializer string - high
    Java class; no effect. Pass value_deserializer= to Consumer.
interceptor.classes list "" low
    No effect.
"""
