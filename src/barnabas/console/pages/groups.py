"""Groups of every type: members, assignment, lag and its trend; resets and deletion."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from starlette.responses import Response

from barnabas.client.admin.streams_groups import StreamsGroupDescription, StreamsGroups
from barnabas.client.cluster import Cluster
from barnabas.console.changes import planned, show_plan
from barnabas.console.errors import RefusedError
from barnabas.console.formats import query
from barnabas.console.forms import checked, parse_number
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.metadata.as_of import parse_as_of
from barnabas.operations.groups.any_type import SHARE_TYPE, STREAMS_TYPE
from barnabas.operations.groups.deletion import propose_group_deletion
from barnabas.operations.groups.reset_plan import Reset, Rule
from barnabas.operations.groups.resets import propose_reset
from barnabas.operations.groups.summaries import GroupSummaries, GroupSummary, look_at_groups, with_history
from barnabas.operations.partitions import parse_selection
from barnabas.wire.errors import KafkaError

_SORTS = {
    "name": lambda each: each.listing.group_id,
    "members": lambda each: each.members or 0,
    "lag": lambda each: each.lag or 0,
    "age": lambda each: each.lag_ms or 0,
}
_RULES = {
    "earliest": "--to-earliest",
    "latest": "--to-latest",
    "offset": "--to-offset",
    "shift": "--shift-by",
    "time": "--to-datetime",
}


def _question(group_id: str | None = None) -> Question[GroupSummaries]:
    wanted = None if group_id is None else [group_id]
    name = "groups" if group_id is None else f"group:{group_id}"
    return Question(name, partial(look_at_groups, wanted=wanted), 5, combine=with_history)


async def groups(visit: Visit) -> Response:
    answer = await visit.ask(_question())
    text, kind, sort = visit.query("q").strip(), visit.query("type"), visit.query("sort", "name")
    every: list[GroupSummary] = [] if answer.value is None else list(answer.value.groups.values())
    rows = [
        each
        for each in every
        if text.lower() in each.listing.group_id.lower() and (not kind or (each.listing.type or "") == kind)
    ]
    key = _SORTS.get(sort.lstrip("-"))
    if key is None:
        raise RefusedError(400, f"groups cannot be sorted by {sort}")
    rows.sort(key=key, reverse=sort.startswith("-"))
    page = visit.listed(rows)
    given = {"q": text, "type": kind}
    shown = [each.listing.group_id for each in page.rows]
    trends = {} if answer.value is None else {group_id: answer.value.trend(group_id) for group_id in shown}
    values = {
        "page": page,
        "total": len(every),
        "types": sorted({each.listing.type for each in every if each.listing.type}),
        "trends": trends,
        "sort": sort,
        "given": given,
        "sort_link": lambda name: query(**given, sort=name),
    }
    return visit.page("groups.html", "Groups", values, nav="groups")


async def group(visit: Visit) -> Response:
    group_id = visit.query("id")
    answer = await visit.ask(_question(group_id))
    found = None if answer.value is None else answer.value.groups.get(group_id)
    positions = visit.listed([] if found is None else found.positions)
    trends = {}
    if answer.value is not None:
        history = answer.value.history
        trends = {
            (each.topic, each.partition): history.trend((group_id, each.topic, each.partition))
            for each in positions.rows
        }
    streams = None
    if found is not None and found.listing.type == STREAMS_TYPE:
        asked = await visit.ask(Question(f"streams group:{group_id}", partial(_topology, group_id=group_id), 5))
        streams = asked.value
    values = {
        "group_id": group_id,
        "found": found,
        "is_shared": found is not None and found.listing.type == SHARE_TYPE,
        "streams": streams,
        "is_missing": answer.value is not None and found is None,
        "trend": None if answer.value is None or found is None else answer.value.trend(group_id),
        "positions": positions,
        "trends": trends,
        "rules": _RULES,
        "here": f"{visit.base}/group{query(id=group_id)}",
        "reset_command": visit.entry.command("groups", "reset", group_id, "--to-earliest", "--all-topics"),
    }
    return visit.page(
        "group.html", f"Group {group_id}", values, nav="groups", status=404 if values["is_missing"] else 200
    )


async def _topology(cluster: Cluster, group_id: str) -> StreamsGroupDescription | None:
    found = (await StreamsGroups(cluster).describe_streams_groups([group_id]))[group_id]
    return None if isinstance(found, KafkaError) else found


async def reset(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    group_id, rule, text = form.get("id", ""), form.get("rule", ""), form.get("value", "").strip()
    if rule not in _RULES:
        raise RefusedError(400, "there is no such rule")
    value = 0
    with checked():
        if rule == "time":
            found = parse_as_of(text)
            if found.timestamp_ms is None:
                raise ValueError(f"{text!r} is not a time")
            value = found.timestamp_ms
        elif rule in ("offset", "shift"):
            value = parse_number(text, "the offset" if rule == "offset" else "the number of records")
        selections = [parse_selection(line.strip()) for line in form.get("topics", "").splitlines() if line.strip()]
    words = [
        "groups",
        "reset",
        group_id,
        _RULES[rule],
        *([text] if text and rule in ("time", "offset", "shift") else []),
    ]
    words += [word for line in form.get("topics", "").split() for word in ("--topic", line)] or ["--all-topics"]
    proposal = await visit.now(
        partial(propose_reset, group_id=group_id, reset=Reset(Rule(rule), value), selections=selections)
    )
    plan = planned(
        f"Reset offsets of {group_id}",
        proposal,
        command=visit.entry.command(*words),
        back=f"{visit.base}/group{query(id=group_id)}",
        nav="groups",
        detail=lambda _, result: f"from {'none' if result.old is None else result.old} to {result.new}",
    )
    return show_plan(visit, plan)


async def delete(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    group_id = form.get("id", "")
    proposal = await visit.now(partial(propose_group_deletion, group_ids=[group_id]))
    plan = planned(
        f"Delete group {group_id}",
        proposal,
        command=visit.entry.command("groups", "delete", group_id),
        back=f"{visit.base}/groups",
        nav="groups",
        name=group_id,
    )
    return show_plan(visit, plan)


PAGES = {"/groups": groups, "/group": group}
FORMS = {"/group/reset": reset, "/group/delete": delete}
