"""Transactions whose coordinator is this node, by state."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, gauge, labels
from barnabas.broker.metrics.observed import Observed
from barnabas.slices import Slices
from barnabas.transactions.state import TransactionState

TRANSACTIONS = gauge("barnabas_transactions", "Transactional ids of this coordinator by state.", "state")
METRICS = (TRANSACTIONS,)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    if node.coordinators is None:
        return
    states: Counter[TransactionState] = Counter(dict.fromkeys(TransactionState, 0))
    for machine in node.coordinators.transactions.machines.loaded():
        for transaction in machine.image.transactions.values():
            states[transaction.state] += 1
            yield
    for state, count in states.items():
        out.add(TRANSACTIONS, count, labels(state=state.shown))
