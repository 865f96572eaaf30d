"""SaslAuthenticate (36), versions 0 to 2.

A plaintext listener has no authentication: the response is ILLEGAL_SASL_STATE. Not done: SASL listeners.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.wire import ErrorCode
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(context: Context, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    text = "SaslAuthenticate request received after successful authentication"
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=text)
