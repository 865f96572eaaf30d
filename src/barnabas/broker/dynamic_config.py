"""The configuration in force on a node: its file, overridden by dynamic settings.

`DynamicConfig` follows the committed image. Dynamic settings that are inconsistent are logged and ignored, and the node
keeps its previous configuration. `check` tests a change before it is made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from barnabas.broker.listener_securities import security_texts
from barnabas.broker.listener_security import check_listeners
from barnabas.config import broker, reconfiguration, server, topic
from barnabas.config.definitions import ConfigError, Value
from barnabas.config.reconfiguration import load_dynamic, refusals
from barnabas.config.resolve import Layers, broker_texts, topic_defaults, topic_value
from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.server_checks import RequirementError
from barnabas.config.server_config import ServerConfig
from barnabas.controller.configs import layers_of
from barnabas.metadata.image import MetadataImage
from barnabas.steps import Slices, at_once, result_of
from barnabas.wire import ErrorCode, KafkaError, Message

_log = logging.getLogger(__name__)

React = Callable[[ServerConfig, ServerConfig], None]


class _Watcher(NamedTuple):
    names: Collection[str]
    react: React


class DynamicConfig:
    """The configuration in force. `image_changed`, a subscriber of the metadata loop, updates it."""

    def __init__(self, static: ServerConfig, image: MetadataImage) -> None:
        self.static = static
        self.current = static
        self._image = image
        self._watchers: list[_Watcher] = []
        self._any_watchers: list[Callable[[], Slices[None] | None]] = []
        self._topic_defaults: Mapping[str, Value] | None = None
        at_once(self._update())

    def get(self, name: str) -> Value:
        """Return the value of a broker setting. Raises KeyError if the name is unknown."""
        return self.current.get(name)

    def topic_value(self, topic_name: str, name: str) -> Value:
        """Return the value of a topic's setting."""
        configs = self._image.config(ConfigResourceType.TOPIC, topic_name)
        return topic_value(name, configs, Layers(static=self.current.given))

    def topic_values(self, topic_name: str) -> Mapping[str, Value]:
        """Return the values of all settings of a topic."""
        if self._topic_defaults is None:
            self._topic_defaults = topic_defaults(Layers(static=self.current.given))
        configs = self._image.config(ConfigResourceType.TOPIC, topic_name)
        definitions = topic.definitions()
        own = {name: definitions[name].parse(text) for name, text in configs.items() if name in definitions}
        return {**self._topic_defaults, **own} if own else self._topic_defaults

    def watch_any(self, react: Callable[[], Slices[None] | None]) -> None:
        """Call `react()` after any setting of this node has changed."""
        self._any_watchers.append(react)

    def watch(self, names: Collection[str], react: React) -> None:
        """Call `react(old, new)` after the value of one of these settings has changed."""
        self._watchers.append(_Watcher(names, react))

    def image_changed(self, old: MetadataImage, new: MetadataImage, records: Sequence[Message]) -> Slices[None]:
        """Apply the changes of a commit."""
        self._image = new
        names = ("", str(self.static.node_id))
        kind = ConfigResourceType.BROKER
        if any(old.config(kind, name) is not new.config(kind, name) for name in names):
            yield from self._update()

    def _update(self) -> Slices[None]:
        old = self.current
        try:
            self.current = load_dynamic(layers_of(self._image, self.static))
        except ConfigError as error:
            _log.error("ignoring the dynamic settings of this node: %s", error)
            return
        self._topic_defaults = None
        for react_to_any in self._any_watchers:
            yield from result_of(react_to_any())
        for names, react in self._watchers:
            if any(old.get(name) != self.current.get(name) for name in names):
                react(old, self.current)


def check(config: ServerConfig, image: MetadataImage, texts: Mapping[str, str], *, cluster_wide: bool) -> None:
    """Raise KafkaError if this node cannot run with these texts as its dynamic settings, or as those of all nodes."""
    broker.validate_dynamic(texts, cluster_wide=cluster_wide)
    layers = layers_of(image, config)
    try:
        current = load_dynamic(layers)
    except ConfigError:
        current = config
    try:
        changed = layers._replace(default=texts) if cluster_wide else layers._replace(broker=texts)
        new = server.load(broker_texts(changed))
        reconfiguration.check(current, new)
        if security_texts(current) != security_texts(new):
            check_listeners(new)
    except RequirementError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"requirement failed: {error.message}") from None
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, error.message) from None
    _refuse_unsupported(config, new)


def check_protection(
    config: ServerConfig, image: MetadataImage, texts: Mapping[str, str], *, cluster_wide: bool
) -> None:
    """Raise KafkaError if these dynamic settings protect something and this node would ignore them.

    Unlike `check`, accept settings that this node cannot apply: a controller stores them, as in Kafka.
    """
    layers = layers_of(image, config)
    texts = broker.effective(texts, cluster_wide=cluster_wide)
    try:
        new = load_dynamic(layers._replace(default=texts) if cluster_wide else layers._replace(broker=texts))
    except ConfigError:
        return
    _refuse_unsupported(config, new)


def _refuse_unsupported(static: ServerConfig, new: ServerConfig) -> None:
    for why in refusals(static, new):
        raise KafkaError(ErrorCode.INVALID_CONFIG, why)
