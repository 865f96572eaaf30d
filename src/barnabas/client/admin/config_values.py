"""Settings as values: what has them, what they are and where they come from, and changes of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.values import ConfigError, ConfigType, parse_value, split_list
from barnabas.wire.errors import ErrorCode, KafkaError


class ConfigResource(NamedTuple):
    """One thing that has settings; the broker with no name stands for all brokers."""

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
        """What holds for every broker that has nothing of its own."""
        return cls(ConfigResourceType.BROKER, "")

    @classmethod
    def group(cls, name: str) -> ConfigResource:
        return cls(ConfigResourceType.GROUP, name)

    @property
    def own_source(self) -> ConfigSource:
        """Where a value comes from that was set for this very resource."""
        if self.type is ConfigResourceType.BROKER and not self.name:
            return ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        return _OWN_SOURCES[self.type]

    def __str__(self) -> str:
        kind = self.type.name.lower().replace("_", "-")
        return f"{kind} {self.name}" if self.name else f"{kind} (default)"


class ConfigSource(IntEnum):
    """Where a value was set, in the words of Kafka's clients."""

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
    """A name by which a setting was given a value, and where."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting of a resource. Values of sensitive ones are None: brokers do not tell them.

    `synonyms` are all places that give it a value, the one that counts first. Brokers since Kafka 2.6 tell its `type`, and,
    if asked, its `documentation`.
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
    """What to do to a setting; the last two are for settings that are lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """One change of one setting.

    >>> AlterConfigOp("retention.ms", AlterConfigOpType.SET, "1000").value
    '1000'
    """

    name: str
    type: AlterConfigOpType
    value: str | None = None


Config: TypeAlias = dict[str, ConfigEntry]
"""The settings of a resource, by name."""


def is_done(resource: ConfigResource, config: Config, ops: Iterable[AlterConfigOp]) -> bool | None:
    """Whether the settings are as these changes make them; None where a password is among them, which nobody can see."""
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
    """By its type, because brokers show `true` for ` TRUE `."""
    try:
        return parse_value(entry.name, text, entry.type)
    except ConfigError:
        return text


def replacement(resource: ConfigResource, config: Config, ops: Iterable[AlterConfigOp]) -> dict[str, str | None]:
    """All that has to be set for a resource, so that these changes are made and nothing else is.

    Raises `KafkaError` where a password is set that is not among the changes: it cannot be read, so it would be lost.
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
        text = f"{resource}: the broker can only replace all settings, and would lose {', '.join(sorted(lost))}, which"
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"{text} cannot be read; IncrementalAlterConfigs came with Kafka 2.3"
        )
    return values
