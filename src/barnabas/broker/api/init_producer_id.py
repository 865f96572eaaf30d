"""InitProducerId (22), versions 0 to 5.

Without a transactional id: returns a new producer id. With one: returns the producer's id and next epoch, which fences
the previous producer. An open transaction is aborted first, and the caller must retry (CONCURRENT_TRANSACTIONS). From
version 3 on, a recovering producer sends its previous id and epoch. Needs WRITE on the transactional id, or without one
IDEMPOTENT_WRITE on the cluster or WRITE on any topic.

Version 6, for two-phase commit, is not served: Kafka 4.3 does not release it either.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.replicated.decision import Producer
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def handle(context: Context, request: InitProducerIdRequest) -> InitProducerIdResponse:
    try:
        _check_may(context, request)
        producer = await context.services.transactions.init_producer_id(
            request.transactional_id,
            request.transaction_timeout_ms,
            _expected(request),
            enable_2pc=request.enable2_pc,
            keep_prepared=request.keep_prepared_txn,
        )
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and context.version < 4:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(error_code=code, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)


def _check_may(context: Context, request: InitProducerIdRequest) -> None:
    transactional_id = request.transactional_id
    if transactional_id is None:
        may = context.is_allowed(AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME)
        if not may and not context.may_any(AclOperation.WRITE, ResourceType.TOPIC):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return
    wanted = [AclOperation.WRITE, *([AclOperation.TWO_PHASE_COMMIT] if request.enable2_pc else [])]
    if not all(context.may(each, ResourceType.TRANSACTIONAL_ID, transactional_id) for each in wanted):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _expected(request: InitProducerIdRequest) -> Producer | None:
    """Return the producer's previous id and epoch, or None. Raises KafkaError if only one of them is set."""
    given = Producer(request.producer_id, request.producer_epoch)
    if given == Producer(-1, -1):
        return None
    if -1 in given:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return given
