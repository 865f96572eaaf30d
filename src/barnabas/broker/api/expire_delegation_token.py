"""ExpireDelegationToken (40), versions 1 and 2.

A caller who is not authenticated, or who has logged in with a token, gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED. Without
`delegation.token.secret.key` the response is DELEGATION_TOKEN_AUTH_DISABLED. An HMAC of no token is DELEGATION_TOKEN_NOT_FOUND,
and a caller who is neither owner nor renewer gets DELEGATION_TOKEN_OWNER_MISMATCH. A negative period
removes the token at once; else it expires after the period, but not beyond its maximal age, and one that has expired already
is DELEGATION_TOKEN_EXPIRED.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.delegation_tokens import changed
from barnabas.controller import delegation_tokens
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


async def handle(context: Context, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    code, expires_ms = await changed(
        context, delegation_tokens.expire, bytes(request.hmac), request.expiry_time_period_ms
    )
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expires_ms)
