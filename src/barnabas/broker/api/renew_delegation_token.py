"""RenewDelegationToken (39), versions 1 and 2.

A caller who is not authenticated, or who has logged in with a token, gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED. Without
`delegation.token.secret.key` the response is DELEGATION_TOKEN_AUTH_DISABLED. An HMAC of no token is DELEGATION_TOKEN_NOT_FOUND,
and a caller who is neither owner nor renewer gets DELEGATION_TOKEN_OWNER_MISMATCH. A token that has expired
is DELEGATION_TOKEN_EXPIRED. The token then lives for `delegation.token.expiry.time.ms`, or the requested time if that is
shorter, but never beyond its maximal age.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.delegation_tokens import changed
from barnabas.controller import delegation_tokens
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


async def handle(context: Context, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    code, expires_ms = await changed(context, delegation_tokens.renew, bytes(request.hmac), request.renew_period_ms)
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expires_ms)
