"""The effective value of a config, and all its sources, as DescribeConfigs shows them.

The precedence is: the topic's own config, the broker's dynamic config, the cluster-wide dynamic config,
server.properties, the default. A config may have synonyms (log.retention.ms, .minutes, .hours). The value comes from
the first name that has one at all. The list of sources goes from source to source and starts at the first one that has
the config's first name, so a value can come from a source that is not in its list. Both are as in Kafka.

Texts are assumed to be valid, because they were checked when they were set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from barnabas.config import broker, client_metrics, group, topic
from barnabas.config.definitions import ConfigType, Definition, UpdateMode, Value
from barnabas.config.hash_order import hash_order, text_hash

_NOTHING: Mapping[str, str] = MappingProxyType({})


class ConfigSource(IntEnum):
    """The source of a value, with its number in DescribeConfigs."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class Layers(NamedTuple):
    """The configs of a broker: its own dynamic ones, the cluster-wide dynamic ones, and its server.properties."""

    broker: Mapping[str, str] = _NOTHING
    default: Mapping[str, str] = _NOTHING
    static: Mapping[str, str] = _NOTHING


class SourcedValue(NamedTuple):
    """A name, its text, and its source. The text of a sensitive config is None."""

    name: str
    value: str | None
    source: ConfigSource


class Entry(NamedTuple):
    """A config as DescribeConfigs shows it. `synonyms` are all sources of a value, highest precedence first."""

    name: str
    value: str | None
    source: ConfigSource
    synonyms: tuple[SourcedValue, ...]
    type: ConfigType
    sensitive: bool
    read_only: bool
    doc: str | None


def broker_value(name: str, layers: Layers) -> Value:
    """Return the value of a broker config."""
    definition = broker.definitions()[name]
    text = _broker_text(name, layers)
    return definition.default_value() if text is None else definition.parse(text)


def broker_texts(layers: Layers) -> dict[str, str]:
    """Return the effective texts of a broker, in the form of a server.properties.

    `server.load` validates them together.
    """
    names = dict.fromkeys([*layers.static, *layers.default, *layers.broker])
    return {name: text for name in names if (text := _broker_text(name, layers)) is not None}


def topic_value(name: str, configs: Mapping[str, str], layers: Layers) -> Value:
    """Return the value of a topic config, given the topic's own configs."""
    definition = topic.definitions()[name]
    return definition.parse(configs[name]) if name in configs else _inherited(definition, layers)


def topic_defaults(layers: Layers) -> dict[str, Value]:
    """Return the values of a topic without configs."""
    return {name: _inherited(definition, layers) for name, definition in topic.definitions().items()}


def group_value(name: str, configs: Mapping[str, str], layers: Layers) -> Value:
    """Return the effective value of a group config, limited to the broker's current bounds."""
    definition = group.definitions()[name]
    value = definition.parse(configs[name]) if name in configs else _inherited(definition, layers)
    if name in group.bounds():
        _, min_name, max_name = group.bounds()[name]
        value = min(_number(value), _number(broker_value(max_name, layers)))
        if min_name is not None:
            value = max(value, _number(broker_value(min_name, layers)))
    return value


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def describe_broker(layers: Layers, names: Collection[str] = ()) -> list[Entry]:
    """Return a broker's configs, all or only the named ones. Unknown names are included if they are set."""
    shown = dict.fromkeys(_shown_order(broker.definitions))
    others = (name for name in hash_order(broker_texts(layers), at_once=True) if name not in shown)
    return [_broker_entry(name, layers) for name in [*others, *shown] if not names or name in names]


def describe_broker_default(layers: Layers, names: Collection[str] = ()) -> list[Entry]:
    """Return the cluster-wide dynamic configs, all or only the named ones."""
    entries = []
    for name in hash_order(sorted(layers.default, key=text_hash)):
        if not names or name in names:
            entry = _broker_entry(name, Layers(default=layers.default))
            only = tuple(each for each in entry.synonyms if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
            entries.append(entry._replace(value=None if entry.sensitive else layers.default[name], synonyms=only))
    return entries


def describe_topic_defaults(layers: Layers) -> dict[str, Entry]:
    """Return the configs of a topic that sets none. `describe_topic` builds on them."""
    entries = {}
    for name, definition in _shown(topic.definitions):
        sources = _broker_sources(definition.synonyms[0].name, layers) if definition.synonyms else ()
        entries[name] = _entry(definition, definition.format(_inherited(definition, layers)), sources)
    return entries


def describe_topic(
    configs: Mapping[str, str],
    layers: Layers,
    names: Collection[str] = (),
    *,
    defaults: Mapping[str, Entry] | None = None,
) -> list[Entry]:
    """Return a topic's configs, all or only the named ones. Internal and unknown ones are included if they are set.

    To describe many topics, pass `describe_topic_defaults(layers)` as `defaults`.
    """
    shown = describe_topic_defaults(layers) if defaults is None else defaults
    others = [name for name in configs if name not in shown]
    entries = [_own_entry(name, configs[name], ()) for name in hash_order(others) if not names or name in names]
    for name, entry in shown.items():
        if not names or name in names:
            entries.append(_own_entry(name, configs[name], entry.synonyms) if name in configs else entry)
    return entries


def _own_entry(name: str, text: str, inherited: tuple[SourcedValue, ...]) -> Entry:
    definition = topic.definitions().get(name)
    if definition is None:
        return _unknown_entry(name, (SourcedValue(name, None, ConfigSource.TOPIC_CONFIG),), read_only=False)
    value = definition.format(definition.parse(text))
    return _entry(definition, value, (SourcedValue(name, value, ConfigSource.TOPIC_CONFIG), *inherited))


def describe_group(configs: Mapping[str, str], layers: Layers, names: Collection[str] = ()) -> list[Entry]:
    """Return a group's configs, all or only the named ones."""
    entries = []
    for name, definition in _shown(group.definitions, names):
        value = definition.parse(configs[name]) if name in configs else _inherited(definition, layers)
        if definition.synonyms:
            sources = _broker_sources(definition.synonyms[0].name, layers)
        else:
            sources = (SourcedValue(name, definition.default, ConfigSource.DEFAULT_CONFIG),)
        if name in configs:
            sources = (SourcedValue(name, definition.format(value), ConfigSource.GROUP_CONFIG), *sources)
        entries.append(_entry(definition, definition.format(value), sources))
    return entries


def describe_client_metrics(configs: Mapping[str, str], names: Collection[str] = ()) -> list[Entry]:
    """Return a subscription's configs, all or only the named ones."""
    entries = []
    for name, definition in _shown(client_metrics.definitions, names):
        text = definition.format(definition.parse(configs.get(name, definition.default)))
        sources = (SourcedValue(name, text, ConfigSource.CLIENT_METRICS_CONFIG),) if name in configs else ()
        entries.append(_entry(definition, text, sources))
    return entries


Table = Callable[[], Mapping[str, Definition]]


def _shown(table: Table, names: Collection[str] = ()) -> Iterable[tuple[str, Definition]]:
    definitions = table()
    return ((name, definitions[name]) for name in _shown_order(table) if not names or name in names)


@cache
def _shown_order(table: Table) -> Sequence[str]:
    definitions = table()
    # Ours come last, because the order of Kafka's follows from how many there are.
    own = sorted(name for name in definitions if name.startswith("barnabas."))
    known = hash_order(name for name in definitions if name not in own)
    return [*hash_order(name for name in known if not definitions[name].internal), *own]


def _entry(
    definition: Definition, value: str | None, sources: tuple[SourcedValue, ...], read_only: bool = False
) -> Entry:
    source = sources[0].source if sources else ConfigSource.DEFAULT_CONFIG
    return Entry(
        definition.name, value, source, sources, definition.type, definition.sensitive, read_only, definition.doc
    )


def _unknown_entry(name: str, sources: tuple[SourcedValue, ...], *, read_only: bool) -> Entry:
    """Return an entry without its value, because an unknown config may be a secret."""
    hidden = tuple(each._replace(value=None) for each in sources)
    source = hidden[0].source if hidden else ConfigSource.DEFAULT_CONFIG
    return Entry(name, None, source, hidden, ConfigType.UNKNOWN, True, read_only, None)


def _broker_entry(name: str, layers: Layers) -> Entry:
    text, definition = _broker_text(name, layers), broker.find(name)
    if definition is None:
        return _unknown_entry(name, _broker_sources(name, layers), read_only=True)
    if definition.name != name:
        value = None if definition.sensitive else text
    else:
        value = definition.default if text is None else definition.format(definition.parse(text))
    read_only = definition.name != name or definition.update is UpdateMode.READ_ONLY
    return _entry(definition, value, _broker_sources(name, layers), read_only)._replace(name=name)


def _broker_text(name: str, layers: Layers) -> str | None:
    """Return the text with the highest precedence. A dynamic config hides its synonyms in lower layers."""
    hiding = _hiding().get(name, ())
    for layer in layers:
        if name in layer:
            return layer[name]
        if layer is not layers.static and any(each in layer for each in hiding):
            return None
    return None


@cache
def _hiding() -> Mapping[str, list[str]]:
    hiding: dict[str, list[str]] = {}
    for name in broker.definitions():
        for synonym in broker.synonym_names(name):
            hiding.setdefault(synonym, []).append(name)
    return hiding


def _inherited(definition: Definition, layers: Layers) -> Value:
    """Return the value that the broker configs provide, or the config's own default."""
    for synonym in definition.synonyms:
        value = broker_value(synonym.name, layers)
        if isinstance(value, int) and synonym.factor != 1:
            value *= synonym.factor
        if value is not None:
            # Any negative retention time means unlimited.
            return max(value, -1) if definition.name == "retention.ms" and isinstance(value, int) else value
    return definition.default_value()


def _broker_sources(name: str, layers: Layers) -> tuple[SourcedValue, ...]:
    sensitive = broker.is_sensitive(name)
    names = broker.synonym_names(name)
    defaults = {each: known.default for each in names if (known := broker.definitions().get(each)) is not None}
    places = (
        (layers.broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (layers.default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (layers.static, ConfigSource.STATIC_BROKER_CONFIG),
        ({each: text for each, text in defaults.items() if text is not None}, ConfigSource.DEFAULT_CONFIG),
    )
    sources = [
        SourcedValue(each, None if sensitive else layer[each], source)
        for layer, source in places
        for each in names
        if each in layer
    ]
    first = next((at for at, each in enumerate(sources) if each.name == name), len(sources))
    return tuple(sources[first:])
