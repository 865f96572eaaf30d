"""Reassignments: what is moving and how fast, plans in bytes, throttle and cancel."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from starlette.responses import Response

from barnabas.client.cluster import Cluster
from barnabas.console.changes import planned, show_plan
from barnabas.console.errors import EXPECTED, problem_of
from barnabas.console.forms import checked, whole_number
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.operations.partitions import Key, parse_selection
from barnabas.operations.proposal import Proposal
from barnabas.operations.quantities import parse_bytes
from barnabas.operations.reassignments.looking import Moving, look_at_reassignments, with_rates
from barnabas.operations.reassignments.plan import Goal, PlannedMoves, plan_moves
from barnabas.operations.reassignments.proposals import propose_cancel, propose_moves, propose_throttle
from barnabas.wire.errors import KafkaError

MOVING: Question[Moving] = Question("reassignments", look_at_reassignments, 3, combine=with_rates)
_MAX_ROWS = 1_000


async def reassignments(visit: Visit) -> Response:
    answer = await visit.ask(MOVING)
    made: PlannedMoves | None = None
    problem: str | None = None
    if visit.query("goal"):
        try:
            goal, topics = _goal(visit.request.query_params)
            made = await visit.now(
                partial(plan_moves, selections=[parse_selection(each) for each in topics], goal=goal)
            )
        except ValueError as error:
            problem = str(error)
        except EXPECTED as error:
            problem = problem_of(error)
    rows = [] if answer.value is None else list(answer.value.progress.items())[:_MAX_ROWS]
    values = {
        "found": answer.value,
        "rows": rows,
        "made": made,
        "moves": [] if made is None else list(made.plan.targets.items())[:_MAX_ROWS],
        "loads": {} if made is None else made.plan.loads(made.racks),
        "problem": problem,
        "given": {name: visit.query(name) for name in ("goal", "brokers", "factor", "topics")},
        "command": visit.entry.command("reassign", "plan", "--rebalance"),
    }
    return visit.page("reassignments.html", "Reassignments", values, nav="reassignments")


def _goal(given: Mapping[str, str]) -> tuple[Goal, list[str]]:
    """Return the goal of a form and its topics. Raises ValueError."""
    brokers = tuple(int(word) for word in given.get("brokers", "").replace(",", " ").split())
    kind, factor = given.get("goal", ""), given.get("factor", "").strip()
    goals = {
        "rebalance": Goal(rebalance=True),
        "add": Goal(add=brokers),
        "drain": Goal(drain=brokers),
        "factor": Goal(replication_factor=int(factor) if factor else None),
    }
    if kind not in goals:
        raise ValueError("there is no such goal")
    if goals[kind].is_empty:
        raise ValueError("say which brokers, or which replication factor")
    return goals[kind], given.get("topics", "").split()


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
    options = {"rebalance": ["--rebalance"], "factor": ["--replication-factor", form.get("factor", "")]}
    words = ["reassign", "run", *topics, *options.get(form.get("goal", ""), [])]
    for name, ids in (("--add", goal.add), ("--drain", goal.drain)):
        words += [name, ",".join(map(str, ids))] if ids else []
    words += ["--throttle", form["throttle"]] if throttle is not None else []
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
        rate = parse_bytes(text) if text and not form.get("clear") else None
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
