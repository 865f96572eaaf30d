"""Settings of a consumer group: those of the broker, overridden by those of the group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.config.group import effective
from barnabas.config.server_config import ServerConfig
from barnabas.groups.assignors import ASSIGNORS
from barnabas.groups.classic.settings import ClassicSettings
from barnabas.metadata.image import MetadataImage

_CLASS_PREFIX = "org.apache.kafka.coordinator.group.assignor."
_CLASS_NAMES = {f"{_CLASS_PREFIX}{name.capitalize()}Assignor": name for name in ASSIGNORS}


class ConsumerSettings(NamedTuple):
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    regex_refresh_interval_ms: int = 600_000
    max_size: int = 2**31 - 1
    classic: ClassicSettings = ClassicSettings()
    assignors: tuple[str, ...] = tuple(ASSIGNORS)  # the first is the default
    can_upgrade: bool = True
    can_downgrade: bool = True

    @property
    def can_migrate(self) -> bool:
        return self.can_upgrade or self.can_downgrade


def classic_settings(config: ServerConfig) -> ClassicSettings:
    return ClassicSettings(config.get_int("group.initial.rebalance.delay.ms"), config.get_int("group.max.size"))


def consumer_settings(config: ServerConfig, of_group: Mapping[str, str]) -> ConsumerSettings:
    """Return the settings of a group. Its own are limited to the bounds that the broker has now."""

    def bounded(name: str) -> int:
        return effective(f"consumer.{name}", of_group, config.get_int)

    policy = (config.get_str("group.consumer.migration.policy") or "").lower()
    given = config.get_list("group.consumer.assignors")
    known = [_CLASS_NAMES.get(name, name) for name in given]
    return ConsumerSettings(
        bounded("session.timeout.ms"),
        bounded("heartbeat.interval.ms"),
        bounded("assignment.interval.ms"),
        config.get_int("group.consumer.regex.refresh.interval.ms"),
        config.get_int("group.consumer.max.size"),
        classic_settings(config),
        tuple(name for name in known if name in ASSIGNORS) or tuple(ASSIGNORS),
        policy in ("bidirectional", "upgrade"),
        policy in ("bidirectional", "downgrade"),
    )


def is_consumer_protocol_enabled(config: ServerConfig, image: MetadataImage) -> bool:
    """Whether the broker serves the consumer protocol: its settings and the features of the cluster allow it."""
    return (
        "consumer" in config.get_list("group.coordinator.rebalance.protocols")
        and image.features.get("group.version", 0) >= 1
    )
