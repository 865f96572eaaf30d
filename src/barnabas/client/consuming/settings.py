"""A consumer's settings, by the names of Kafka's, and what they may not be together. Pure."""

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
    """Settings that were checked."""

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
    """`given` is what was said, to tell it from defaults. Raises `ConfigError`, as Kafka's consumer refuses."""
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
                raise ConfigError(
                    name, f"{name} cannot be set when group.protocol=consumer: the group's brokers say it"
                )
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
            text = f"partition.assignment.strategy: {name} is not known here; there are {known}"
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
    """The settings of consumers, beside those of every client."""
    return parse_table(_TABLE)


_TABLE = """\
group.id string - high
    Group to read with: its members share the partitions, and it keeps what was read.
group.instance.id string - medium non-empty
    Name by which a member of a group stays the same when it comes back.
group.protocol string classic high nocase:CLASSIC|CONSUMER
    How groups agree: classic, by a member that leads, or consumer, by the broker (KIP-848).
group.remote.assignor string - medium
    How the broker shares out partitions: uniform or range.
partition.assignment.strategy list range,cooperative-sticky medium list
    How a classic group shares out partitions: range, roundrobin, cooperative-sticky; the first that all members know.
session.timeout.ms int 45000 high
    Time without a heartbeat after which a member is out.
heartbeat.interval.ms int 3000 high
    Time between heartbeats.
enable.auto.commit boolean true medium
    Whether what was read is committed by itself.
auto.commit.interval.ms int 5000 low >=0
    Time between such commits.
auto.offset.reset string latest medium
    Where to begin when the group has no offset, or one that is gone: earliest, latest, by_duration:PnDTnHnMnS, or none.
isolation.level string read_uncommitted medium nocase:read_committed|read_uncommitted
    Whether records of open and aborted transactions are read.
check.crcs boolean true low
    Whether the checksums of batches are checked.
fetch.min.bytes int 1 high >=0
    Bytes that a broker waits for before it answers.
fetch.max.bytes int 52428800 medium >=0
    Bytes of one answer, at most.
fetch.max.wait.ms int 500 low >=0
    How long a broker waits for them.
max.partition.fetch.bytes int 1048576 high >=0
    Bytes of one partition in an answer, at most.
max.poll.records int 500 medium >=1
    Records that one poll returns, at most.
max.poll.interval.ms int 300000 medium >=1
    Time without a poll after which a member leaves its group.
allow.auto.create.topics boolean true medium
    Whether brokers may create topics that are asked for.
exclude.internal.topics boolean true medium
    Whether a pattern leaves out Kafka's own topics.
client.rack string "" low
    Where this client is.
key.deserializer string - high
    Of no effect: keys are bytes.
value.deserializer string - high
    Of no effect: values are bytes.
interceptor.classes list "" low
    Of no effect.
"""
