"""Settings of a client, by the names of Kafka's clients, from a mapping or a client.properties file.

Values are parsed and checked. An error names the setting; an unknown name is a warning. Producers and consumers pass a table of
their additional settings.

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
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from barnabas.client.arguments import described
from barnabas.client.backoff import Backoff
from barnabas.client.handshake import Login, Options
from barnabas.client.jaas import Credentials, parse_jaas, parse_options
from barnabas.client.tls import client_context
from barnabas.config import properties
from barnabas.config.definitions import Definition, Value, parse_all, parse_table
from barnabas.config.endpoints import SECURITY_PROTOCOLS, Address, parse_addresses
from barnabas.config.values import ConfigError, format_value
from barnabas.security.sasl import MECHANISMS, ClientMechanism
from barnabas.security.sasl.oauthbearer import NAME as OAUTHBEARER
from barnabas.security.sasl.plain import PlainClient
from barnabas.security.sasl.scram import ScramClient
from barnabas.similar_names import did_you_mean

_log = logging.getLogger(__name__)

_NO_DEFINITIONS: Mapping[str, Definition] = MappingProxyType({})


class TokenOptions(NamedTuple):
    """The options of a JAAS line for OAUTHBEARER. The repr shows none of them."""

    options: Mapping[str, str]

    def __repr__(self) -> str:
        return "TokenOptions()"


class ClientSettings(NamedTuple):
    """Checked settings, made by `load` or `load_file`. The repr shows no passwords."""

    values: Mapping[str, Value]
    bootstrap_servers: tuple[Address, ...]
    bootstrap_controllers: tuple[Address, ...]
    credentials: Credentials | TokenOptions | None
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        at = ",".join(f"{host}:{port}" for host, port in self.bootstrap_servers or self.bootstrap_controllers)
        return f"ClientSettings({at}, {self.security_protocol})"

    def get(self, name: str) -> Value:
        """Return the value of a setting. Raises KeyError if it is unknown."""
        return self.values[name]

    def get_int(self, name: str) -> int:
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is not an integer")
        return value

    def get_str(self, name: str) -> str:
        """Return the value of a string setting, or "" if it is not set."""
        value = self.values[name]
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} is not a string")
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
        """Return the options of new connections. Reads certificate and key files. Raises `ConfigError`."""
        tls: ssl.SSLContext | None = client_context(self.values) if self.security_protocol.endswith("SSL") else None
        login: Login | None = None
        if isinstance(self.credentials, Credentials):
            login = password_login(self.get_str("sasl.mechanism"), self.credentials, lambda: secrets.token_urlsafe(24))
        elif self.credentials is not None:
            from barnabas.client.oauth import OAuthLogin  # noqa: PLC0415 - few clients need it

            login = OAuthLogin(self.values, self.credentials.options)
        return Options(self.client_id, tls, login, self.get_int("socket.connection.setup.timeout.ms"))


def password_login(mechanism: str, credentials: Credentials, new_nonce: Callable[[], str]) -> Login:
    """Return logins with PLAIN or SCRAM."""
    username, password, is_token = credentials
    extensions = {"tokenauth": "true"} if is_token else None

    async def begin() -> ClientMechanism:
        if mechanism == "PLAIN":
            return PlainClient(username, password)
        return ScramClient(mechanism, username, password, nonce=new_nonce(), extensions=extensions)

    return begin


def load(
    given: Mapping[str, object], more: Mapping[str, Definition] = _NO_DEFINITIONS, *, warn: bool = True
) -> ClientSettings:
    """Check the given settings: strings, numbers, booleans and lists of strings. `more` defines additional settings.

    Unknown names are in `warnings`, and also logged if `warn`. Raises `ConfigError`.
    """
    texts = {name: _text_of(name, value) for name, value in given.items()}
    known = {**definitions(), **more}
    values = MappingProxyType(parse_all(known, texts))
    warnings = tuple(
        f"{name} is not a known setting; it is ignored{did_you_mean(name, known)}"
        for name in texts
        if not _is_known(name, known)
    )
    if warn:
        for warning in warnings:
            _log.warning("%s", warning)
    servers = _addresses("bootstrap.servers", values)
    controllers = _addresses("bootstrap.controllers", values)
    if bool(servers) == bool(controllers):
        text = "bootstrap.servers and bootstrap.controllers cannot both be set" if servers else "no bootstrap address"
        raise ConfigError("bootstrap.servers", f"{text}: set bootstrap.servers=HOST:PORT, or bootstrap.controllers")
    return ClientSettings(values, servers, controllers, _credentials(values), warnings)


def load_over(
    base: ClientSettings | None, given: Mapping[str, object], more: Mapping[str, Definition]
) -> ClientSettings:
    """Like `load`, but if `base` is given, take only the settings in `more` from `given`, and all others from `base`."""
    if base is None:
        return load(given, more)
    own = load({"bootstrap.servers": "unused:1", **given}, more, warn=False)
    return base._replace(values={**base.values, **{name: own.values[name] for name in more}})


def load_file(
    path: str | os.PathLike[str],
    overrides: Mapping[str, object] | None = None,
    more: Mapping[str, Definition] = _NO_DEFINITIONS,
) -> ClientSettings:
    """Load settings from a client.properties file; `overrides` take precedence. Raises OSError and `ConfigError`."""
    return load({**read_file(path), **(overrides or {})}, more)


def read_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a client.properties file without checking the values. Raises OSError, and `ConfigError` for wrong syntax."""
    return properties.loads(Path(path).read_text(encoding="latin-1"))


def _text_of(name: object, value: object) -> str | None:
    if not isinstance(name, str):
        raise ConfigError(str(name), f"the name of a setting must be str, not {described(name)}")
    if isinstance(value, bytes | bytearray | dict | set):
        raise ConfigError(name, f"{name} must be a string, a number, a boolean or a list, not {described(value)}")
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
            raise ConfigError(name, f"{name}: expected HOST:PORT, as in localhost:9092")
    return found


def _credentials(values: Mapping[str, Value]) -> Credentials | TokenOptions | None:
    if not str(values["security.protocol"]).upper().startswith("SASL"):
        return None
    mechanism, jaas = values["sasl.mechanism"], values["sasl.jaas.config"]
    if mechanism not in MECHANISMS:
        raise ConfigError(
            "sasl.mechanism", f"sasl.mechanism: {mechanism} is not supported; use one of {', '.join(MECHANISMS)}"
        )
    if mechanism == OAUTHBEARER:
        return TokenOptions(_token_options(values, jaas))
    username, password = values["sasl.username"], values["sasl.password"]
    if isinstance(jaas, str):
        if username is not None:
            raise ConfigError(
                "sasl.username", "sasl.username and sasl.jaas.config cannot both be set: they name two logins"
            )
        return parse_jaas(jaas, str(mechanism))
    if not isinstance(username, str) or not isinstance(password, str):
        missing = "sasl.password" if isinstance(username, str) else "sasl.username and sasl.password"
        text = f"{missing}, or sasl.jaas.config, must be set to log in with {mechanism}"
        raise ConfigError("sasl.password" if isinstance(username, str) else "sasl.jaas.config", text)
    return Credentials(username, password)


def _token_options(values: Mapping[str, Value], jaas: Value) -> Mapping[str, str]:
    for name in ("sasl.login.class", "sasl.client.callback.handler.class"):
        if values[name]:
            raise ConfigError(name, f"{name} is not supported, because there are no Java classes")
    if isinstance(jaas, str):
        return parse_options(jaas, OAUTHBEARER)
    if values["sasl.login.callback.handler.class"]:
        return {}  # the settings say it all
    raise ConfigError("sasl.jaas.config", f"sasl.jaas.config must be set to log in with {OAUTHBEARER}")


@cache
def definitions() -> Mapping[str, Definition]:
    """Return the settings that every client has."""
    return parse_table(_TABLE)


# Settings of Java clients that have no effect here.
_WITHOUT_EFFECT = (
    r"metrics?\.|auto\.include\.jmx|enable\.metrics\.push|security\.providers|client\.dns\.lookup|(send|receive)\.buffer\.bytes"
    r"|ssl\.(provider|secure|keymanager|trustmanager|engine)"
    r"|sasl\.(kerberos|oauthbearer\.(jwks|expected|clock|assertion|jwt\.validator))|config\.providers|socket\.connection\.setup\.timeout\.max\.ms|retries$"
    r"|metadata\.recovery\.rebootstrap"
)

_PROTOCOLS = "|".join(SECURITY_PROTOCOLS)
_TABLE = f"""\
bootstrap.servers list "" high
    Brokers to connect to first, as host:port; they name the others.
bootstrap.controllers list "" high
    Controllers to connect to first, to administer a quorum without brokers.
bootstrap.timeout.ms int 5000 medium >=1
    Time after which a client that has never reached a bootstrap server gives up. Later, each call is retried until its timeout.
client.id string "" medium
    Name of this client in the logs, quotas and metrics of brokers.
metadata.max.age.ms long 300000 low >=0
    Age at which metadata is refreshed.
metadata.max.idle.ms long 300000 low >=5000
    Time after which the metadata of an unused topic is dropped.
metadata.recovery.strategy string rebootstrap low nocase:REBOOTSTRAP|NONE
    What to do if no known node can be reached: use the bootstrap servers again, or only retry.
reconnect.backoff.ms long 50 low >=0
    First delay before reconnecting to a node.
reconnect.backoff.max.ms long 1000 low >=0
    Maximal delay before reconnecting to a node.
retry.backoff.ms long 100 low >=0
    First delay before a retry.
retry.backoff.max.ms long 1000 low >=0
    Maximal delay before a retry.
request.timeout.ms int 30000 medium >=0
    Timeout of one request.
default.api.timeout.ms int 60000 medium >=0
    Timeout of a call with all its retries.
socket.connection.setup.timeout.ms long 10000 medium >=1
    Timeout of connecting, and again of the handshake (versions and login).
connections.max.idle.ms long 540000 medium
    Time after which an unused connection is closed; -1 means never.
security.protocol string PLAINTEXT medium nocase:{_PROTOCOLS}
    Whether connections use TLS, SASL, both or neither.
sasl.mechanism string GSSAPI medium
    SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.
sasl.jaas.config password - medium
    Credentials, as a JAAS line.
sasl.username string - medium
    User name to log in with, together with sasl.password and without sasl.jaas.config. Java clients do not have it.
sasl.password password - medium
    Password of sasl.username.
sasl.login.class class - medium
    Java class of the login, which is not supported.
sasl.login.callback.handler.class class - medium
    For OAUTHBEARER: where tokens come from, by the name of Kafka's class; the default is a token without a signature.
sasl.client.callback.handler.class class - medium
    Java class that supplies credentials, which is not supported.
sasl.login.connect.timeout.ms int - low
    Timeout of connecting to the token endpoint; 20 seconds if unset.
sasl.login.read.timeout.ms int - low
    Timeout of waiting for the token endpoint; 20 seconds if unset.
sasl.login.retry.backoff.ms long 100 low
    First delay before the token endpoint is asked again.
sasl.login.retry.backoff.max.ms long 10000 low
    Time after which the token endpoint is not asked again.
sasl.login.refresh.window.factor double 0.8 low 0.5..1.0
    Part of a token's lifetime after which a new one is used for new logins.
sasl.login.refresh.window.jitter double 0.05 low 0.0..0.25
    Random part of a token's lifetime that is added to it.
sasl.login.refresh.min.period.seconds short 60 low 0..900
    Time for which a token is used at least.
sasl.login.refresh.buffer.seconds short 300 low 0..3600
    Time before its end at which a token is replaced at the latest.
sasl.oauthbearer.token.endpoint.url string - medium
    URL of the token service, or of a file with a token (file:). It must be an allowed URL.
sasl.oauthbearer.client.credentials.client.id string - medium
    Client id for the token service.
sasl.oauthbearer.client.credentials.client.secret password - medium
    Client secret for the token service.
sasl.oauthbearer.scope string - medium
    Scope that the token service is asked for.
sasl.oauthbearer.header.urlencode boolean false low
    Whether client id and secret are URL-encoded for the token service.
sasl.oauthbearer.scope.claim.name string scope low
    Name of the token's scope claim.
sasl.oauthbearer.sub.claim.name string sub low
    Name of the token's subject claim.
sasl.oauthbearer.jwt.retriever.class class org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever medium
    Where tokens come from: the default, or Kafka's FileJwtRetriever or ClientCredentialsJwtRetriever.
sasl.oauthbearer.assertion.file string - medium
    File with an assertion, which is not supported.
sasl.oauthbearer.assertion.claim.iss string - medium
    Issuer of assertions, which are not supported.
ssl.protocol string TLSv1.3 medium
    Newest TLS version that Java would use; ssl.enabled.protocols decides.
ssl.enabled.protocols list TLSv1.2,TLSv1.3 medium list+empty
    Allowed TLS versions.
ssl.cipher.suites list "" low list+empty
    Allowed cipher suites, by Java's names; the default is OpenSSL's.
ssl.endpoint.identification.algorithm string https low
    Check that a node's name is in its certificate; empty turns the check off.
ssl.truststore.type string JKS medium
    Format of the trust store: PEM or PKCS12. A file of the type JKS may be PKCS12.
ssl.truststore.location string - high
    File with the trusted certificates; the default is those of the system.
ssl.truststore.password password - high
    Password of the trust store, for PKCS12.
ssl.truststore.certificates password - high
    The trusted certificates, in PEM.
ssl.keystore.type string JKS medium
    Format of the key store: PEM or PKCS12. A file of the type JKS may be PKCS12.
ssl.keystore.location string - high
    File with the client's key and certificate.
ssl.keystore.password password - high
    Password of the key store, for PKCS12.
ssl.keystore.key password - high
    The client's key, in PEM.
ssl.keystore.certificate.chain password - high
    The client's certificate and its chain, in PEM.
ssl.key.password password - high
    Password of the client's key.
"""
