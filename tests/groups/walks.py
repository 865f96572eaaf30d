"""What Apache Kafka answered to members of groups, and the records it wrote, repeated by a node in memory and compared.

A walk is a list of frames with their answers, between changes of topics and of settings of groups. The tests of walks in
tests/interop record it. Not compared: time, the order of members in descriptions, of endpoints, of their topics, and of
groups in lists, how records share batches, the order of records of different groups and of offsets of different partitions,
and the order of topics in records of share partitions: it differs after a topic was deleted.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from barnabas import wire
from barnabas.batches import decode_records, iterate_batches
from barnabas.config.resource_type import ConfigResourceType
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.replicated.decision import KeyValue
from barnabas.replicated.machines import decode_key_value
from barnabas.steps import at_once
from barnabas.wire import APIS, ApiKey, Message, Uuid
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.records.group import OffsetCommitKey
from barnabas.wire.records.metadata import ConfigRecord, FeatureLevelRecord, PartitionRecord, TopicRecord
from tests.broker.harness import FEATURES, MemoryNode, register_broker
from tests.groups.harness import Clients, settle

SHARE_SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.assignment.interval.ms": "0",
    "group.share.max.size": "4",
}
STREAMS_SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.max.size": "5",
    "group.streams.max.session.timeout.ms": "3600000",
    "group.streams.session.timeout.ms": "3600000",  # nobody is silent for too long, however slow the machine is
}
CLIENT_ID = "c"
TIMES = ("assignment_timestamp", "commit_timestamp")
INTERNAL = {"__consumer_offsets": 1, "__share_group_state": 1}


class Cluster(NamedTuple):
    """Topics: id and number of partitions. Settings of groups."""

    topics: dict[str, tuple[str, int]]
    configs: Mapping[str, Mapping[str, str]] = {}


class Walk(NamedTuple):
    """`steps` are pairs of a frame and its answer, and what the cluster has from then on."""

    steps: list[tuple[bytes, bytes] | Cluster]
    log: bytes

    def save(self, path: Path) -> None:
        lines: list[Any] = [
            step._asdict() if isinstance(step, Cluster) else [base64.b64encode(each).decode() for each in step]
            for step in self.steps
        ]
        lines.append({"log": base64.b64encode(self.log).decode()})
        with gzip.GzipFile(path, "wb", mtime=0) as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines).encode())

    @classmethod
    def load(cls, path: Path) -> Walk:
        steps: list[tuple[bytes, bytes] | Cluster] = []
        with gzip.open(path, "rt") as lines:
            for line in map(json.loads, lines):
                if isinstance(line, list):
                    frame, answer = map(base64.b64decode, line)
                    steps.append((frame, answer))
                elif "log" in line:
                    return cls(steps, base64.b64decode(line["log"]))
                else:
                    steps.append(Cluster(**line))
        raise ValueError(f"{path} has no log")


def records_of(data: bytes) -> list[KeyValue]:
    """The records of `__consumer_offsets` that Kafka's coordinator would replay."""
    found = []
    for position, header in iterate_batches(data):
        found += [decode_key_value(record, "group") for record in decode_records(data, position, header)]
    return [record for record in found if record is not None]


def by_group(records: Iterable[KeyValue]) -> dict[str, list[str]]:
    """The records of each group and of each offset as text, without time."""
    found: dict[str, list[str]] = {}
    for key, value in records:
        for name in TIMES:
            if value is not None and hasattr(value, name):
                setattr(value, name, 0)
        for name in ("initializing_topics", "initialized_topics", "deleting_topics"):
            if hasattr(value, name):
                getattr(value, name).sort(key=lambda row: row.topic_name)
        name = str(key) if isinstance(key, OffsetCommitKey) else getattr(key, "group_id", "")
        found.setdefault(name, []).append(f"{key} {value}")
    return found


def decoded(frame: bytes, answer: bytes) -> tuple[str, str]:
    """A request and its answer as text."""
    key, version = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4])
    api = APIS[ApiKey(key)]
    header_size = 2 + 2 + 4 + 2 + len(CLIENT_ID) + (api.request_header_version(version) == 2)
    request = wire.decode(api.request, version, frame[header_size:])
    response: Any = wire.decode(api.response, version, answer[4 + api.response_header_version(version) :])
    for group in getattr(response, "groups", ()):
        if hasattr(group, "members"):
            group.members.sort(key=lambda row: row.member_id)
    for row in getattr(response, "partitions_by_user_endpoint", None) or ():
        for topics in (row.active_partitions, row.standby_partitions):
            topics.sort(key=lambda topic: topic.topic)  # Java's immutable maps have another order in each process
    if getattr(response, "partitions_by_user_endpoint", None):
        response.partitions_by_user_endpoint.sort(key=lambda row: (row.user_endpoint.host, row.user_endpoint.port))
    for rows, name in (("groups", "group_id"), ("results", "group_id")):
        if hasattr(response, rows):
            getattr(response, rows).sort(key=lambda row, name=name: getattr(row, name))
    return repr(request), repr(response)


def image(cluster: Cluster, offset: int) -> MetadataImage:
    levels = {**FEATURES, "share.version": 1, "streams.version": 1}
    records: list[Message] = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
    records.append(register_broker(1))
    internal = {name: (str(Uuid(name.encode()[:16])), count) for name, count in INTERNAL.items()}
    for name, (topic_id, count) in {**internal, **cluster.topics}.items():
        records.append(TopicRecord(name=name, topic_id=Uuid.parse(topic_id)))
        records += [
            PartitionRecord(
                partition_id=index,
                topic_id=Uuid.parse(topic_id),
                replicas=[1],
                isr=[1],
                leader=1,
                leader_epoch=0,
            )
            for index in range(count)
        ]
    records += [
        ConfigRecord(resource_type=ConfigResourceType.GROUP, resource_name=group, name=name, value=value)
        for group, configs in cluster.configs.items()
        for name, value in configs.items()
    ]
    return replay(EMPTY_IMAGE, records, Provenance(offset, 1, 0))


class _TopicsOfKafka:
    """Creates no topics, because those that Kafka created follow; remembers those that were asked for."""

    def __init__(self) -> None:
        self.wanted: dict[str, int] = {}

    def begin_topics(self, wanted: Iterable[CreateTopicsRequest.CreatableTopic], *_: object) -> None:
        self.wanted = {topic.name: topic.num_partitions for topic in wanted}

    def errors(self, *_: object) -> dict[str, str]:
        return {}


async def repeat(walk: Walk, settings: Mapping[str, str]) -> None:
    """Ask a node in memory the same, and compare."""
    first, *steps = walk.steps
    assert isinstance(first, Cluster)
    node = MemoryNode({"node.id": "1", **settings}, image=image(first, 1000))
    creation: Any = _TopicsOfKafka()
    node.topic_creation = creation
    async with Clients(node=node) as clients:
        for number, step in enumerate(steps, 1001):
            if isinstance(step, Cluster):
                loop = node.controller.loop
                old, loop.image = loop.image, image(step, number)
                at_once(clients.groups.image_changed(old, loop.image))
                for name, count in creation.wanted.items():
                    assert step.topics[name][1] == count, (number, name)
                creation.wanted = {}
            else:
                frame, answer = step
                ours = await clients.ask_frame(frame)
                assert decoded(frame, ours) == decoded(frame, answer), number
                assert sorted(ours) == sorted(answer), number  # the same bytes, but for the order of rows
            await settle()
            await settle()
        ours_by_group = by_group(records_of(b"".join(clients.log.batches)))
    theirs = by_group(records_of(walk.log))
    assert set(ours_by_group) == set(theirs)
    for group_id, records in theirs.items():
        assert ours_by_group[group_id] == records, group_id
