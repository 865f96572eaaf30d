"""The client side of OAUTHBEARER: where the token of a login comes from.

By default the client makes a token without a signature, from the options of its JAAS line, as Kafka's does. With
`sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler`, the token
comes from `sasl.oauthbearer.token.endpoint.url`: a file, or a service that is asked with the client's id and secret. A token is
kept and used for new connections until most of its life is over (`sasl.login.refresh.*`). No error shows a token or a secret.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol
from urllib.parse import quote_plus

from barnabas.client.errors import AuthenticationError
from barnabas.client.http import DEFAULT_TIMEOUT_S, Answer, HttpError, Timeouts, ask, with_retries
from barnabas.client.jaas import KEY as JAAS
from barnabas.client.oauth_urls import checked_file, checked_url, is_file
from barnabas.client.tls import TLS_SETTINGS, client_context
from barnabas.config import broker
from barnabas.config.definitions import parse_all
from barnabas.config.values import ConfigError, Value
from barnabas.security.oauth import unsecured
from barnabas.security.oauth.claims import BearerToken, InvalidTokenError, checked_claims, decoded, parts_of
from barnabas.security.sasl import ClientMechanism
from barnabas.security.sasl.oauthbearer import OAuthBearerClient, check_extensions
from barnabas.wire import ErrorCode

PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
LOGIN_HANDLER: Final = "sasl.login.callback.handler.class"
TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE: Final = "sasl.oauthbearer.scope"
RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
_FROM_ENDPOINT: Final = PACKAGE + "OAuthBearerLoginCallbackHandler"
_UNSECURED: Final = PACKAGE + "internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
_RETRIEVERS: Final = ("DefaultJwtRetriever", "FileJwtRetriever", "ClientCredentialsJwtRetriever")
_EXTENSION: Final = "extension_"
_FINAL_STATUSES: Final = frozenset(
    (400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505)
)
MAX_FILE_BYTES: Final = 512 * 1024

Values = Mapping[str, Value]


class Retrieve(Protocol):
    """Returns a new token. It blocks, and runs in a thread. Raises `HttpError`, OSError or `InvalidTokenError`."""

    def __call__(self) -> str: ...


class OAuthLogin:
    """Begins logins with OAUTHBEARER. Raises `ConfigError` for settings that cannot work.

    `values` has the settings by name, and `options` those of the JAAS line. `now_ms` is the time of day.
    """

    def __init__(
        self,
        values: Values,
        options: Mapping[str, str],
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        handler = str(values.get(LOGIN_HANDLER) or _UNSECURED)
        self._source: KeptToken | None = None
        self._make: Callable[[], str] | None = None
        if handler == _FROM_ENDPOINT:
            retrieve = _retriever(values, options)
            self._source = KeptToken(retrieve, _claim_names(values), _refreshing(values), now_ms)
            prefix = _EXTENSION
        elif handler == _UNSECURED:
            self._make = _maker(options, now_ms)
            prefix = unsecured.EXTENSION
        else:
            raise ConfigError(
                LOGIN_HANDLER,
                f"{LOGIN_HANDLER}={handler} is not supported, because there are no Java classes: use {_FROM_ENDPOINT}, "
                "or remove it for tokens without a signature",
            )
        self._extensions = {
            name.removeprefix(prefix): text for name, text in options.items() if name.startswith(prefix)
        }
        try:
            check_extensions(self._extensions)
        except ValueError as error:
            raise ConfigError(JAAS, f"{JAAS}: {error}") from None

    async def __call__(self) -> ClientMechanism:
        """Return a new login. Raises `AuthenticationError` if there is no token."""
        if self._source is not None:
            token = await self._source.token()
        else:
            assert self._make is not None
            token = self._make()
        return OAuthBearerClient(token, self._extensions)


def _maker(options: Mapping[str, str], now_ms: Callable[[], int]) -> Callable[[], str]:
    def make() -> str:
        try:
            return unsecured.make_token(options, now_ms())
        except ValueError as error:
            raise ConfigError(JAAS, f"{JAAS}: {error}") from None

    make()  # an error is found at once
    return make


# --- a token that is kept


class Refreshing(NamedTuple):
    """When a token is replaced by a new one: settings `sasl.login.refresh.*`."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: int = 60
    buffer_s: int = 300

    def due_ms(self, token: BearerToken, now_ms: int, chance: float) -> int:
        """Return the time after which a token is not used for new logins. `chance` is from 0 to 1."""
        begins_ms = now_ms if token.issued_at_ms is None else token.issued_at_ms
        life_ms = token.expires_at_ms - begins_ms
        wanted_ms = begins_ms + round(life_ms * (self.window_factor + self.window_jitter * chance))
        if token.expires_at_ms - now_ms <= (self.min_period_s + self.buffer_s) * 1000:
            return wanted_ms  # the life is too short for the two limits
        latest_ms = token.expires_at_ms - self.buffer_s * 1000
        return max(min(wanted_ms, latest_ms), now_ms + self.min_period_s * 1000)


class KeptToken:
    """The token of all connections of one client."""

    def __init__(
        self, retrieve: Retrieve, claim_names: tuple[str, str], refreshing: Refreshing, now_ms: Callable[[], int]
    ) -> None:
        self._retrieve = retrieve
        self._claim_names = claim_names
        self._refreshing = refreshing
        self._now_ms = now_ms
        self._text = ""
        self._due_ms = 0
        self._lock: asyncio.Lock | None = None

    async def token(self) -> str:
        """Return the token, a new one if it is time. Raises `AuthenticationError`."""
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if not self._text or self._now_ms() >= self._due_ms:
                await self._renew()
            return self._text

    async def _renew(self) -> None:
        try:
            text = await asyncio.to_thread(self._retrieve)
            token = checked_claims(decoded(parts_of(text)[1]), *self._claim_names)
        except (HttpError, OSError, InvalidTokenError) as error:
            reason = f"there is no token to log in with: {error}"
            raise AuthenticationError(ErrorCode.SASL_AUTHENTICATION_FAILED, reason) from None
        now_ms = self._now_ms()
        self._text, self._due_ms = text, self._refreshing.due_ms(token, now_ms, random.random())


def _refreshing(values: Values) -> Refreshing:
    window_factor, window_jitter, min_period_s, buffer_s = (
        values.get(f"sasl.login.refresh.{name}")
        for name in ("window.factor", "window.jitter", "min.period.seconds", "buffer.seconds")
    )
    assert isinstance(window_factor, float) and isinstance(window_jitter, float)
    assert isinstance(min_period_s, int) and isinstance(buffer_s, int)
    return Refreshing(window_factor, window_jitter, min_period_s, buffer_s)


def _claim_names(values: Values) -> tuple[str, str]:
    subject, scope = (str(values.get(f"sasl.oauthbearer.{name}.claim.name") or name) for name in ("sub", "scope"))
    return subject.strip(), scope.strip()


# --- where it comes from


def _retriever(values: Values, options: Mapping[str, str]) -> Retrieve:
    named = str(values.get(RETRIEVER) or PACKAGE + _RETRIEVERS[0])
    if named.removeprefix(PACKAGE) not in _RETRIEVERS:
        raise ConfigError(
            RETRIEVER,
            f"{RETRIEVER}={named} is not supported; known are {', '.join(PACKAGE + each for each in _RETRIEVERS)}",
        )
    for name in ("sasl.oauthbearer.assertion.file", "sasl.oauthbearer.assertion.claim.iss"):
        if values.get(name):
            raise ConfigError(
                name, f"{name} is not supported: logins with assertions are not implemented. Use {CLIENT_SECRET}"
            )
    text = values.get(TOKEN_URL)
    url = checked_url(TOKEN_URL, text if isinstance(text, str) else None)
    if is_file(url):
        path = checked_file(TOKEN_URL, url)
        return lambda: _read_token(path)
    return _from_endpoint(url, values, options)


def _read_token(path: Path) -> str:
    with path.open("rb") as file:
        text = file.read(MAX_FILE_BYTES).decode(errors="replace").strip()
    header, claims, _ = parts_of(text)
    decoded(header), decoded(claims)
    return text


def _from_endpoint(url: str, values: Values, options: Mapping[str, str]) -> Retrieve:
    client_id = _of_settings_or_jaas(values, options, CLIENT_ID, "clientId")
    secret = _of_settings_or_jaas(values, options, CLIENT_SECRET, "clientSecret")
    if client_id is None or secret is None:
        missing = CLIENT_ID if client_id is None else CLIENT_SECRET
        raise ConfigError(missing, f"The OAuth configuration option {missing} value is required")
    scope = _of_settings_or_jaas(values, options, SCOPE, "scope")
    if values.get("sasl.oauthbearer.header.urlencode"):
        client_id, secret = quote_plus(client_id, safe="*"), quote_plus(secret, safe="*")
        scope = None if scope is None else quote_plus(scope, safe="*")
    login = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {login}",
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    body = f"grant_type=client_credentials{'' if scope is None else f'&scope={scope}'}".encode()
    tls = tls_of(options) if url.lower().startswith("https:") else None
    backoff_ms, backoff_max_ms = (_milliseconds(values, f"sasl.login.retry.backoff{each}.ms") for each in ("", ".max"))
    timeouts = Timeouts(
        *(
            _milliseconds(values, f"sasl.login.{each}.timeout.ms", DEFAULT_TIMEOUT_S) / 1000
            for each in ("connect", "read")
        )
    )

    def retrieve() -> str:
        def attempt() -> str:
            return _token_in(ask(url, body=body, headers=headers, timeouts=timeouts, tls=tls))

        return with_retries(attempt, backoff_ms, backoff_max_ms)

    return retrieve


def _of_settings_or_jaas(values: Values, options: Mapping[str, str], name: str, option: str) -> str | None:
    """Return a value from the settings, or else from the JAAS line, where Kafka had it before."""
    value = values.get(name)
    text = value if isinstance(value, str) else options.get(option, "")
    return text.strip() or None


def _milliseconds(values: Values, name: str, default_s: float = 0) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else round(default_s * 1000)


def tls_of(options: Mapping[str, str]) -> ssl.SSLContext:
    """Return the protection of a request to a service of OAuth: `ssl.*` of the JAAS line, as in Kafka."""
    known = broker.definitions()
    return client_context(parse_all({name: known[name] for name in TLS_SETTINGS}, options))


def _token_in(answer: Answer) -> str:
    if answer.status not in (200, 201):
        raise HttpError(
            f"the token endpoint answered with status {answer.status}{_error_in(answer.body)}",
            is_final=answer.status in _FINAL_STATUSES,
        )
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        document = None
    for name in ("access_token", "id_token"):
        text = document.get(name) if isinstance(document, dict) else None
        if isinstance(text, str) and text.strip():
            return text.strip()
    raise HttpError("the answer of the token endpoint has no token", is_final=True)


def _error_in(body: bytes) -> str:
    """Return the standard error of an answer; nothing else of it is shown, since it may repeat what was sent."""
    try:
        error = json.loads(body).get("error")
    except (ValueError, RecursionError, AttributeError):
        error = None
    return f" ({error})" if isinstance(error, str) and error.isascii() and len(error) < 100 else ""
