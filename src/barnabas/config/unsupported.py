"""The configs that this software does not implement and that protect something, such as Kerberos.

Its one rule: a node never runs as if such a config was not there. `unsupported` returns an error for each one, and a
node with any of them does not start. Configs without effect on the listeners in use are accepted, as in Kafka: a key
store or a SASL mechanism protects nothing if every listener is PLAINTEXT. `ignored` returns warnings for configs without
effect that protect no data.

To serve another SASL mechanism, add it to `SERVED_MECHANISMS`, and check here the configs that it does not support.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.config import broker
from barnabas.config.definitions import ConfigError
from barnabas.config.endpoints import Endpoint
from barnabas.config.listener_prefixes import in_upper_case
from barnabas.config.server_config import ServerConfig

SERVED_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
SERVED_SELECTORS: Final = (RACK_AWARE_SELECTOR, "org.apache.kafka.common.replica.LeaderSelector")

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

_TWO_USERS: Final = "User:alice;User:bob"

_MECHANISMS_NAME: Final = "sasl.enabled.mechanisms"
_OTHER_MECHANISMS: Final[Mapping[str, str]] = {"GSSAPI": " (Kerberos)"}
# Java classes that would take part in a login or in TLS, by the start of the protocols that use them.
_CLASSES: Final[Mapping[str, str]] = {
    "sasl.server.callback.handler.class": "SASL_",
    "sasl.client.callback.handler.class": "SASL_",
    "sasl.login.class": "SASL_",
    "sasl.login.callback.handler.class": "SASL_",
    "sasl.oauthbearer.jwt.validator.class": "SASL_",
    "ssl.engine.factory.class": "SSL",
    "ssl.provider": "SSL",
}
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer."
_CHECKS_SIGNATURES: Final = _OAUTH + "OAuthBearerValidatorCallbackHandler"
_UNSECURED: Final = _OAUTH + "internals.unsecured.OAuthBearerUnsecured"
UNSECURED_VALIDATOR: Final = f"{_UNSECURED}ValidatorCallbackHandler"
# The Java classes whose work is done here, by the setting for OAUTHBEARER that names them.
_KNOWN_CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "sasl.server.callback.handler.class": frozenset((_CHECKS_SIGNATURES, UNSECURED_VALIDATOR)),
    "sasl.login.callback.handler.class": frozenset(
        (_OAUTH + "OAuthBearerLoginCallbackHandler", f"{_UNSECURED}LoginCallbackHandler")
    ),
    "sasl.oauthbearer.jwt.validator.class": frozenset((_OAUTH + "DefaultJwtValidator", _OAUTH + "BrokerJwtValidator")),
}
_PLUGINS: Final[Mapping[str, str]] = {
    "create.topic.policy.class.name": "it could not reject new topics",
    "alter.config.policy.class.name": "it could not reject changes of configs",
    "client.quota.callback.class": "it could not limit clients",
}
# Classes that could be others in Kafka: those whose work is done here, and what is done in place of any other.
_ASSIGNORS: Final = "org.apache.kafka.coordinator.group.assignor."
_REPLACED: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "group.consumer.assignors": (
        frozenset(("uniform", "range", f"{_ASSIGNORS}UniformAssignor", f"{_ASSIGNORS}RangeAssignor")),
        "consumer groups use uniform or range",
    ),
    "group.share.assignors": (frozenset(("simple", f"{_ASSIGNORS}SimpleAssignor")), "share groups use simple"),
    "group.share.persister.class.name": (
        frozenset(("org.apache.kafka.server.share.persister.DefaultStatePersister",)),
        "the share coordinator keeps the state of share groups",
    ),
}
_SELECTOR: Final = "replica.selector.class"
_AUTHORIZER, _BUILDER = "authorizer.class.name", "principal.builder.class"


def check_supported(config: ServerConfig) -> None:
    """Raise `ConfigError` for the first config that a node would have to ignore, although it protects something."""
    for error in unsupported(config):
        raise error


def unsupported(config: ServerConfig) -> Iterator[ConfigError]:
    """Yield an error for each config that protects something and is not implemented."""
    for endpoint in config.listeners:
        if endpoint.security_protocol.startswith("SASL_"):
            yield from _unsupported_mechanisms(config, endpoint.listener_name)
        yield from _unsupported_classes(config, endpoint)
    yield from in_upper_case(config)
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
    selector = (config.get_str(_SELECTOR) or "").strip()
    if selector not in ("", *SERVED_SELECTORS):
        served = " or ".join(SERVED_SELECTORS)
        yield ConfigError(
            _SELECTOR, f"{_SELECTOR}={selector} is not supported, because there are no Java classes. Choose {served}"
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
    users = config.given.get("super.users", "")
    if config.get_str(_AUTHORIZER) and re.search(r",\s*User:", users):
        warnings.append(f"super.users has names with a comma: users are separated by semicolons, as in {_TWO_USERS}")
    warnings += _open_to_all_authorities(config)
    if "sasl.jaas.config" in config.given and any(_has_sasl(each) for each in config.listeners):
        warnings.append(
            "sasl.jaas.config has no effect: a node takes logins from listener.name.NAME.MECHANISM.sasl.jaas.config alone"
        )
    for name, (known, instead) in _REPLACED.items():
        others = {each.strip() for each in config.given.get(name, "").split(",")} - known - {""}
        if others:
            wrong = ", ".join(sorted(others))
            warnings.append(f"{wrong} in {name} has no effect, because there are no Java classes: {instead}")
    for name in (each.listener_name for each in config.listeners if _has_sasl(each)):
        enabled = config.for_listener(name, _MECHANISMS_NAME)
        if isinstance(enabled, tuple) and "OAUTHBEARER" in enabled and _token_handler(name) not in config.given:
            warnings.append(
                f"the listener {name} accepts tokens without a signature, in which a client may claim any name: for more "
                f"than tests, set {_token_handler(name)}={_CHECKS_SIGNATURES}"
            )
    return warnings


def _has_sasl(endpoint: Endpoint) -> bool:
    return endpoint.security_protocol.startswith("SASL_")


def _open_to_all_authorities(config: ServerConfig) -> Iterator[str]:
    for name, protocol, *_ in config.listeners:
        own = f"listener.name.{name.lower()}.ssl.client.auth" in config.given
        if protocol != "SSL" and not (protocol == "SASL_SSL" and own):
            continue
        stores = (config.for_listener(name, f"ssl.truststore.{each}") for each in ("location", "certificates"))
        client_auth = config.for_listener(name, "ssl.client.auth")
        if client_auth != "none" and not any(stores):
            yield (
                f"ssl.client.auth={client_auth} of the listener {name} accepts clients with a certificate of any "
                "authority that this system knows: set ssl.truststore.location to those that may name users"
            )


def _unsupported_mechanisms(config: ServerConfig, listener_name: str) -> Iterator[ConfigError]:
    enabled = config.for_listener(listener_name, _MECHANISMS_NAME)
    assert isinstance(enabled, tuple)
    served = ", ".join(SERVED_MECHANISMS)
    if not enabled:
        yield ConfigError(_MECHANISMS_NAME, f"Listener {listener_name} has no SASL mechanism. Choose some of {served}")
    for name in enabled:
        if name not in SERVED_MECHANISMS:
            kind = _OTHER_MECHANISMS.get(name, "")
            default = "" if any(each.endswith(_MECHANISMS_NAME) for each in config.given) else ", the default of Kafka,"
            yield ConfigError(
                _MECHANISMS_NAME,
                f"Listener {listener_name} enables the SASL mechanism {name}{kind}{default} which is not implemented. "
                f"Set {_MECHANISMS_NAME} to some of {served}",
            )
    if listener_name in config.controller_listener_names[:1]:
        used = config.get_str("sasl.mechanism.controller.protocol")
        if used not in enabled:
            yield ConfigError(
                "sasl.mechanism.controller.protocol",
                f"sasl.mechanism.controller.protocol={used} is not in {_MECHANISMS_NAME} of the controller listener "
                f"{listener_name}, so brokers could not log in",
            )


def _unsupported_classes(config: ServerConfig, endpoint: Endpoint) -> Iterator[ConfigError]:
    own = f"listener.name.{endpoint.listener_name.lower()}."
    prefixes = ("", own, *(f"{own}{name.lower()}." for name in SERVED_MECHANISMS))
    for base, of_protocol in _CLASSES.items():
        if of_protocol in endpoint.security_protocol:
            for name in (prefix + base for prefix in prefixes if config.given.get(prefix + base, "").strip()):
                if _is_done_here(name, base, config.given[name].strip()):
                    continue
                yield ConfigError(
                    name,
                    f"{name}={config.given[name]} is not supported, because there are no Java classes: the listener "
                    f"{endpoint.listener_name} would not be protected as expected. Remove {name}",
                )


def _is_done_here(name: str, base: str, java_class: str) -> bool:
    # As in Kafka, callback handlers count for one mechanism of one listener only.
    counts = name.endswith(f".oauthbearer.{base}") or base.startswith("sasl.oauthbearer.")
    return counts and java_class in _KNOWN_CLASSES.get(base, ())


def is_unsecured(config: ServerConfig, listener_name: str) -> bool:
    """Return True if a listener with OAUTHBEARER accepts tokens without a signature, as by default."""
    return config.given.get(_token_handler(listener_name), "").strip() != _CHECKS_SIGNATURES


def _token_handler(listener_name: str) -> str:
    return f"listener.name.{listener_name.lower()}.oauthbearer.sasl.server.callback.handler.class"


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
    is_plaintext = all(each.security_protocol == "PLAINTEXT" for each in config.listeners)
    starts = tuple(f"${{{provider}:" for provider in config.get_list("config.providers"))
    for name, text in config.given.items():
        is_unused = is_plaintext and broker.base_name(name).startswith(("ssl.", "sasl."))
        if any(start in text for start in starts) and not is_unused:
            yield ConfigError(
                name,
                f"The value of {name} is from a provider in config.providers, and these are not supported. "
                "Replace it by the value itself",
            )


def _names(config: ServerConfig, base: str) -> list[str]:
    """Return the names under which a config was set, for all listeners or for one that exists."""
    prefixes = ["", *(f"listener.name.{each.listener_name.lower()}." for each in config.listeners)]
    return [prefix + base for prefix in prefixes if prefix + base in config.given]
