"""The handshake on a new connection: API versions, then SASL login.

ApiVersions comes first, in the client's newest version. A node that does not support it answers in version 0, with or without
the range it supports, and is asked again (KIP-511). SaslHandshake and SaslAuthenticate follow if there are credentials. If the
node limits the session's lifetime, the login is renewed before it ends, when the next request is sent (KIP-368). Other requests
wait meanwhile, because the node accepts none during a login.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
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

Login = Callable[[], Awaitable[ClientMechanism]]
"""Returns a new mechanism; each login needs its own. It may have to ask for a token. Raises `AuthenticationError`."""

RENEW_AFTER = 0.85  # fraction of the session's lifetime
MAX_ROUNDS = 10


class Options(NamedTuple):
    """Options of new connections."""

    client_id: str = ""
    tls: ssl.SSLContext | None = None
    login: Login | None = None
    timeout_ms: float = 10_000
    host_name: str | None = None  # expected in the node's certificate, instead of the host it is reached at


async def connect(address: Address, options: Options) -> Connection:
    """Return a connection that is ready for requests: `call` needs no version. Raises `ConnectionLostError` and
    `AuthenticationError`."""
    first = None if options.login is None else await options.login()  # before a node waits for it
    connection = await Connection.open(
        address.host,
        address.port,
        options.client_id,
        timeout_ms=options.timeout_ms,
        tls=options.tls,
        host_name=options.host_name,
    )
    try:
        async with asyncio.timeout(options.timeout_ms / 1000):
            connection.versions = await negotiate(connection)
            if options.login is not None and first is not None:
                session = Session(connection, options.login)
                await session.log_in(first)
                connection.before_call = session.renew_if_due
    except TimeoutError:
        connection.close()
        raise NotConnectedError(
            f"{connection.address} accepted the connection, but did not answer within {options.timeout_ms:g} ms"
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
        raise NotConnectedError(f"{connection.address} answered ApiVersions with {code.name}")
    return versions_of(response)


def fallback_version(refusal: ApiVersionsResponse, newest: int) -> int:
    """Return the version of the next ApiVersions request: the newest one the node supports, or 0 if it named none."""
    named = next((row.max_version for row in refusal.api_keys if row.api_key == ApiKey.API_VERSIONS), 0)
    return max(0, min(named, newest - 1))


class Session:
    """A login that is renewed before it expires."""

    def __init__(self, connection: Connection, login: Login) -> None:
        self._connection = connection
        self._login = login
        self._renew_at_s: float | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def log_in(self, mechanism: ClientMechanism) -> None:
        lifetime_ms = await authenticate(self._connection, mechanism)
        now_s = asyncio.get_running_loop().time()
        self._renew_at_s = now_s + RENEW_AFTER * lifetime_ms / 1000 if lifetime_ms > 0 else None

    async def renew_if_due(self) -> None:
        if self._renewing is None:
            if self._renew_at_s is None or asyncio.get_running_loop().time() < self._renew_at_s:
                return
            # In a separate task, so that a caller that is cancelled does not leave a login half done.
            self._renewing = asyncio.create_task(self._renew())
            self._renewing.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._renewing)

    async def _renew(self) -> None:
        try:
            await self.log_in(await self._login())
        except AuthenticationError:
            self._connection.close()
            raise
        finally:
            self._renewing = None


async def authenticate(connection: Connection, mechanism: ClientMechanism) -> int:
    """Log in and return the session's lifetime in milliseconds, or 0 if it has no limit. Raises `AuthenticationError`."""
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
        text = f"{connection.address} does not support SASL on this listener: {error}"
        raise AuthenticationError(ErrorCode.ILLEGAL_SASL_STATE, text) from error
    raise AuthenticationError(
        ErrorCode.SASL_AUTHENTICATION_FAILED, f"{connection.address} did not complete {mechanism.name}"
    )


def _refused_mechanism(connection: Connection, name: str, answer: SaslHandshakeResponse) -> Exception:
    code = error_code(answer.error_code)
    if code is ErrorCode.ILLEGAL_SASL_STATE:
        text = f"{connection.address} does not support SASL on this listener"
    else:
        text = f"{connection.address} does not support {name}; it supports {', '.join(answer.mechanisms) or 'nothing'}"
    return AuthenticationError(code, text)
