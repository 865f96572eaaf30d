"""CreateDelegationToken (38), versions 1 to 3.

A caller on a plaintext listener is not authenticated and gets no token: the response is
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, with the requested owner (version 3) or the caller. Not done: tokens. An
authenticated caller gets DELEGATION_TOKEN_AUTH_DISABLED, as from a Kafka without `delegation.token.secret.key`.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse

_NO_TIME = -1


def handle(context: Context, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    requester = owner = context.peer.principal
    if request.owner_principal_name:
        owner = KafkaPrincipal(request.owner_principal_type or "", request.owner_principal_name)
    response = CreateDelegationTokenResponse(
        error_code=context.token_refusal,
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp_ms=_NO_TIME,
        expiry_timestamp_ms=_NO_TIME,
        max_timestamp_ms=_NO_TIME,
    )
    if context.version >= 3:
        response.token_requester_principal_type = requester.type
        response.token_requester_principal_name = requester.name
    return response
