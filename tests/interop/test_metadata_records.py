"""One script of what administrators do, and of what happens to nodes, on three nodes of barnabas and on three of Apache Kafka.

The answers are the same, and so are the records that each step writes to the metadata log, decoded, in order. Nodes have
roles instead of ids: L is the active controller, A and B are the others. What any two clusters differ in is named alike:
ids of topics, directories and incarnations, epochs of brokers, and ports.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from tools.apache_kafka import HOST

from barnabas.client.cluster import Cluster as Client
from barnabas.client.connection import Connection
from barnabas.client.metadata_log import LogBatch, read_metadata_log
from barnabas.wire import ErrorCode, Uuid, decode_record, message_class
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.records.metadata import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.interop.test_three_nodes import Addresses, described, of_apache, of_barnabas

pytestmark = pytest.mark.interop

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "auto.leader.rebalance.enable": "false",
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "6000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "8000",  # nobody else is elected while JVMs start
    "metadata.max.idle.interval.ms": "0",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
}
START = "the start"
QUIET_S = 2.0
KNOWN_S = 0.3  # until brokers have read what was committed
PATIENCE_S = 120.0

Records = list[dict[str, Any]]


class Step(NamedTuple):
    """A request through the broker of a node, or what is done to the node."""

    name: str
    on: str  # L, A or B
    what: str  # an API, or kill, stop, start
    fields: Mapping[str, Any] = {}
    version: int = 0
    in_order: bool = True
    """Whether the records come in one order. Leaders report replicas in sync in any."""

    @property
    def is_request(self) -> bool:
        return self.what not in ("kill", "stop", "start")


def assigned(*partitions: str) -> dict[str, Any]:
    rows = [{"partitionIndex": index, "brokerIds": list(roles)} for index, roles in enumerate(partitions)]
    return {"numPartitions": -1, "replicationFactor": -1, "assignments": rows}


def topics(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"topics": list(rows), "timeoutMs": 20_000, **more}


def moves(**targets: str | None) -> dict[str, Any]:
    rows = [
        {"partitionIndex": int(each[1:]), "replicas": None if roles is None else list(roles)}
        for each, roles in targets.items()
    ]
    return topics({"name": "m", "partitions": rows})


def config(kind: int, name: str, *rows: tuple[str, int, str | None]) -> dict[str, Any]:
    changes = [{"name": key, "configOperation": how, "value": value} for key, how, value in rows]
    return {"resourceType": kind, "resourceName": name, "configs": changes}


def acl(resource: str, principal: str, operation: int, permission: int = 3, pattern: int = 3) -> dict[str, Any]:
    return {
        "resourceType": 2,
        "resourceName": resource,
        "resourcePatternType": pattern,
        "principal": principal,
        "host": "*",
        "operation": operation,
        "permissionType": permission,
    }


def acl_filter(**wanted: Any) -> dict[str, Any]:
    anything = {
        "resourceTypeFilter": 1,
        "resourceNameFilter": None,
        "patternTypeFilter": 1,
        "principalFilter": None,
        "hostFilter": None,
        "operation": 1,
        "permissionType": 1,
    }
    return {**anything, **wanted}


def quota(rate: float, remove: bool = False, **entity: str | None) -> dict[str, Any]:
    return {
        "entity": [{"entityType": kind.replace("_", "-"), "entityName": name} for kind, name in entity.items()],
        "ops": [{"key": "producer_byte_rate", "value": rate, "remove": remove}],
    }


def feature(name: str, level: int, kind: int = 1) -> dict[str, Any]:
    update = {"feature": name, "maxVersionLevel": level, "upgradeType": kind}
    return {"timeoutMs": 20_000, "featureUpdates": [update]}


def elected(kind: int, *partitions: int) -> dict[str, Any]:
    return {
        "electionType": kind,
        "topicPartitions": [{"topic": "m", "partitions": list(partitions)}],
        "timeoutMs": 20_000,
    }


TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
SALT, SALTED = "c2FsdCBhbmQgcGVwcGVy", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
CHANGES = "IncrementalAlterConfigs"
MOVE = "AlterPartitionReassignments"

SCRIPT = [
    # --- topics
    Step(
        "create",
        "A",
        "CreateTopics",
        topics(
            {
                "name": "m",
                **assigned("LAB", "ABL", "BLA"),
                "configs": [
                    {"name": "retention.ms", "value": "5000000"},
                    {"name": "min.insync.replicas", "value": "2"},
                ],
            },
            {"name": "one", **assigned("A")},
            {"name": "gone", **assigned("BA")},
            {"name": "bad name", **assigned("A")},
            {"name": "none", "numPartitions": 0, "replicationFactor": 1},
            {"name": "bad-config", **assigned("A"), "configs": [{"name": "retention.ms", "value": "soon"}]},
        ),
        7,
    ),
    Step("create again", "L", "CreateTopics", topics({"name": "m", **assigned("LAB")}), 7),
    Step("only validated", "B", "CreateTopics", topics({"name": "v", **assigned("L")}, validateOnly=True), 7),
    Step(
        "more partitions",
        "B",
        "CreatePartitions",
        topics(
            {"name": "m", "count": 4, "assignments": [{"brokerIds": list("BAL")}]},
            {"name": "one", "count": 1, "assignments": None},
            {"name": "unknown", "count": 5, "assignments": None},
        ),
        3,
    ),
    # --- settings
    Step(
        "settings of a topic",
        "A",
        CHANGES,
        {
            "resources": [
                config(TOPIC, "m", ("retention.ms", DELETE, None), ("cleanup.policy", APPEND, "compact")),
                config(TOPIC, "one", ("segment.bytes", SET, "2000000"), ("retention.bytes", SET, "1")),
                config(TOPIC, "unknown", ("retention.ms", SET, "1")),
                config(TOPIC, "gone", ("retention.ms", SET, "never")),
            ]
        },
        1,
    ),
    Step(
        "less of a list", "L", CHANGES, {"resources": [config(TOPIC, "m", ("cleanup.policy", SUBTRACT, "delete"))]}, 1
    ),
    Step(
        "settings of all brokers",
        "B",
        CHANGES,
        {"resources": [config(BROKER, "", ("log.retention.ms", SET, "700000000"), ("max.connections", SET, "900"))]},
        1,
    ),
    Step(
        "settings of groups and metrics",
        "B",
        CHANGES,
        {
            "resources": [
                config(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
                config(CLIENT_METRICS, "c", ("interval.ms", SET, "10000"), ("metrics", SET, "org.apache")),
            ]
        },
        1,
    ),
    Step(
        "settings replaced",
        "A",
        "AlterConfigs",
        {
            "resources": [
                {
                    "resourceType": TOPIC,
                    "resourceName": "one",
                    "configs": [{"name": "retention.bytes", "value": "2"}, {"name": "flush.ms", "value": "9"}],
                }
            ]
        },
        2,
    ),
    # --- permissions, quotas, users
    Step(
        "acls",
        "A",
        "CreateAcls",
        {
            "creations": [
                acl("m", "User:alice", 3),
                acl("o", "User:bob", 4, pattern=4),
                acl("m", "User:carol", 2, permission=2),
                acl("m", "carol", 2),
                acl("", "User:dora", 2),
            ]
        },
        3,
    ),
    Step("the same acl", "L", "CreateAcls", {"creations": [acl("m", "User:alice", 3)]}, 3),
    Step("acls deleted", "B", "DeleteAcls", {"filters": [acl_filter(principalFilter="User:carol")]}, 3),
    Step(
        "quotas",
        "B",
        "AlterClientQuotas",
        {
            "entries": [
                quota(1000.0, user="alice"),
                quota(2000.0, user=None, client_id="c"),
                quota(0.5, ip="127.0.0.1"),
                quota(5.0, group="g"),
            ]
        },
        1,
    ),
    Step("a quota less", "A", "AlterClientQuotas", {"entries": [quota(0.0, remove=True, user="alice")]}, 1),
    Step(
        "users",
        "A",
        "AlterUserScramCredentials",
        {
            "upsertions": [
                {"name": "alice", "mechanism": 1, "iterations": 4096, "salt": SALT, "saltedPassword": SALTED},
                {"name": "bob", "mechanism": 2, "iterations": 8192, "salt": SALT, "saltedPassword": SALTED},
                {"name": "carol", "mechanism": 1, "iterations": 100, "salt": SALT, "saltedPassword": SALTED},
            ],
            "deletions": [{"name": "dora", "mechanism": 1}],
        },
    ),
    Step("a user less", "L", "AlterUserScramCredentials", {"deletions": [{"name": "bob", "mechanism": 2}]}),
    # --- features, producer ids
    Step("a feature lowered", "A", "UpdateFeatures", feature("group.version", 0, 3), 2),
    Step("a feature lowered without a word", "A", "UpdateFeatures", feature("transaction.version", 1, 1), 2),
    Step("a feature raised", "B", "UpdateFeatures", feature("group.version", 1), 2),
    Step("a feature nobody knows", "B", "UpdateFeatures", feature("strange.version", 1), 2),
    Step("producer ids", "A", "InitProducerId", {"transactionalId": None, "transactionTimeoutMs": 60_000}, 4),
    # --- replicas
    Step("another order", "A", MOVE, moves(p0="BAL")),
    Step("a replica less", "L", MOVE, moves(p1="AB"), in_order=False),
    Step("a replica more", "B", MOVE, moves(p1="ABL"), in_order=False),
    Step(
        "to another broker",
        "A",
        MOVE,
        topics({"name": "one", "partitions": [{"partitionIndex": 0, "replicas": ["B"]}]}),
        in_order=False,
    ),
    Step("no moves", "A", MOVE, moves(p0=None, p9="A", p2="LL")),
    Step("preferred leaders", "B", "ElectLeaders", elected(0, 0, 1, 2, 3, 9), 2),
    Step("unclean, not needed", "B", "ElectLeaders", elected(1, 0), 2),
    # --- nodes that die, stop, return and leave
    Step("B dies", "B", "kill", in_order=False),
    Step("create while B is away", "A", "CreateTopics", topics({"name": "away", **assigned("BA")}), 7),
    Step("nobody is there", "A", "CreateTopics", topics({"name": "nobody", **assigned("B")}), 7),
    Step("an election while B is away", "L", "ElectLeaders", elected(0, 0, 1, 2, 3), 2),
    Step("unclean while B is away", "L", "ElectLeaders", elected(1, 0, 3), 2),
    Step("B returns", "B", "start", in_order=False),
    Step("preferred leaders again", "A", "ElectLeaders", elected(0, 0, 1, 2, 3), 2),
    Step("A stops", "A", "stop", in_order=False),
    Step("A returns", "A", "start", in_order=False),
    Step("A has its leaders again", "B", "ElectLeaders", elected(0, 0, 1, 2, 3), 2),
    Step("delete", "B", "DeleteTopics", {"topics": [{"name": "gone"}], "timeoutMs": 20_000}, 6),
    Step("delete nothing", "B", "DeleteTopics", {"topics": [{"name": "unknown"}], "timeoutMs": 20_000}, 6),
    Step("an unknown broker leaves", "L", "UnregisterBroker", {"brokerId": 99}),
    Step("B stops", "B", "stop", in_order=False),
    Step("B leaves", "L", "UnregisterBroker", {"brokerId": "B"}),
]


class Roles(NamedTuple):
    ids: dict[str, int]

    def filled(self, value: Any, name: str = "") -> Any:
        """The fields of a request, with ids in place of roles."""
        if isinstance(value, dict):
            return {key: self.filled(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [self.filled(each, name) for each in value]
        return self.ids[value] if name in ("brokerIds", "replicas", "brokerId") and value in self.ids else value


class Names:
    """What stands for ids that differ from cluster to cluster."""

    def __init__(self, roles: Roles, where: Addresses) -> None:
        self.roles = {node_id: role for role, node_id in roles.ids.items()}
        self.texts = {where.cluster_id: "the cluster"}
        self.texts |= {str(port): f"port of {self.roles[each]}" for each, port in where.clients.items()}
        self.texts |= {str(port): f"controller's of {self.roles[each]}" for each, port in where.controllers.items()}
        self._fenced: set[int] = set()

    def is_news(self, record: object) -> bool:
        """Whether it is more than a sign of life. Kafka fences a broker that has stopped again when its session ends."""
        if isinstance(record, BrokerRegistrationChangeRecord) and record.fenced:
            known, is_fenced = record.broker_id in self._fenced, record.fenced > 0
            (self._fenced.add if is_fenced else self._fenced.discard)(record.broker_id)
            return known != is_fenced
        if isinstance(record, RegisterBrokerRecord):
            self._fenced.add(record.broker_id)
        return not isinstance(record, NoOpRecord)

    def learn(self, record: object) -> None:
        if isinstance(record, TopicRecord):
            self.texts[str(record.topic_id)] = f"id of {record.name}"
        elif isinstance(record, RegisterBrokerRecord):
            for number, directory in enumerate(record.log_dirs):
                self.texts[str(directory)] = f"directory {number} of {self.roles[record.broker_id]}"
        elif isinstance(record, AccessControlEntryRecord):
            self.texts[str(record.id)] = f"acl {record.principal} {record.operation}"

    def plain(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self.plain(each, key) for key, each in value.items() if key not in IGNORED}
        if isinstance(value, list):
            rows = [self.plain(each, name) for each in value]
            return sorted(rows, key=str) if name in SETS else rows
        if name in NODE_IDS:
            return self.roles.get(value, value)
        if isinstance(value, str):
            for text, instead in self.texts.items():
                value = value.replace(text, instead)
            return re.sub(
                r"\b([Cc]ontroller|[Bb]roker) ([123])\b", lambda at: f"{at[1]} {self.roles[int(at[2])]}", value
            )
        return self.texts.get(str(value), value) if name == "port" else value


NODE_IDS = {
    *("brokerId", "leader", "replicas", "isr", "removingReplicas", "addingReplicas", "controllerId", "brokerIds"),
    *("eligibleLeaderReplicas", "lastKnownElr"),
}
SETS = {"isr", "features", "eligibleLeaderReplicas", "lastKnownElr"}
IGNORED = {"incarnationId", "brokerEpoch", "throttleTimeMs", "topicId"}
"""Differ always. Topics have their id as a number that is the same in all records, see `Names`."""


def shown(names: Names, data: bytes) -> dict[str, Any] | None:
    """A record by its names, or None if it is none that somebody asked for."""
    record, version = decode_record(data)
    names.learn(record)
    if not names.is_news(record):
        return None
    fields = record.to_json(version)
    topic = {"topic": names.texts.get(str(Uuid(record.topic_id)), "?")} if hasattr(record, "topic_id") else {}
    return {"record": f"{type(record).__name__} v{version}", **topic, **names.plain(fields)}


async def committed(leader: Connection) -> int:
    found = await leader.call(described(), 2)
    return int(found.topics[0].partitions[0].high_watermark)


async def quiet(leader: Connection, least_s: float) -> int:
    """Wait until nothing has been written for a while, and no replica is moving; the end of the log then."""
    end, since = -1, 0.0
    clock = asyncio.get_running_loop().time
    begin = clock()
    async with asyncio.timeout(PATIENCE_S):
        while True:
            now = await committed(leader)
            moving = await leader.call(ListPartitionReassignmentsRequest(topics=None), 0)
            if now != end or moving.topics:
                end, since = now, clock()
            if clock() - since >= QUIET_S and clock() - begin >= least_s:
                return end
            await asyncio.sleep(0.1)


async def run(where: Addresses) -> tuple[dict[str, Any], dict[str, Records]]:
    """The answers, and the records of each step, of which the first are those of the start."""
    first = await Connection.open(HOST, where.clients[1], "test")
    leader_id = (await first.call(described(), 2)).topics[0].partitions[0].leader_id
    first.close()
    others = sorted(each for each in where.clients if each != leader_id)
    roles = Roles({"L": leader_id, "A": others[0], "B": others[1]})
    names = Names(roles, where)
    answers, ends = {}, {}
    leader = await Connection.open(HOST, where.clients[leader_id], "test")
    ends[START] = await quiet(leader, 0)
    for step in SCRIPT:
        node_id = roles.ids[step.on]
        if step.is_request:
            connection = await Connection.open(HOST, where.clients[node_id], "test")
            request = message_class(f"{step.what}Request").from_json(roles.filled(dict(step.fields)), step.version)
            async with asyncio.timeout(PATIENCE_S):
                answer = await connection.call(request, step.version)
                while getattr(answer, "error_code", 0) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    await asyncio.sleep(KNOWN_S)  # Kafka's broker waits for its producer ids
                    answer = await connection.call(request, step.version)
            answers[step.name] = answer.to_json(step.version)
            connection.close()
            ends[step.name] = await (committed(leader) if step.in_order else quiet(leader, 0))
            await asyncio.sleep(KNOWN_S)
        else:
            await {"kill": where.kill, "stop": where.stop, "start": where.start}[step.what](node_id)
            least_s = int(SETTINGS["broker.session.timeout.ms"]) / 1000 + 4 if step.what == "kill" else 0
            ends[step.name] = await quiet(leader, least_s)
    leader.close()
    records: dict[str, Records] = {name: [] for name in ends}
    async with Client({"bootstrap.controllers": f"{HOST}:{where.controllers[leader_id]}"}) as client:
        steps = iter(ends.items())
        name, end = next(steps)
        async for part in read_metadata_log(client, 1):
            assert isinstance(part, LogBatch)
            if part.header.is_control:
                continue
            for record in part.records:
                while record.offset >= end:
                    name, end = next(steps)
                assert record.value is not None
                row = shown(names, bytes(record.value))
                if row is not None:
                    records[name].append(row)
    return {name: names.plain(answer) for name, answer in answers.items()}, records


def comparable(records: Records, *, is_in_order: bool) -> list[str]:
    """The records as text. Kafka writes records of one kind that follow each other in the order of their hashes."""
    runs: list[list[str]] = [[]]
    kind = ""
    for record in records:
        if is_in_order and record["record"] != kind:
            kind = record["record"]
            runs.append([])
        runs[-1].append(json.dumps(record, sort_keys=True))
    return [text for run in runs for text in sorted(run)]


def differences(title: str, own: list[str], theirs: list[str]) -> str:
    lines = difflib.unified_diff(own, theirs, "barnabas", "kafka", lineterm="", n=0)
    return "\n  ".join([title, *lines])


def test_the_same_script_gets_the_same_answers_and_writes_the_same_records() -> None:
    async def main() -> None:
        async with of_barnabas(SETTINGS) as where:
            own_answers, own = await run(where)
        async with of_apache(SETTINGS) as where:
            their_answers, theirs = await run(where)
        assert list(own) == list(theirs)
        steps = {step.name: step.in_order for step in SCRIPT}
        different = []
        for name in own:
            is_in_order = steps.get(name, False)
            rows = [comparable(each[name], is_in_order=is_in_order) for each in (own, theirs)]
            if name == START:  # who has no answer yet registers again
                rows = [sorted(set(each)) for each in rows]
            if rows[0] != rows[1]:
                different.append(differences(f"records of {name}", *rows))
        for name in own_answers:
            texts = [[json.dumps(each[name], sort_keys=True)] for each in (own_answers, their_answers)]
            if texts[0] != texts[1]:
                different.append(differences(f"answer to {name}", *texts))
        assert not different, "\n".join(different)
        assert sum(map(len, own.values())) > 80

    asyncio.run(main())
