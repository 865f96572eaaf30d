"""Brokers and the metadata quorum: loads, disks, settings, releases, features, voters, and whether a broker can be stopped."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from starlette.responses import Response

from barnabas.client.admin.config_values import Config, ConfigResource, ConfigSource
from barnabas.client.admin.configs import Configs
from barnabas.client.cluster import Cluster
from barnabas.console.errors import RefusedError
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.console.who import who_of
from barnabas.operations.brokers_detail import (
    BrokersDetail,
    QuorumDetail,
    look_at_brokers_in_detail,
    look_at_log_dirs,
    look_at_quorum,
)
from barnabas.operations.configs.diff import default_of
from barnabas.operations.configs.history import config_history, is_hidden
from barnabas.operations.safe_to_stop import judge_stop, reasons
from barnabas.wire.errors import KafkaError

BROKERS: Question[BrokersDetail] = Question("brokers", look_at_brokers_in_detail, 10)
QUORUM: Question[QuorumDetail] = Question("quorum", look_at_quorum, 3)
_MAX_TOPICS = 10
_MAX_AFFECTED = 500
_MAX_EVENTS = 200


async def brokers(visit: Visit) -> Response:
    answer = await visit.ask(BROKERS)
    return visit.page("brokers.html", "Brokers", {"found": answer.value}, nav="brokers")


async def broker(visit: Visit) -> Response:
    text, tab = visit.path("broker"), visit.query("tab", "state")
    if not text.isdecimal() or tab not in ("state", "settings"):
        raise RefusedError(404, "there is no such broker" if tab == "state" else "there is no such page")
    broker_id = int(text)
    answer = await visit.ask(BROKERS)
    load = next((each for each in answer.value.loads if each.broker_id == broker_id), None) if answer.value else None
    if answer.value is not None and load is None:
        raise RefusedError(404, "there is no such broker")
    values = {
        **dict.fromkeys(("stop", "dirs", "configured", "history", "trails")),
        "tab": tab,
        "here": f"{visit.base}/brokers/{broker_id}",
        "broker_id": broker_id,
        "load": load,
        "found": answer.value,
        "command": visit.entry.command("cluster", "safe-to-stop", text),
        "drain_command": visit.entry.command("reassign", "run", "--drain", text),
        "unregister_command": visit.entry.command("cluster", "unregister", text),
    }
    if tab == "settings":
        values |= await _settings(visit, ConfigResource.broker(broker_id))
    else:
        judged = Question(f"safe to stop:{broker_id}", partial(_judged, broker_id=broker_id), 10)
        dirs = Question(f"log dirs:{broker_id}", partial(look_at_log_dirs, broker_id=broker_id), 15)
        values |= {"stop": (await visit.ask(judged)).value, "dirs": (await visit.ask(dirs)).value}
    return visit.page("broker.html", f"Broker {broker_id}", values, nav="brokers")


async def _settings(visit: Visit, resource: ConfigResource) -> dict[str, Any]:
    """Return the settings of a broker: those that differ from their defaults, or all."""

    async def ask(cluster: Cluster) -> Config | KafkaError:
        return (await Configs(cluster).describe_configs([resource], include_synonyms=True))[resource]

    found = (await visit.ask(Question(f"settings of {resource}", ask, 15))).value
    text, has_all = visit.query("q").strip(), visit.query("all") == "1"
    entries = [
        (each, None if each.is_sensitive else default_of(resource, each))
        for each in ([] if found is None or isinstance(found, KafkaError) else found.values())
        if (has_all or each.source is not ConfigSource.DEFAULT_CONFIG) and text.lower() in each.name
    ]
    entries.sort(key=lambda pair: (pair[0].source is not resource.own_source, pair[0].name))
    history = trails = None
    if visit.query("history") == "1":
        changed = partial(config_history, resource=resource, max_events=_MAX_EVENTS)
        history, trails = await visit.ask(Question(f"history of {resource}", changed, 30)), await who_of(visit)
    return {
        "configured": found,
        "entries": entries,
        "own_source": resource.own_source,
        "given": {"q": text, "all": "1" if has_all else ""},
        "history": history,
        "trails": trails,
        "is_hidden": is_hidden,
        "set_command": visit.entry.command("configs", "set", f"broker:{resource.name}", "KEY=VALUE"),
    }


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
