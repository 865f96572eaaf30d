"""RenewDelegationToken (39), versions 1 and 2.

A caller who is not authenticated, or who has logged in with a token, gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED. Without
`delegation.token.secret.key` the response is DELEGATION_TOKEN_AUTH_DISABLED. An HMAC of no token is DELEGATION_TOKEN_NOT_FOUND,
and a caller who is neither owner nor renewer gets DELEGATION_TOKEN_OWNER_MISMATCH. A token that has expired
is DELEGATION_TOKEN_EXPIRED. The token then lives for `delegation.token.expiry.time.ms`, or the requested time if that is
shorter, but never beyond its maximal age.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.delegation_tokens import NO_TIME, is_allowed, token_id_of
from barnabas.controller import delegation_tokens
from barnabas.slices import in_slices
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


async def handle(context: Context, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    if not is_allowed(context):
        code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIME)
    try:
        token_id = await in_slices(token_id_of(context, bytes(request.hmac)))
        expires_ms = await context.controller.write(
            delegation_tokens.renew, token_id, context.peer.principal, request.renew_period_ms
        )
    except KafkaError as error:
        return RenewDelegationTokenResponse(error_code=error.code)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
