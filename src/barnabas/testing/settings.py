"""The configuration of an embedded broker: the caller's configs, over the embedded defaults, over defaults for tests.

Pure: text in, a validated `ServerConfig` out, or `ConfigError`. Ports are free ones unless they are passed, or known
from the last start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.config.endpoints import address_text
from barnabas.config.server import EMBEDDED_DEFAULTS, FAULTS, FAULTS_LISTENER, METRICS, METRICS_LISTENER, load
from barnabas.config.server_config import ServerConfig
from barnabas.config.unsupported import check_supported
from barnabas.config.values import ConfigError, split_list

Setting = str | int | float | bool

TEST_DEFAULTS = {
    # Fifty partitions of an internal topic are for many brokers; here each would only cost a directory.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # A member that joins within a second after another has left would wait for its next heartbeat.
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}


class Wanted(NamedTuple):
    """The arguments of the caller."""

    settings: Mapping[str, str]
    host: str
    port: int
    protocol: str = "PLAINTEXT"  # of the client listener, and its name

    @property
    def names_log_dirs(self) -> bool:
        return "log.dirs" in self.settings or "log.dir" in self.settings


def setting_texts(config: Mapping[str, Setting]) -> dict[str, str]:
    """Convert values to the text of a server.properties."""
    texts = {}
    for name, value in config.items():
        if not isinstance(value, str | int | float):
            raise ConfigError(name, f"A value must be a text, a number or a boolean, not {value!r}")
        texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def topic_partitions(topics: Mapping[str, int] | Iterable[str]) -> dict[str, int | None]:
    """Return topics by name, with the number of partitions if it was passed."""
    if isinstance(topics, str):
        raise TypeError(f"topics must be a list of names, or a dict of names and numbers of partitions: [{topics!r}]")
    return dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics)


def server_config(wanted: Wanted, log_dirs: str, addresses: Mapping[str, tuple[str, int]]) -> ServerConfig:
    """Return the configuration for a start. `addresses` are those of the last start, which are kept."""
    given = {**TEST_DEFAULTS, "log.dirs": wanted.settings.get("log.dir", log_dirs), **wanted.settings}
    given["listeners"] = _listeners(wanted)
    config = load(None, given)
    if addresses:
        given["listeners"] = ",".join(
            f"{each.listener_name}://{address_text(each.host, addresses[each.listener_name][1])}"
            for each in config.listeners
        )
        if METRICS in addresses:
            given[METRICS_LISTENER] = address_text(*addresses[METRICS])
        if FAULTS in addresses:
            given[FAULTS_LISTENER] = address_text(*addresses[FAULTS])
        config = load(None, given)
    if not config.is_broker:
        raise ConfigError("process.roles", "A Broker needs the role broker: remove process.roles, or add broker to it")
    check_supported(config)
    return config


def _listeners(wanted: Wanted) -> str:
    listeners = wanted.settings.get("listeners")
    if listeners is None:
        listeners = f"{wanted.protocol}://{address_text(wanted.host, wanted.port)}"
    names = [entry.partition("://")[0].strip().upper() for entry in split_list(listeners)]
    controllers = wanted.settings.get("controller.listener.names", EMBEDDED_DEFAULTS["controller.listener.names"])
    missing = [name.upper() for name in split_list(controllers) if name.upper() not in names]
    return ",".join([listeners, *(f"{name}://127.0.0.1:0" for name in missing)])
