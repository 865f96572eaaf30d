"""The checks of a dynamic config change that depend on the broker's current configuration.

`check` takes two valid configurations and rejects the change from one to the other with Kafka's error text. For
example, thread pools at most double or halve, and listeners in use keep their protocol. Checks of a single config are
in `broker`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.config import broker, server, topic
from barnabas.config.definitions import ConfigError
from barnabas.config.hash_order import hash_order
from barnabas.config.resolve import Layers, broker_texts
from barnabas.config.server_config import ServerConfig
from barnabas.config.unsupported import unsupported
from barnabas.wire.errors import ErrorCode

_THREADS = (
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
)
_RETENTIONS_MS = {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}


def load_dynamic(layers: Layers) -> ServerConfig:
    """Return the configuration of these layers. Raises `ConfigError` if they are inconsistent."""
    texts = broker_texts(layers)
    for kind in ("consumer", "share", "streams"):
        _cut_off(texts, kind)
    return server.load(texts)


def _cut_off(texts: dict[str, str], kind: str) -> None:
    """Clamp the assignment interval: the file may have narrower bounds than when the interval was set."""
    name, low, high = (f"group.{kind}.{bound}assignment.interval.ms" for bound in ("", "min.", "max."))
    if name in texts:
        value, least, most = (
            broker.definitions()[each].parse(texts.get(each, broker.definitions()[each].default))
            for each in (name, low, high)
        )
        assert isinstance(value, int) and isinstance(least, int) and isinstance(most, int)
        texts[name] = str(max(least, min(value, most)))


def refusals(static: ServerConfig, new: ServerConfig) -> Iterator[str]:
    """Yield why a node cannot run with dynamic settings: they protect something in a way that the file's do not.

    Listeners are opened and closed only when the node starts, so a change of them would have no effect.
    """
    before = {str(error) for error in unsupported(static)}
    yield from (text for text in map(str, unsupported(new)) if text not in before)
    if new.listeners != static.listeners:
        yield ("listeners cannot be changed while the node runs: change it in server.properties and restart the node")


def check(old: ServerConfig, new: ServerConfig) -> None:
    """Raise `ConfigError` if a broker that runs with `old` cannot change to `new`."""
    texts = {*old.given.items()} ^ {*new.given.items()}
    if not texts:
        return
    try:
        for listener in new.listeners:
            _check_listener(old, new, listener.listener_name)
        for name in hash_order(_THREADS):
            _check_threads(name, old.get_int(name), new.get_int(name))
        if {name for name, _ in texts} & _log_settings():
            topic.check_local_retention("log.retention.ms", _retention_ms(new), new.get("log.local.retention.ms"))
            bytes_name = "log.retention.bytes"
            topic.check_local_retention(bytes_name, new.get(bytes_name), new.get("log.local.retention.bytes"))
        _check_listeners(old, new)
        _check_cleaners(old.get_int("log.cleaner.threads"), new.get_int("log.cleaner.threads"))
    except ConfigError as error:
        # Kafka treats the inner error as the value of a config called "Invalid dynamic configuration".
        inner = f"org.apache.kafka.common.config.ConfigException: {error.message}"
        message = f"Invalid value {inner} for configuration Invalid dynamic configuration"
        raise ConfigError(error.key, message, ErrorCode.INVALID_REQUEST) from None


def _check_listener(old: ServerConfig, new: ServerConfig, listener_name: str) -> None:
    for name in ("max.connections", "max.connection.creation.rate"):
        value = new.for_listener(listener_name, name)
        if value != old.for_listener(listener_name, name) and value == 0:
            raise ConfigError(name, f"Invalid {name} {value}")
    if any(each.listener_name == listener_name for each in old.listeners):
        before, after = (config.for_listener(listener_name, "num.network.threads") for config in (old, new))
        assert isinstance(before, int)
        assert isinstance(after, int)
        _check_threads("num.network.threads", before, after)


def _check_threads(name: str, before: int, after: int) -> None:
    what = f"Dynamic thread count update validation failed for {name}={after}"
    if after < before // 2:
        raise ConfigError(name, f"{what}, value should be at least half the current value {before}")
    if after > before * 2:
        raise ConfigError(name, f"{what}, value should not be greater than double the current value {before}")


def _check_cleaners(before: int, after: int) -> None:
    if after < before // 2:
        why = f"Log cleaner threads cannot be reduced to less than half the current value {before}"
    elif after > before * 2:
        why = f"Log cleaner threads cannot be increased to more than double the current value {before}"
    else:
        return
    raise ConfigError("log.cleaner.threads", why)


def _log_settings() -> set[str]:
    return {synonym.name for each in topic.definitions().values() for synonym in each.synonyms[:1]}


def _retention_ms(config: ServerConfig) -> int:
    values = ((config.get(name), factor) for name, factor in _RETENTIONS_MS.items())
    retention_ms = next(value * factor for value, factor in values if isinstance(value, int))
    return max(retention_ms, -1)


def _check_listeners(old: ServerConfig, new: ServerConfig) -> None:
    told, names = ([each.listener_name for each in some] for some in (old.advertised_listeners, new.listeners))
    if not set(told) <= set(names):
        message = f"Advertised listeners '{_show(told)}' must be a subset of listeners '{_show(names)}'"
        raise ConfigError("listeners", message)
    for name in dict.fromkeys(names):
        if name in {each.listener_name for each in old.listeners} and (
            old.listener_security_protocol_map[name] != new.listener_security_protocol_map[name]
        ):
            message = f"Security protocol cannot be updated for existing listener ListenerName({name})"
            raise ConfigError("listener.security.protocol.map", message)


def _show(listener_names: Iterable[str]) -> str:
    return f"Set({', '.join(f'ListenerName({name})' for name in dict.fromkeys(listener_names))})"
