"""DescribeDelegationToken (41), versions 1 to 3.

A caller on a plaintext listener is not authenticated: the response is DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, without
tokens.
Not done: tokens. An authenticated caller gets DELEGATION_TOKEN_AUTH_DISABLED, as from a Kafka without
`delegation.token.secret.key`.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def handle(context: Context, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=context.token_refusal)
