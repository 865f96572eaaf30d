"""DescribeDelegationToken (41), versions 1 to 3.

A caller on a plaintext listener is not authenticated: the response is DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, without
tokens. Not done: tokens on listeners that authenticate.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.wire import ErrorCode
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def handle(context: Context, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
