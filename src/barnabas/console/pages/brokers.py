"""Brokers and the metadata quorum: loads, disks, releases, features, voters, and whether a broker can be stopped."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from barnabas.console.errors import RefusedError
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.operations.brokers_detail import (
    BrokersDetail,
    QuorumDetail,
    look_at_brokers_in_detail,
    look_at_log_dirs,
    look_at_quorum,
)
from barnabas.operations.safe_to_stop import judge_stop, reasons

BROKERS: Question[BrokersDetail] = Question("brokers", look_at_brokers_in_detail, 10)
QUORUM: Question[QuorumDetail] = Question("quorum", look_at_quorum, 3)
_MAX_TOPICS = 10
_MAX_AFFECTED = 500


async def brokers(visit: Visit) -> Response:
    answer = await visit.ask(BROKERS)
    return visit.page("brokers.html", "Brokers", {"found": answer.value}, nav="brokers")


async def broker(visit: Visit) -> Response:
    text = visit.path("broker")
    if not text.isdecimal():
        raise RefusedError(404, "there is no such broker")
    broker_id = int(text)
    answer = await visit.ask(BROKERS)
    load = next((each for each in answer.value.loads if each.broker_id == broker_id), None) if answer.value else None
    if answer.value is not None and load is None:
        raise RefusedError(404, "there is no such broker")
    stop = await visit.ask(Question(f"safe to stop:{broker_id}", partial(judge_stop, broker_id=broker_id), 10))
    dirs = await visit.ask(Question(f"log dirs:{broker_id}", partial(look_at_log_dirs, broker_id=broker_id), 15))
    values = {
        "broker_id": broker_id,
        "load": load,
        "found": answer.value,
        "stop": stop.value,
        "reasons": [] if stop.value is None else reasons(stop.value, _MAX_TOPICS),
        "affected": [] if stop.value is None else stop.value.affected[:_MAX_AFFECTED],
        "dirs": dirs.value,
        "command": visit.entry.command("cluster", "safe-to-stop", text),
    }
    return visit.page("broker.html", f"Broker {broker_id}", values, nav="brokers")


async def quorum(visit: Visit) -> Response:
    answer = await visit.ask(QUORUM)
    return visit.page("quorum.html", "Quorum", {"found": answer.value}, nav="quorum")


PAGES = {"/brokers": brokers, "/brokers/{broker}": broker, "/quorum": quorum}
