"""The state of a cluster at a moment of its history, compared with a `cluster.yaml` (drift) or with its present (rollback).

Its one rule: rows in, values out. Rows are those of silver tables at one moment. The values are those of `barnabas.declared`,
so `barnabas plan` for a live cluster and drift at any moment agree. A secret that the lake does not know is never declared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from barnabas.config.internal_topics import INTERNAL_TOPICS
from barnabas.declared.document import (
    DEFAULT,
    Credential,
    DeclaredAcl,
    DeclaredBroker,
    DeclaredQuota,
    DeclaredTopic,
    DeclaredUser,
    Document,
    Entity,
)
from barnabas.declared.observed import Observed, ObservedTopic
from barnabas.lake.facts.acl_entries import entries_of
from barnabas.metadata.masking import MASK
from barnabas.operations.rollback import restored
from barnabas.security.acl_text import entry_order

TABLES = ("topics", "partitions", "configs", "acls", "quotas", "users", "brokers", "features")
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
    """A `cluster.yaml` that restores an earlier state, and sentences about what it does not restore."""

    document: Document
    left_out: list[str]

    @property
    def is_empty(self) -> bool:
        return self.document == Document()


class _Setting(NamedTuple):
    """A value and, for a secret, since when it has been set: a later time means that it was changed."""

    value: str
    since: int | None


def rollback(
    then: Mapping[str, Rows],
    now: Mapping[str, Rows],
    resources: Collection[tuple[str, str]] | None = None,
    *,
    delete: bool = False,
) -> Rollback:
    """Declare what differs from `then`: topics, their settings, those of brokers, ACLs, quotas and users.

    `resources` are pairs of type (TOPIC, BROKER, USER) and name; None means all of them. A user has its credentials, its quotas
    and its ACLs. Topics that were created since are declared absent only with `delete`, since their records would be lost.
    """
    before, after = observed(then), observed(now)
    left_out: list[str] = []
    topics, brokers = _settings_back(then, now, resources, left_out)
    _topics_back(before, after, _ids(then), _ids(now), topics, resources, left_out, delete=delete)
    acls = _acls_back(before, after, resources)
    quotas = _quotas_back(before, after, resources)
    users = _users_back(then, now, resources, left_out)
    if resources is None:
        left_out += _others(then, now)
    document = Document(topics or None, acls or None, quotas or None, users or None, brokers or None)
    return Rollback(document, sorted(left_out))


def _ids(rows: Mapping[str, Rows]) -> dict[str, str]:
    return {row["name"]: row["topic_id"] for row in rows["topics"]}


def _is_wanted(resources: Collection[tuple[str, str]] | None, kind: str, name: str | None) -> bool:
    return resources is None or (kind, name) in resources


def _settings_back(
    then: Mapping[str, Rows],
    now: Mapping[str, Rows],
    resources: Collection[tuple[str, str]] | None,
    left_out: list[str],
) -> tuple[dict[str, DeclaredTopic], dict[str, DeclaredBroker]]:
    """Return settings of topics and brokers. Those of topics that exist no more are left to `_topics_back`."""
    ids_then, ids_now = _ids(then), _ids(now)
    before, after = _settings(then["configs"]), _settings(now["configs"])
    topics: dict[str, DeclaredTopic] = {}
    brokers: dict[str, DeclaredBroker] = {}
    for kind, name in sorted({*before, *after}):
        if not _is_wanted(resources, kind, name):
            continue
        if kind == "TOPIC" and (name not in ids_then or name not in ids_now):
            continue
        shown = f"{kind.lower()} {name or DEFAULT}"
        found = restored(before.get((kind, name), {}), after.get((kind, name), {}))
        hidden = [setting for setting, value in found.items() if value is not None and value.value == MASK]
        left_out += [f"{shown}: {setting} is a secret that the lake does not know" for setting in hidden]
        changed = {
            setting: None if value is None else value.value for setting, value in found.items() if setting not in hidden
        }
        if not changed:
            continue
        if kind == "TOPIC":
            topics[name] = DeclaredTopic(name, configs=changed)
        elif kind == "BROKER":
            brokers[name or DEFAULT] = DeclaredBroker(name or DEFAULT, changed)
        else:
            left_out.append(f"{shown}: settings of this type cannot be declared: {', '.join(sorted(changed))}")
    return topics, brokers


def _topics_back(
    before: Observed,
    after: Observed,
    ids_then: Mapping[str, str],
    ids_now: Mapping[str, str],
    topics: dict[str, DeclaredTopic],
    resources: Collection[tuple[str, str]] | None,
    left_out: list[str],
    *,
    delete: bool,
) -> None:
    """Add topics that were deleted, created, or whose replication factor was changed."""
    was, there = before.topics or {}, after.topics or {}
    left_out += [
        f"topic {name}: it does not exist"
        for kind, name in sorted(resources or ())
        if kind == "TOPIC" and name not in was and name not in there
    ]
    for name in sorted({*was, *there}):
        if not _is_wanted(resources, "TOPIC", name) or (was.get(name) or there[name]).is_internal:
            continue
        if name not in there:
            old = was[name]
            configs = {setting: value for setting, value in old.configs.items() if value is not None}
            topics[name] = DeclaredTopic(name, len(old.replicas), _factor(old), configs)
            left_out.append(f"topic {name}: it is created again, but the records that it had are lost")
        elif name not in was:
            if delete:
                topics[name] = DeclaredTopic(name, absent=True)
            else:
                left_out.append(f"topic {name}: it was created since; only --delete deletes it, with its records")
        else:
            _replicas_back(was[name], there[name], topics, left_out)
            if ids_then[name] != ids_now[name]:
                left_out.append(f"topic {name}: it was deleted and created again; the records that it had are lost")


def _factor(topic: ObservedTopic) -> int | None:
    """Return the number of replicas, if all partitions have the same."""
    factors = set(map(len, topic.replicas.values()))
    return factors.pop() if len(factors) == 1 else None


def _replicas_back(
    old: ObservedTopic, present: ObservedTopic, topics: dict[str, DeclaredTopic], left_out: list[str]
) -> None:
    name, had, has = old.name, len(old.replicas), len(present.replicas)
    if has > had:
        left_out.append(f"topic {name}: it has {has} partitions and had {had}; partitions cannot be removed")
    factor = _factor(old)
    if factor is not None and factor != _factor(present):
        declared = topics.get(name, DeclaredTopic(name))
        topics[name] = replace(declared, replication_factor=factor)
    elif moved := [each for each, replicas in old.replicas.items() if replicas != present.replicas.get(each)]:
        of = "1 partition has" if len(moved) == 1 else f"{len(moved)} partitions have"
        left_out.append(f"topic {name}: {of} other replicas than then; move them with barnabas reassign")


def _acls_back(
    before: Observed, after: Observed, resources: Collection[tuple[str, str]] | None
) -> tuple[DeclaredAcl, ...]:
    was, there = before.acls or frozenset(), after.acls or frozenset()
    return tuple(
        DeclaredAcl(entry, absent=entry in there)
        for entry in sorted(was ^ there, key=entry_order)
        if _is_wanted(resources, "USER", entry.principal.removeprefix("User:"))
    )


def _quotas_back(
    before: Observed, after: Observed, resources: Collection[tuple[str, str]] | None
) -> dict[Entity, DeclaredQuota]:
    was, there = before.quotas or {}, after.quotas or {}
    found = {}
    for entity in sorted({*was, *there}, key=str):
        values = restored(was.get(entity, {}), there.get(entity, {}))
        if values and _is_wanted(resources, "USER", dict(entity).get("user")):
            found[entity] = DeclaredQuota(entity, values)
    return found


def _users_back(
    then: Mapping[str, Rows],
    now: Mapping[str, Rows],
    resources: Collection[tuple[str, str]] | None,
    left_out: list[str],
) -> dict[Credential, DeclaredUser]:
    was, there = ({(row["name"], row["mechanism"]): row for row in rows["users"]} for rows in (then, now))
    found = {}
    for user, mechanism in sorted({*was, *there}):
        old, present = was.get((user, mechanism)), there.get((user, mechanism))
        if not _is_wanted(resources, "USER", user):
            continue
        if old is None:
            found[user, mechanism] = DeclaredUser(user, mechanism, absent=True)
        elif present is None:
            left_out.append(f"user {user}: {mechanism} was deleted, and the lake does not know its password")
        elif old.get("valid_from_offset") != present.get("valid_from_offset"):
            left_out.append(f"user {user}: {mechanism} was changed, and the lake does not know the password before")
    return found


def _others(then: Mapping[str, Rows], now: Mapping[str, Rows]) -> list[str]:
    """Return sentences about what a file cannot declare: features, and brokers that came or went."""
    levels = [{row["name"]: row["level"] for row in rows["features"]} for rows in (then, now)]
    features = restored(levels[0], levels[1])
    brokers = [{row["broker_id"] for row in rows["brokers"]} for rows in (then, now)]
    return [
        *(
            f"feature {name}: it is at level {levels[1].get(name, 0)} and was at {level or 0}"
            for name, level in features.items()
        ),
        *(f"broker {broker}: it was registered then and is not now" for broker in sorted(brokers[0] - brokers[1])),
        *(f"broker {broker}: it was not registered then" for broker in sorted(brokers[1] - brokers[0])),
    ]


def _settings(rows: Rows) -> dict[tuple[str, str], dict[str, _Setting]]:
    found: dict[tuple[str, str], dict[str, _Setting]] = defaultdict(dict)
    for row in rows:
        since = row.get("valid_from_offset") if row["value"] == MASK else None
        found[row["resource_type"], row["resource_name"]][row["name"]] = _Setting(row["value"], since)
    return dict(found)
