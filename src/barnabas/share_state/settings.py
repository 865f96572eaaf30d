"""Settings of a share group: those of the broker, overridden by those of the group. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.config.group import definitions, effective
from barnabas.config.server_config import ServerConfig


class ShareSettings(NamedTuple):
    """Settings of a share group. `auto_offset_reset` is earliest, latest, or by_duration: and an ISO 8601 duration."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2_000
    max_size: int = 200
    auto_offset_reset: str = "latest"
    isolation_level: str = "read_uncommitted"
    renew_acknowledge_enable: bool = True


def share_settings(config: ServerConfig, of_group: Mapping[str, str]) -> ShareSettings:
    """Return the settings of a group. Its own are limited to the bounds that the broker has now.

    `of_group` are the configs of the resource GROUP with the group's id: `image.config(ConfigResourceType.GROUP, id)`.
    """

    def number(name: str) -> int:
        return effective(f"share.{name}", of_group, config.get_int)

    def text(name: str) -> str:
        return of_group.get(f"share.{name}", definitions()[f"share.{name}"].default or "")

    return ShareSettings(
        number("session.timeout.ms"),
        number("heartbeat.interval.ms"),
        number("assignment.interval.ms"),
        number("record.lock.duration.ms"),
        number("delivery.count.limit"),
        number("partition.max.record.locks"),
        config.get_int("group.share.max.size"),
        text("auto.offset.reset").lower(),
        text("isolation.level").lower(),
        text("renew.acknowledge.enable").lower() == "true",
    )
