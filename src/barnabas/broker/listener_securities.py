"""The protection of all listeners of a node, which follows its settings and the files of its key and trust stores.

Its one rule: a replacement never closes a connection. It applies to new ones, and what cannot be read is logged and
leaves the listener as it is. Files are looked at now and then, and need no request to be read again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from barnabas.broker.listener_security import Credentials, ListenerSecurity, listener_security
from barnabas.client import shared
from barnabas.client.listener_settings import tls_values
from barnabas.client.tls import store_stamps
from barnabas.config.broker import base_name
from barnabas.config.definitions import ConfigError
from barnabas.config.endpoints import Endpoint
from barnabas.config.server_config import ServerConfig

_log = logging.getLogger(__name__)

FILE_CHECK_S: Final = 10.0
_STARTS: Final = ("ssl.", "sasl.", "connections.max.reauth.ms")

Fingerprint = tuple[object, ...]


class ListenerSecurities:
    """`replace` is called with the listener's name and its new protection."""

    def __init__(self, credentials: Credentials, replace: Callable[[str, ListenerSecurity], None]) -> None:
        self._credentials = credentials
        self._replace = replace
        self._known: dict[Endpoint, Fingerprint] = {}
        self._watching: asyncio.Task[None] | None = None

    def first(self, config: ServerConfig, endpoint: Endpoint) -> ListenerSecurity:
        """Return the protection of a listener at the start. Raises `ConfigError`."""
        if endpoint.security_protocol != "PLAINTEXT":
            self._known[endpoint] = _fingerprint(config, endpoint)
        return listener_security(config, endpoint, self._credentials)

    def update(self, config: ServerConfig) -> None:
        """Replace what has changed: settings, or files of stores."""
        for endpoint, known in self._known.items():
            found = _fingerprint(config, endpoint)
            if found == known:
                continue
            self._known[endpoint] = found
            try:
                security = listener_security(config, endpoint, self._credentials)
            except ConfigError as error:
                _log.error("the listener %s keeps its certificates and users: %s", endpoint.listener_name, error)
            else:
                self._replace(endpoint.listener_name, security)
                _log.info("new connections to %s use its new certificates and users", endpoint.listener_name)

    def watch_files(self, config: Callable[[], ServerConfig]) -> None:
        """Look for changed files from now on, until `stop`."""
        if any(each.security_protocol.endswith("SSL") for each in self._known):
            self._watching = asyncio.get_running_loop().create_task(self._keep_watching(config))

    async def stop(self) -> None:
        if self._watching is not None:
            await shared.stop(self._watching)

    async def _keep_watching(self, config: Callable[[], ServerConfig]) -> None:
        while True:
            await asyncio.sleep(FILE_CHECK_S)
            self.update(config())


def security_texts(config: ServerConfig) -> dict[str, str]:
    """Return the settings that decide how listeners are protected."""
    return {name: text for name, text in config.given.items() if base_name(name).startswith(_STARTS)}


def _fingerprint(config: ServerConfig, endpoint: Endpoint) -> Fingerprint:
    has_tls = endpoint.security_protocol.endswith("SSL")
    stamps = store_stamps(tls_values(config, endpoint.listener_name)) if has_tls else ()
    return tuple(sorted(security_texts(config).items())), stamps
