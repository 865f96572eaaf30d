"""SaslAuthenticate (36), versions 0 to 2.

Passes one message of the mechanism and returns its answer. After the last one, version 1 has the time after which the
client must log in again (`connections.max.reauth.ms`). A failed login is SASL_AUTHENTICATION_FAILED, and the connection
closes. Without a login under way, as on a plaintext listener, the response is ILLEGAL_SASL_STATE. The credential of a
delegation token, which is slow to make, is made in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.broker.context import Context
from barnabas.broker.login import Login
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(
    context: Context, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | Awaitable[SaslAuthenticateResponse]:
    login = context.login
    if login is None:
        text = "SaslAuthenticate request received after successful authentication"
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=text)
    token = bytes(request.auth_bytes)
    work = login.exchange.work_before(token)
    return _evaluated(context, login, token) if work is None else _later(context, login, token, work)


async def _later(context: Context, login: Login, token: bytes, work: Callable[[], object]) -> SaslAuthenticateResponse:
    await asyncio.to_thread(work)
    return _evaluated(context, login, token)


def _evaluated(context: Context, login: Login, token: bytes) -> SaslAuthenticateResponse:
    try:
        answer = login.exchange.evaluate(token)
    except KafkaError as error:
        return SaslAuthenticateResponse(error_code=error.code, error_message=error.message)
    lifetime_ms = login.session_lifetime_ms if context.version >= 1 else 0
    return SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=lifetime_ms)
