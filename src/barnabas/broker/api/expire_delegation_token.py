"""ExpireDelegationToken (40), versions 1 and 2.

A caller on a plaintext listener is not authenticated: the response is DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
Not done: tokens. An authenticated caller gets DELEGATION_TOKEN_AUTH_DISABLED, as from a Kafka without
`delegation.token.secret.key`.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse

_NO_TIME = -1


def handle(context: Context, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    code = context.token_refusal
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=_NO_TIME)
