"""EndTxn (26), versions 0 to 5.

Commits or aborts a producer's transaction. The response is sent when the decision is committed, while the markers are
still being written. From version 5 on, it has the id and epoch for the producer's next transaction. Needs WRITE on the
transactional id.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.replicated.decision import Producer
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse


async def handle(context: Context, request: EndTxnRequest) -> EndTxnResponse:
    transactional_id = request.transactional_id
    if not context.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    try:
        producer = await context.services.transactions.end(
            transactional_id,
            Producer(request.producer_id, request.producer_epoch),
            is_commit=request.committed,
            client_transaction_version=2 if context.version >= 5 else 0,
        )
    except KafkaError as error:
        if error.code is ErrorCode.PRODUCER_FENCED and context.version < 2:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH) from error
        raise
    return EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)
