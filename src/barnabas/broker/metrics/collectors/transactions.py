"""Transactions whose coordinator is this node, by state."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, counter, gauge, labels
from barnabas.broker.metrics.observed import Observed
from barnabas.slices import Slices
from barnabas.transactions.state import TransactionState

TRANSACTIONS = gauge("barnabas_transactions", "Transactional ids of this coordinator by state.", "state")
IDS = gauge("barnabas_transactional_ids", "Transactional ids that count against barnabas.transactional.ids.max.count.")
OPEN = gauge("barnabas_transactions_open", "Ongoing transactions that count against barnabas.transactions.max.open.")
REFUSED = counter("barnabas_transactions_refused_total", "Requests refused because one of these limits was reached.")
METRICS = (TRANSACTIONS, IDS, OPEN, REFUSED)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    if node.coordinators is None:
        return
    transactions = node.coordinators.transactions
    out.add(IDS, transactions.transactional_id_count)
    out.add(OPEN, transactions.open_count)
    out.add(REFUSED, transactions.refused_total)
    states: Counter[TransactionState] = Counter(dict.fromkeys(TransactionState, 0))
    for machine in node.coordinators.transactions.machines.loaded():
        for transaction in machine.image.transactions.values():
            states[transaction.state] += 1
            yield
    for state, count in states.items():
        out.add(TRANSACTIONS, count, labels(state=state.shown))
