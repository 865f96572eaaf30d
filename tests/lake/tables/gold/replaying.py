"""A metadata log replayed in plain Python, from records as Kafka's own tools print them: nothing of the lake is used.

A span is what was true of one thing from one record to another. Numbers become Kafka's words here, as a person reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

RESOURCES = {2: "TOPIC", 4: "BROKER", 16: "CLIENT_METRICS", 32: "GROUP"}
ACL_RESOURCES = {2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN", 7: "USER"}
PATTERNS = {3: "LITERAL", 4: "PREFIXED"}
OPERATIONS = {2: "ALL", 3: "READ", 4: "WRITE", 8: "DESCRIBE", 12: "IDEMPOTENT_WRITE", 13: "CREATE_TOKENS"}
PERMISSIONS = {2: "DENY", 3: "ALLOW"}
RECOVERY = {0: "RECOVERED", 1: "RECOVERING"}
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
UNKNOWN_SETTINGS = ("no.such.config",)
"""What nobody knows may be a secret, and is masked."""

Value = dict[str, Any]
Rows = list[dict[str, Any]]


def same(found: Rows, expected: Iterable[dict[str, Any]]) -> None:
    """All rows and all columns, in whatever order; sums of minutes to a hundredth of a millisecond."""

    def text(value: Any) -> str:
        if isinstance(value, datetime):
            return value.astimezone(UTC).isoformat()
        return repr(round(value, 7) if isinstance(value, float) else value)

    def comparable(row: dict[str, Any]) -> str:
        return ", ".join(f"{name}: {text(value)}" for name, value in sorted(row.items()))

    mine, theirs = Counter(map(comparable, found)), Counter(map(comparable, expected))
    wrong, missing = mine - theirs, theirs - mine
    first = "\n".join(
        [*(f"too much: {row}" for row in sorted(wrong)[:3]), *(f"missing: {row}" for row in sorted(missing)[:3])]
    )
    assert not first, f"{len(wrong)} rows too many, {len(missing)} too few\n{first}"


def time_of(timestamp_ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)


@dataclass(frozen=True)
class Place:
    offset: int
    time: datetime
    epoch: int


@dataclass(frozen=True)
class Span:
    key: tuple[Any, ...]
    value: Value
    begin: Place
    end: Place | None = None


class Record(NamedTuple):
    name: str
    data: dict[str, Any]
    place: Place
    batch: int
    """The first offset of its batch."""


class _Replay:
    """What is true now, by kind and key, and what was."""

    def __init__(self) -> None:
        self.now: dict[str, dict[tuple[Any, ...], Span]] = {}
        self.ended: dict[str, list[Span]] = {}

    def put(self, kind: str, key: tuple[Any, ...], value: Value | None, place: Place) -> None:
        present = self.now.setdefault(kind, {})
        before = present.get(key)
        if before is not None and before.value == value:
            return
        if before is not None:
            self.ended.setdefault(kind, []).append(replace(before, end=place))
            del present[key]
        if value is not None:
            present[key] = Span(key, value, place)

    def change(self, kind: str, key: tuple[Any, ...], place: Place, **fields: Any) -> None:
        self.put(kind, key, {**self.now[kind][key].value, **fields}, place)

    def spans(self, kind: str) -> list[Span]:
        found = [*self.ended.get(kind, []), *self.now.get(kind, {}).values()]
        return sorted(found, key=lambda span: span.begin.offset)

    def take(self, record: Record, place: Place) -> None:
        name, data = record.name, record.data
        if name == "TopicRecord":
            self.put("topics", (data["topicId"],), {"name": data["name"]}, place)
        elif name == "PartitionRecord":
            self.put("partitions", (data["topicId"], data["partitionId"]), _partition(data), place)
        elif name == "PartitionChangeRecord":
            self._change_partition(data, place)
        elif name == "RemoveTopicRecord":
            self._remove_topic(data["topicId"], place)
        elif name == "ClearElrRecord":
            for key in list(self.now.get("partitions", {})):
                if data["topicName"] in ("", self.now["topics"][key[:1]].value["name"]):
                    self.change("partitions", key, place, elr=[], last_known_elr=[])
        elif name == "ConfigRecord":
            value = data["value"]
            masked = value if value is None or data["name"] not in UNKNOWN_SETTINGS else "********"
            key = (RESOURCES[data["resourceType"]], data["resourceName"], data["name"])
            self.put("configs", key, None if value is None else {"value": masked}, place)
        elif name == "AccessControlEntryRecord":
            self.put("acls", (data["id"],), _acl(data), place)
        elif name == "RemoveAccessControlEntryRecord":
            self.put("acls", (data["id"],), None, place)
        elif name in ("FeatureLevelRecord", "KRaftVersionRecord"):
            level = data["featureLevel"] if "featureLevel" in data else data["kRaftVersion"]
            self.put("features", (data.get("name", "kraft.version"),), {"level": level} if level else None, place)
        elif name == "ClientQuotaRecord":
            key = tuple(sorted((part["entityType"], part["entityName"]) for part in data["entity"]))
            self.put("quotas", (key, data["key"]), None if data["remove"] else {"value": data["value"]}, place)
        elif name == "UserScramCredentialRecord":
            key = (data["name"], MECHANISMS[data["mechanism"]])
            self.put("users", key, {"iterations": data["iterations"]}, place)
        elif name == "RemoveUserScramCredentialRecord":
            self.put("users", (data["name"], MECHANISMS[data["mechanism"]]), None, place)
        else:
            self._take_node(name, data, place)

    def _change_partition(self, data: Value, place: Place) -> None:
        key = (data["topicId"], data["partitionId"])
        before = self.now["partitions"][key].value
        given = {NAMES[name]: value for name, value in data.items() if name in NAMES and value is not None}
        if "leader_recovery_state" in given:
            given["leader_recovery_state"] = RECOVERY[given["leader_recovery_state"]]
        if "leader" in given:
            given["leader_epoch"] = before["leader_epoch"] + 1
        self.change("partitions", key, place, **given, partition_epoch=before["partition_epoch"] + 1)

    def _remove_topic(self, topic_id: str, place: Place) -> None:
        name = self.now["topics"][(topic_id,)].value["name"]
        self.put("topics", (topic_id,), None, place)
        for key in [key for key in self.now["partitions"] if key[0] == topic_id]:
            self.put("partitions", key, None, place)
        for key in [key for key in self.now.get("configs", {}) if key[:2] == ("TOPIC", name)]:
            self.put("configs", key, None, place)

    def _take_node(self, name: str, data: Value, place: Place) -> None:
        if name == "RegisterBrokerRecord":
            value = {
                "epoch": data["brokerEpoch"],
                "incarnation": data["incarnationId"],
                "fenced": data["fenced"],
                "in_controlled_shutdown": data["inControlledShutdown"],
                "rack": data["rack"],
                "log_dirs": data.get("logDirs", []),
                "cordoned_log_dirs": data.get("cordonedLogDirs"),
            }
            self.put("brokers", (data["brokerId"],), value, place)
        elif name == "BrokerRegistrationChangeRecord":
            words = {"logDirs": "log_dirs", "cordonedLogDirs": "cordoned_log_dirs"}
            given: Value = {words[name]: value for name, value in data.items() if name in words and value is not None}
            if data.get("fenced"):
                given["fenced"] = data["fenced"] == 1
            if data.get("inControlledShutdown"):
                given["in_controlled_shutdown"] = True
            self.change("brokers", (data["brokerId"],), place, **given)
        elif name == "UnregisterBrokerRecord":
            self.put("brokers", (data["brokerId"],), None, place)
        elif name == "LeaderChangeMessage":
            for key in list(self.now.get("leader_epochs", {})):
                self.put("leader_epochs", key, None, place)
            value = {
                "leader": data["leaderId"],
                "voters": len(data["voters"]),
                "granting": len(data["grantingVoters"]),
            }
            self.put("leader_epochs", (place.epoch,), value, place)


NAMES = {
    "leader": "leader",
    "replicas": "replicas",
    "isr": "isr",
    "eligibleLeaderReplicas": "elr",
    "lastKnownElr": "last_known_elr",
    "addingReplicas": "adding_replicas",
    "removingReplicas": "removing_replicas",
    "directories": "directories",
    "leaderRecoveryState": "leader_recovery_state",
}


def _partition(data: Value) -> Value:
    return {
        **{ours: data.get(theirs) or [] for theirs, ours in NAMES.items()},
        "leader": data["leader"],
        "leader_recovery_state": RECOVERY[data.get("leaderRecoveryState", 0)],
        "leader_epoch": data["leaderEpoch"],
        "partition_epoch": data["partitionEpoch"],
    }


def _acl(data: Value) -> Value:
    return {
        "permission": PERMISSIONS[data["permissionType"]],
        "operation": OPERATIONS[data["operation"]],
        "principal": data["principal"],
        "host": data["host"],
        "resource_type": ACL_RESOURCES[data["resourceType"]],
        "pattern_type": PATTERNS[data["patternType"]],
        "resource_name": data["resourceName"],
    }


class History:
    """What was true when, and since when."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)
        self.last_time = max(record.place.time for record in self.records)
        replay, transaction = _Replay(), None
        for record in self.records:
            if record.name == "BeginTransactionRecord":
                transaction = list[Record]()
            elif record.name in ("EndTransactionRecord", "AbortTransactionRecord"):
                for each in transaction or () if record.name[0] == "E" else ():
                    replay.take(each, record.place)  # they count together, where it ends
                transaction = None
            elif transaction is not None:
                transaction.append(record)
            else:
                replay.take(record, record.place)
        self.spans = {kind: replay.spans(kind) for kind in KINDS}
        self.now = {kind: list(replay.now.get(kind, {}).values()) for kind in KINDS}

    @cached_property
    def topic_names(self) -> dict[str, str]:
        return {span.key[0]: span.value["name"] for span in self.spans["topics"]}

    @cached_property
    def batches(self) -> list[list[Record]]:
        """The records that were written together: those of a batch, and those of the batches of a transaction."""
        found: list[list[Record]] = []
        is_open = False
        for record in self.records:
            if found and (is_open or found[-1][-1].batch == record.batch):
                found[-1].append(record)
            else:
                found.append([record])
            is_open = record.name == "BeginTransactionRecord" or (is_open and "TransactionRecord" not in record.name)
        return found

    def steps(self, kind: str) -> Iterator[tuple[Span | None, Span]]:
        """Each span with the one of the same thing that it follows without a gap."""
        ends = {(span.key, span.end.offset): span for span in self.spans[kind] if span.end}
        for span in self.spans[kind]:
            yield ends.get((span.key, span.begin.offset)), span

    def last_ones(self, kind: str) -> Iterator[tuple[Span, Place]]:
        """Those that ended, with nothing in their place, and where."""
        begins = {(span.key, span.begin.offset) for span in self.spans[kind]}
        for span in self.spans[kind]:
            if span.end is not None and (span.key, span.end.offset) not in begins:
                yield span, span.end

    def until(self, span: Span) -> datetime:
        return self.last_time if span.end is None else span.end.time

    def minutes(self, span: Span) -> float:
        """Never less than nothing, though times may go backwards."""
        return max(0.0, (self.until(span) - span.begin.time) / timedelta(minutes=1))


KINDS = ("topics", "partitions", "configs", "acls", "brokers", "features", "quotas", "users", "leader_epochs")


def merged(spans: Iterable[Span]) -> list[Span]:
    """Spans of the same thing that follow each other, and say the same, as one."""
    found: dict[tuple[Any, ...], list[Span]] = {}
    for span in sorted(spans, key=lambda span: span.begin.offset):
        chain = found.setdefault(span.key, [])
        last = chain[-1] if chain else None
        if (
            last is not None
            and last.end is not None
            and last.end.offset == span.begin.offset
            and last.value == span.value
        ):
            chain[-1] = replace(last, end=span.end)
        else:
            chain.append(span)
    return [span for chain in found.values() for span in chain]
