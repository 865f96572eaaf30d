"""DescribeTransactions (65), version 0.

Returns the state of each transactional id: transaction state, producer, timeout, and the partitions in the transaction.
While the transaction ends, these are the partitions whose marker is not written yet. Needs DESCRIBE on the
transactional id. Topics that the caller may not DESCRIBE are left out.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.steps import Slices
from barnabas.transactions.state import by_topic
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

Row = DescribeTransactionsResponse.TransactionState


def handle(context: Context, request: DescribeTransactionsRequest) -> Slices[DescribeTransactionsResponse]:
    rows = []
    for transactional_id in request.transactional_ids:
        yield
        try:
            rows.append(_describe(context, transactional_id))
        except KafkaError as error:
            rows.append(Row(error_code=error.code, transactional_id=transactional_id))
    return DescribeTransactionsResponse(transaction_states=rows)


def _describe(context: Context, transactional_id: str) -> Row:
    if not context.may(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    transaction, partitions = context.services.transactions.describe(transactional_id)
    return Row(
        transactional_id=transactional_id,
        transaction_state=transaction.state.shown,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_timestamp_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
            if context.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
        ],
    )
