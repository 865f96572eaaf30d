"""What is said on a connection before it is used: which versions the node knows, and who we are.

ApiVersions comes first, in our newest version; a node that does not know it answers in version 0, with the range that it does
know or without, and is asked again (KIP-511). Then SaslHandshake and SaslAuthenticate, if there is somebody to log in. A
login that the node limits in time is renewed before its end, when the next request is about to be sent (KIP-368): other
requests wait meanwhile, for the node takes none in between.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import NamedTuple

from barnabas import __version__
from barnabas.client.connection import Connection
from barnabas.client.errors import (
    AuthenticationError,
    NotConnectedError,
    UnsupportedByNodeError,
    error_code,
)
from barnabas.client.versions import NodeVersions, versions_of
from barnabas.config.endpoints import Address
from barnabas.security.sasl import ClientMechanism, SaslError
from barnabas.wire import APIS, ApiKey, ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

Login = Callable[[], ClientMechanism]
"""Begins a login: a mechanism is good for one."""

RENEW_AFTER = 0.85  # of the time that a login is good for
MAX_ROUNDS = 10


class Options(NamedTuple):
    """How connections are made."""

    client_id: str = ""
    tls: ssl.SSLContext | None = None
    login: Login | None = None
    timeout_ms: float = 10_000


async def connect(address: Address, options: Options) -> Connection:
    """A connection that is ready for requests: `call` needs no version. Raises `ConnectionLostError`, `AuthenticationError`."""
    connection = await Connection.open(
        address.host, address.port, options.client_id, timeout_ms=options.timeout_ms, tls=options.tls
    )
    try:
        async with asyncio.timeout(options.timeout_ms / 1000):
            connection.versions = await negotiate(connection)
            if options.login is not None:
                session = Session(connection, options.login)
                await session.log_in()
                connection.before_call = session.renew_if_due
    except TimeoutError:
        connection.close()
        raise NotConnectedError(
            f"{connection.address} took a connection, but did not answer within {options.timeout_ms:g} ms"
        ) from None
    except BaseException:
        connection.close()
        raise
    return connection


async def negotiate(connection: Connection) -> NodeVersions:
    request = ApiVersionsRequest(client_software_name="barnabas", client_software_version=__version__)
    newest = APIS[ApiKey.API_VERSIONS].versions.last
    response: ApiVersionsResponse = await connection.exchange(request, newest)
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        response = await connection.exchange(request, fallback_version(response, newest))
    if response.error_code:
        code = error_code(response.error_code)
        raise NotConnectedError(f"{connection.address} answers ApiVersions with {code.name}")
    return versions_of(response)


def fallback_version(refusal: ApiVersionsResponse, newest: int) -> int:
    """The version to ask in next: the newest that the node has named, or 0 if it has named none."""
    named = next((row.max_version for row in refusal.api_keys if row.api_key == ApiKey.API_VERSIONS), 0)
    return max(0, min(named, newest - 1))


class Session:
    """A login, and when it has to be renewed."""

    def __init__(self, connection: Connection, login: Login) -> None:
        self._connection = connection
        self._login = login
        self._renew_at_s: float | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def log_in(self) -> None:
        connection, mechanism = self._connection, self._login()
        lifetime_ms = await authenticate(connection, mechanism)
        now_s = asyncio.get_running_loop().time()
        self._renew_at_s = now_s + RENEW_AFTER * lifetime_ms / 1000 if lifetime_ms > 0 else None

    async def renew_if_due(self) -> None:
        if self._renewing is None:
            if self._renew_at_s is None or asyncio.get_running_loop().time() < self._renew_at_s:
                return
            # A task of its own: a caller that gives up must not leave a login half done.
            self._renewing = asyncio.create_task(self._renew())
            self._renewing.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._renewing)

    async def _renew(self) -> None:
        try:
            await self.log_in()
        except AuthenticationError:
            self._connection.close()
            raise
        finally:
            self._renewing = None


async def authenticate(connection: Connection, mechanism: ClientMechanism) -> int:
    """Log in; for how long that is good, in milliseconds, or 0 for as long as the connection lives."""
    try:
        handshake: SaslHandshakeResponse = await connection.exchange(
            SaslHandshakeRequest(mechanism=mechanism.name), None, 1, "logging in with SASL"
        )
        if handshake.error_code:
            raise _refused_mechanism(connection, mechanism.name, handshake)
        said: bytes | None = mechanism.first()
        for _ in range(MAX_ROUNDS):
            response: SaslAuthenticateResponse = await connection.exchange(
                SaslAuthenticateRequest(auth_bytes=said or b"")
            )
            if response.error_code:
                code = error_code(response.error_code)
                raise AuthenticationError(code, f"{connection.address}: {response.error_message or code.message}")
            said = mechanism.answer(bytes(response.auth_bytes))
            if mechanism.is_complete and said is None:
                return response.session_lifetime_ms
    except SaslError as error:
        raise AuthenticationError(error.code, f"{connection.address}: {error.message}") from error
    except UnsupportedByNodeError as error:
        text = f"{connection.address} does not take logins by SASL here: {error}"
        raise AuthenticationError(ErrorCode.ILLEGAL_SASL_STATE, text) from error
    raise AuthenticationError(
        ErrorCode.SASL_AUTHENTICATION_FAILED, f"{connection.address} does not come to an end of {mechanism.name}"
    )


def _refused_mechanism(connection: Connection, name: str, answer: SaslHandshakeResponse) -> Exception:
    code = error_code(answer.error_code)
    if code is ErrorCode.ILLEGAL_SASL_STATE:
        text = f"{connection.address} does not take logins here: its listener is not one of SASL"
    else:
        text = f"{connection.address} does not take {name}; it takes {', '.join(answer.mechanisms) or 'nothing'}"
    return AuthenticationError(code, text)
