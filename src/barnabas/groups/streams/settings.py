"""Settings of a streams group: those of the broker, overridden by those of the group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage


class StreamsSettings(NamedTuple):
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initial_rebalance_delay_ms: int = 3_000
    standby_replicas: int = 0
    max_size: int = 2**31 - 1

    @property
    def assignment_configs(self) -> dict[str, str]:
        """The settings that the record of the group repeats: a change of them needs a new assignment."""
        return {"num.standby.replicas": str(self.standby_replicas)}


def streams_settings(config: ServerConfig, of_group: Mapping[str, str]) -> StreamsSettings:
    """Return the settings of a group. Its own are limited to the bounds that the broker has now."""

    def bounded(name: str, least: str | None, most: str | None) -> int:
        text = of_group.get(f"streams.{name}")
        if text is None:
            return config.get_int(f"group.streams.{name}")
        value = int(text)
        if least is not None:
            value = max(value, config.get_int(f"group.streams.{least}"))
        return value if most is None else min(value, config.get_int(f"group.streams.{most}"))

    def between(name: str) -> int:
        return bounded(name, f"min.{name}", f"max.{name}")

    return StreamsSettings(
        between("session.timeout.ms"),
        between("heartbeat.interval.ms"),
        between("assignment.interval.ms"),
        bounded("initial.rebalance.delay.ms", None, None),
        bounded("num.standby.replicas", None, "max.standby.replicas"),
        config.get_int("group.streams.max.size"),
    )


def is_streams_protocol_enabled(config: ServerConfig, image: MetadataImage) -> bool:
    """Whether the broker serves the streams protocol: its settings and the features of the cluster allow it."""
    return (
        "streams" in config.get_list("group.coordinator.rebalance.protocols")
        and image.features.get("streams.version", 0) >= 1
    )
