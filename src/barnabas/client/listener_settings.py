"""What the settings of a listener say about TLS, certificates and the users of PLAIN, for nodes and for the doctor.

Its one rule: a setting that cannot be used raises `ConfigError`, which names it.
"""

from __future__ import annotations

import ssl
from typing import Final

from barnabas.client.jaas import KEY as JAAS
from barnabas.client.jaas import MODULES, parse_jaas, parse_options
from barnabas.client.tls import TLS_SETTINGS, own_certificate, server_context
from barnabas.config.definitions import ConfigError, Value
from barnabas.config.server_config import ServerConfig
from barnabas.security.principal import ANONYMOUS, USER_TYPE, KafkaPrincipal
from barnabas.security.sasl.oauthbearer import NAME as OAUTHBEARER
from barnabas.security.tls.certificate_principal import (
    CertificateError,
    Rule,
    distinguished_name,
    map_name,
    parse_rules,
)

CLIENT_AUTH: Final = "ssl.client.auth"
MAPPING_RULES: Final = "ssl.principal.mapping.rules"
_USER: Final = "user_"


def tls_values(config: ServerConfig, listener_name: str) -> dict[str, Value]:
    """Return the settings of TLS for a listener, and for connections to it."""
    return {name: config.for_listener(listener_name, name) for name in TLS_SETTINGS}


def listener_context(config: ServerConfig, listener_name: str, protocol: str) -> ssl.SSLContext:
    """Return the server side of TLS for a listener. Raises `ConfigError` if its stores cannot be used."""
    # As in Kafka, clients of a SASL listener need no certificate unless the listener's own setting says so.
    own = f"listener.name.{listener_name.lower()}.{CLIENT_AUTH}"
    applies = protocol == "SSL" or own in config.given
    client_auth = str(config.for_listener(listener_name, CLIENT_AUTH)) if applies else "none"
    return server_context(tls_values(config, listener_name), client_auth=client_auth)


def mapping_rules(config: ServerConfig, listener_name: str) -> tuple[Rule, ...]:
    """Return the rules that make principals of certificates. Raises `ConfigError`."""
    try:
        return parse_rules(str(config.for_listener(listener_name, MAPPING_RULES)))
    except ValueError as error:
        raise ConfigError(MAPPING_RULES, f"{MAPPING_RULES}: {error}") from None


def enabled_mechanisms(config: ServerConfig, listener_name: str) -> tuple[str, ...]:
    """Return the SASL mechanisms of a listener."""
    names = config.for_listener(listener_name, "sasl.enabled.mechanisms")
    return names if isinstance(names, tuple) else ()


def plain_users(config: ServerConfig, listener_name: str) -> dict[str, str]:
    """Return the passwords of the users that may log in with PLAIN. Raises `ConfigError` if none are configured."""
    options = parse_options(jaas_text(config, listener_name, "PLAIN"), "PLAIN")
    return {name.removeprefix(_USER): value for name, value in options.items() if name.startswith(_USER)}


def check_own_logins(config: ServerConfig, listener_name: str) -> None:
    """Raise `ConfigError` if the JAAS line of a mechanism of a listener is there and has another form."""
    for mechanism in enabled_mechanisms(config, listener_name):
        name = f"listener.name.{listener_name.lower()}.{mechanism.lower()}.{JAAS}"
        if mechanism in MODULES and name in config.given:
            try:
                parse_options(config.given[name], mechanism)
            except ConfigError as error:
                raise ConfigError(name, f"{name}: {error.message.removeprefix(f'{JAAS}: ')}") from None


def jaas_text(config: ServerConfig, listener_name: str, mechanism: str) -> str:
    """Return the JAAS line for a mechanism of a listener. As in Kafka, one without these two prefixes does not count."""
    name = f"listener.name.{listener_name.lower()}.{mechanism.lower()}.{JAAS}"
    if name not in config.given:
        ignored = f", and {JAAS} without this prefix is ignored, as in Kafka" if JAAS in config.given else ""
        raise ConfigError(name, f"{name} is not set{ignored}: the listener {listener_name} needs it for {mechanism}")
    return config.given[name]


def own_principal(config: ServerConfig, listener_name: str, mechanism: str) -> KafkaPrincipal | None:
    """Return the principal of a node where it connects to this listener, as far as its settings tell; None if they do not."""
    protocol = config.listener_security_protocol_map[listener_name]
    try:
        if protocol.startswith("SASL_"):
            if mechanism not in MODULES or mechanism == OAUTHBEARER:
                return None
            return KafkaPrincipal(
                USER_TYPE, parse_jaas(jaas_text(config, listener_name, mechanism), mechanism).username
            )
        if not protocol.endswith("SSL") or config.for_listener(listener_name, CLIENT_AUTH) == "none":
            return ANONYMOUS
        certificate = own_certificate(tls_values(config, listener_name))
        name = None if certificate is None else distinguished_name(certificate)
        mapped = None if name is None else map_name(name, mapping_rules(config, listener_name))
    except (ConfigError, CertificateError):
        return None
    return None if mapped is None else KafkaPrincipal(USER_TYPE, mapped)
