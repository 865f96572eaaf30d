"""SaslHandshake (17), versions 0 and 1.

A plaintext listener has no authentication: the response is ILLEGAL_SASL_STATE, without mechanisms. Not done: SASL
listeners.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.wire import ErrorCode
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(context: Context, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
