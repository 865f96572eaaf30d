"""Brokers and the metadata quorum: loads, disks, releases, features, voters, and whether a broker can be stopped."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from starlette.responses import Response

from barnabas.client.cluster import Cluster
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
    stop = await visit.ask(Question(f"safe to stop:{broker_id}", partial(_judged, broker_id=broker_id), 10))
    dirs = await visit.ask(Question(f"log dirs:{broker_id}", partial(look_at_log_dirs, broker_id=broker_id), 15))
    values = {
        "broker_id": broker_id,
        "load": load,
        "found": answer.value,
        "stop": stop.value,
        "dirs": dirs.value,
        "command": visit.entry.command("cluster", "safe-to-stop", text),
    }
    return visit.page("broker.html", f"Broker {broker_id}", values, nav="brokers")


class _Judged(NamedTuple):
    """Whether a broker can be stopped, in words."""

    is_safe: bool
    reasons: list[str]
    warnings: list[str]
    affected: list[str]
    affected_count: int


async def _judged(cluster: Cluster, broker_id: int) -> _Judged:
    """Ask, and put it into words once for all visits: there may be very many partitions."""
    found = await judge_stop(cluster, broker_id)
    shown = [str(each) for each in found.affected[:_MAX_AFFECTED]]
    return _Judged(found.is_safe, list(reasons(found, _MAX_TOPICS)), list(found.warnings), shown, len(found.affected))


async def quorum(visit: Visit) -> Response:
    answer = await visit.ask(QUORUM)
    return visit.page("quorum.html", "Quorum", {"found": answer.value}, nav="quorum")


PAGES = {"/brokers": brokers, "/brokers/{broker}": broker, "/quorum": quorum}
