"""The settings of a share consumer, with the names of Kafka's. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import NamedTuple

from barnabas.client.settings import ClientSettings
from barnabas.config.definitions import Definition, parse_table
from barnabas.config.values import ConfigError


class AcquireMode(Enum):
    """Which records a fetch acquires; the value is the number in ShareFetch."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class ShareConsumerSettings(NamedTuple):
    """Checked settings."""

    group_id: str
    is_explicit: bool
    acquire_mode: AcquireMode
    check_crcs: bool
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_poll_records: int
    max_poll_interval_ms: int
    client_rack: str
    request_timeout_ms: int
    group_instance_id: str | None = None  # share groups have no static members


def share_consumer_settings(settings: ClientSettings, given: Mapping[str, object]) -> ShareConsumerSettings:
    """Return checked settings.

    `given` has those that are not defaults. Raises `ConfigError` where Kafka's share consumer does.
    """
    for name, instead in _OF_CONSUMER_GROUPS.items():
        if name in given:
            text = f"{name} cannot be set for a share group" + (f": {instead}" if instead else "")
            raise ConfigError(name, text)
    group_id = settings.get_str("group.id")
    if not group_id:
        raise ConfigError("group.id", "group.id: a share consumer needs a group")
    return ShareConsumerSettings(
        group_id=group_id,
        is_explicit=settings.get_str("share.acknowledgement.mode").lower() == "explicit",
        acquire_mode=AcquireMode[settings.get_str("share.acquire.mode").upper()],
        check_crcs=settings.get_bool("check.crcs"),
        fetch_min_bytes=settings.get_int("fetch.min.bytes"),
        fetch_max_bytes=settings.get_int("fetch.max.bytes"),
        fetch_max_wait_ms=settings.get_int("fetch.max.wait.ms"),
        max_poll_records=settings.get_int("max.poll.records"),
        max_poll_interval_ms=settings.get_int("max.poll.interval.ms"),
        client_rack=settings.get_str("client.rack"),
        request_timeout_ms=settings.get_int("request.timeout.ms"),
    )


_OF_CONSUMER_GROUPS = {
    "auto.offset.reset": "set share.auto.offset.reset of the group",
    "isolation.level": "set share.isolation.level of the group",
    "enable.auto.commit": "share groups have no committed offsets",
    "auto.commit.interval.ms": "share groups have no committed offsets",
    "group.instance.id": "share groups have no static members",
    "group.protocol": "",
    "group.remote.assignor": "",
    "partition.assignment.strategy": "",
    "session.timeout.ms": "set share.session.timeout.ms of the group",
    "heartbeat.interval.ms": "set share.heartbeat.interval.ms of the group",
    "interceptor.classes": "",
}
"""Settings of consumer groups that Kafka's share consumer refuses, and what to do instead."""


@cache
def definitions() -> Mapping[str, Definition]:
    """Return the definitions of the settings of share consumers, without those of all clients."""
    return parse_table(_TABLE)


_TABLE = """\
group.id string - high
    Share group of the consumer. Its members share the records of all partitions.
share.acknowledgement.mode string implicit medium nocase:IMPLICIT|EXPLICIT
    implicit: the next poll, commit or close accepts the records of the last poll. explicit: the application decides on each.
share.acquire.mode string batch_optimized medium nocase:BATCH_OPTIMIZED|RECORD_LIMIT
    batch_optimized: brokers acquire whole batches. record_limit: they acquire no more than max.poll.records (Kafka 4.2).
check.crcs boolean true low
    Check the checksums of batches.
fetch.min.bytes int 1 high >=0
    Bytes that a broker waits for before it responds.
fetch.max.bytes int 52428800 medium >=0
    Maximum bytes of one response.
fetch.max.wait.ms int 500 low >=0
    Maximum time that a broker waits for fetch.min.bytes.
max.poll.records int 500 medium >=1
    Maximum number of records that one poll returns.
max.poll.interval.ms int 300000 medium >=1
    Time without a poll after which a member leaves its group.
client.rack string "" low
    Rack of this client.
allow.auto.create.topics boolean true medium
    No effect: share groups do not create topics.
exclude.internal.topics boolean true medium
    No effect: a share consumer has no patterns.
max.partition.fetch.bytes int 1048576 high >=0
    No effect: ShareFetch has no limit for a partition.
key.deserializer string - high
    Java class; no effect. Pass key_deserializer= to ShareConsumer.
value.deserializer string - high
    Java class; no effect. Pass value_deserializer= to ShareConsumer.
"""
