"""CreateDelegationToken (38), versions 1 to 3.

A caller who is not authenticated, or who has logged in with a token, gets no token: the response is
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, with the requested owner (version 3) or the caller. A token for another owner needs
CREATE_TOKENS on that user, else DELEGATION_TOKEN_AUTHORIZATION_FAILED. A renewer that is not a user is
INVALID_PRINCIPAL_TYPE. Without `delegation.token.secret.key` the response is DELEGATION_TOKEN_AUTH_DISABLED. The token ends
after `delegation.token.max.lifetime.ms` or the requested time, and expires after `delegation.token.expiry.time.ms` unless it is
renewed.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.delegation_tokens import NO_TIME, is_allowed, secret_key
from barnabas.controller import delegation_tokens
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.security.delegation_token import token_hmac
from barnabas.security.principal import USER_TYPE, KafkaPrincipal
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse


async def handle(context: Context, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    requester = owner = context.peer.principal
    if request.owner_principal_name:
        owner = KafkaPrincipal(request.owner_principal_type or "", request.owner_principal_name)
    response = CreateDelegationTokenResponse(principal_type=owner.type, principal_name=owner.name)
    if context.version >= 3:
        response.token_requester_principal_type = requester.type
        response.token_requester_principal_name = requester.name
    response.error_code = _refusal(context, request, owner)
    if response.error_code:
        response.issue_timestamp_ms = response.expiry_timestamp_ms = response.max_timestamp_ms = NO_TIME
        return response
    renewers = [KafkaPrincipal(each.principal_type, each.principal_name) for each in request.renewers]
    wanted = delegation_tokens.Wanted(owner, requester, renewers, request.max_lifetime_ms)
    try:
        key = secret_key(context)
        token = await context.controller.write(delegation_tokens.create, wanted)
    except KafkaError as error:
        response.error_code = error.code
        return response
    response.issue_timestamp_ms = token.issue_timestamp_ms
    response.expiry_timestamp_ms = token.expiration_timestamp_ms
    response.max_timestamp_ms = token.max_timestamp_ms
    response.token_id = token.token_id
    response.hmac = token_hmac(key, token.token_id)
    return response


def _refusal(context: Context, request: CreateDelegationTokenRequest, owner: KafkaPrincipal) -> ErrorCode:
    if not is_allowed(context):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != context.peer.principal and not context.may(AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(each.principal_type != USER_TYPE for each in request.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return ErrorCode.NONE
