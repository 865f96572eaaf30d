"""How a listener authenticates its clients and encrypts, made from the node's settings.

Its one rule: a `ListenerSecurity` never changes. New settings or certificates make another one, for new connections; those
that are open keep theirs.
"""

from __future__ import annotations

import ssl
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from itertools import islice
from random import Random
from typing import Final, NamedTuple

from barnabas.broker.bearer_keys import BearerKeys, FileKeys, ServiceKeys
from barnabas.broker.login import SaslSettings
from barnabas.broker.surroundings import Surroundings
from barnabas.client.bearer_settings import KeyService, SignedTokens, token_settings
from barnabas.client.listener_settings import (
    MAPPING_RULES,
    check_own_logins,
    enabled_mechanisms,
    listener_context,
    mapping_rules,
    plain_users,
)
from barnabas.config.endpoints import Endpoint
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.scram import SCRAM_MECHANISMS, ScramUser
from barnabas.security.delegation_token import token_password
from barnabas.security.oauth import unsecured
from barnabas.security.oauth.claims import BearerToken
from barnabas.security.principal import ANONYMOUS, USER_TYPE, KafkaPrincipal, parse_principal
from barnabas.security.sasl import ServerMechanism
from barnabas.security.sasl.exchange import Mechanisms
from barnabas.security.sasl.oauthbearer import NAME as OAUTHBEARER
from barnabas.security.sasl.oauthbearer import OAuthBearerServer
from barnabas.security.sasl.plain import PlainServer
from barnabas.security.sasl.scram import (
    ScramCredential,
    ScramServer,
    ScramToken,
    credential_of_password,
    fake_credential,
)
from barnabas.security.tls.certificate_principal import (
    CertificateError,
    Rule,
    distinguished_name,
    map_name,
)

_NONCE_BYTES: Final = 24
_SECRET_BYTES: Final = 32
_PURPOSE: Final = "credentials of unknown users"
MAX_TOKEN_CREDENTIALS: Final = 10_000
MAX_OTHERS: Final = 32
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
    """Where logins are checked: the SCRAM credentials and delegation tokens in the metadata, the keys of bearer tokens, and the
    clocks and randomness that logins need."""

    def __init__(
        self, image: Callable[[], MetadataImage], random: Random, surroundings: Surroundings, token_key: str | None
    ) -> None:
        self._image = image
        # In a closure, so that no attribute shows the key.
        self._token_password = (lambda token_id: token_password(token_key, token_id)) if token_key else None
        self._token_credentials: OrderedDict[tuple[str, str], ScramCredential] = OrderedDict()
        self._random = random
        # The same on all nodes if they have a key in common, so that none of them gives an unknown user away.
        self._secret = token_password(token_key, _PURPOSE).encode() if token_key else random.randbytes(_SECRET_BYTES)
        self.now_ms = surroundings.now_ms
        self._monotonic_ms = surroundings.monotonic_ms
        self._keys: dict[object, BearerKeys] = {}

    def scram(self, name: str) -> ScramServer:
        """Return the server side of one login."""
        find = partial(self._find, _SCRAM_NUMBERS[name])
        return ScramServer(
            name,
            find,
            nonce=self.new_nonce(),
            secret=self._secret,
            others=self._some(_SCRAM_NUMBERS[name]),
            token_of=partial(self._find_token, name),
            prepare_token=partial(self._preparation, name),
        )

    def bearer(self, config: ServerConfig, listener_name: str) -> Callable[[], OAuthBearerServer]:
        """Return the server side of logins with OAUTHBEARER. Raises `ConfigError`."""
        check, now_ms = token_check(config, listener_name, self._keys_of), self.now_ms
        return lambda: OAuthBearerServer(lambda token: check(token, now_ms()))

    def _keys_of(self, service: KeyService) -> BearerKeys:
        """Return the keys of a service or a file; those of the same one are shared, also by a replaced listener."""
        identity = (*service[:-1], *sorted(service.options.items()))
        if identity not in self._keys:
            self._keys[identity] = _new_keys(service, self._monotonic_ms)
        return self._keys[identity]

    async def start(self) -> None:
        """Get the keys of bearer tokens. Raises `ConfigError`."""
        for keys in self._keys.values():
            if isinstance(keys, ServiceKeys):
                await keys.start()

    async def stop(self) -> None:
        for keys in self._keys.values():
            if isinstance(keys, ServiceKeys):
                await keys.stop()

    def new_nonce(self) -> str:
        return self._random.randbytes(_NONCE_BYTES).hex()

    def _find_token(self, mechanism: str, token_id: str) -> ScramToken | None:
        """Return a delegation token as a user. Its credential is made before its first login, and kept.

        An unknown id is found out sooner than a wrong HMAC. That tells nothing: ids are random, and no names.
        """
        token = self._image().tokens.get(token_id)
        credential = self._token_credentials.get((mechanism, token_id))
        if token is None or credential is None:
            return None
        self._token_credentials.move_to_end((mechanism, token_id))
        return ScramToken(parse_principal(token.owner).name, token.expiration_timestamp_ms, credential)

    def _preparation(self, mechanism: str, token_id: str) -> Callable[[], None] | None:
        """Return the work that makes the credential of a token; None if that is known, or there is no such token.

        It takes a few milliseconds, so it is done in a thread. Only the last step touches what the event loop uses.
        """
        identity, password = (mechanism, token_id), self._token_password
        if identity in self._token_credentials or token_id not in self._image().tokens or password is None:
            return None

        def prepare() -> None:
            salt = fake_credential(mechanism, token_id, self._secret).salt
            self._token_credentials[identity] = credential_of_password(mechanism, password(token_id), salt)
            while len(self._token_credentials) > MAX_TOKEN_CREDENTIALS:
                self._token_credentials.popitem(last=False)

        return prepare

    def _some(self, mechanism: int) -> list[ScramCredential]:
        """Return credentials of some users."""
        return [found for user, found in islice(self._image().scram.items(), MAX_OTHERS) if user.mechanism == mechanism]

    def _find(self, mechanism: int, user: str) -> ScramCredential | None:
        return self._image().scram.get(ScramUser(mechanism, user))


def _new_keys(service: KeyService, monotonic_ms: Callable[[], int] = lambda: 0) -> BearerKeys:
    path = service.file
    return ServiceKeys(service, service.tls(), monotonic_ms) if path is None else FileKeys(path)


def listener_security(config: ServerConfig, endpoint: Endpoint, credentials: Credentials) -> ListenerSecurity:
    """Return the protection of a listener. Reads key and trust stores. Raises `ConfigError`."""
    name, protocol = endpoint.listener_name, endpoint.security_protocol
    return ListenerSecurity(
        listener_context(config, name, protocol) if protocol.endswith("SSL") else None,
        _sasl(config, name, credentials) if protocol.startswith("SASL_") else None,
        mapping_rules(config, name),
    )


def check_listeners(config: ServerConfig) -> None:
    """Raise `ConfigError` if the key stores, trust stores, rules or users of a listener cannot be used."""
    for name, protocol, *_ in config.listeners:
        if protocol.endswith("SSL"):
            listener_context(config, name, protocol)
            mapping_rules(config, name)
        if protocol.startswith("SASL_") and "PLAIN" in enabled_mechanisms(config, name):
            plain_users(config, name)
        if protocol.startswith("SASL_") and OAUTHBEARER in enabled_mechanisms(config, name):
            token_check(config, name, _new_keys)
        if protocol.startswith("SASL_"):
            check_own_logins(config, name)


def _sasl(config: ServerConfig, listener_name: str, credentials: Credentials) -> SaslSettings:
    names = enabled_mechanisms(config, listener_name)
    check_own_logins(config, listener_name)
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
        now_ms=credentials.now_ms,
    )


def _mechanisms(
    config: ServerConfig, listener_name: str, names: tuple[str, ...], credentials: Credentials
) -> Mechanisms:
    mechanisms: dict[str, Callable[[], ServerMechanism]] = {}
    for name in names:
        if name == "PLAIN":
            mechanisms[name] = _plain(plain_users(config, listener_name))
        elif name == OAUTHBEARER:
            mechanisms[name] = credentials.bearer(config, listener_name)
        else:
            mechanisms[name] = partial(credentials.scram, name)
    return mechanisms


def _plain(passwords: dict[str, str]) -> Callable[[], PlainServer]:
    return lambda: PlainServer(passwords)  # unlike a partial, its repr has no passwords


def token_check(
    config: ServerConfig, listener_name: str, keys_of: Callable[[KeyService], BearerKeys]
) -> Callable[[str, int], BearerToken]:
    """Return the check of bearer tokens that the settings ask for. Raises `ConfigError`."""
    found = token_settings(config, listener_name)
    if not isinstance(found, SignedTokens):
        rules = found
        return lambda token, now_ms: unsecured.check_token(token, rules, now_ms)
    keys, signed_rules = keys_of(found.service), found.rules
    return lambda token, now_ms: keys.check(token, signed_rules, now_ms)
