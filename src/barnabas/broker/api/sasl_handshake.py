"""SaslHandshake (17), versions 0 and 1.

Chooses the mechanism of a login; after version 0 the mechanism's messages come without request headers. A mechanism that
is not enabled is UNSUPPORTED_SASL_MECHANISM with the enabled ones, and the connection closes. Without a login under way,
as on a plaintext listener, the response is ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.config.hash_order import hash_order
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(context: Context, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    login = context.login
    if login is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    code = ErrorCode.NONE
    try:
        login.exchange.handshake(request.mechanism, context.version)
    except KafkaError as error:
        code = error.code
    return SaslHandshakeResponse(error_code=code, mechanisms=list(hash_order(login.exchange.mechanisms)))
