"""What tables of gold have to say of a history, worked out one row after the other as a person would; without Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

from tests.lake.tables.gold.replaying import History, Place, Rows, Span, Value, merged

ANSWERED = (
    "changes", "config_history", "partition_trouble", "topic_availability", "broker_availability", "broker_fences",
    "leader_changes", "isr_flaps", "broker_balance", "rack_violations", "reassignments", "quorum_leaders", "acl_grants",
)  # fmt: skip


def answers(history: History) -> dict[str, Rows]:
    """The rows of each table of `ANSWERED`, without the cluster."""
    trouble, fences = _trouble(history), _fences(history)
    return {
        "changes": list(_changes(history)),
        "config_history": list(_config_history(history)),
        "partition_trouble": [
            {
                **_partition(history, span),
                "valid_from_offset": span.begin.offset,
                **_lasting(history, span),
                **span.value,
            }
            for span in trouble
        ],
        "topic_availability": list(_by_topic(history, trouble)),
        "broker_availability": list(_by_broker(history, trouble, fences)),
        "broker_fences": fences,
        "leader_changes": list(_leader_changes(history)),
        "isr_flaps": list(_isr_flaps(history)),
        "broker_balance": list(_balance(history)),
        "rack_violations": list(_rack_violations(history)),
        "reassignments": list(_reassignments(history)),
        "quorum_leaders": list(_quorum_leaders(history)),
        "acl_grants": list(_grants(history)),
    }


# --- what changed, in words

PARTITION_FIELDS = (
    "leader", "leader_epoch", "leader_recovery_state", "replicas", "isr", "elr", "last_known_elr", "adding_replicas",
    "removing_replicas", "directories",
)  # fmt: skip
ACL_FIELDS = ("permission", "operation", "principal", "host", "resource_type", "pattern_type", "resource_name")
BROKER_FIELDS = ("epoch", "fenced", "in_controlled_shutdown", "rack", "log_dirs", "cordoned_log_dirs")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, float):
        return f"{value:.12g}"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _fields(value: Value, names: Iterable[str]) -> str:
    return ", ".join(f"{name} {_text(value[name])}" for name in names)


def _change(kind: str, place: Place, resource: str, before: str | None, after: str | None, told: str) -> Value:
    at = f" at {place.time:%Y-%m-%dT%H:%M:%SZ}"
    return {
        "offset": place.offset,
        "time": place.time,
        "epoch": None if after is None else place.epoch,
        "kind": kind,
        "resource": resource,
        "change": "created" if before is None else "deleted" if after is None else "changed",
        "before": before,
        "after": after,
        "sentence": told + at + ("" if after is None else f" in epoch {place.epoch}"),
        "exact": True,
    }


def _things(history: History, kind: str, names: Sequence[str], label: Callable[[Span], str]) -> Iterator[Value]:
    for before, span in history.steps(kind):
        resource, after = label(span), _fields(span.value, names)
        if before is None:
            yield _change(kind, span.begin, resource, None, after, f"{resource} created")
            continue
        told = [
            f"{name} {_text(before.value[name])} -> {_text(span.value[name])}"
            for name in names
            if before.value[name] != span.value[name]
        ]
        was = _fields(before.value, names)
        yield _change(kind, span.begin, resource, was, after, f"{resource}: {', '.join(told) or 'changed'}")
    for span, end in history.last_ones(kind):
        yield _change(kind, end, label(span), _fields(span.value, names), None, f"{label(span)} deleted")


def _settings(history: History, kind: str, field: str, label: Callable[[Span], tuple[str, str]]) -> Iterator[Value]:
    for before, span in history.steps(kind):
        (resource, name), after = label(span), _text(span.value[field])
        was = None if before is None else _text(before.value[field])
        told = f"set to {after}" if was is None else f"{was} -> {after}"
        yield _change(kind, span.begin, resource, was, after, f"{resource}: {name} {told}")
    for span, end in history.last_ones(kind):
        (resource, name), was = label(span), _text(span.value[field])
        yield _change(kind, end, resource, was, None, f"{resource}: {name} no longer set (was {was})")


def _acl_words(span: Span) -> str:
    acl = span.value
    may = "may" if acl["permission"] == "ALLOW" else "may not"
    name = acl["resource_name"] + ("..." if acl["pattern_type"] == "PREFIXED" else "")
    return f"acl {acl['principal']} {may} {acl['operation']} {acl['resource_type']} {name} from {acl['host']}"


def _config_words(span: Span) -> tuple[str, str]:
    kind, resource, name = span.key
    if kind == "TOPIC":
        return resource, name
    return (f"every {kind.lower()}" if resource == "" else f"{kind.lower()} {resource}"), name


def _quota_words(span: Span) -> tuple[str, str]:
    entity, name = span.key
    return "quota of " + ", ".join(f"{kind} {who or 'default'}" for kind, who in entity), name


def _changes(history: History) -> Iterator[Value]:
    names = history.topic_names
    yield from _things(history, "topics", ("name",), lambda span: f"topic {span.value['name']}")
    yield from _things(history, "acls", ACL_FIELDS, _acl_words)
    yield from _things(history, "brokers", BROKER_FIELDS, lambda span: f"broker {span.key[0]}")
    yield from _things(history, "users", ("iterations",), lambda span: f"user {span.key[0]} {span.key[1]}")
    yield from _settings(history, "configs", "value", _config_words)
    yield from _settings(history, "features", "level", lambda span: ("feature", span.key[0]))
    yield from _settings(history, "quotas", "value", _quota_words)
    for span in history.spans["leader_epochs"]:
        leader = str(span.value["leader"])
        yield _change("leader_epochs", span.begin, "quorum", None, leader, f"controller {leader} leads")
    # A partition that comes or goes in the batch of its topic is no change of its own.
    with_topic = {("created", names[span.key[0]], span.begin.time) for span in history.spans["topics"]}
    with_topic |= {("deleted", names[span.key[0]], end.time) for span, end in history.last_ones("topics")}

    def label(span: Span) -> str:
        return f"partition {names[span.key[0]]}-{span.key[1]}"

    for change in _things(history, "partitions", PARTITION_FIELDS, label):
        topic = change["resource"].removeprefix("partition ").rpartition("-")[0]
        if (change["change"], topic, change["time"]) not in with_topic:
            yield change


def _config_history(history: History) -> Iterator[Value]:
    def row(span: Span, place: Place, before: str | None, after: str | None) -> Value:
        resource = dict(zip(("resource_type", "resource_name", "name"), span.key, strict=True))
        epoch = None if after is None else place.epoch
        where = {"offset": place.offset, "time": place.time, "epoch": epoch, "exact": True}
        return {**resource, "before": before, "after": after, **where}

    for before, span in history.steps("configs"):
        yield row(span, span.begin, None if before is None else before.value["value"], span.value["value"])
    for span, end in history.last_ones("configs"):
        yield row(span, end, span.value["value"], None)


# --- availability


def _lasting(history: History, span: Span) -> Value:
    return {
        "began": span.begin.time,
        "until": history.until(span),
        "minutes": history.minutes(span),
        "is_over": span.end is not None,
    }


def _partition(history: History, span: Span) -> Value:
    topic_id, partition = span.key
    return {"topic_id": topic_id, "topic_name": history.topic_names[topic_id], "partition": partition}


def _min_isr(history: History, topic: str, offset: int) -> int:
    for resource in (("TOPIC", topic), ("BROKER", "")):
        for span in history.spans["configs"]:
            holds = span.begin.offset <= offset and (span.end is None or span.end.offset > offset)
            if holds and span.key == (*resource, "min.insync.replicas"):
                return int(span.value["value"])
    return 1


def _pieces(history: History, span: Span) -> Iterator[Span]:
    """A span of a partition, cut where the minimum of its topic, or that of all brokers, was set or unset."""
    resources = {("TOPIC", history.topic_names[span.key[0]]), ("BROKER", "")}
    settings = [each for each in history.spans["configs"] if each.key[2] == "min.insync.replicas"]
    places = [place for each in settings if each.key[:2] in resources for place in (each.begin, each.end) if place]
    inside = {
        place.offset: place
        for place in places
        if span.begin.offset < place.offset and (span.end is None or place.offset < span.end.offset)
    }
    cuts = [span.begin, *(inside[offset] for offset in sorted(inside)), span.end]
    for begin, end in pairwise(cuts):
        assert begin is not None
        yield replace(span, begin=begin, end=end)


def _trouble(history: History) -> list[Span]:
    """What was wrong with each partition, and for how long."""
    found = []
    for whole in history.spans["partitions"]:
        value = whole.value
        wanted = [broker for broker in value["replicas"] if broker not in value["adding_replicas"]]
        is_well = value["leader"] != -1 and set(value["isr"]) == set(value["replicas"])
        for piece in () if is_well else _pieces(history, whole):
            least = _min_isr(history, history.topic_names[whole.key[0]], piece.begin.offset)
            said = {
                "under_replicated": len(value["isr"]) < len(wanted),
                "offline": value["leader"] == -1,
                "below_min_isr": len(value["isr"]) < min(least, len(value["replicas"])),
                "min_isr": least,
                "missing": [broker for broker in wanted if broker not in value["isr"]],
            }
            if said["under_replicated"] or said["offline"] or said["below_min_isr"]:
                found.append(replace(piece, value=said))
    return merged(found)


def _minutes(history: History, spans: Sequence[Span], *conditions: str) -> dict[str, float]:
    return {
        f"{name}_minutes": _by_the_clock(history, [span for span in spans if span.value[name]]) for name in conditions
    }


def _by_the_clock(history: History, spans: Iterable[Span]) -> float:
    """The minutes in which there was some span: each microsecond counts once."""
    marks = sorted(
        mark for span in spans for mark in ((span.begin.time, 1), (max(history.until(span), span.begin.time), -1))
    )
    total, running = timedelta(), 0
    for (time, change), (following, _) in pairwise([*marks, marks[-1]] if marks else []):
        running += change
        total += following - time if running else timedelta()
    return total / timedelta(minutes=1)


def _by_topic(history: History, trouble: Sequence[Span]) -> Iterator[Value]:
    by_topic: dict[str, list[Span]] = defaultdict(list)
    for span in trouble:
        by_topic[span.key[0]].append(span)
    for topic_id, spans in by_topic.items():
        yield {
            "topic_id": topic_id,
            "topic_name": history.topic_names[topic_id],
            "partitions": len({span.key for span in spans}),
            **_minutes(history, spans, "under_replicated", "offline", "below_min_isr"),
            "is_over": all(span.end for span in spans),
        }


def _by_broker(history: History, trouble: Sequence[Span], fences: Rows) -> Iterator[Value]:
    for broker in sorted({span.key[0] for span in history.spans["brokers"]}):
        spans = [span for span in trouble if broker in span.value["missing"]]
        fenced = [row["minutes"] for row in fences if row["broker_id"] == broker and row["cause"] != "start"]
        yield {
            "broker_id": broker,
            "out_of_sync_minutes": _by_the_clock(history, spans),
            **_minutes(history, spans, "offline", "below_min_isr"),
            "partitions": len({span.key for span in spans}),
            "fenced_minutes": sum(fenced, 0.0),
            "fences": len(fenced),
        }


def _fences(history: History) -> Rows:
    causes = {}
    for before, span in history.steps("brokers"):
        if before is None:
            causes[span.begin.offset] = "start"
        elif before.value["incarnation"] != span.value["incarnation"]:
            causes[span.begin.offset] = "restart"
        else:
            causes[span.begin.offset] = "shutdown" if span.value["in_controlled_shutdown"] else "silence"
    spans = merged(replace(span, value={"fenced": span.value["fenced"]}) for span in history.spans["brokers"])
    return [
        {
            "broker_id": span.key[0],
            "valid_from_offset": span.begin.offset,
            **_lasting(history, span),
            "cause": causes[span.begin.offset],
        }
        for span in spans
        if span.value["fenced"]
    ]


def _batch_says(history: History, offset: int) -> set[tuple[int, str]]:
    """What the batch of a record says of brokers."""
    (batch,) = (each for each in history.batches if each[0].place.offset <= offset <= each[-1].place.offset)
    changes = [record.data for record in batch if record.name == "BrokerRegistrationChangeRecord"]
    return {
        (data["brokerId"], word)
        for data in changes
        for word, is_said in (
            ("fenced", data.get("fenced") == 1),
            ("came back", data.get("fenced") == -1),
            ("shut down", data.get("inControlledShutdown") == 1),
        )
        if is_said
    }


def _cause(history: History, before: Span, span: Span) -> str:
    """Judged by the records of its own batch alone."""
    was, now = before.value["leader"], span.value["leader"]
    replicas, isr = span.value["replicas"], span.value["isr"]
    if span.value["leader_recovery_state"] == "RECOVERING" != before.value["leader_recovery_state"]:
        return "unclean election"
    if was != -1 and was not in replicas:
        return "reassignment"
    said = _batch_says(history, span.begin.offset)
    if was == -1 and (now, "came back") in said:
        return f"broker {now} came back"
    for word in ("shut down", "fenced"):
        if (was, word) in said and (was not in isr or now == -1):
            return f"broker {was} {word}"
    return "preferred leader election" if now == replicas[0] and was in isr else "unknown"


def _leader_changes(history: History) -> Iterator[Value]:
    for before, span in history.steps("partitions"):
        if before is not None and before.value["leader"] != span.value["leader"]:
            yield {
                **_partition(history, span),
                "offset": span.begin.offset,
                "time": span.begin.time,
                "epoch": span.begin.epoch,
                "leader_before": before.value["leader"],
                "leader": span.value["leader"],
                "leader_epoch": span.value["leader_epoch"],
                "cause": _cause(history, before, span),
            }


def _isr_flaps(history: History) -> Iterator[Value]:
    left: dict[tuple[str, int, int], list[Span]] = defaultdict(list)
    for before, span in history.steps("partitions"):
        for broker in before.value["isr"] if before is not None else ():
            if broker not in span.value["isr"] and broker in span.value["replicas"]:
                left[(*span.key, broker)].append(span)
    for (_, _, broker), spans in left.items():
        gaps = [history.minutes(replace(one, end=other.begin)) for one, other in pairwise(spans)]
        yield {
            **_partition(history, spans[0]),
            "broker_id": broker,
            "times": len(spans),
            "first_time": spans[0].begin.time,
            "last_time": spans[-1].begin.time,
            "shortest_minutes": min(gaps, default=None),
        }


# --- balance, moves and the quorum


def _balance(history: History) -> Iterator[Value]:
    partitions = [span.value for span in history.now["partitions"]]
    brokers = {span.key[0]: span.value for span in history.now["brokers"]}
    count = {
        "replicas": Counter(broker for each in partitions for broker in each["replicas"]),
        "leaders": Counter(each["leader"] for each in partitions),
        "preferred_leaders": Counter(each["replicas"][0] for each in partitions),
    }
    for broker, value in brokers.items():
        skew = {}
        for name in ("replica", "leader"):
            counts = count[f"{name}s"]
            total = sum(counts[each] for each in brokers)
            skew[f"{name}_skew"] = counts[broker] * len(brokers) / total if total else None
        counts_of_broker = {name: each[broker] for name, each in count.items()}
        yield {"broker_id": broker, "rack": value["rack"], "fenced": value["fenced"], **counts_of_broker, **skew}


def _rack_violations(history: History) -> Iterator[Value]:
    racks = {span.key[0]: span.value["rack"] for span in history.now["brokers"]}
    if None in racks.values() or len(set(racks.values())) < 2:
        return
    for span in history.now["partitions"]:
        replicas = span.value["replicas"]
        found = sorted({racks[broker] for broker in replicas if broker in racks})
        possible = min(len(set(racks.values())), len(replicas))
        if len(found) < possible:
            rest = {"replicas": replicas, "racks": found, "possible_racks": possible}
            yield {**_partition(history, span), **rest}


def _reassignments(history: History) -> Iterator[Value]:
    moving = ("adding_replicas", "removing_replicas")
    begins = {(span.key, span.begin.offset): span.value for span in history.spans["partitions"]}
    present = {span.key: span.value for span in history.now["partitions"]}
    spans = merged(
        replace(span, value={name: span.value[name] for name in moving}) for span in history.spans["partitions"]
    )
    for span in spans:
        adding, removing = (span.value[name] for name in moving)
        if not adding and not removing:
            continue
        after = present[span.key] if span.end is None else begins.get((span.key, span.end.offset))
        if span.end is None:
            outcome = "running"
        elif after is None:
            outcome = "deleted"
        elif after["adding_replicas"] or after["removing_replicas"]:
            outcome = "changed"
        else:
            arrived = {*adding} - {*removing} <= {*after["replicas"]}
            outcome = "done" if arrived and not {*removing} & {*after["replicas"]} else "cancelled"
        lasting = _lasting(history, span)
        del lasting["is_over"]
        yield {
            **_partition(history, span),
            "valid_from_offset": span.begin.offset,
            **lasting,
            **span.value,
            "added_in_sync": [broker for broker in adding if after is not None and broker in after["isr"]],
            "outcome": outcome,
        }


def _quorum_leaders(history: History) -> Iterator[Value]:
    for span in history.spans["leader_epochs"]:
        yield {
            "epoch": span.key[0],
            "leader_id": span.value["leader"],
            **_lasting(history, span),
            "voters": span.value["voters"],
            "granting_voters": span.value["granting"],
        }


def _grants(history: History) -> Iterator[Value]:
    names = ("principal", "resource_type", "pattern_type", "resource_name")
    grouped: dict[tuple[str, ...], list[Span]] = defaultdict(list)
    for span in history.now["acls"]:
        grouped[tuple(span.value[name] for name in names)].append(span)
    for key, spans in grouped.items():
        entries = [span.value for span in spans]
        yield {
            **dict(zip(names, key, strict=True)),
            "allowed": sorted({entry["operation"] for entry in entries if entry["permission"] == "ALLOW"}),
            "denied": sorted({entry["operation"] for entry in entries if entry["permission"] == "DENY"}),
            "hosts": sorted({entry["host"] for entry in entries}),
            "since": min(span.begin.time for span in spans),
        }
