"""AlterUserScramCredentials (51), version 0.

Needs ALTER on the cluster. Deletes and sets credentials, with one row per user. A user named twice is
DUPLICATE_RESOURCE, even with two mechanisms. An unknown mechanism is UNSUPPORTED_SASL_MECHANISM. An empty name, or
iterations outside of 4096 to 16384, is UNACCEPTABLE_CREDENTIAL. Deleting a credential that does not exist is
RESOURCE_NOT_FOUND. A metadata.version below 3.5-IV2 is UNSUPPORTED_VERSION. Users with errors come last.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.errors import shown_message
from barnabas.controller import scram
from barnabas.security.acl import AclOperation
from barnabas.slices import in_slices
from barnabas.steps import counted, in_order, mapped
from barnabas.wire import KafkaError
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

Row = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


async def handle(context: Context, request: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    errors: dict[str, KafkaError | None]
    try:
        context.require_on_cluster(AclOperation.ALTER)
        errors = await context.controller.write(scram.alter, request.deletions, request.upsertions)
    except KafkaError as error:
        names = await in_slices(counted(each.name for each in request.deletions))
        names |= await in_slices(counted(each.name for each in request.upsertions))
        errors = dict.fromkeys(await in_slices(in_order(names)), error)
    return AlterUserScramCredentialsResponse(results=await in_slices(mapped(lambda each: _row(*each), errors.items())))


def _row(name: str, error: KafkaError | None) -> Row:
    if error is None:
        return Row(user=name, error_message=None)
    return Row(user=name, error_code=error.code, error_message=shown_message(error.code, error.message))
