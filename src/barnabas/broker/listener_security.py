"""How a listener authenticates its clients and encrypts, made from the node's settings.

Its one rule: a `ListenerSecurity` never changes. New settings or certificates make another one, for new connections; those
that are open keep theirs.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final, NamedTuple

from barnabas.broker.login import SaslSettings
from barnabas.client.jaas import KEY as JAAS
from barnabas.client.jaas import parse_options
from barnabas.client.tls import TLS_SETTINGS, server_context
from barnabas.config.definitions import ConfigError, Value
from barnabas.config.endpoints import Endpoint
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.scram import SCRAM_MECHANISMS, ScramUser
from barnabas.security.principal import ANONYMOUS, USER_TYPE, KafkaPrincipal
from barnabas.security.sasl import ServerMechanism
from barnabas.security.sasl.exchange import Mechanisms
from barnabas.security.sasl.plain import PlainServer
from barnabas.security.sasl.scram import ScramCredential, ScramServer
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
_NONCE_BYTES: Final = 24
_SECRET_BYTES: Final = 32
_SCRAM_NUMBERS: Final = {name: number for number, name in SCRAM_MECHANISMS.items()}


class ListenerSecurity(NamedTuple):
    """The protection of one listener: TLS, a login, both or neither."""

    tls: ssl.SSLContext | None = None
    sasl: SaslSettings | None = None
    mapping_rules: tuple[Rule, ...] = (Rule(),)

    def principal_of(self, certificate: bytes | None) -> KafkaPrincipal:
        """Return the principal of a client that has sent this certificate, or none. Raises `CertificateError`."""
        if certificate is None:
            return ANONYMOUS
        name = distinguished_name(certificate)
        mapped = map_name(name, self.mapping_rules)
        if mapped is None:
            raise CertificateError(f"no rule in {MAPPING_RULES} applies to {name}")
        return KafkaPrincipal(USER_TYPE, mapped)


NO_SECURITY: Final = ListenerSecurity()


class Credentials:
    """Where logins are checked: the SCRAM credentials in the metadata, and the randomness that SCRAM needs."""

    def __init__(self, image: Callable[[], MetadataImage], random: Random) -> None:
        self._image = image
        self._random = random
        self._secret = random.randbytes(_SECRET_BYTES)

    def scram(self, name: str) -> ScramServer:
        """Return the server side of one login."""
        find = partial(self._find, _SCRAM_NUMBERS[name])
        return ScramServer(name, find, nonce=self.new_nonce(), secret=self._secret)

    def new_nonce(self) -> str:
        return self._random.randbytes(_NONCE_BYTES).hex()

    def _find(self, mechanism: int, user: str) -> ScramCredential | None:
        return self._image().scram.get(ScramUser(mechanism, user))


def listener_security(config: ServerConfig, endpoint: Endpoint, credentials: Credentials) -> ListenerSecurity:
    """Return the protection of a listener. Reads key and trust stores. Raises `ConfigError`."""
    name, protocol = endpoint.listener_name, endpoint.security_protocol
    return ListenerSecurity(
        _tls(config, name, protocol) if protocol.endswith("SSL") else None,
        _sasl(config, name, credentials) if protocol.startswith("SASL_") else None,
        _mapping_rules(config, name),
    )


def check_listeners(config: ServerConfig) -> None:
    """Raise `ConfigError` if the key stores, trust stores, rules or users of a listener cannot be used."""
    for name, protocol, *_ in config.listeners:
        if protocol.endswith("SSL"):
            _tls(config, name, protocol)
            _mapping_rules(config, name)
        if protocol.startswith("SASL_") and "PLAIN" in _enabled(config, name):
            plain_users(config, name)


def tls_values(config: ServerConfig, listener_name: str) -> dict[str, Value]:
    """Return the settings of TLS for a listener, and for connections to it."""
    return {name: config.for_listener(listener_name, name) for name in TLS_SETTINGS}


def _tls(config: ServerConfig, listener_name: str, protocol: str) -> ssl.SSLContext:
    # As in Kafka, clients of a SASL listener need no certificate unless the listener's own setting says so.
    own = f"listener.name.{listener_name.lower()}.{CLIENT_AUTH}"
    applies = protocol == "SSL" or own in config.given
    client_auth = str(config.for_listener(listener_name, CLIENT_AUTH)) if applies else "none"
    return server_context(tls_values(config, listener_name), client_auth=client_auth)


def _mapping_rules(config: ServerConfig, listener_name: str) -> tuple[Rule, ...]:
    try:
        return parse_rules(str(config.for_listener(listener_name, MAPPING_RULES)))
    except ValueError as error:
        raise ConfigError(MAPPING_RULES, f"{MAPPING_RULES}: {error}") from None


def _sasl(config: ServerConfig, listener_name: str, credentials: Credentials) -> SaslSettings:
    names = _enabled(config, listener_name)
    max_reauth_ms = {}
    for name in names:
        value = config.for_listener(listener_name, "connections.max.reauth.ms", name)
        assert isinstance(value, int)
        max_reauth_ms[name] = value
    max_receive_bytes = config.for_listener(listener_name, "sasl.server.max.receive.size")
    assert isinstance(max_receive_bytes, int)
    return SaslSettings(
        mechanisms=_mechanisms(config, listener_name, names, credentials),
        max_reauth_ms=max_reauth_ms,
        max_receive_bytes=max_receive_bytes,
        failed_delay_ms=config.get_int("connection.failed.authentication.delay.ms"),
    )


def _enabled(config: ServerConfig, listener_name: str) -> tuple[str, ...]:
    names = config.for_listener(listener_name, "sasl.enabled.mechanisms")
    return names if isinstance(names, tuple) else ()


def _mechanisms(
    config: ServerConfig, listener_name: str, names: tuple[str, ...], credentials: Credentials
) -> Mechanisms:
    mechanisms: dict[str, Callable[[], ServerMechanism]] = {}
    for name in names:
        if name == "PLAIN":
            mechanisms[name] = _plain(plain_users(config, listener_name))
        else:
            mechanisms[name] = partial(credentials.scram, name)
    return mechanisms


def _plain(passwords: dict[str, str]) -> Callable[[], PlainServer]:
    return lambda: PlainServer(passwords)  # unlike a partial, its repr has no passwords


def plain_users(config: ServerConfig, listener_name: str) -> dict[str, str]:
    """Return the passwords of the users that may log in with PLAIN. Raises `ConfigError` if none are configured."""
    options = parse_options(jaas_text(config, listener_name, "PLAIN"), "PLAIN")
    return {name.removeprefix(_USER): value for name, value in options.items() if name.startswith(_USER)}


def jaas_text(config: ServerConfig, listener_name: str, mechanism: str) -> str:
    """Return the JAAS line for a mechanism of a listener. As in Kafka, one without these two prefixes does not count."""
    name = f"listener.name.{listener_name.lower()}.{mechanism.lower()}.{JAAS}"
    if name not in config.given:
        ignored = f", and {JAAS} without this prefix is ignored, as in Kafka" if JAAS in config.given else ""
        raise ConfigError(name, f"{name} is not set{ignored}: the listener {listener_name} needs it for {mechanism}")
    return config.given[name]
