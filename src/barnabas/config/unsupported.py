"""The configs that this software does not implement and that protect something, such as a listener with TLS.

Its one rule: a node never runs as if such a config was not there. `unsupported` returns an error for each one, and a
node with any of them does not start. Configs without effect on the listeners in use are accepted, as in Kafka: a key
store or a SASL mechanism protects nothing if every listener is PLAINTEXT. `ignored` returns warnings for configs that
limit clients, but protect no data.

To serve another security protocol, add it to `SERVED_PROTOCOLS`, and check here the configs that it does not support.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.config import broker
from barnabas.config.definitions import ConfigError
from barnabas.config.endpoints import Endpoint, address_text
from barnabas.config.server_config import ServerConfig

SERVED_PROTOCOLS: Final = frozenset({"PLAINTEXT"})
"""The security protocols of listeners that clients can use."""

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

_MISSING: Final[Mapping[str, str]] = {
    "SSL": "encryption and client certificates",
    "SASL_PLAINTEXT": "authentication",
    "SASL_SSL": "encryption and authentication",
}
_PLUGINS: Final[Mapping[str, str]] = {
    "create.topic.policy.class.name": "it could not reject new topics",
    "alter.config.policy.class.name": "it could not reject changes of configs",
    "client.quota.callback.class": "it could not limit clients",
}
_LIMITS: Final = ("max.connections", "max.connection.creation.rate")
_AUTHORIZER, _BUILDER = "authorizer.class.name", "principal.builder.class"


def check_supported(config: ServerConfig) -> None:
    """Raise `ConfigError` for the first config that a node would have to ignore, although it protects something."""
    for error in unsupported(config):
        raise error


def unsupported(config: ServerConfig) -> Iterator[ConfigError]:
    """Yield an error for each config that protects something and is not implemented."""
    for endpoint in config.listeners:
        if endpoint.security_protocol not in SERVED_PROTOCOLS:
            yield _unserved(endpoint)
    yield from _unsupported_authorizer(config)
    for name in _names(config, _BUILDER):
        if config.given[name].strip() != broker.definitions()[_BUILDER].default:
            yield ConfigError(
                name,
                f"{name}={config.given[name]} is not supported, because there are no Java classes: principals would not "
                f"be the expected ones. Remove {name}",
            )
    for name, lost in _PLUGINS.items():
        if config.given.get(name, "").strip():
            yield ConfigError(
                name,
                f"{name}={config.given[name]} is not supported, because there are no Java classes: {lost}. Remove {name}",
            )
    yield from _unresolved(config)


def ignored(config: ServerConfig) -> list[str]:
    """Return a warning for each config that has no effect, although its reader may rely on it."""
    warnings = []
    if not config.get_str(_AUTHORIZER):
        warnings += [
            f"{name} has no effect without {_AUTHORIZER}: everyone may do everything"
            for name in sorted(broker.AUTHORIZER_SETTINGS)
            if config.given.get(name, "").strip() not in ("", "true")
        ]
    for limit in _LIMITS:
        names = [name for name in _names(config, limit) if name != limit or limit != "max.connections"]
        warnings += [f"{name} is not implemented and has no effect" for name in names]
    return warnings


def _unserved(endpoint: Endpoint) -> ConfigError:
    name, protocol = endpoint.listener_name, endpoint.security_protocol
    shown = f"{name}://{address_text(endpoint.host, endpoint.port)}"
    return ConfigError(
        "listeners",
        f"Listener {name} ({shown}) has the security protocol {protocol}, which is not implemented: "
        f"it would be open without {_MISSING[protocol]}. Remove it from listeners, or use PLAINTEXT in a network that "
        "you trust",
    )


def _unsupported_authorizer(config: ServerConfig) -> Iterator[ConfigError]:
    authorizer = config.get_str(_AUTHORIZER)
    if not authorizer:
        return
    if authorizer != STANDARD_AUTHORIZER:
        yield ConfigError(
            _AUTHORIZER,
            f"{_AUTHORIZER}={authorizer} is not supported, because there are no Java classes. Use {STANDARD_AUTHORIZER}, "
            f"or remove {_AUTHORIZER} to allow everyone everything",
        )
    for user in filter(None, map(str.strip, config.given.get("super.users", "").split(";"))):
        if ":" not in user:
            yield ConfigError("super.users", f"expected a string in format principalType:principalName but got {user}")


def _unresolved(config: ServerConfig) -> Iterator[ConfigError]:
    """Yield an error for each value from a config provider, except where the value is not used."""
    starts = tuple(f"${{{provider}:" for provider in config.get_list("config.providers"))
    for name, text in config.given.items():
        if any(start in text for start in starts) and not broker.base_name(name).startswith(("ssl.", "sasl.")):
            yield ConfigError(
                name,
                f"The value of {name} is from a provider in config.providers, and these are not supported. "
                "Replace it by the value itself",
            )


def _names(config: ServerConfig, base: str) -> list[str]:
    """Return the names under which a config was set, for all listeners or for one that exists."""
    prefixes = ["", *(f"listener.name.{each.listener_name.lower()}." for each in config.listeners)]
    return [prefix + base for prefix in prefixes if prefix + base in config.given]
