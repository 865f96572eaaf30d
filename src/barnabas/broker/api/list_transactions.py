"""ListTransactions (66), versions 0 to 2.

Lists the transactional ids that this node coordinates, filtered by state and producer id, from version 1 on by
duration, and from version 2 on by an RE2 pattern that must match the whole id. Unknown states in the filter are
returned, and match nothing. While a partition is being loaded, the response is COORDINATOR_LOAD_IN_PROGRESS. Only ids
that the caller may DESCRIBE are listed, sorted by name (Kafka: in the order of a hash table).
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.broker.context import Context
from barnabas.groups import regular_expressions
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.steps import Slices, counted, stepwise
from barnabas.transactions.state import SHOWN, Transaction
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def handle(context: Context, request: ListTransactionsRequest) -> Slices[ListTransactionsResponse]:
    coordinator = context.services.transactions
    transactions = coordinator.all()
    if request.transactional_id_pattern:
        transactions = _matching(request.transactional_id_pattern, transactions)
    now_ms = coordinator.now_ms()
    producer_ids = yield from counted(request.producer_id_filters)
    states = yield from counted(request.state_filters)
    found = []
    for each in transactions:
        yield
        if _is_wanted(each, states, producer_ids, request.duration_filter, now_ms) and context.is_allowed(
            AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, each.transactional_id
        ):
            found.append(
                ListTransactionsResponse.TransactionState(
                    transactional_id=each.transactional_id,
                    producer_id=each.producer_id,
                    transaction_state=each.state.shown,
                )
            )
    found.sort(key=lambda row: row.transactional_id)
    unknown = []
    for some in stepwise(states):
        unknown += [state for state in some if state not in SHOWN]
        yield
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found)


def _is_wanted(
    transaction: Transaction,
    states: Collection[str],
    producer_ids: Collection[int],
    duration_filter: int,
    now_ms: int,
) -> bool:
    if producer_ids and transaction.producer_id not in producer_ids:
        return False
    if states and transaction.state.shown not in states:
        return False
    return duration_filter < 0 or now_ms - transaction.start_timestamp_ms > duration_filter


def _matching(pattern: str, transactions: list[Transaction]) -> list[Transaction]:
    regular_expressions.check(pattern)
    found = regular_expressions.matching([pattern], [each.transactional_id for each in transactions])[pattern]
    return [each for each in transactions if each.transactional_id in found]
