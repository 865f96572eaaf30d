"""DescribeUserScramCredentials (50), version 0.

Needs DESCRIBE on the cluster. Returns the mechanisms and iterations of users, never their keys. Null or an empty list
means all users. A user named twice is DUPLICATE_RESOURCE, one without credentials RESOURCE_NOT_FOUND. A controller's
listener answers too (Kafka has the API there, but it fails).
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.config.hash_order import hash_order_in_slices
from barnabas.metadata.scram import SCRAM_MECHANISMS, ScramUser
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.steps import Slices, counted, mapped
from barnabas.wire import ErrorCode
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

Row = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
Credential = DescribeUserScramCredentialsResponse.CredentialInfo


def handle(
    context: Context, request: DescribeUserScramCredentialsRequest
) -> Slices[DescribeUserScramCredentialsResponse]:
    asked = yield from mapped(lambda user: user.name, request.users or ())
    if not context.may(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        rows = yield from mapped(lambda _: Row(error_code=code, error_message=None), asked)
        return DescribeUserScramCredentialsResponse(error_code=code, error_message=None, results=rows)
    times = yield from counted(asked or sorted({user.name for user in context.image.scram}))
    names = yield from hash_order_in_slices(times)
    rows = yield from mapped(lambda name: _duplicate(name) if times[name] > 1 else _row(context, name), names)
    return DescribeUserScramCredentialsResponse(results=rows)


def _duplicate(name: str) -> Row:
    text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
    return Row(user=name, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=text)


def _row(context: Context, name: str) -> Row:
    found = [
        Credential(mechanism=mechanism, iterations=credential.iterations)
        for mechanism in SCRAM_MECHANISMS
        if (credential := context.image.scram.get(ScramUser(mechanism, name))) is not None
    ]
    if found:
        return Row(user=name, credential_infos=found)
    text = f"Attempt to describe a user credential that does not exist: {name}"
    return Row(user=name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=text)
