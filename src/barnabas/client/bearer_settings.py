"""What the settings of a listener say about bearer tokens, for nodes and for the doctor.

Its one rule: a setting that cannot be used raises `ConfigError`, which names it.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.client.http import MAX_BYTES, HttpError, Timeouts, ask
from barnabas.client.jaas import KEY as JAAS
from barnabas.client.jaas import parse_options
from barnabas.client.listener_settings import jaas_text
from barnabas.client.oauth import tls_of
from barnabas.client.oauth_urls import checked_file, checked_url, is_file
from barnabas.config.definitions import ConfigError, Value
from barnabas.config.server_config import ServerConfig
from barnabas.config.unsupported import is_unsecured
from barnabas.security.oauth import signed, unsecured
from barnabas.security.oauth.signed import Key, parse_keys
from barnabas.security.sasl.oauthbearer import NAME as OAUTHBEARER

JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_TIMEOUTS: Final = Timeouts()


class KeyService(NamedTuple):
    """Where keys are asked for, and how often. `options` are those of the JAAS line."""

    url: str
    refresh_ms: int
    backoff_ms: int
    backoff_max_ms: int
    options: Mapping[str, str]

    @property
    def file(self) -> Path | None:
        """The file that the URL names, or None. Raises `ConfigError` if it cannot be read."""
        return checked_file(JWKS_URL, self.url) if is_file(self.url) else None

    def tls(self) -> ssl.SSLContext | None:
        """Return the protection of a request to the service. Raises `ConfigError`."""
        return tls_of(self.options) if self.url.lower().startswith("https:") else None


class SignedTokens(NamedTuple):
    """Tokens with a signature, and the keys that verify it."""

    rules: signed.Rules
    service: KeyService


def token_settings(config: ServerConfig, listener_name: str) -> unsecured.Rules | SignedTokens:
    """Return how a listener checks bearer tokens.

    As in Kafka, tokens without a signature are accepted unless the listener has the class that checks signatures.
    """
    options = parse_options(jaas_text(config, listener_name, OAUTHBEARER), OAUTHBEARER)
    if is_unsecured(config, listener_name):
        try:
            return unsecured.parse_rules(options)
        except ValueError as error:
            raise ConfigError(JAAS, f"{JAAS}: {error}") from None

    def value(name: str) -> Value:
        return config.for_listener(listener_name, f"sasl.oauthbearer.{name}", OAUTHBEARER)

    def number(name: str) -> int:
        found = value(name)
        assert isinstance(found, int)
        return found

    url = value("jwks.endpoint.url")
    if not url:
        raise ConfigError(
            JWKS_URL,
            f'The OAuth validator for the broker requires "{JWKS_URL}" to be configured so that JWT signatures can be '
            f"verified, but it was not set: the listener {listener_name} needs it",
        )
    audiences, issuer = value("expected.audience"), value("expected.issuer")
    rules = signed.Rules(
        frozenset(audiences) if isinstance(audiences, tuple) else frozenset(),
        str(issuer).strip() if issuer else None,
        str(value("scope.claim.name")).strip(),
        str(value("sub.claim.name")).strip(),
        number("clock.skew.seconds"),
    )
    service = KeyService(
        checked_url(JWKS_URL, str(url)),
        number("jwks.endpoint.refresh.ms"),
        number("jwks.endpoint.retry.backoff.ms"),
        number("jwks.endpoint.retry.backoff.max.ms"),
        options,
    )
    if service.refresh_ms <= 0:
        raise ConfigError(f"{JWKS_URL[:-3]}refresh.ms", f"{JWKS_URL[:-3]}refresh.ms must be positive")
    return SignedTokens(rules, service)


def read_keys(path: Path) -> tuple[Key, ...]:
    """Return the keys in a file. Raises OSError or ValueError."""
    with path.open("rb") as file:
        return parse_keys(file.read(MAX_BYTES))


def fetch_keys(url: str, tls: ssl.SSLContext | None, timeouts: Timeouts = _TIMEOUTS) -> tuple[Key, ...]:
    """Return the keys of a service. Raises HttpError or ValueError."""
    answer = ask(url, headers={"Accept": "application/json"}, tls=tls, timeouts=timeouts)
    if answer.status != 200:
        raise HttpError(f"the JWKS endpoint answered with status {answer.status}")
    return parse_keys(answer.body)


def check_keys(service: KeyService, timeouts: Timeouts = _TIMEOUTS) -> None:
    """Raise `ConfigError` if a start could not get the first keys."""
    path = service.file
    try:
        if path is None:
            fetch_keys(service.url, service.tls(), timeouts)
        else:
            read_keys(path)
    except (OSError, ValueError, HttpError) as error:
        raise unusable(path, error) from None


def unusable(path: Path | None, error: Exception) -> ConfigError:
    """Return the error for keys that cannot be got, from a file or from a service."""
    if path is None:
        return ConfigError(JWKS_URL, f"Could not refresh JWKS: {error}")
    return ConfigError(JWKS_URL, f"Invalid value {path} for configuration {JWKS_URL}: {error}")
