"""The configs of a new topic: validation, records, and the effective values shown in the response.

Kafka's controller shows them in a simpler way than DescribeConfigs: a value is shown as it was set, and among several
synonyms the most specific source wins (this node's config, then the cluster-wide one, then server.properties).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from barnabas.config import topic
from barnabas.config.definitions import Definition, Synonym, Value
from barnabas.config.hash_order import hash_order_in_slices
from barnabas.config.resolve import ConfigSource, Layers, topic_defaults
from barnabas.config.resource_type import ConfigResourceType
from barnabas.controller.configs import MAX_VALUE_LENGTH, MIN_INSYNC_REPLICAS, layers_of
from barnabas.controller.situation import Situation
from barnabas.steps import Slices, stepwise
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.records.metadata import ClearElrRecord, ConfigRecord

ShownConfig = CreateTopicsResponse.CreatableTopicConfigs


class TopicConfigs:
    """The config rules for all topics that one request creates."""

    def __init__(self, situation: Situation) -> None:
        self._elr = situation.image.is_elr_enabled
        self._layers = layers_of(situation.image, situation.config)
        self._remote_storage = situation.config.get("remote.log.storage.system.enable") is True
        self._defaults: Mapping[str, Value] | None = None
        self._inherited: Mapping[str, ShownConfig] | None = None
        self._shared: list[ShownConfig] = []

    def accept(self, given: Sequence[CreateTopicsRequest.CreatableTopicConfig]) -> Slices[dict[str, str]]:
        """Return the configs by name; the last one wins if a name is repeated. Raises INVALID_CONFIG."""
        configs: dict[str, str] = {}
        nulls: list[str] = []
        for some in stepwise(given):
            nulls += [each.name for each in some if each.value is None]
            configs.update((each.name, each.value) for each in some if each.value is not None)
            if some[-1] is not given[-1]:
                yield
        if nulls:
            text = f"Null value not supported for topic configs: {','.join(nulls)}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, text)
        if not configs:
            return {}
        if len(configs) > len(topic.definitions()):
            for name in (yield from hash_order_in_slices(configs)):
                if name not in topic.definitions():
                    topic.validate({name: ""})
        if any(len(value) > MAX_VALUE_LENGTH for value in configs.values()):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{MAX_VALUE_LENGTH} bytes.",
            )
        if self._defaults is None:
            self._defaults = topic_defaults(self._layers)
        topic.validate(configs, self._defaults, remote_storage_system_enabled=self._remote_storage)
        return configs

    def records(self, name: str, configs: Mapping[str, str]) -> list[tuple[Message, int]]:
        """Return the config records. A new min.insync.replicas also clears the eligible leader replicas."""
        kind = ConfigResourceType.TOPIC.value
        records: list[tuple[Message, int]] = [
            (ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value), 0)
            for key, value in configs.items()
        ]
        if self._elr and MIN_INSYNC_REPLICAS in configs:
            records.append((ClearElrRecord(topic_name=name), 0))
        return records

    def shown(self, configs: Mapping[str, str]) -> list[ShownConfig]:
        """Return all effective configs by name, internal ones only if they were set.

        Topics without configs share one list.
        """
        if self._inherited is None:
            definitions = sorted(topic.definitions().items())
            self._inherited = {
                name: _inherit(definition, self._layers) for name, definition in definitions if not definition.internal
            }
            self._shared = list(self._inherited.values())
        if not configs:
            return self._shared
        own = {
            name: _show(topic.definitions()[name], value, ConfigSource.TOPIC_CONFIG) for name, value in configs.items()
        }
        return sorted({**self._inherited, **own}.values(), key=attrgetter("name"))


def _show(definition: Definition, value: str | None, source: ConfigSource) -> ShownConfig:
    sensitive = definition.sensitive
    return ShownConfig(
        name=definition.name,
        value=None if sensitive else value,
        config_source=source.value,
        is_sensitive=sensitive,
    )


def _inherit(definition: Definition, layers: Layers) -> ShownConfig:
    places = (
        (layers.broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (layers.default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (layers.static, ConfigSource.STATIC_BROKER_CONFIG),
    )
    for layer, source in places:
        text = _first(definition.synonyms, layer)
        if text is not None:
            return _show(definition, text, source)
    return _show(definition, definition.default, ConfigSource.DEFAULT_CONFIG)


def _first(synonyms: Sequence[Synonym], layer: Mapping[str, str]) -> str | None:
    for name, factor in synonyms:
        if name in layer:
            return layer[name] if factor == 1 else str(int(layer[name]) * factor)
    return None
