"""A client's settings, by the names that Kafka's clients have for them, from a mapping or a client.properties file.

Text in, checked values out; an error names the setting, and a name that nobody knows is a warning. Producers, consumers and
others bring a table of their own settings and get them back by name.

>>> settings = load({"bootstrap.servers": "one:9092,two:9092", "request.timeout.ms": 5_000})
>>> settings.bootstrap_servers[1]
Address(host='two', port=9092)
>>> settings.get_int("retry.backoff.ms")
100
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import ssl
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from barnabas.client.backoff import Backoff
from barnabas.client.handshake import Login, Options
from barnabas.client.jaas import Credentials, parse_jaas
from barnabas.client.tls import client_context
from barnabas.config import properties
from barnabas.config.definitions import Definition, Value, parse_all, parse_table
from barnabas.config.endpoints import SECURITY_PROTOCOLS, Address, parse_addresses
from barnabas.config.values import ConfigError, format_value
from barnabas.security.sasl import MECHANISMS, ClientMechanism
from barnabas.security.sasl.plain import PlainClient
from barnabas.security.sasl.scram import ScramClient

log = logging.getLogger(__name__)

_NO_DEFINITIONS: Mapping[str, Definition] = MappingProxyType({})


class ClientSettings(NamedTuple):
    """Settings that were checked; `load` and `load_file` make them. Passwords do not show in the repr."""

    values: Mapping[str, Value]
    bootstrap_servers: tuple[Address, ...]
    bootstrap_controllers: tuple[Address, ...]
    credentials: Credentials | None
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        at = ",".join(f"{host}:{port}" for host, port in self.bootstrap_servers or self.bootstrap_controllers)
        return f"ClientSettings({at}, {self.security_protocol})"

    def get(self, name: str) -> Value:
        """The value of any known setting; KeyError for an unknown one."""
        return self.values[name]

    def get_int(self, name: str) -> int:
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is not a whole number")
        return value

    def get_str(self, name: str) -> str:
        """The value of a text; one that is not set is empty."""
        value = self.values[name]
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} is not a text")
        return value or ""

    def get_bool(self, name: str) -> bool:
        value = self.values[name]
        if not isinstance(value, bool):
            raise TypeError(f"{name} is not a boolean")
        return value

    @property
    def client_id(self) -> str:
        return self.get_str("client.id") or "barnabas"

    @property
    def security_protocol(self) -> str:
        return self.get_str("security.protocol").upper()

    @property
    def retry_backoff(self) -> Backoff:
        return Backoff(self.get_int("retry.backoff.ms"), self.get_int("retry.backoff.max.ms"))

    @property
    def reconnect_backoff(self) -> Backoff:
        return Backoff(self.get_int("reconnect.backoff.ms"), self.get_int("reconnect.backoff.max.ms"))

    def connect_options(self) -> Options:
        """How connections are made; reads the files of certificates and keys. Raises `ConfigError`."""
        tls: ssl.SSLContext | None = client_context(self.values) if self.security_protocol.endswith("SSL") else None
        login: Login | None = None
        if self.credentials is not None:
            mechanism, credentials = self.get_str("sasl.mechanism"), self.credentials

            def login() -> ClientMechanism:
                return begin_login(mechanism, credentials, secrets.token_urlsafe(24))

        return Options(self.client_id, tls, login, self.get_int("socket.connection.setup.timeout.ms"))


def begin_login(mechanism: str, credentials: Credentials, nonce: str) -> ClientMechanism:
    username, password, is_token = credentials
    if mechanism == "PLAIN":
        return PlainClient(username, password)
    extensions = {"tokenauth": "true"} if is_token else None
    return ScramClient(mechanism, username, password, nonce=nonce, extensions=extensions)


def load(
    given: Mapping[str, object], more: Mapping[str, Definition] = _NO_DEFINITIONS, *, warn: bool = True
) -> ClientSettings:
    """Check what is given (texts, numbers, booleans, lists of texts); `more` defines settings beyond those of every client.

    Unknown names are logged as warnings if `warn`, and are in `warnings` in any case. Raises `ConfigError`.
    """
    texts = {name: _text_of(value) for name, value in given.items()}
    known = {**definitions(), **more}
    values = MappingProxyType(parse_all(known, texts))
    warnings = tuple(
        f"{name} is not a setting that is known; it is ignored" for name in texts if not _is_known(name, known)
    )
    if warn:
        for warning in warnings:
            log.warning("%s", warning)
    servers = _addresses("bootstrap.servers", values)
    controllers = _addresses("bootstrap.controllers", values)
    if bool(servers) == bool(controllers):
        text = (
            "bootstrap.servers and bootstrap.controllers cannot both be set" if servers else "no address to begin with"
        )
        raise ConfigError("bootstrap.servers", f"{text}: set bootstrap.servers=HOST:PORT, or bootstrap.controllers")
    return ClientSettings(values, servers, controllers, _credentials(values), warnings)


def load_over(
    base: ClientSettings | None, given: Mapping[str, object], more: Mapping[str, Definition]
) -> ClientSettings:
    """As `load`; but of a client that stands on another, whose settings are `base`, only those in `more` are its own."""
    if base is None:
        return load(given, more)
    own = load({"bootstrap.servers": "unused:1", **given}, more, warn=False)
    return base._replace(values={**base.values, **{name: own.values[name] for name in more}})


def load_file(
    path: str | os.PathLike[str],
    overrides: Mapping[str, object] | None = None,
    more: Mapping[str, Definition] = _NO_DEFINITIONS,
) -> ClientSettings:
    """The settings of a Java client.properties; `overrides` win over the file."""
    return load({**read_file(path), **(overrides or {})}, more)


def read_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """The texts of a client.properties, not yet checked. Raises OSError, and `ConfigError` for what is no such file."""
    return properties.loads(Path(path).read_text(encoding="latin-1"))


def _text_of(value: object) -> str | None:
    if isinstance(value, list | tuple):
        return ",".join(str(entry) for entry in value)
    return (
        value
        if value is None or isinstance(value, str)
        else format_value(value if isinstance(value, bool | int | float) else str(value))
    )


def _is_known(name: str, known: Mapping[str, Definition]) -> bool:
    return name in known or re.match(_WITHOUT_EFFECT, name) is not None


def _addresses(name: str, values: Mapping[str, Value]) -> tuple[Address, ...]:
    entries = values[name]
    found = parse_addresses(name, [entry for entry in entries if entry] if isinstance(entries, tuple) else ())
    for address in found:
        if not address.host or not address.port:
            raise ConfigError(name, f"{name}: a host and a port are needed, as in localhost:9092")
    return found


def _credentials(values: Mapping[str, Value]) -> Credentials | None:
    if not str(values["security.protocol"]).upper().startswith("SASL"):
        return None
    mechanism, jaas = values["sasl.mechanism"], values["sasl.jaas.config"]
    if mechanism not in MECHANISMS:
        raise ConfigError(
            "sasl.mechanism", f"sasl.mechanism: {mechanism} is not known here; there are {', '.join(MECHANISMS)}"
        )
    if not isinstance(jaas, str):
        raise ConfigError("sasl.jaas.config", f"sasl.jaas.config must say who logs in with {mechanism}")
    return parse_jaas(jaas, str(mechanism))


@cache
def definitions() -> Mapping[str, Definition]:
    """The settings of every client."""
    return parse_table(_TABLE)


# What Java clients know beside these, and what has no meaning here.
_WITHOUT_EFFECT = (
    r"metrics?\.|auto\.include\.jmx|enable\.metrics\.push|security\.providers|client\.dns\.lookup|(send|receive)\.buffer\.bytes"
    r"|ssl\.(provider|secure|keymanager|trustmanager|engine|truststore\.password|keystore\.password|protocol$|cipher)"
    r"|sasl\.(kerberos|login|oauthbearer|client\.callback)|config\.providers|socket\.connection\.setup\.timeout\.max\.ms|retries$"
    r"|metadata\.recovery\.rebootstrap"
)

_PROTOCOLS = "|".join(SECURITY_PROTOCOLS)
_TABLE = f"""\
bootstrap.servers list "" high
    Brokers to begin with, as host:port; the others are learnt from them.
bootstrap.controllers list "" high
    Controllers to begin with, to administer a quorum without brokers.
client.id string "" medium
    Name by which brokers log, throttle and count this client.
metadata.max.age.ms long 300000 low >=0
    Age at which what is known of the cluster is asked for again.
metadata.max.idle.ms long 300000 low >=5000
    Time after which a topic that nobody asks for is forgotten.
metadata.recovery.strategy string rebootstrap low nocase:REBOOTSTRAP|NONE
    What to do when no known node can be reached: begin again with the bootstrap servers, or only try again.
reconnect.backoff.ms long 50 low >=0
    First pause before a node is connected to again.
reconnect.backoff.max.ms long 1000 low >=0
    Longest pause before a node is connected to again.
retry.backoff.ms long 100 low >=0
    First pause before a request is tried again.
retry.backoff.max.ms long 1000 low >=0
    Longest pause before a request is tried again.
request.timeout.ms int 30000 medium >=0
    How long one answer is waited for.
default.api.timeout.ms int 60000 medium >=0
    How long a call may take with all its attempts.
socket.connection.setup.timeout.ms long 10000 medium >=1
    How long a connection may take to be made, and once more for versions and login.
connections.max.idle.ms long 540000 medium
    Time after which a connection that is not used is closed; -1 is never.
security.protocol string PLAINTEXT medium nocase:{_PROTOCOLS}
    How to talk to nodes: with TLS, with a login, both or neither.
sasl.mechanism string GSSAPI medium
    How to log in: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
sasl.jaas.config password - medium
    Who logs in, as a line of JAAS.
ssl.enabled.protocols list TLSv1.2,TLSv1.3 medium list+empty
    TLS versions that may be spoken.
ssl.endpoint.identification.algorithm string https low
    Whether a node's name must be in its certificate; empty turns it off.
ssl.truststore.type string JKS medium
    Format of the trust store; only PEM can be read.
ssl.truststore.location string - high
    File with the certificates that are trusted; those of the system if there is none.
ssl.truststore.certificates password - high
    The certificates that are trusted, in PEM.
ssl.keystore.type string JKS medium
    Format of the key store; only PEM can be read.
ssl.keystore.location string - high
    File with the client's key and its certificate.
ssl.keystore.key password - high
    The client's key, in PEM.
ssl.keystore.certificate.chain password - high
    The client's certificate and its chain, in PEM.
ssl.key.password password - high
    Password of the client's key.
"""
