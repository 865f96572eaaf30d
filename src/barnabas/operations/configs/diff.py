"""Differences between the settings of two resources, or between those of one resource and Kafka's defaults. Pure.

Its one rule: effective values are compared, wherever they were set. Of passwords, only whether they are set is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.client.admin.config_values import Config, ConfigEntry, ConfigResource, ConfigSource
from barnabas.config.resource_type import ConfigResourceType

HIDDEN = "[hidden]"


_UNITS_MS = {"ms": 1, "seconds": 1000, "minutes": 60_000, "hours": 3_600_000}


def _in_unit_of(name: str, synonym: str, value: str | None) -> str | None:
    """Convert the value of a synonym to the unit at the end of the setting's name. Negative numbers mean no limit.

    >>> _in_unit_of("retention.ms", "log.retention.hours", "168"), _in_unit_of("retention.ms", "log.retention.ms", "5")
    ('604800000', '5')
    """
    to, of = (_UNITS_MS.get(each.rpartition(".")[2]) for each in (name, synonym))
    if to is None or of is None or to == of or value is None or not value.isdecimal():
        return value
    return str(int(value) * of // to)


def differences(config: Config, other: Config) -> Iterator[dict[str, Any]]:
    """Yield the settings that differ, by name."""
    for name in sorted({*config, *other}):
        one, two = config.get(name), other.get(name)
        if _comparable(one) != _comparable(two):
            yield {
                "name": name,
                "value": _shown(one),
                "otherValue": _shown(two),
                "source": one and one.source.name,
                "otherSource": two and two.source.name,
            }


def _comparable(entry: ConfigEntry | None) -> object:
    if entry is None:
        return None
    return entry.source is ConfigSource.DEFAULT_CONFIG if entry.is_sensitive else entry.value


def _shown(entry: ConfigEntry | None) -> str | None:
    if entry is None:
        return None
    if not entry.is_sensitive:
        return entry.value
    return None if entry.source is ConfigSource.DEFAULT_CONFIG else HIDDEN


def differences_from_defaults(resource: ConfigResource, config: Config) -> Iterator[dict[str, Any]]:
    """Yield the settings that differ from their default, by name."""
    for entry in sorted(config.values(), key=lambda each: each.name):
        default = default_of(resource, entry)
        if entry.source is not ConfigSource.DEFAULT_CONFIG and (entry.is_sensitive or entry.value != default):
            yield {"name": entry.name, "value": _shown(entry), "source": entry.source.name, "default": default}


def default_of(resource: ConfigResource, entry: ConfigEntry) -> str | None:
    """Return the default that the broker reports, or that of Kafka 4.3.1 if it reports none (as for computed defaults).

    The default of a synonym with another unit, such as log.retention.hours, is returned in the unit of the setting. A secret
    has no default.
    """
    for synonym in entry.synonyms:
        if synonym.source is ConfigSource.DEFAULT_CONFIG:
            return _in_unit_of(entry.name, synonym.name, synonym.value)
    from barnabas.config import broker, client_metrics, group, topic

    known = {
        ConfigResourceType.TOPIC: topic.definitions,
        ConfigResourceType.BROKER: broker.definitions,
        ConfigResourceType.CLIENT_METRICS: client_metrics.definitions,
        ConfigResourceType.GROUP: group.definitions,
    }.get(resource.type)
    definition = known().get(entry.name) if known is not None else None
    return None if definition is None or definition.required else definition.format(definition.default_value())
