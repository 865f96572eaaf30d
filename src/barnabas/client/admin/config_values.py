"""Values for configs: resources, entries with their sources, and alterations. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.values import ConfigError, ConfigType, parse_value, split_list
from barnabas.wire.errors import ErrorCode, KafkaError


class ConfigResource(NamedTuple):
    """A resource with configs. A broker without a name stands for all brokers."""

    type: ConfigResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        return cls(ConfigResourceType.TOPIC, name)

    @classmethod
    def broker(cls, id: int) -> ConfigResource:
        return cls(ConfigResourceType.BROKER, str(id))

    @classmethod
    def all_brokers(cls) -> ConfigResource:
        """Return the resource of the cluster-wide default for brokers."""
        return cls(ConfigResourceType.BROKER, "")

    @classmethod
    def group(cls, name: str) -> ConfigResource:
        return cls(ConfigResourceType.GROUP, name)

    @property
    def own_source(self) -> ConfigSource:
        """Source of a value that is set on this resource itself."""
        if self.type is ConfigResourceType.BROKER and not self.name:
            return ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        return _OWN_SOURCES[self.type]

    def __str__(self) -> str:
        kind = self.type.name.lower().replace("_", "-")
        return f"{kind} {self.name}" if self.name else f"{kind} (default)"


class ConfigSource(IntEnum):
    """Source of a value, as named by Kafka's clients."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8

    @classmethod
    def _missing_(cls, value: object) -> ConfigSource:
        return cls.UNKNOWN


_OWN_SOURCES: Final = {
    ConfigResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigResourceType.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigResourceType.BROKER_LOGGER: ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
    ConfigResourceType.CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    ConfigResourceType.GROUP: ConfigSource.DYNAMIC_GROUP_CONFIG,
}


class ConfigSynonym(NamedTuple):
    """One of the places where a config has a value, by name and source."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config of a resource. The value of a sensitive config is None, because brokers do not return it.

    `synonyms` are all places where it has a value; the first one is in effect. Since Kafka 2.6 brokers return its `type` and,
    if asked for, its `documentation`.
    """

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool = False
    is_read_only: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: ConfigType = ConfigType.UNKNOWN
    documentation: str | None = None


class AlterConfigOpType(IntEnum):
    """Operation on a config. APPEND and SUBTRACT are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """An alteration of one config.

    >>> AlterConfigOp("retention.ms", AlterConfigOpType.SET, "1000").value
    '1000'
    """

    name: str
    type: AlterConfigOpType
    value: str | None = None


Config: TypeAlias = dict[str, ConfigEntry]
"""The configs of a resource, by name."""


def is_done(resource: ConfigResource, config: Config, ops: Iterable[AlterConfigOp]) -> bool | None:
    """Return whether these alterations are in effect; None if one is a password, which cannot be read."""
    states = [_is_one_done(resource, config.get(op.name), op) for op in ops]
    if False in states:
        return False
    return None if None in states else True


def _is_one_done(resource: ConfigResource, entry: ConfigEntry | None, op: AlterConfigOp) -> bool | None:
    is_own = entry is not None and entry.source is resource.own_source
    if op.type is AlterConfigOpType.DELETE:
        return not is_own
    if entry is None:
        return False
    if entry.is_sensitive:
        return None if is_own else False
    if op.type is AlterConfigOpType.SET:
        return is_own and _value(entry, entry.value) == _value(entry, op.value)
    present, asked = set(split_list(entry.value or "")), set(split_list(op.value or ""))
    return asked <= present if op.type is AlterConfigOpType.APPEND else not asked & present


def _value(entry: ConfigEntry, text: str | None) -> object:
    """Parse a text by the config's type, because brokers return `true` for ` TRUE `."""
    try:
        return parse_value(entry.name, text, entry.type)
    except ConfigError:
        return text


def replacement(resource: ConfigResource, config: Config, ops: Iterable[AlterConfigOp]) -> dict[str, str | None]:
    """Return the full configs of a resource after these alterations, for brokers that can only replace all of them.

    Raises `KafkaError` if a password is set that is not altered: it cannot be read, so it would be lost.
    """
    values = {entry.name: entry.value for entry in config.values() if entry.source is resource.own_source}
    for op in ops:
        if op.type is AlterConfigOpType.DELETE:
            values.pop(op.name, None)
        elif op.type is AlterConfigOpType.SET:
            values[op.name] = op.value
        else:
            present = split_list((config[op.name].value if op.name in config else None) or "")
            asked = split_list(op.value or "")
            is_append = op.type is AlterConfigOpType.APPEND
            kept = [*present, *asked] if is_append else [each for each in present if each not in asked]
            values[op.name] = ",".join(dict.fromkeys(kept))
    lost = [name for name, value in values.items() if value is None and name in config and config[name].is_sensitive]
    if lost:
        text = f"{resource}: the broker can only replace all configs, and would lose {', '.join(sorted(lost))}, which"
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"{text} cannot be read; IncrementalAlterConfigs came with Kafka 2.3"
        )
    return values
