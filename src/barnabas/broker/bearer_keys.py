"""The keys that verify bearer tokens: the file or the service that `sasl.oauthbearer.jwks.endpoint.url` names.

A file is read again when it has changed. A service is asked before the node accepts clients, and then every
`sasl.oauthbearer.jwks.endpoint.refresh.ms`. As in Kafka, a token with an unknown key asks for new keys at once, for each key
id at most once a minute. What cannot be read is logged, and the keys that are known stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final

from barnabas.client import shared
from barnabas.client.bearer_settings import KeyService, fetch_keys, read_keys, unusable
from barnabas.client.http import HttpError, with_retries
from barnabas.security.oauth.claims import BearerToken
from barnabas.security.oauth.signed import Key, MissingKeyError, Rules, check_token

_log = logging.getLogger(__name__)

MISSING_KEY_MS: Final = 60_000
MAX_MISSING_KEYS: Final = 16
MAX_KEY_ID_CHARS: Final = 1000


class FileKeys:
    """The keys in a file. Raises `ConfigError` if they cannot be read at first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._keys: tuple[Key, ...] = ()
        try:
            self._read()
        except (OSError, ValueError) as error:
            raise unusable(path, error) from None

    def check(self, token: str, rules: Rules, now_ms: int) -> BearerToken:
        """Return what a token says. Raises `InvalidTokenError`."""
        try:
            self._read()
        except (OSError, ValueError) as error:
            _log.warning("the keys in %s cannot be read, and those that are known stay: %s", self._path, error)
        return check_token(token, self._keys, rules, now_ms)

    def _read(self) -> None:
        stat = self._path.stat()
        stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if stamp != self._stamp:
            self._stamp = stamp  # a file that cannot be read is reported once
            self._keys = read_keys(self._path)


class ServiceKeys:
    """The keys of a service. `start` asks for the first ones."""

    def __init__(self, service: KeyService, tls: ssl.SSLContext | None, monotonic_ms: Callable[[], int]) -> None:
        self._service = service
        self._tls = tls
        self._monotonic_ms = monotonic_ms
        self._keys: tuple[Key, ...] = ()
        self._missing: OrderedDict[str, int] = OrderedDict()
        self._is_due = asyncio.Event()
        self._refreshing: asyncio.Task[None] | None = None

    def check(self, token: str, rules: Rules, now_ms: int) -> BearerToken:
        """Return what a token says. Raises `InvalidTokenError`."""
        try:
            return check_token(token, self._keys, rules, now_ms)
        except MissingKeyError as error:
            if error.key_id is not None:
                self._ask_for(error.key_id)
            raise

    async def start(self) -> None:
        """Get the first keys, and more from now on. Raises `ConfigError`."""
        try:
            self._keys = await asyncio.to_thread(self._fetch)
        except (HttpError, ValueError) as error:
            raise unusable(None, error) from None
        self._refreshing = asyncio.get_running_loop().create_task(self._keep_refreshing())

    async def stop(self) -> None:
        if self._refreshing is not None:
            await shared.stop(self._refreshing)

    def _ask_for(self, key_id: str) -> None:
        if len(key_id) > MAX_KEY_ID_CHARS:
            return
        now_ms = self._monotonic_ms()
        if self._missing.get(key_id, now_ms) <= now_ms:
            self._missing[key_id] = now_ms + MISSING_KEY_MS
            self._missing.move_to_end(key_id)
            if len(self._missing) > MAX_MISSING_KEYS:
                self._missing.popitem(last=False)
            self._is_due.set()

    async def _keep_refreshing(self) -> None:
        service = self._service
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_due.wait(), service.refresh_ms / 1000)
            self._is_due.clear()
            try:
                attempt = lambda: with_retries(self._fetch, service.backoff_ms, service.backoff_max_ms)  # noqa: E731
                self._keys = await asyncio.to_thread(attempt)
            except (HttpError, ValueError) as error:
                _log.warning("the keys of bearer tokens cannot be refreshed, and those that are known stay: %s", error)
            else:
                for key in self._keys:
                    self._missing.pop(str(key.attributes.get("kid")), None)

    def _fetch(self) -> tuple[Key, ...]:
        return fetch_keys(self._service.url, self._tls)


BearerKeys = FileKeys | ServiceKeys
