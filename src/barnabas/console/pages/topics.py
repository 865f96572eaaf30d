"""Topics: the list, and one topic with its partitions, settings, ACLs and groups."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.responses import Response

from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.admin.topics import NewTopic
from barnabas.console.changes import planned, show_plan
from barnabas.console.errors import RefusedError
from barnabas.console.formats import query
from barnabas.console.forms import MAX_INT16, MAX_INT64, whole_number
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.console.who import who_of
from barnabas.operations.configs.alterations import propose_alteration, propose_rollback
from barnabas.operations.configs.diff import default_of
from barnabas.operations.configs.history import config_history
from barnabas.operations.quantities import parse_bytes
from barnabas.operations.reassignments.replication_factor import propose_replication_factor
from barnabas.operations.topics.changes import propose_creation, propose_deletion, propose_partitions
from barnabas.operations.topics.detail import look_at_topic
from barnabas.operations.topics.inventory import Inventory, TopicSummary, last_writes, look_at_inventory, with_rates
from barnabas.operations.topics.partition_count import Load, PartitionCount, plan_partitions
from barnabas.wire.errors import KafkaError

_SORTS: dict[str, Any] = {
    "name": lambda each: each.name,
    "partitions": lambda each: each.partitions,
    "size": lambda each: each.size_bytes or 0,
    "rate": lambda each: each.bytes_per_second or 0,
    "groups": lambda each: each.groups or 0,
    "status": lambda each: (each.offline, each.under_replicated),
}
_MAX_EVENTS = 200
INVENTORY: Question[Inventory] = Question("inventory", look_at_inventory, 10, combine=with_rates)


# --- the list


async def topics(visit: Visit) -> Response:
    answer = await visit.ask(INVENTORY)
    found = {} if answer.value is None else answer.value.topics
    text, status = visit.query("q").strip(), visit.query("status")
    has_internal, sort = visit.query("internal") == "1", visit.query("sort", "name")
    rows = [
        each
        for each in found.values()
        if (has_internal or not each.is_internal)
        and text.lower() in each.name.lower()
        and (not status or each.status == status or (status == "unused" and each.groups == 0))
    ]
    key = _SORTS.get(sort.lstrip("-"))
    if key is None:
        raise RefusedError(400, f"topics cannot be sorted by {sort}")
    if sort != "name":
        rows.sort(key=key, reverse=sort.startswith("-"))
    page = visit.listed(rows)
    written = await visit.ask(_last_writes(page.rows)) if page.rows else None
    given = {"q": text, "status": status, "internal": "1" if has_internal else ""}
    values = {
        "page": page,
        "total": len(found),
        "hidden": sum(each.is_internal for each in found.values()) if not has_internal else 0,
        "written": {} if written is None or written.value is None else written.value,
        "sort": sort,
        "given": given,
        "sort_link": lambda name: query(**given, sort=name),
        "statuses": ("offline", "under-replicated", "unused"),
        "now_ms": time.time() * 1000,
    }
    return visit.page("topics.html", "Topics", values, nav="topics")


def _last_writes(rows: Any) -> Question[dict[str, int | None]]:
    shown: list[TopicSummary] = list(rows)
    name = "last writes:" + ",".join(each.name for each in shown)
    # The list does not wait for them: brokers may have to open many logs. They are shown when they come.
    return Question(name, partial(last_writes, topics=shown), 15, patience_s=0)


async def create(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    name = form.get("topic", "").strip()
    configs = _pairs(form.get("configs", ""))
    new = NewTopic(
        name,
        whole_number(form, "partitions"),
        whole_number(form, "replication_factor", most=MAX_INT16),
        configs=configs,
    )
    proposal = await visit.now(partial(propose_creation, new=[new], if_not_exists=False))
    words = ["topics", "create", name]
    words += [] if new.partitions is None else ["--partitions", str(new.partitions)]
    words += [] if new.replication_factor is None else ["--replication-factor", str(new.replication_factor)]
    words += [word for key, value in configs.items() for word in ("--config", f"{key}={value}")]
    command = visit.entry.command(*words)
    plan = planned(f"Create topic {name}", proposal, command=command, back=f"{visit.base}/topics", nav="topics")
    return show_plan(visit, plan)


def _pairs(text: str) -> dict[str, str]:
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, sign, value = line.partition("=")
        if not sign:
            raise RefusedError(400, f"{line!r} must be NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


# --- one topic


async def topic(visit: Visit) -> Response:
    name, tab = visit.path("topic"), visit.query("tab", "partitions")
    if tab not in ("partitions", "settings", "groups", "acls", "changes"):
        raise RefusedError(404, "there is no such page")
    answer = await visit.ask(Question(f"topic:{name}", partial(look_at_topic, name=name), 5))
    history = trails = None
    if tab == "settings" and visit.query("history") == "1":
        ask = partial(config_history, resource=ConfigResource.topic(name), max_events=_MAX_EVENTS)
        history, trails = await visit.ask(Question(f"history of topic:{name}", ask, 30)), await who_of(visit)
    found = answer.value
    entries: list[tuple[Any, str | None]] = []
    if found is not None and not isinstance(found.config, KafkaError):
        resource = ConfigResource.topic(name)
        every = sorted(found.config.values(), key=lambda each: (each.source is not resource.own_source, each.name))
        entries = [(each, None if each.is_sensitive else default_of(resource, each)) for each in every]
    values = {
        "advice": _partition_plan(visit, None if found is None else len(found.facts.partitions)),
        "given": {key: visit.query(key) for key in ("throughput", "producer", "consumer", "growth")},
        "name": name,
        "tab": tab,
        "found": found,
        "entries": entries,
        "history": history,
        "trails": trails,
        "now_ms": time.time() * 1000,
        "own_source": ConfigResource.topic(name).own_source,
        "here": f"{visit.base}/topics/{name}",
        "delete_command": visit.entry.command("topics", "delete", name),
        "set_command": visit.entry.command("configs", "set", name, "KEY=VALUE"),
    }
    return visit.page("topic.html", f"Topic {name}", values, nav="topics")


def _partition_plan(visit: Visit, present: int | None) -> PartitionCount | str | None:
    """Return how many partitions a throughput needs, what is wrong with the question, or None if nothing was asked."""
    if not visit.query("throughput"):
        return None
    try:
        sizes = [parse_bytes(text) if (text := visit.query(key)) else None for key in ("producer", "consumer")]
        growth = _growth(visit.query("growth"))
        load = Load(parse_bytes(visit.query("throughput")), sizes[0], sizes[1], growth=growth)
        return plan_partitions(load, present)
    except ValueError as error:
        return str(error)


def _growth(text: str) -> float:
    try:
        growth = float(text or 1)
    except ValueError:
        growth = 0
    if not 0 < growth < math.inf:
        raise ValueError(f"the growth factor must be a number above 0, not {text!r}")
    return growth


# --- changes of one topic


async def delete(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    name = visit.path("topic")
    proposal = await visit.now(partial(propose_deletion, topics=[name], pattern=None, if_exists=False))
    plan = planned(
        f"Delete topic {name}",
        proposal,
        command=visit.entry.command("topics", "delete", name),
        back=f"{visit.base}/topics",
        nav="topics",
        name=name,
        item=lambda key: str(key.name),
    )
    return show_plan(visit, plan)


async def add_partitions(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    name, count = visit.path("topic"), whole_number(form, "partitions")
    if count is None:
        raise RefusedError(400, "the number of partitions is missing")
    proposal = await visit.now(partial(propose_partitions, names=[name], count=count, assignments=None))
    command = visit.entry.command("topics", "alter", name, "--partitions", str(count))
    return show_plan(
        visit,
        planned(
            f"Add partitions to {name}", proposal, command=command, back=f"{visit.base}/topics/{name}", nav="topics"
        ),
    )


async def change_replication_factor(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    name, count = visit.path("topic"), whole_number(form, "replication_factor")
    if count is None:
        raise RefusedError(400, "the replication factor is missing")
    proposal = await visit.now(partial(propose_replication_factor, names=[name], replication_factor=count))
    plan = planned(
        f"Change the replication factor of {name}",
        proposal,
        command=visit.entry.command("topics", "alter", name, "--replication-factor", str(count)),
        back=f"{visit.base}/topics/{name}",
        nav="topics",
        item=lambda key: f"{key[0]}-{key[1]}",
        detail=lambda key, result: f"replicas {', '.join(map(str, result.replicas))}",
    )
    return show_plan(visit, plan)


async def change_config(visit: Visit, form: Mapping[str, str]) -> Response:
    """Set or unset one setting of a topic."""
    visit.require_changes()
    name, key, value = visit.path("topic"), form.get("key", "").strip(), form.get("value", "")
    if not key:
        raise RefusedError(400, "the name of the setting is missing")
    if form.get("unset"):
        op, words = AlterConfigOp(key, AlterConfigOpType.DELETE), ("configs", "unset", name, key)
    else:
        op, words = AlterConfigOp(key, AlterConfigOpType.SET, value), ("configs", "set", name, f"{key}={value}")
    proposal = await visit.now(partial(propose_alteration, resource=ConfigResource.topic(name), ops=[op]))
    plan = planned(
        f"Change {key} of {name}",
        proposal,
        command=visit.entry.command(*words),
        back=f"{visit.base}/topics/{name}?tab=settings",
        nav="topics",
        name=name if proposal.warning else None,
        item=lambda resource: f"{key} of {resource.name}",
    )
    return show_plan(visit, plan)


async def roll_back(visit: Visit, form: Mapping[str, str]) -> Response:
    """Restore the settings that a topic had before an offset of the metadata log."""
    visit.require_changes()
    name, offset = visit.path("topic"), whole_number(form, "offset", most=MAX_INT64)
    if offset is None:
        raise RefusedError(400, "the offset is missing")
    proposal = await visit.now(partial(propose_rollback, resource=ConfigResource.topic(name), offset=offset))
    plan = planned(
        f"Roll back the settings of {name}",
        proposal,
        command=visit.entry.command("configs", "rollback", name, "--to", str(offset)),
        back=f"{visit.base}/topics/{name}?tab=settings",
        nav="topics",
        name=name if proposal.warning else None,
        item=lambda each: f"settings of {each.name}",
    )
    return show_plan(visit, plan)


PAGES = {"/topics": topics, "/topics/{topic}": topic}
FORMS = {
    "/topics": create,
    "/topics/{topic}/delete": delete,
    "/topics/{topic}/partitions": add_partitions,
    "/topics/{topic}/replication-factor": change_replication_factor,
    "/topics/{topic}/config": change_config,
    "/topics/{topic}/rollback": roll_back,
}
