"""Reassignments: what is moving and how fast, plans in bytes, throttle and cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import NamedTuple

from starlette.responses import Response

from barnabas.client.cluster import Cluster
from barnabas.client.reassignment_plan import Load
from barnabas.console.changes import planned, show_plan
from barnabas.console.forms import checked, parse_number, whole_number
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.operations.partitions import Key, Selection, parse_selection
from barnabas.operations.proposal import Proposal
from barnabas.operations.quantities import parse_bytes
from barnabas.operations.reassignments.looking import Moving, look_at_reassignments, with_rates
from barnabas.operations.reassignments.plan import Goal, plan_moves
from barnabas.operations.reassignments.proposals import propose_cancel, propose_moves, propose_throttle
from barnabas.wire.errors import KafkaError

MOVING: Question[Moving] = Question("reassignments", look_at_reassignments, 3, combine=with_rates)
_MAX_MOVES = 2_000


async def reassignments(visit: Visit) -> Response:
    answer = await visit.ask(MOVING)
    made: _Planned | None = None
    problem: str | None = None
    if visit.query("goal"):
        try:
            goal, topics = _goal(visit.request.query_params)
            selections = [parse_selection(each) for each in topics]
            ask = partial(_planned, selections=selections, goal=goal)
            planned = await visit.once(Question(f"moves:{goal}:{topics}", ask, 60))
            made, problem = None if planned.problem else planned.value, planned.problem
        except ValueError as error:
            problem = str(error)
    values = {
        "found": answer.value,
        "page": visit.listed([] if answer.value is None else answer.value.progress.items()),
        "made": made,
        "problem": problem,
        "given": {name: visit.query(name) for name in ("goal", "brokers", "factor", "topics")},
        "command": visit.entry.command(*_words(visit.request.query_params)) if made is not None else "",
    }
    return visit.page("reassignments.html", "Reassignments", values, nav="reassignments")


class _Planned(NamedTuple):
    """What a page shows of planned moves, made once for all visits."""

    warnings: tuple[str, ...]
    total: int
    moves: list[tuple[Key, tuple[int, ...], tuple[int, ...], int | None]]
    """The first ones: partition, replicas now and then, and bytes to copy."""
    loads: dict[int, Load]


async def _planned(cluster: Cluster, selections: list[Selection], goal: Goal) -> _Planned:
    found = await plan_moves(cluster, selections, goal)

    def in_words() -> _Planned:
        plan = found.plan
        moves = [
            (key, tuple(plan.current[key]), tuple(replicas), plan.bytes_to_copy(key))
            for key, replicas in islice(plan.targets.items(), _MAX_MOVES)
        ]
        return _Planned(found.warnings, len(plan.targets), moves, dict(plan.loads(found.racks)))

    return await asyncio.to_thread(in_words)


def _goal(given: Mapping[str, str]) -> tuple[Goal, list[str]]:
    """Return the goal of a form and its topics. Raises ValueError."""
    brokers = tuple(parse_number(word, "a broker") for word in given.get("brokers", "").replace(",", " ").split())
    kind, factor = given.get("goal", ""), given.get("factor", "").strip()
    goals = {
        "rebalance": Goal(rebalance=True),
        "add": Goal(add=brokers),
        "drain": Goal(drain=brokers),
        "factor": Goal(replication_factor=parse_number(factor, "the replication factor") if factor else None),
    }
    if kind not in goals:
        raise ValueError("there is no such goal")
    if goals[kind].is_empty:
        raise ValueError("say which brokers, or which replication factor")
    return goals[kind], given.get("topics", "").split()


def _words(given: Mapping[str, str]) -> list[str]:
    """Return the command for the goal of a form."""
    goal, topics = _goal(given)
    words = ["reassign", "run", *topics, *(["--rebalance"] if goal.rebalance else [])]
    for name, ids in (("--add", goal.add), ("--drain", goal.drain)):
        words += [name, ",".join(map(str, ids))] if ids else []
    return words + (["--replication-factor", str(goal.replication_factor)] if goal.replication_factor else [])


async def start(visit: Visit, form: Mapping[str, str]) -> Response:
    """Plan moves again, and show them as a change."""
    visit.require_changes()
    with checked():
        goal, topics = _goal(form)
        selections = [parse_selection(each) for each in topics]
        throttle = parse_bytes(text) if (text := form.get("throttle", "").strip()) else None

    async def propose(cluster: Cluster) -> Proposal[Key, KafkaError | None]:
        return propose_moves(cluster, await plan_moves(cluster, selections=selections, goal=goal), throttle)

    proposal = await visit.now(propose)
    words = [*_words(form), *(["--throttle", form["throttle"].strip()] if throttle is not None else [])]
    plan = planned(
        "Move replicas",
        proposal,
        command=visit.entry.command(*words),
        back=f"{visit.base}/reassignments",
        nav="reassignments",
        item=_key_text,
        detail=lambda key, _: "started",
    )
    return show_plan(visit, plan)


def _key_text(key: Key) -> str:
    return f"{key[0]}-{key[1]}"


async def cancel(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    keys: list[Key] | None = None
    words = ["reassign", "cancel", "--all"]
    if topic := form.get("topic"):
        partition = whole_number(form, "partition") or 0
        keys = [(topic, partition)]
        words = ["reassign", "cancel", f"{topic}:{partition}"]
    proposal = await visit.now(partial(propose_cancel, keys=keys))
    plan = planned(
        "Cancel reassignments",
        proposal,
        command=visit.entry.command(*words),
        back=f"{visit.base}/reassignments",
        nav="reassignments",
        item=_key_text,
    )
    return show_plan(visit, plan)


async def throttle(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    text = form.get("rate", "").strip()
    with checked():
        rate = None if form.get("clear") else parse_bytes(text)
    proposal = await visit.now(partial(propose_throttle, rate=rate))
    words = ("--clear",) if rate is None else ("--rate", text)
    plan = planned(
        "Throttle reassignments",
        proposal,
        command=visit.entry.command("reassign", "throttle", *words),
        back=f"{visit.base}/reassignments",
        nav="reassignments",
    )
    return show_plan(visit, plan)


PAGES = {"/reassignments": reassignments}
FORMS = {"/reassignments": start, "/reassignments/cancel": cancel, "/reassignments/throttle": throttle}
