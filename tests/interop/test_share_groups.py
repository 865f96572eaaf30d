"""Share groups beside Apache Kafka's: the same answers and the same records for the same raw requests in one run."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tools.apache_kafka import ApacheKafka, Barnabas, Node

from barnabas import wire
from barnabas.wire import APIS, ErrorCode, message_class
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.records.group import ShareGroupStatePartitionMetadataKey
from tests.broker import sharing
from tests.broker.clients import RawClient
from tests.groups.walks import records_of
from tests.interop.side_by_side import WITH_ACLS

pytestmark = pytest.mark.interop

SETTINGS = {
    **WITH_ACLS,
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.session.timeout.ms": "500",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.max.size": "3",
    "group.streams.initial.rebalance.delay.ms": "0",
}
NOT_YET = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
MASKED = re.compile(r"('(?:assignmentTimestamp|metadataHash)': )-?\d+")  # the hash is one of topic ids
UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAEA"
GROUP_RESOURCE = 32
UPGRADE, SAFE_DOWNGRADE = 1, 2
Fields = dict[str, Any]
Answers = tuple[list[tuple[str, Any]], list[str]]


class Side:
    """The answers of one node. Topic ids become names, and rows whose order is that of a hash table are sorted."""

    def __init__(self, node: Node) -> None:
        self.found: list[tuple[str, Any]] = []
        self._directory: Path = node.directory  # type: ignore[attr-defined]
        self.address = node.address
        self._names: dict[str, str] = {}
        self._epochs: dict[tuple[str, str], int] = {}

    async def begin(self) -> None:
        self._client = await RawClient.connect(self.address)
        for key_type, key in ((0, "g"), (2, f"g:{UNKNOWN_ID}:0")):
            await self.until("FindCoordinator", 6, {"keyType": key_type, "coordinatorKeys": [key]})

    async def end(self) -> None:
        await self._client.close()

    async def send(self, name: str, version: int, fields: Fields) -> Any:
        request = message_class(f"{name}Request").from_json(fields, version)
        key = request.schema().key or 0
        header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=7, client_id="test")
        api = APIS[key]
        frame = wire.encode(header, api.request_header_version(version)) + wire.encode(request, version)
        answer = await self._client.call(frame)
        response: Any = wire.decode(api.response, version, answer[4 + api.response_header_version(version) :])
        return response

    async def until(self, name: str, version: int, fields: Fields) -> None:
        deadline = time.monotonic() + 60
        while (await self.send(name, version, fields)).coordinators[0].error_code in NOT_YET:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)

    async def ask(self, what: str, name: str, version: int, fields: Fields) -> Any:
        """Send a request, and keep the answer for the comparison."""
        response = await self.send(name, version, fields)
        self.found.append((what, self.common(response.to_json(version))))
        return response

    def common(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.common(each) for key, each in value.items()}
        if isinstance(value, list):
            rows = [self.common(each) for each in value]
            return sorted(rows, key=repr)
        return self._names.get(value, value) if isinstance(value, str) else value

    # --- topics

    async def topic(self, name: str, partitions: int = 1) -> None:
        topic_id = await sharing.create_topic(self.address, name, partitions)
        self._names[str(topic_id)] = f"id of {name}"
        await self.leads(name, partitions)

    async def grow(self, name: str, partitions: int) -> None:
        response = await self.send(
            "CreatePartitions",
            3,
            {
                "topics": [{"name": name, "count": partitions, "assignments": None}],
                "timeoutMs": 10_000,
                "validateOnly": False,
            },
        )
        assert not response.results[0].error_code, response
        await self.leads(name, partitions)

    async def leads(self, name: str, partitions: int) -> None:
        """Wait until the broker knows a topic as it is now, which may be nothing."""
        fields = {
            "topics": [{"topicId": "A" * 22, "name": name}],
            "allowAutoTopicCreation": False,
            "includeTopicAuthorizedOperations": False,
        }
        deadline = time.monotonic() + 30
        while True:
            (topic,) = (await self.send("Metadata", 12, fields)).topics
            if len([each for each in topic.partitions if each.leader_id >= 0]) == partitions:
                break
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)  # Kafka's group coordinator learns of topics after the cache that answers

    async def delete_topic(self, name: str) -> None:
        fields = {"topics": [{"name": name, "topicId": "A" * 22}], "timeoutMs": 10_000}
        response = await self.send("DeleteTopics", 6, fields)
        assert not response.responses[0].error_code, response
        await self.leads(name, 0)

    async def initialized(self, group: str, *topics: str) -> None:
        """Wait until the share partitions of these topics have a state, and no others wait for it."""
        deadline = time.monotonic() + 30
        while True:
            state = self.state_of(group)
            done = [] if state is None else sorted(each.topic_name for each in state.initialized_topics)
            if done == sorted(topics) and not state.initializing_topics:
                return
            assert time.monotonic() < deadline, str(state)
            await asyncio.sleep(0.05)

    def state_of(self, group: str) -> Any:
        found = None
        for key, value in records_of(self.log()):
            if isinstance(key, ShareGroupStatePartitionMetadataKey) and key.group_id == group:
                found = value
        return found

    def log(self) -> bytes:
        files = sorted(self._directory.rglob("__consumer_offsets-0/*.log"))
        return b"".join(path.read_bytes() for path in files)

    def records(self) -> list[str]:
        """The records of share groups as text, without ids and times."""
        found = []
        for key, value in records_of(self.log()):
            if not type(key).__name__.startswith("ShareGroup"):
                continue
            text = f"{key} {value and self.common(value.to_json(0))}"
            found.append(MASKED.sub(r"\1...", text))
        return found

    # --- requests

    async def beat(
        self, what: str, member: str = "m", epoch: int | None = None, *, group: str = "g", **fields: Any
    ) -> Any:
        known = self._epochs.get((group, member), 0)
        given = {"groupId": group, "memberId": member, "memberEpoch": known if epoch is None else epoch}
        response = await self.ask(
            what, "ShareGroupHeartbeat", 1, {"rackId": None, "subscribedTopicNames": None, **given, **fields}
        )
        if not response.error_code:
            self._epochs[group, member] = response.member_epoch
        return response

    async def join(self, what: str, member: str = "m", *topics: str, **fields: Any) -> Any:
        return await self.beat(what, member, 0, subscribedTopicNames=list(topics), **fields)

    async def settled(self, what: str, member: str, *topics: str, group: str = "g") -> None:
        """Heartbeats after the partitions of topics were initialized."""
        await self.initialized(group, *topics)
        for number in range(3):
            await self.beat(f"{what}, heartbeat {number}", member, group=group)

    async def describe(self, what: str, *groups: str, operations: bool = False) -> None:
        fields = {"groupIds": list(groups), "includeAuthorizedOperations": operations}
        await self.ask(what, "ShareGroupDescribe", 1, fields)

    async def listed(self, what: str, types: list[str], states: list[str]) -> None:
        await self.ask(what, "ListGroups", 5, {"statesFilter": states, "typesFilter": types})

    async def delete(self, what: str, *groups: str) -> None:
        await self.ask(what, "DeleteGroups", 2, {"groupsNames": list(groups)})

    async def offsets(self, what: str, *groups: Fields, version: int = 1) -> None:
        await self.ask(what, "DescribeShareGroupOffsets", version, {"groups": list(groups)})

    async def alter(self, what: str, group: str, topics: dict[str, dict[int, int]]) -> None:
        rows = [
            {
                "topicName": name,
                "partitions": [{"partitionIndex": index, "startOffset": at} for index, at in partitions.items()],
            }
            for name, partitions in topics.items()
        ]
        await self.ask(what, "AlterShareGroupOffsets", 0, {"groupId": group, "topics": rows})

    async def delete_offsets(self, what: str, group: str, *topics: str) -> None:
        rows = [{"topicName": name} for name in topics]
        await self.ask(what, "DeleteShareGroupOffsets", 0, {"groupId": group, "topics": rows})

    async def configure(self, what: str, group: str, configs: dict[str, str | None], operation: int = 0) -> None:
        rows = [{"name": name, "configOperation": operation, "value": value} for name, value in configs.items()]
        resources = [{"resourceType": GROUP_RESOURCE, "resourceName": group, "configs": rows}]
        await self.ask(what, "IncrementalAlterConfigs", 1, {"resources": resources, "validateOnly": False})

    async def configs(self, what: str, group: str) -> None:
        resources = [{"resourceType": GROUP_RESOURCE, "resourceName": group, "configurationKeys": None}]
        fields = {"resources": resources, "includeSynonyms": True, "includeDocumentation": False}
        await self.ask(what, "DescribeConfigs", 4, fields)


Story = Callable[[Side], Awaitable[None]]


async def heartbeats(side: Side) -> None:
    """Members join, stay, leave and do what they must not."""
    await side.topic("apples", 2)
    await side.topic("pears", 3)
    wrong: dict[str, Fields] = {
        "no group": {"group": ""},
        "blank group": {"group": "  "},
        "no member": {"member": ""},
        "blank member": {"member": " "},
        "long member": {"member": "m" * 37},
        "empty rack": {"rackId": ""},
        "no topics": {},
        "empty topics": {"subscribedTopicNames": []},
        "wrong epoch": {"epoch": -3},
        "static leave": {"epoch": -2},
        "no such group": {"epoch": 4},
        "no such group to leave": {"epoch": -1},
    }
    for what, fields in wrong.items():
        await side.beat(what, **{"epoch": 0, **fields})
    await side.join("joins", "m", "apples")
    await side.settled("joined", "m", "apples")
    await side.join("joins again", "m", "apples")
    await side.beat("stays", "m")
    await side.beat("same topics", "m", subscribedTopicNames=["apples"])
    await side.beat("no topics any more", "m", subscribedTopicNames=[])
    await side.beat("after no topics", "m")
    await side.beat("topics again", "m", subscribedTopicNames=["apples", "apples"])
    await side.beat("after topics again", "m")
    await side.beat("epoch 0 without topics", "m", 0)
    await side.beat("rack", "m", rackId="r1")
    await side.beat("no rack", "m")
    await side.beat("greater epoch", "m", 90)
    await side.beat("smaller epoch", "m", 1)
    await side.beat("static leave of a member", "m", -2)
    await side.beat("unknown member", "x", 4)
    await side.beat("unknown member leaves", "x", -1)
    await side.join("second", "n", "apples", "pears")
    await side.settled("second", "n", "apples", "pears")
    await side.beat("first after second", "m")
    await side.beat("first after second again", "m")
    await side.join("third of nothing", "o", "nowhere")
    await side.beat("third stays", "o")
    await side.join("fourth", "p", "apples")
    await side.join("third again", "o", "nowhere", "pears")
    for member in ("m", "n", "o"):
        await side.beat(f"{member} after all", member)
        await side.beat(f"{member} after all again", member)
    await side.describe("three members", "g")
    await side.beat("leaves", "n", -1)
    await side.beat("gone", "n", 5)
    await side.beat("leaves again", "n", -1)
    await side.join("fourth has room", "p", "apples", "pears")
    for member in ("m", "o", "p"):
        await side.beat(f"{member} at last", member)
    await side.describe("three others", "g")
    for member in ("m", "o", "p"):
        await side.beat(f"{member} leaves", member, -1)
    await side.describe("nobody", "g")
    await side.listed("nobody", ["share"], [])
    await side.join("the group lives again", "m", "pears")
    await side.beat("again", "m")
    await side.beat("again, again", "m")


async def topics_change(side: Side) -> None:
    """Topics are created and deleted, and get more partitions, under a group."""
    await side.topic("apples", 1)
    await side.join("joins", "m", "apples", "later")
    await side.settled("joined", "m", "apples")
    await side.topic("later", 2)
    await side.beat("created", "m")
    await side.settled("created", "m", "apples", "later")
    await side.grow("apples", 3)
    await side.beat("grown", "m")
    await asyncio.sleep(0.5)
    await side.settled("grown", "m", "apples", "later")
    await side.describe("grown", "g")
    await side.delete_topic("later")
    for number in range(3):
        await side.beat(f"deleted {number}", "m")
    await side.describe("deleted", "g")
    await side.topic("later", 1)
    await side.beat("created again", "m")
    await side.settled("created again", "m", "apples", "later")
    await side.delete_topic("apples")
    await side.delete_topic("later")
    for number in range(3):
        await side.beat(f"nothing is left {number}", "m")
    await side.describe("nothing is left", "g")
    await side.beat("leaves", "m", -1)
    await side.offsets("all of nothing", {"groupId": "g", "topics": None})


async def sessions(side: Side) -> None:
    """A member that does not send heartbeats is removed."""
    await side.topic("apples", 2)
    await side.configure("short", "g", {"share.session.timeout.ms": "600", "share.heartbeat.interval.ms": "200"})
    await side.join("joins", "m", "apples")
    await side.initialized("g", "apples")
    deadline = time.monotonic() + 30
    while (await side.send("ListGroups", 5, {"statesFilter": [], "typesFilter": ["share"]})).groups[
        0
    ].group_state != "Empty":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    await side.beat("expired", "m")
    await side.describe("expired", "g")


async def descriptions(side: Side) -> None:
    """Groups of all types are described, listed and deleted."""
    await side.topic("apples", 2)
    await side.join("joins", "m", "apples", rackId="r1")
    await side.settled("joined", "m", "apples")
    member: Fields = {
        "memberId": "c",
        "memberEpoch": 0,
        "rebalanceTimeoutMs": 10_000,
        "subscribedTopicNames": ["apples"],
    }
    consumer = {
        **{"groupId": "consumers", "instanceId": None, "rackId": None, "subscribedTopicRegex": None},
        **{"serverAssignor": None, "topicPartitions": [], **member},
    }
    await side.ask("a consumer group", "ConsumerGroupHeartbeat", 1, consumer)
    await side.ask(
        "a consumer of a share group", "ConsumerGroupHeartbeat", 1, {**consumer, "groupId": "g", "memberId": "d"}
    )
    await side.ask(
        "a consumer that leaves a share group",
        "ConsumerGroupHeartbeat",
        1,
        {**consumer, "groupId": "g", "memberEpoch": -1},
    )
    offsets = [
        {
            "name": "apples",
            "partitions": [
                {"partitionIndex": 0, "committedOffset": 1, "committedLeaderEpoch": -1, "committedMetadata": None}
            ],
        }
    ]
    simple: Fields = {"generationIdOrMemberEpoch": -1, "memberId": "", "groupInstanceId": None, "topics": offsets}
    await side.ask("a simple group", "OffsetCommit", 9, {"groupId": "simple", **simple})
    await side.ask("offsets of a share group", "OffsetCommit", 9, {"groupId": "g", **simple})
    fetch = {"memberId": None, "memberEpoch": -1, "topics": None}
    await side.ask("fetch offsets", "OffsetFetch", 9, {"groups": [{"groupId": "g", **fetch}], "requireStable": False})
    await side.ask(
        "delete committed offsets",
        "OffsetDelete",
        0,
        {"groupId": "g", "topics": [{"name": "apples", "partitions": [{"partitionIndex": 0}]}]},
    )
    classic = {
        **{"groupId": "g", "sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 10_000, "memberId": "", "reason": None},
        **{"groupInstanceId": None, "protocolType": "consumer", "protocols": [{"name": "range", "metadata": ""}]},
    }
    await side.ask("a classic member", "JoinGroup", 9, {**classic, "memberId": "k"})
    generation = {"groupId": "g", "generationId": 1, "memberId": "m", "groupInstanceId": None}
    await side.ask("classic heartbeat", "Heartbeat", 4, generation)
    await side.ask(
        "classic sync", "SyncGroup", 5, {**generation, "protocolType": None, "protocolName": None, "assignments": []}
    )
    leaving = [{"memberId": "m", "groupInstanceId": None, "reason": None}]
    await side.ask("classic leave", "LeaveGroup", 5, {"groupId": "g", "members": leaving})
    await side.join("of a consumer group", "m", "apples", group="consumers")
    await side.beat("beat of a consumer group", "m", 3, group="consumers")
    await side.beat("leaves a consumer group", "m", -1, group="consumers")
    await side.join("of a simple group", "m", "apples", group="simple")
    groups = ("g", "", "nobody", "consumers", "simple", "g")
    await side.describe("all", *groups)
    await side.describe("with operations", "g", "nobody", operations=True)
    await side.describe("none")
    for version in (5, 6):
        await side.ask(
            f"DescribeGroups {version}",
            "DescribeGroups",
            version,
            {"groups": ["g"], "includeAuthorizedOperations": True},
        )
    await side.ask(
        "ConsumerGroupDescribe", "ConsumerGroupDescribe", 1, {"groupIds": ["g"], "includeAuthorizedOperations": True}
    )
    await side.ask(
        "StreamsGroupDescribe", "StreamsGroupDescribe", 0, {"groupIds": ["g"], "includeAuthorizedOperations": True}
    )
    for types, states in (
        (["share"], []), (["Share"], []), (["SHARE", "consumer"], []), (["nothing"], []), ([], ["stable"]), ([], ["Stable"]),
        (["share"], ["Empty"]), (["share"], ["Stable", "Empty"]), (["share"], ["Dead"]), (["share"], ["nothing"]), ([], []),
    ):  # fmt: skip
        await side.listed(f"list {types} {states}", types, states)
    await side.delete("not empty", "g")
    await side.delete("many", "g", "nobody", "", "consumers")
    await side.offsets("not empty", {"groupId": "g", "topics": None})
    await side.alter("not empty", "g", {"apples": {0: 5}})
    await side.delete_offsets("not empty", "g", "apples")
    await side.beat("leaves", "m", -1)
    await side.listed("empty", ["share"], [])
    await side.delete("empty, with others", "g", "nobody", "g")
    await side.delete("deleted", "g")
    await side.describe("deleted", "g")
    await side.offsets("deleted", {"groupId": "g", "topics": None})
    await side.listed("after all", [], [])
    await side.join("a new group of this name", "m", "apples")
    await side.initialized("g", "apples")


async def offsets(side: Side) -> None:
    """Offsets are described, altered and deleted, in groups of all types."""
    await side.topic("apples", 3)
    await side.topic("pears", 1)
    all_of_g = {"groupId": "g", "topics": None}
    rows = [{"topicName": "apples", "partitions": [0, 2]}, {"topicName": "nowhere", "partitions": [0]}]
    some_of_g = {"groupId": "g", "topics": rows}
    await side.offsets("no group yet", all_of_g)
    await side.offsets("no group yet, some", some_of_g)
    await side.offsets("nothing at all")
    await side.offsets("no name", {"groupId": "", "topics": None})
    await side.alter("no name", "", {"apples": {0: 1}})
    await side.delete_offsets("no name", "", "apples")
    await side.delete_offsets("no group yet", "g", "apples")
    await side.alter("no topics", "g", {})
    await side.describe("after no topics", "g")
    await side.alter("only unknown ones", "g", {"nowhere": {0: 1}})
    await side.describe("after unknown ones", "g")
    await side.alter("a new group", "g", {"apples": {0: 1, 2: 3}})
    await side.describe("a new group", "g")
    await side.listed("a new group", ["share"], [])
    await side.offsets("altered", all_of_g)
    await side.offsets("altered, version 0", all_of_g, version=0)
    await side.offsets("altered, some", some_of_g, {"groupId": "none", "topics": None})
    await side.alter("wrong partitions", "g", {"apples": {0: 2, 7: 1}, "pears": {1: 1}})
    await side.alter("wrong partitions and topics", "g", {"nowhere": {0: 2}, "pears": {0: 0}})
    await side.alter("negative offsets", "g", {"apples": {0: -1, 1: -2}})
    await side.offsets("negative offsets", all_of_g)
    await side.alter("far beyond", "g", {"apples": {0: 1 << 40}})
    await side.offsets("far beyond", all_of_g)
    await side.delete_offsets("nothing", "g")
    await side.delete_offsets("deleted", "g", "apples", "nowhere")
    await side.offsets("deleted", all_of_g)
    await side.delete_offsets("deleted again", "g", "apples")
    await side.delete_offsets("twice", "g", "pears", "pears")
    await side.offsets("all deleted", all_of_g)
    await side.join("after deleting", "m", "apples")
    await side.settled("after deleting", "m", "apples")
    await side.beat("leaves", "m", -1)
    await side.offsets("not begun", all_of_g)
    await side.alter("altered twice", "g", {"apples": {0: 1, 1: 2}})
    await side.offsets("altered twice", all_of_g)
    await side.delete_topic("apples")
    await side.offsets("topic deleted", all_of_g)
    await side.delete_offsets("topic deleted", "g", "apples")
    await side.delete("group", "g")
    simple: Fields = {"generationIdOrMemberEpoch": -1, "memberId": "", "groupInstanceId": None}
    committed = [{"partitionIndex": 0, "committedOffset": 1, "committedLeaderEpoch": -1, "committedMetadata": None}]
    fields = {"groupId": "simple", **simple, "topics": [{"name": "pears", "partitions": committed}]}
    await side.ask("a simple group", "OffsetCommit", 9, fields)
    await side.offsets("of a simple group", {"groupId": "simple", "topics": None})
    await side.offsets(
        "some of a simple group", {"groupId": "simple", "topics": [{"topicName": "pears", "partitions": [0]}]}
    )
    await side.alter("of a simple group", "simple", {"pears": {0: 1}})
    await side.delete_offsets("of a simple group", "simple", "pears")


async def configs(side: Side) -> None:
    """Configs of groups whose names begin with share."""
    await side.configs("defaults", "g")
    for name, values in {
        "share.session.timeout.ms": ["5000", "1", "100000", "x", ""],
        "share.heartbeat.interval.ms": ["1000", "1", "100000", "x"],
        "share.record.lock.duration.ms": ["20000", "1", "999999999", "x"],
        "share.delivery.count.limit": ["3", "1", "100", "x"],
        "share.partition.max.record.locks": ["500", "1", "100000000", "x"],
        "share.isolation.level": ["read_committed", "READ_COMMITTED", "nothing", ""],
        "share.auto.offset.reset": [
            "earliest",
            "EARLIEST",
            "none",
            "by_duration:PT1H",
            "by_duration:-PT1H",
            "by_duration:x",
        ],
        "share.renew.acknowledge.enable": ["false", "maybe"],
        "share.assignment.interval.ms": ["100", "-1", "999999999", "x", "0"],
        "share.initialize.retry.interval.ms": ["100"],
        "share.max.size": ["5"],
        "share.nothing": ["1"],
    }.items():
        for value in values:
            await side.configure(f"{name}={value}", "g", {name: value})
    await side.configure("both", "g", {"share.session.timeout.ms": "1000", "share.heartbeat.interval.ms": "1000"})
    await side.configure(
        "both, wrong", "g", {"share.session.timeout.ms": "1000", "share.heartbeat.interval.ms": "2000"}
    )
    await side.configs("all", "g")
    await side.topic("apples", 1)
    await side.join("its heartbeat interval", "m", "apples")
    await side.initialized("g", "apples")
    await side.configure("removed", "g", {"share.heartbeat.interval.ms": None}, operation=1)
    await side.beat("the usual heartbeat interval", "m")
    await side.configure("no group", "", {"share.delivery.count.limit": "3"})


async def features(side: Side) -> None:
    """Share groups and streams groups stay while their features are turned off, and go on afterwards."""
    await side.topic("apples", 1)
    await side.join("joins", "m", "apples")
    await side.settled("joined", "m", "apples")
    source = {"subtopologyId": "0", "sourceTopics": ["apples"], "sourceTopicRegex": [], "stateChangelogTopics": []}
    parts: Fields = {"repartitionSinkTopics": [], "repartitionSourceTopics": [], "copartitionGroups": []}
    thread = {
        **{"groupId": "z", "memberId": "t", "endpointInformationEpoch": 0, "instanceId": None, "rackId": None},
        **{"processId": "p", "userEndpoint": None, "clientTags": [], "shutdownApplication": False},
        **{"activeTasks": [], "standbyTasks": [], "warmupTasks": [], "rebalanceTimeoutMs": 1000},
        **{"taskOffsets": None, "taskEndOffsets": None},
    }
    joining = {**thread, "memberEpoch": 0, "topology": {"epoch": 0, "subtopologies": [{**source, **parts}]}}
    staying = {**thread, "topology": None, "rebalanceTimeoutMs": -1}
    epoch = (await side.ask("a thread joins", "StreamsGroupHeartbeat", 0, joining)).member_epoch

    async def look(what: str) -> None:
        described = {"groupIds": ["z"], "includeAuthorizedOperations": False}
        await side.beat(f"{what}: share heartbeat", "m")
        await side.describe(f"{what}: share group", "g")
        await side.offsets(f"{what}: offsets", {"groupId": "g", "topics": None})
        await side.ask(f"{what}: thread", "StreamsGroupHeartbeat", 0, {**staying, "memberEpoch": epoch})
        await side.ask(f"{what}: streams group", "StreamsGroupDescribe", 0, described)
        await side.listed(f"{what}: groups", [], [])
        versions = await side.send("ApiVersions", 4, {"clientSoftwareName": "c", "clientSoftwareVersion": "1"})
        levels = {row.name: row.max_version_level for row in versions.finalized_features}
        supported = {row.name: (row.min_version, row.max_version) for row in versions.supported_features}
        for name in ("share.version", "streams.version"):
            side.found.append((f"{what}: {name}", (levels.get(name), supported[name])))

    async def set_level(name: str, level: int, kind: int) -> None:
        update = {"feature": name, "maxVersionLevel": level, "upgradeType": kind}
        fields = {"timeoutMs": 10_000, "featureUpdates": [update], "validateOnly": False}
        await side.ask(f"{name} to {level} as {kind}", "UpdateFeatures", 2, fields)
        await asyncio.sleep(1)  # until Kafka's coordinators know it

    for name in ("share.version", "streams.version"):
        await set_level(name, 2, UPGRADE)
        await set_level(name, 0, UPGRADE)
        await set_level(name, 0, SAFE_DOWNGRADE)
        await look(f"without {name}")
        await side.delete(f"without {name}: delete", "none", "g")
        await set_level(name, 1, UPGRADE)
        await look(f"with {name} again")
    await side.beat("leaves", "m", -1)
    await side.ask("the thread leaves", "StreamsGroupHeartbeat", 0, {**staying, "memberEpoch": -1})
    await side.delete("at the end", "g", "z")


async def negative_partitions(side: Side) -> None:
    """Kafka fails, and keeps a group that cannot be deleted any more."""
    await side.topic("apples", 1)
    some = {"groupId": "n", "topics": [{"topicName": "apples", "partitions": [0, -1]}]}
    await side.offsets("describe", some)
    await side.alter("alter", "n", {"apples": {-1: 2, 0: 4}})
    await side.delete("delete", "n")


STORIES: list[Story] = [heartbeats, topics_change, sessions, descriptions, offsets, configs, features]


@pytest.mark.parametrize("story", STORIES)
def test_members_get_the_answers_of_apache_kafka(story: Story) -> None:
    (theirs, their_records), (ours, our_records) = answers(story)
    different = [(what, mine, other) for (what, mine), (_, other) in zip(ours, theirs, strict=True) if mine != other]
    assert not different, "\n".join(f"{what}\n  ours   {mine}\n  theirs {other}" for what, mine, other in different)
    assert our_records == their_records


def test_negative_partitions_fail_in_apache_kafka_and_are_unknown_here() -> None:
    (theirs, _), (ours, _) = answers(negative_partitions)
    described, altered, deleted = (answer for _, answer in theirs)
    assert described["groups"][0]["errorCode"] == ErrorCode.UNKNOWN_SERVER_ERROR
    assert altered["errorCode"] == ErrorCode.UNKNOWN_SERVER_ERROR
    assert deleted["results"][0]["errorCode"] == ErrorCode.UNKNOWN_SERVER_ERROR
    described, altered, deleted = (answer for _, answer in ours)
    rows = described["groups"][0]["topics"][0]["partitions"]
    assert [(row["partitionIndex"], row["startOffset"]) for row in rows] == [(-1, -1), (0, -1)]
    rows = altered["responses"][0]["partitions"]
    codes = {row["partitionIndex"]: row["errorCode"] for row in rows}
    assert codes == {-1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0: ErrorCode.NONE}
    assert deleted["results"][0]["errorCode"] == ErrorCode.NONE


def answers(story: Story) -> tuple[Answers, Answers]:
    """What Apache Kafka and barnabas answer and write."""

    async def run(node: Node) -> Answers:
        side = Side(node)
        await side.begin()
        try:
            await story(side)
        finally:
            await side.end()
        return side.found, side.records()

    with ApacheKafka(overrides=SETTINGS) as kafka:
        theirs = asyncio.run(run(kafka))
    with Barnabas(overrides=SETTINGS) as barnabas:
        return theirs, asyncio.run(run(barnabas))
