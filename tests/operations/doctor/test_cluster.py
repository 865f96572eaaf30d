"""Every check of a running cluster, on facts as values: healthy ones are silent, and each broken example has its finding."""

from __future__ import annotations

import re
import shlex
from types import MappingProxyType
from typing import Any

import pytest

from barnabas.client.admin.config_values import ConfigEntry, ConfigSource
from barnabas.client.admin.groups import CommittedOffset, GroupDescription, GroupMember
from barnabas.client.admin.log_dirs import LogDir
from barnabas.client.admin.producers import ProducerState
from barnabas.client.admin.quorum import QuorumInfo, ReplicaState
from barnabas.client.admin.reassignments import PartitionReassignment
from barnabas.client.admin.topics import PartitionDescription, TopicDescription
from barnabas.client.admin.transactions import OpenTransaction
from barnabas.client.state import Node
from barnabas.client.versions import NodeVersions
from barnabas.config.internal_topics import GROUP_METADATA_TOPIC
from barnabas.metadata.versions import LATEST_VERSION
from barnabas.operations.doctor import brokers, clients, topics
from barnabas.operations.doctor.cluster_facts import ClusterFacts, GroupFacts, Unknown
from barnabas.operations.doctor.findings import Finding, findings
from barnabas.operations.groups.lag import PartitionPosition
from barnabas.operations.topics.facts import PartitionFacts, Settings, TopicFacts
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.primitives import ZERO_UUID
from barnabas.wire.schema import Versions
from tests.cli.command_tree import leaves

CHECKS = (*brokers.CHECKS, *topics.CHECKS, *clients.CHECKS)
NOW_MS = 1_800_000_000_000
NODES = tuple(Node(each, f"host{each}", 9092) for each in (1, 2, 3))
LEVEL = LATEST_VERSION.value


def topic(
    name: str = "orders",
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] | None = None,
    *,
    leader: int | None = None,
    min_isr: int = 2,
    settings: dict[str, str] | None = None,
    moving: PartitionReassignment | None = None,
) -> TopicFacts:
    leader_id = replicas[0] if leader is None else leader
    partition = PartitionDescription(0, leader_id, 1, replicas, replicas if isr is None else isr)
    changed: dict[str, tuple[str | None, int]] = {key: (value, 1) for key, value in (settings or {}).items()}
    facts = PartitionFacts(partition, moving, min_isr, frozenset(each.id for each in NODES))
    return TopicFacts(TopicDescription(name, ZERO_UUID, False, (partition,)), (facts,), Settings((), changed, min_isr))


def voter(replica_id: int, behind_ms: int = 0) -> ReplicaState:
    return ReplicaState(replica_id, ZERO_UUID, 100, NOW_MS - behind_ms, NOW_MS - behind_ms)


def log_dir(free: int = 50, error: KafkaError | None = None, *, cordoned: bool = False) -> dict[str, LogDir]:
    return {"/data": LogDir("/data", error, (), 100, free, cordoned)}


def config(**values: str) -> dict[str, ConfigEntry]:
    names = {key.replace("_", "."): value for key, value in values.items()}
    return {key: ConfigEntry(key, value, ConfigSource.STATIC_BROKER_CONFIG) for key, value in names.items()}


def versions(last: int = 9, level: int = LEVEL, **features: int) -> NodeVersions:
    finalized = {"metadata.version": level, "group.version": 1, "transaction.version": 2, **features}
    finalized.setdefault("eligible.leader.replicas.version", 1)
    supported = {name: Versions(0, 9) for name in finalized} | {"metadata.version": Versions(7, LEVEL)}
    return NodeVersions(
        MappingProxyType({0: Versions(3, last)}),
        supported,
        {name.replace("_", "."): Versions(level, level) for name, level in finalized.items()},
    )


def group(
    committed: int = 10, end: int = 10, *, members: bool = True, lag_ms: int = 0, error: KafkaError | None = None
) -> GroupFacts:
    member = GroupMember("m", None, "c", "/h", ())
    description = GroupDescription(
        "app", "Classic", "consumer", "Stable", NODES[0], "range", (member,) if members else ()
    )
    offset = CommittedOffset(committed)
    position = PartitionPosition("orders", 0, offset, None if error else end, None, lag_ms, log_end_error=error)
    return GroupFacts(description, [position])


def acl(name: str, operation: AclOperation = AclOperation.READ, principal: str = "User:a") -> AclEntry:
    return AclEntry(ResourceType.TOPIC, name, PatternType.LITERAL, principal, "*", operation, AclPermissionType.ALLOW)


HEALTHY = ClusterFacts(
    address="host1:9092",
    nodes=NODES,
    unreachable={},
    topics=[topic(), topic(GROUP_METADATA_TOPIC, settings={"cleanup.policy": "compact"})],
    log_dirs={each.id: log_dir() for each in NODES},
    quorum=QuorumInfo(1, 5, 100, (voter(1), voter(2), voter(3))),
    quorum_clock_ms=NOW_MS,
    unreachable_controllers={},
    configs={each.id: config(node_id=str(each.id), num_partitions="1") for each in NODES},
    versions={each.id: versions() for each in NODES},
    groups={"app": group()},
    hanging=[],
    acls=[acl("orders")],
)
MOVING = PartitionReassignment((1, 2, 3), (3,), (1,))
HANGING = OpenTransaction("orders", 0, ProducerState(7, 0, 0, 0, 0, 42))
GONE = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def found_in(**changes: Any) -> list[Finding]:
    return list(findings(CHECKS, HEALTHY._replace(**changes)))


def test_a_healthy_cluster_is_silent() -> None:
    assert found_in() == []


def test_a_broker_that_is_down_is_not_told_to_change_its_address() -> None:
    nodes = without(2, NODES[2]._replace(is_fenced=True))
    assert {each.check for each in found_in(nodes=nodes, unreachable={3: "refused"})} == {"brokers"}


def without(index: int, node: Node) -> tuple[Node, ...]:
    return (*NODES[:index], node, *NODES[index + 1 :])


BROKEN: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("note", "unanswered", {"acls": Unknown("CLUSTER_AUTHORIZATION_FAILED: no")}, "not checked: acls: CLUSTER", "may"),
    ("error", "brokers", {"nodes": without(2, NODES[2]._replace(is_fenced=True))}, "fenced", "start it"),
    ("error", "brokers", {"nodes": NODES[:2]}, "no such broker is registered", "barnabas reassign run --drain 3"),
    (
        "error",
        "reachable",
        {"unreachable": {2: "refused"}},
        "host2:9092, and that fails from here: refused",
        "advertised",
    ),
    ("error", "reachable", {"nodes": without(1, Node(2, "host1", 9092))}, "all of them tell clients", "of its own"),
    (
        "note",
        "reachable",
        {"unreachable_controllers": {"1 (C h:1)": "refused"}},
        "cannot be reached",
        "nothing to do if",
    ),
    (
        "error",
        "quorum",
        {"quorum": QuorumInfo(-1, 5, 100, (voter(1), voter(2), voter(3)))},
        "no leader",
        "quorum status",
    ),
    (
        "warning",
        "quorum",
        {"quorum": QuorumInfo(1, 5, 100, (voter(1), voter(2), voter(3, 60_000)))},
        "voter 3",
        "quorum",
    ),
    ("note", "quorum", {"quorum": QuorumInfo(1, 5, 100, (voter(1), voter(2)))}, "2 voters", "odd number"),
    ("error", "disks", {"log_dirs": {1: log_dir(error=KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))}}, "offline", "log"),
    ("warning", "disks", {"log_dirs": {1: log_dir(5)}}, "100 B has 5 B left", "barnabas log-dirs describe"),
    ("error", "disks", {"log_dirs": {1: log_dir(0)}}, "has 0 B left", "barnabas log-dirs describe"),
    ("note", "disks", {"log_dirs": {1: log_dir(cordoned=True)}}, "cordoned", "cordoned.log.dirs"),
    (
        "warning",
        "config-drift",
        {"configs": {1: config(num_partitions="1"), 2: config(num_partitions="6")}},
        "num.partitions differs: 1 on 1; 6 on 2",
        "barnabas configs diff",
    ),
    ("note", "features", {"versions": {1: versions(level=LEVEL - 5)}}, "all brokers support 4.3", "cluster upgrade"),
    ("note", "features", {"versions": {1: versions(**{"group.version": 0})}}, "finalized at 0", "group.version=1"),
    (
        "warning",
        "releases",
        {"versions": {1: versions(), 2: versions(8)}},
        "different releases do: 1; 2",
        "api-versions",
    ),
    ("warning", "clock", {"quorum_clock_ms": NOW_MS - 60_000}, "60 s ahead of", "NTP"),
    (
        "error",
        "partitions",
        {"topics": [topic(leader=-1)]},
        "partition 0 has no leader",
        "barnabas topics describe orders",
    ),
    (
        "error",
        "partitions",
        {"topics": [topic(isr=(1,))]},
        "writes with acks=all fail",
        "barnabas topics describe orders",
    ),
    ("warning", "partitions", {"topics": [topic(isr=(1, 2))]}, "not in sync", "barnabas topics describe orders"),
    (
        "error",
        "replication",
        {"topics": [topic(replicas=(1,), min_isr=2)]},
        "exceeds its replication factor 1",
        "alter",
    ),
    (
        "warning",
        "replication",
        {"topics": [topic(replicas=(1,), min_isr=1)]},
        "with one replica",
        "--replication-factor 3",
    ),
    ("note", "leaders", {"topics": [topic(leader=2)]}, "does not lead 1 of the 1 partitions", "elect-leaders --all"),
    (
        "note",
        "skew",
        {"topics": [topic(f"t{each}", replicas=(1 + each % 2,), min_isr=1) for each in range(40)]},
        "it has 20 replicas, 50% more than the mean",
        "reassign plan --rebalance",
    ),
    ("error", "topic-settings", {"topics": [topic(GROUP_METADATA_TOPIC)]}, "must be compact", "cleanup.policy=compact"),
    (
        "warning",
        "topic-settings",
        {"topics": [topic(settings={"unclean.leader.election.enable": "true"})]},
        "records are lost: orders",
        "unclean.leader.election.enable=false",
    ),
    ("note", "reassignments", {"topics": [topic(moving=MOVING)]}, "replicas are moving: orders-0", "reassign status"),
    (
        "warning",
        "reassignments",
        {"topics": [topic(moving=MOVING)], "unreachable": {3: "refused"}},
        "cannot end: orders-0",
        "barnabas reassign cancel",
    ),
    (
        "warning",
        "reassignments",
        {"topics": [topic(settings={"leader.replication.throttled.replicas": "0:1"})]},
        "throttles are set: topic orders",
        "barnabas reassign throttle --clear",
    ),
    (
        "warning",
        "reassignments",
        {"configs": {1: config(leader_replication_throttled_rate="1000")}},
        "throttles are set: broker 1",
        "barnabas reassign throttle --clear",
    ),
    ("note", "groups", {"groups": {"app": group(4, members=False)}}, "no members, and 6 records to read", "delete app"),
    ("note", "groups", {"groups": {"a $b": group(4, members=False)}}, "6 records", "delete 'a $b'"),
    ("warning", "groups", {"groups": {"app": group(4, lag_ms=3_600_000)}}, "1h behind: 6 records", "--watch"),
    ("warning", "groups", {"groups": {"app": group(11)}}, "after the end of orders-0", "groups reset app"),
    (
        "note",
        "groups",
        {"groups": {"app": group(error=GONE)}},
        "do not exist: orders",
        "delete-offsets app --topic orders",
    ),
    ("error", "transactions", {"hanging": [HANGING]}, "hangs from offset 42", "--partition 0 --start-offset 42"),
    ("note", "acls", {"acls": [acl("no-such-topic")]}, "no-such-resource", "barnabas acls audit"),
    ("warning", "acls", {"acls": [acl("*", AclOperation.ALL, "User:*")]}, "wildcard", "barnabas acls audit"),
]


@pytest.mark.parametrize(("severity", "check", "changes", "message", "remedy"), BROKEN)
def test_a_broken_cluster_has_its_finding(
    severity: str, check: str, changes: dict[str, Any], message: str, remedy: str
) -> None:
    found = [each for each in found_in(**changes) if each.check == check and message in each.message]
    assert found, found_in(**changes)
    assert found[0].severity.value == severity
    assert remedy in found[0].remedy


def test_every_check_has_a_broken_example() -> None:
    assert {each.name for each in CHECKS} == {check for _, check, *_ in BROKEN}


def test_what_is_unknown_is_said_once_for_each_reason() -> None:
    nobody = Unknown("no broker can be reached")
    found = found_in(topics=nobody, groups=nobody, acls=None)
    assert [each.message for each in found] == ["not checked: topics, groups: no broker can be reached"]


def test_many_faults_of_a_kind_are_counted() -> None:
    found = found_in(topics=[topic(f"t{each}", isr=(1, 2)) for each in range(25)], acls=None)
    assert len(found) == 11
    assert found[-1].message == "15 more of this kind"


@pytest.mark.parametrize("changes", [each[2] for each in BROKEN])
def test_commands_in_remedies_can_be_typed(changes: dict[str, Any]) -> None:
    commands = leaves()
    for each in found_in(**changes):
        for line in re.findall(r"barnabas ([^;]+)", each.remedy):
            words = shlex.split(line)
            if words[-1] == "--help":
                continue
            name = next(name for count in (2, 1) if (name := " ".join(words[:count])) in commands)
            commands[name].make_context(name, words[name.count(" ") + 1 :])
