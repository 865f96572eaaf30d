"""The node's own connections to other nodes, and to its own controller, with the protection of the listener they go to.

As in Kafka, the client side of a listener uses the settings of that listener: its trust and key store, and the user name
and password in the JAAS line of the mechanism between brokers or for controllers. A trust or key store that is replaced
while the node runs, as a file or by a dynamic setting, is used for the next connection; the login is that of the start.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from typing import NamedTuple, Protocol

from barnabas.client.connection import Connection
from barnabas.client.errors import TlsError
from barnabas.client.handshake import Login, Options, connect
from barnabas.client.jaas import parse_jaas, parse_options
from barnabas.client.listener_settings import CLIENT_AUTH, jaas_text, own_principal, tls_values
from barnabas.client.oauth import OAuthLogin
from barnabas.client.settings import password_login
from barnabas.client.tls import client_context, store_stamps
from barnabas.config import broker
from barnabas.config.definitions import ConfigError, Value
from barnabas.config.endpoints import Address
from barnabas.config.server_config import ServerConfig
from barnabas.security.principal import ANONYMOUS, USER_TYPE, KafkaPrincipal
from barnabas.security.sasl.oauthbearer import NAME as OAUTHBEARER

_log = logging.getLogger(__name__)


class Links(Protocol):
    """Decides which addresses the node can reach. Implemented by `faults.NodeFaults`."""

    def check(self, host: str, port: int) -> None:
        """Raise NotConnectedError if the address is out of reach."""
        ...

    def opened(self, connection: Connection, host: str, port: int) -> None: ...


class OwnConnections(NamedTuple):
    """Opens connections to one listener. Without TLS and login, nothing is sent before the first request.

    `tls` is called for each connection, so that a replaced certificate is used.
    """

    tls: Callable[[], ssl.SSLContext] | None = None
    login: Login | None = None
    principal: str = str(ANONYMOUS)  # as the other side sees it, in words if it depends on a certificate
    problem: str = ""  # why no connection can be opened
    links: Links | None = None  # asked before a connection is opened

    async def open(
        self, host: str, port: int, client_id: str, *, host_name: str | None = None, timeout_ms: float = 10_000
    ) -> Connection:
        """Connect and log in. The certificate must have `host_name`, or else the host. Raises what `connect` raises."""
        if self.tls is not None or self.login is not None or self.problem:
            return await self.open_negotiated(host, port, client_id, host_name=host_name, timeout_ms=timeout_ms)
        if self.links is not None:
            self.links.check(host, port)
        return self._noted(await Connection.open(host, port, client_id, timeout_ms=timeout_ms), host, port)

    async def open_negotiated(
        self, host: str, port: int, client_id: str, *, host_name: str | None = None, timeout_ms: float = 10_000
    ) -> Connection:
        """Do the same, and negotiate versions, so that calls need none. Raises ConnectionError if there is a `problem`."""
        if self.problem:
            raise ConnectionError(self.problem)
        if self.links is not None:
            self.links.check(host, port)
        tls = None if self.tls is None else self.tls()
        options = Options(client_id, tls, self.login, timeout_ms, host_name)
        return self._noted(await connect(Address(host, port), options), host, port)

    def _noted(self, connection: Connection, host: str, port: int) -> Connection:
        if self.links is not None:
            self.links.opened(connection, host, port)
        return connection


NOT_PROTECTED = OwnConnections()


class OwnTls:
    """The context of new connections. The stores are read again when a setting or a file has changed, because reading
    them keeps the event loop busy. If they cannot be read any more, the last context is used."""

    def __init__(self, config: Callable[[], ServerConfig], listener_name: str) -> None:
        """Raises `ConfigError` if the stores cannot be read."""
        self._config = config
        self._listener_name = listener_name
        values = self._values()
        self._known = values, store_stamps(values)
        self._last = client_context(values)

    def __call__(self) -> ssl.SSLContext:
        values = self._values()
        found = values, store_stamps(values)
        if found != self._known:
            self._known = found
            try:
                self._last = client_context(values)
            except ConfigError as error:
                _log.error("connections to %s use the certificates of before: %s", self._listener_name, error)
        return self._last

    def _values(self) -> dict[str, Value]:
        return tls_values(self._config(), self._listener_name)


def to_controllers(
    config: Callable[[], ServerConfig], random_nonce: Callable[[], str], now_ms: Callable[[], int]
) -> OwnConnections:
    """Return the connections to the first controller listener. `config` returns the current one. Raises `ConfigError`."""
    name = config().controller_listener_names[0]
    mechanism = config().get_str("sasl.mechanism.controller.protocol") or ""
    return _to_listener(config, name, mechanism, random_nonce, now_ms)


def to_brokers(
    config: Callable[[], ServerConfig], random_nonce: Callable[[], str], now_ms: Callable[[], int]
) -> OwnConnections:
    """Return the connections to the listener between brokers.

    A node that is alone needs none, so what is wrong with its own login is an error only when it connects.
    """
    mechanism = config().get_str("sasl.mechanism.inter.broker.protocol") or ""
    try:
        return _to_listener(config, config().inter_broker_listener_name, mechanism, random_nonce, now_ms)
    except ConfigError as error:
        return OwnConnections(problem=str(error))


def with_own_stores(error: TlsError, config: ServerConfig) -> str:
    """Say which stores the node had when it could not connect to a controller."""
    stores = f"ssl.truststore.* and ssl.keystore.* of the listener {config.controller_listener_names[0]}"
    return f"{error}. Connections to controllers use {stores}"


def _to_listener(
    current: Callable[[], ServerConfig],
    listener_name: str,
    mechanism: str,
    random_nonce: Callable[[], str],
    now_ms: Callable[[], int],
) -> OwnConnections:
    config = current()
    protocol = config.listener_security_protocol_map[listener_name]
    login: Login | None = None
    principal = str(ANONYMOUS)
    if protocol.startswith("SASL_"):
        text = jaas_text(config, listener_name, mechanism)
        if mechanism == OAUTHBEARER:
            names = [name for name in broker.definitions() if name.startswith(("sasl.login.", "sasl.oauthbearer."))]
            settings = {name: config.for_listener(listener_name, name, mechanism) for name in names}
            login = OAuthLogin(settings, parse_options(text, mechanism), now_ms)
            principal = "the name in its token"
        else:
            credentials = parse_jaas(text, mechanism)
            principal = str(KafkaPrincipal(USER_TYPE, credentials.username))
            login = password_login(mechanism, credentials, random_nonce)

    if not protocol.endswith("SSL"):
        return OwnConnections(None, login, principal)
    if login is None and config.for_listener(listener_name, CLIENT_AUTH) != "none":
        found = own_principal(config, listener_name, mechanism)
        principal = "the name in its certificate" if found is None else str(found)
    return OwnConnections(OwnTls(current, listener_name), login, principal)
