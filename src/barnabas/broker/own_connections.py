"""The node's own connections to other nodes, and to its own controller, with the protection of the listener they go to.

As in Kafka, the client side of a listener uses the settings of that listener: its trust and key store, and the user name
and password in the JAAS line of the mechanism between brokers or for controllers.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import NamedTuple, Protocol

from barnabas.broker.listener_security import CLIENT_AUTH, jaas_text, tls_values
from barnabas.client.connection import Connection
from barnabas.client.handshake import Login, Options, connect
from barnabas.client.jaas import parse_jaas, parse_options
from barnabas.client.oauth import OAuthLogin
from barnabas.client.settings import password_login
from barnabas.client.tls import client_context
from barnabas.config import broker
from barnabas.config.definitions import ConfigError
from barnabas.config.endpoints import Address
from barnabas.config.server_config import ServerConfig
from barnabas.security.principal import ANONYMOUS, USER_TYPE, KafkaPrincipal
from barnabas.security.sasl.oauthbearer import NAME as OAUTHBEARER


class Links(Protocol):
    """Decides which addresses the node can reach. Implemented by `faults.NodeFaults`."""

    def check(self, host: str, port: int) -> None:
        """Raise NotConnectedError if the address is out of reach."""
        ...

    def opened(self, connection: Connection, host: str, port: int) -> None: ...


class OwnConnections(NamedTuple):
    """Opens connections to one listener. Without TLS and login, nothing is sent before the first request.

    Key and trust stores are read for each connection, so that a replaced certificate is used.
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


def to_controllers(config: ServerConfig, random_nonce: Callable[[], str], now_ms: Callable[[], int]) -> OwnConnections:
    """Return the connections to the first controller listener. Raises `ConfigError`."""
    name = config.controller_listener_names[0]
    mechanism = config.get_str("sasl.mechanism.controller.protocol") or ""
    return _to_listener(config, name, mechanism, random_nonce, now_ms)


def to_brokers(config: ServerConfig, random_nonce: Callable[[], str], now_ms: Callable[[], int]) -> OwnConnections:
    """Return the connections to the listener between brokers.

    A node that is alone needs none, so what is wrong with its own login is an error only when it connects.
    """
    mechanism = config.get_str("sasl.mechanism.inter.broker.protocol") or ""
    try:
        return _to_listener(config, config.inter_broker_listener_name, mechanism, random_nonce, now_ms)
    except ConfigError as error:
        return OwnConnections(problem=str(error))


def _to_listener(
    config: ServerConfig,
    listener_name: str,
    mechanism: str,
    random_nonce: Callable[[], str],
    now_ms: Callable[[], int],
) -> OwnConnections:
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
        principal = "the name in its certificate"
    values = tls_values(config, listener_name)
    client_context(values)  # an error is found before the node starts
    return OwnConnections(lambda: client_context(values), login, principal)
