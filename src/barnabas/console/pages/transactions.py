"""Transactions and producers: open and hanging ones, with the command that ends them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial

from starlette.responses import Response

from barnabas.client.admin.producers import ProducerState
from barnabas.client.admin.transactions import OpenTransaction
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.console.changes import planned, show_plan
from barnabas.console.errors import RefusedError
from barnabas.console.forms import MAX_INT64, whole_number
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.operations.proposal import Proposal
from barnabas.operations.transaction_aborts import open_at, propose_abort, propose_fencing
from barnabas.operations.transactions_overview import (
    TransactionsOverview,
    find_hanging,
    look_at_transactions,
    producers_of,
)
from barnabas.wire.errors import KafkaError

Producers = Mapping[TopicPartition, list[ProducerState] | KafkaError]

TRANSACTIONS: Question[TransactionsOverview] = Question("transactions", look_at_transactions, 5)
HANGING: Question[list[OpenTransaction]] = Question("hanging transactions", find_hanging, 30, patience_s=2)
"""Asked for apart: all partitions are looked at, and the rest of the page does not wait for them."""


async def transactions(visit: Visit) -> Response:
    answer, hanging = await visit.ask(TRANSACTIONS), await visit.ask(HANGING)
    topic, text = visit.query("topic").strip(), visit.query("q").strip()
    producers = None
    if topic:
        producers = await visit.ask(Question(f"producers:{topic}", partial(producers_of, topic=topic), 5))
    listed = [] if answer.value is None else answer.value.listed
    values = {
        "found": answer.value,
        "hanging": hanging.value,
        "page": visit.listed(each for each in listed if text.lower() in each.transactional_id.lower()),
        "text": text,
        "topic": topic,
        "producers": None if producers is None or producers.value is None else list(_active(producers.value)),
        "now_ms": time.time() * 1000,
        "command": visit.entry.command,
    }
    return visit.page("transactions.html", "Transactions", values, nav="transactions")


def _active(found: Producers) -> Iterator[tuple[TopicPartition, ProducerState | KafkaError]]:
    """Yield each producer with its partition, and the errors of partitions."""
    for key, states in found.items():
        if isinstance(states, KafkaError):
            yield key, states
        else:
            yield from ((key, each) for each in states)


async def abort(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    partition, start = whole_number(form, "partition"), whole_number(form, "start_offset", most=MAX_INT64)
    if partition is None or start is None:
        raise RefusedError(400, "partition and offset are missing")
    key = TopicPartition(form.get("topic", ""), partition)

    async def propose(cluster: Cluster) -> Proposal[TopicPartition, ProducerState]:
        return propose_abort(cluster, key, await open_at(cluster, key, start))

    proposal = await visit.now(propose)
    words = ("--topic", key.topic, "--partition", str(partition), "--start-offset", str(start))
    plan = planned(
        "Abort a hanging transaction",
        proposal,
        command=visit.entry.command("transactions", "abort", *words),
        back=f"{visit.base}/transactions",
        nav="transactions",
        name=key.topic,
    )
    plan.warning = proposal.question
    return show_plan(visit, plan)


async def fence(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    transactional_id = form.get("id", "")
    if not transactional_id:
        raise RefusedError(400, "the transactional id is missing")
    proposal = await visit.now(partial(propose_fencing, transactional_id=transactional_id))
    plan = planned(
        f"End the transaction of {transactional_id}",
        proposal,
        command=visit.entry.command("transactions", "abort", "--transactional-id", transactional_id),
        back=f"{visit.base}/transactions",
        nav="transactions",
        name=transactional_id,
        detail=lambda _, result: result.state,
    )
    plan.warning = proposal.question
    return show_plan(visit, plan)


PAGES = {"/transactions": transactions}
FORMS = {"/transactions/abort": abort, "/transactions/fence": fence}
