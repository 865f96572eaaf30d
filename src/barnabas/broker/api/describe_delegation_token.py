"""DescribeDelegationToken (41), versions 1 to 3.

A caller who is not authenticated, or who has logged in with a token, gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED. Without
`delegation.token.secret.key` the response is DELEGATION_TOKEN_AUTH_DISABLED. Returns the tokens of the owners, or of
everyone if `owners` is null; an empty list returns none. Owners, requesters and renewers see their tokens with the HMAC;
others need DESCRIBE on the token or DESCRIBE_TOKENS on its owner. A token that has expired is shown until it is removed.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.delegation_tokens import is_allowed, secret_key
from barnabas.config.hash_order import hash_order
from barnabas.metadata.tokens import DelegationToken
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.security.delegation_token import token_hmac
from barnabas.security.principal import KafkaPrincipal, parse_principal
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

Row = DescribeDelegationTokenResponse.DescribedDelegationToken
Renewer = DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer


def handle(context: Context, request: DescribeDelegationTokenRequest) -> Slices[DescribeDelegationTokenResponse]:
    if not is_allowed(context):
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    try:
        key = secret_key(context)
    except KafkaError as error:
        return DescribeDelegationTokenResponse(error_code=error.code)
    owners = None
    if request.owners is not None:
        owners = {str(KafkaPrincipal(each.principal_type, each.principal_name)) for each in request.owners}
        if not owners:
            return DescribeDelegationTokenResponse()
    tokens, rows = context.image.tokens, []
    for token_id in hash_order(tokens):
        yield
        token = tokens[token_id]
        if (owners is None or not owners.isdisjoint(_concerned(token))) and _may_see(context, token):
            rows.append(_row(token, key, context.version))
    return DescribeDelegationTokenResponse(tokens=rows)


def _concerned(token: DelegationToken) -> tuple[str, ...]:
    return (token.owner, token.requester, *token.renewers)


def _may_see(context: Context, token: DelegationToken) -> bool:
    return (
        str(context.peer.principal) in _concerned(token)
        or context.may(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or context.may(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def _row(token: DelegationToken, key: str, version: int) -> Row:
    owner, requester = parse_principal(token.owner), parse_principal(token.requester)
    row = Row(
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp=token.issue_timestamp_ms,
        expiry_timestamp=token.expiration_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        token_id=token.token_id,
        hmac=token_hmac(key, token.token_id),
        renewers=[
            Renewer(principal_type=each.type, principal_name=each.name) for each in map(parse_principal, token.renewers)
        ],
    )
    if version >= 3:
        row.token_requester_principal_type = requester.type
        row.token_requester_principal_name = requester.name
    return row
