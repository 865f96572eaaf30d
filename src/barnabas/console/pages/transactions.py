"""Transactions and producers: open and hanging ones, with the command that ends them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from starlette.responses import Response

from barnabas.client.admin.producers import ProducerState
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.console.changes import planned, show_plan
from barnabas.console.errors import RefusedError
from barnabas.console.forms import whole_number
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.operations.proposal import Proposal
from barnabas.operations.transaction_aborts import open_at, propose_abort, propose_fencing
from barnabas.operations.transactions_overview import TransactionsOverview, look_at_transactions, producers_of

TRANSACTIONS: Question[TransactionsOverview] = Question("transactions", look_at_transactions, 5)
_MAX_ROWS = 1_000


async def transactions(visit: Visit) -> Response:
    answer = await visit.ask(TRANSACTIONS)
    topic, text = visit.query("topic").strip(), visit.query("q").strip()
    producers = None
    if topic:
        producers = await visit.ask(Question(f"producers:{topic}", partial(producers_of, topic=topic), 5))
    listed = [] if answer.value is None else answer.value.listed
    values = {
        "found": answer.value,
        "rows": [each for each in listed if text.lower() in each.transactional_id.lower()][:_MAX_ROWS],
        "text": text,
        "topic": topic,
        "producers": None if producers is None else producers.value,
        "now_ms": time.time() * 1000,
        "command": visit.entry.command,
    }
    return visit.page("transactions.html", "Transactions", values, nav="transactions")


async def abort(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    partition, start = whole_number(form, "partition"), whole_number(form, "start_offset")
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
