"""Changes: planned, shown, confirmed and carried out, with a result for each item.

Its one rule: what is carried out is the plan that was shown, once, by the session that asked for it. Plans are
`operations.Proposal`s; the page shows their steps and the command to type.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from starlette.responses import RedirectResponse, Response

from barnabas.client.admin.part import TimedOutError
from barnabas.console.errors import EXPECTED, RefusedError, problem_of
from barnabas.console.visit import Visit
from barnabas.operations.proposal import Proposal
from barnabas.wire.errors import KafkaError

K = TypeVar("K")
R = TypeVar("R")


class Outcome(NamedTuple):
    """What became of one item. `problem` is None if it was changed."""

    item: str
    detail: str = ""
    problem: str | None = None


@dataclass(slots=True)
class PlannedChange:
    """A change that waits for its confirmation. `name` has to be typed if something is destroyed."""

    title: str
    steps: tuple[str, ...]
    command: str
    carry_out: Callable[[], Awaitable[list[Outcome]]] | None
    back: str
    nav: str
    notes: tuple[str, ...] = ()
    warning: str | None = None
    name: str | None = None
    refused: list[Outcome] = field(default_factory=list)
    """Items that the cluster refuses already now."""
    outcomes: list[Outcome] | None = None
    cluster: str = ""
    is_running: bool = False


def planned(
    title: str,
    proposal: Proposal[K, R],
    *,
    command: str,
    back: str,
    nav: str,
    name: str | None = None,
    detail: Callable[[K, R], str] = lambda key, result: "",
    item: Callable[[K], str] = str,
) -> PlannedChange:
    """Make a plan to show of a proposal."""

    def outcomes(results: Mapping[K, R]) -> list[Outcome]:
        return [_outcome(item(key), result, detail(key, result)) for key, result in results.items()]

    carry_out = proposal.carry_out
    refused = [each for each in outcomes(proposal.expected) if each.problem is not None] if carry_out is None else []

    async def carried_out() -> list[Outcome]:
        assert carry_out is not None
        return outcomes(await carry_out())

    return PlannedChange(
        title,
        proposal.steps,
        command,
        None if carry_out is None else carried_out,
        back,
        nav,
        proposal.notes,
        proposal.warning,
        name,
        refused,
    )


def _outcome(item: str, result: Any, detail: str) -> Outcome:
    """Return the outcome of a result: an error, or a value with an `error`, or anything else for a success."""
    error = result if isinstance(result, KafkaError) else getattr(result, "error", None)
    if not isinstance(error, KafkaError):
        return Outcome(item, detail)
    if isinstance(error, TimedOutError) and error.happened:
        return Outcome(item, str(error.message))
    return Outcome(item, "", problem_of(error))


def show_plan(visit: Visit, plan: PlannedChange) -> Response:
    """Keep a plan, and show it at an address of its own."""
    visit.require_changes()
    plan.cluster = visit.entry.name
    plan_id = visit.session.keep(plan)
    return RedirectResponse(f"{visit.base}/changes/{plan_id}", 303)


def find_plan(visit: Visit) -> PlannedChange:
    plan = visit.session.plans.get(visit.path("plan_id"))
    if plan is None or plan.cluster != visit.entry.name:
        raise RefusedError(404, "this plan is gone: plan the change again")
    return plan


async def plan_page(visit: Visit) -> Response:
    """Show a plan, or what became of it."""
    visit.require_changes()
    plan = find_plan(visit)
    return visit.page("change.html", plan.title, {"plan": plan, "wrong_name": False}, nav=plan.nav)


async def confirm(visit: Visit, form: Mapping[str, str]) -> Response:
    """Carry out a plan."""
    visit.require_changes()
    plan = find_plan(visit)
    if plan.outcomes is not None or plan.is_running or plan.carry_out is None:
        return RedirectResponse(visit.request.url.path, 303)
    if plan.name is not None and form.get("name", "").strip() != plan.name:
        return visit.page("change.html", plan.title, {"plan": plan, "wrong_name": True}, nav=plan.nav, status=400)
    plan.is_running = True
    try:
        carry_out = plan.carry_out
        plan.outcomes = await visit.now(lambda _: carry_out())
    except EXPECTED as error:
        plan.outcomes = [Outcome(plan.title, "", problem_of(error))]
    finally:
        plan.is_running = False
        visit.live.expire(visit.link)
    return RedirectResponse(visit.request.url.path, 303)
