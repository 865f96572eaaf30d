"""The state of a cluster at a moment of its history, compared with a `cluster.yaml` (drift) or with its present (rollback).

Its one rule: rows in, values out. Rows are those of silver tables at one moment. The values are those of `barnabas.declared`,
so `barnabas plan` for a live cluster and drift at any moment agree. A secret that the lake does not know is never declared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from barnabas.config.internal_topics import INTERNAL_TOPICS
from barnabas.declared.document import DEFAULT, DeclaredBroker, DeclaredTopic, Document
from barnabas.declared.observed import Observed, ObservedTopic
from barnabas.lake.tables.gold.access import entries_of
from barnabas.metadata.masking import MASK

TABLES = ("topics", "partitions", "configs", "acls", "quotas", "users", "brokers")
"""The silver tables whose rows make up a state."""

Rows = Iterable[Mapping[str, Any]]


def observed(rows: Mapping[str, Rows]) -> Observed:
    """Return the state that the rows of `TABLES` describe, as if read from a live cluster."""
    topic_configs: dict[str, dict[str, str | None]] = defaultdict(dict)
    broker_configs: dict[str, dict[str, str | None]] = defaultdict(dict)
    for row in rows["configs"]:
        value = None if row["value"] == MASK else row["value"]
        if row["resource_type"] == "TOPIC":
            topic_configs[row["resource_name"]][row["name"]] = value
        elif row["resource_type"] == "BROKER":
            broker_configs[row["resource_name"] or DEFAULT][row["name"]] = value
    replicas: dict[str, dict[int, tuple[int, ...]]] = defaultdict(dict)
    isr: dict[str, dict[int, tuple[int, ...]]] = defaultdict(dict)
    leaders: dict[str, dict[int, int]] = defaultdict(dict)
    for row in rows["partitions"]:
        removing = set(row["removing_replicas"] or ())
        replicas[row["topic_name"]][row["partition"]] = tuple(each for each in row["replicas"] if each not in removing)
        isr[row["topic_name"]][row["partition"]] = tuple(row["isr"])
        leaders[row["topic_name"]][row["partition"]] = row["leader"]
    topics = {
        row["name"]: ObservedTopic(
            row["name"],
            dict(sorted(replicas[row["name"]].items())),
            isr[row["name"]],
            topic_configs.get(row["name"], {}),
            row["name"] in INTERNAL_TOPICS,
            leaders[row["name"]],
        )
        for row in rows["topics"]
    }
    quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = defaultdict(dict)
    for row in rows["quotas"]:
        entity = tuple(sorted((part["type"], part["name"]) for part in row["entity"]))
        quotas[entity][row["name"]] = row["value"]
    return Observed(
        topics=topics,
        acls=frozenset(entries_of(rows["acls"])),
        quotas=quotas,
        users={(row["name"], row["mechanism"]): row["iterations"] for row in rows["users"]},
        brokers=broker_configs,
        racks={row["broker_id"]: row["rack"] for row in rows["brokers"] if not row["fenced"]},
    )


class Rollback(NamedTuple):
    """A `cluster.yaml` that restores settings, and sentences about settings that it cannot restore."""

    document: Document
    left_out: list[str]


class _Setting(NamedTuple):
    """A value and, for a secret, since when it has been set: a later time means that it was changed."""

    value: str
    since: int | None


def rollback(
    then: Mapping[str, Rows], now: Mapping[str, Rows], resources: Collection[tuple[str, str]] | None = None
) -> Rollback:
    """Declare the settings of `then`, for topics (by id) and brokers that exist at both times.

    `resources` are pairs of type and name, as in the table `configs`; None means all of them.
    """
    ids_then = {row["name"]: row["topic_id"] for row in then["topics"]}
    ids_now = {row["name"]: row["topic_id"] for row in now["topics"]}
    before, after = _settings(then["configs"]), _settings(now["configs"])
    topics: dict[str, DeclaredTopic] = {}
    brokers: dict[str, DeclaredBroker] = {}
    left_out = [
        f"topic {name}: it does not exist"
        for kind, name in sorted(resources or ())
        if kind == "TOPIC" and name not in ids_now and name not in ids_then
    ]
    for kind, name in sorted({*before, *after}):
        if resources is not None and (kind, name) not in resources:
            continue
        wanted, present = before.get((kind, name), {}), after.get((kind, name), {})
        if wanted == present:
            continue
        shown = f"{kind.lower()} {name or DEFAULT}"
        if kind == "TOPIC" and (name not in ids_now or ids_then.get(name) != ids_now[name]):
            if name in ids_then:
                left_out.append(
                    f"{shown}: it has been deleted since" + (", and created again" if name in ids_now else "")
                )
            continue
        changed, hidden = _changed(wanted, present)
        left_out += [f"{shown}: {setting} is a secret that the lake does not know" for setting in hidden]
        if not changed:
            continue
        if kind == "TOPIC":
            topics[name] = DeclaredTopic(name, configs=changed)
        elif kind == "BROKER":
            brokers[name or DEFAULT] = DeclaredBroker(name or DEFAULT, changed)
        else:
            left_out.append(f"{shown}: settings of this type cannot be declared: {', '.join(sorted(changed))}")
    return Rollback(Document(topics=topics or None, brokers=brokers or None), left_out)


def _settings(rows: Rows) -> dict[tuple[str, str], dict[str, _Setting]]:
    found: dict[tuple[str, str], dict[str, _Setting]] = defaultdict(dict)
    for row in rows:
        since = row.get("valid_from_offset") if row["value"] == MASK else None
        found[row["resource_type"], row["resource_name"]][row["name"]] = _Setting(row["value"], since)
    return dict(found)


def _changed(
    wanted: Mapping[str, _Setting], present: Mapping[str, _Setting]
) -> tuple[dict[str, str | None], list[str]]:
    """Return the settings to set (None: to unset), and the names of those whose value is not known."""
    changed: dict[str, str | None] = {}
    hidden = []
    for name in sorted({*wanted, *present}):
        before = wanted.get(name)
        if before == present.get(name):
            continue
        if before is not None and before.value == MASK:
            hidden.append(name)
        else:
            changed[name] = None if before is None else before.value
    return changed, hidden
