"""What Apache Kafka 4.3.1 answered to groups of the consumer protocol, and the records it wrote, compared with ours.

consumer_walks: ten groups whose members join, want other topics, give up, come back and leave at random, with requests that
are wrong, while topics come, grow and go. consumer_mixed: the same with members of both protocols. consumer_stories: regular
expressions, migration in both directions, and static members that change their protocol. Not compared: the order of members
in descriptions and in the record of a classic group, and of topics in fetched offsets (Kafka's hash tables remember how large
they once were), time, and how records share batches.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas import wire
from barnabas.batches import decode_records, iterate_batches
from barnabas.groups.classic_coordinator import ClassicCoordinator
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.replicated.machines import decode_key_value
from barnabas.steps import at_once
from barnabas.wire import APIS, ApiKey, Message, Uuid
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.records.group import GroupMetadataValue
from barnabas.wire.records.metadata import FeatureLevelRecord, PartitionRecord, TopicRecord
from tests.broker.harness import FEATURES, MemoryNode, register_broker
from tests.groups.harness import Clients, settle

DATA = Path(__file__).parent / "data"
TIMES = ("assignment_timestamp", "current_state_timestamp", "commit_timestamp", "timestamp", "version")
CLIENT_ID_SIZE = 1


class Exchange(NamedTuple):
    frame: bytes
    answer: bytes

    def decode(self, answer: bytes) -> tuple[Any, Any]:
        key, version = int.from_bytes(self.frame[:2]), int.from_bytes(self.frame[2:4])
        api = APIS[ApiKey(key)]
        header_size = 2 + 2 + 4 + 2 + CLIENT_ID_SIZE + (api.request_header_version(version) == 2)
        request = wire.decode(api.request, version, self.frame[header_size:])
        response: Any = wire.decode(api.response, version, answer[4 + api.response_header_version(version) :])
        return request, sorted_response(response)


def sorted_response(response: Any) -> Any:
    for group in getattr(response, "groups", ()):
        for name, key in (("members", "member_id"), ("topics", "name")):
            if hasattr(group, name):
                getattr(group, name).sort(key=lambda row, key=key: getattr(row, key))
    if "members" in type(response).__slots__ and hasattr(response, "generation_id"):
        response.members.sort(key=lambda row: row.member_id)
    return response


def image(topics: dict[str, Any], offset: int) -> MetadataImage:
    records: list[Message] = [FeatureLevelRecord(name=name, feature_level=v) for name, v in FEATURES.items()]
    records.append(register_broker(1))
    for name, (text, count) in topics.items():
        topic_id = Uuid.parse(text)
        records.append(TopicRecord(name=name, topic_id=topic_id))
        records += [
            PartitionRecord(partition_id=number, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0)
            for number in range(count)
        ]
    return replay(EMPTY_IMAGE, records, Provenance(offset, 1, 0))


class Capture:
    """A run against Kafka, to be run again."""

    def __init__(self, name: str) -> None:
        lines = [json.loads(line) for line in gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes()).splitlines()]
        self.properties = {"node.id": "1", **lines[0]["properties"]}
        self.events = lines[1:-1]
        self.log = base64.b64decode(lines[-1]["log"])
        self.member_id = "none"

    def new_member_id(self, *_: object) -> str:
        """The one that Kafka made at this point."""
        return self.member_id

    def answer_to(self, number: int) -> bytes:
        conn = self.events[number]["conn"]
        later = (e["response"] for e in self.events[number + 1 :] if e.get("conn") == conn and "response" in e)
        return bytes.fromhex(next(later))

    async def run(self) -> list[bytes]:
        """Ask ours the same, compare the answers; the batches that ours has written."""
        node = MemoryNode(self.properties, image=image(self.events[0]["topics"], 100))
        async with Clients(node=node) as clients:
            start_ms = clients.clock.now_ms()
            asked: dict[int, tuple[Exchange, asyncio.Task[bytes]]] = {}
            for number, event in enumerate(self.events):
                if "topics" in event:
                    self._change_topics(clients, event["topics"], 100 + number)
                elif "request" in event:
                    clients.clock.advance(max(0, start_ms + event["t"] - clients.clock.now_ms()))
                    exchange = Exchange(bytes.fromhex(event["request"]), self.answer_to(number))
                    request, response = exchange.decode(exchange.answer)
                    if isinstance(request, JoinGroupRequest) and not request.member_id:
                        self.member_id = response.member_id
                    task = asyncio.get_running_loop().create_task(clients.ask_frame(exchange.frame))
                    asked[event["conn"]] = (exchange, task)
                    await clients.pass_time(0)
                    await settle()
                else:
                    exchange, task = asked.pop(event["conn"])
                    assert task.done(), exchange.decode(exchange.answer)
                    assert exchange.decode(task.result()) == exchange.decode(exchange.answer)
            return clients.log.batches

    def _change_topics(self, clients: Clients, topics: dict[str, Any], offset: int) -> None:
        loop = clients.node.controller.loop
        old, loop.image = loop.image, image(topics, offset)
        at_once(clients.groups.image_changed(old, loop.image))


def records(data: bytes) -> Iterator[Any]:
    for position, header in iterate_batches(data):
        for record in decode_records(data, position, header):
            found = decode_key_value(record, "group")
            assert found is not None
            for name in TIMES:
                if found.value is not None and hasattr(found.value, name):
                    setattr(found.value, name, 0)
            if isinstance(found.value, GroupMetadataValue):
                found.value.members.sort(key=lambda member: member.member_id)
            yield found


@pytest.mark.parametrize("name", ["consumer_walks", "consumer_mixed", "consumer_stories"])
def test_kafka_s_answers_and_records(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = Capture(name)
    monkeypatch.setattr(ClassicCoordinator, "_new_member_id", capture.new_member_id)
    monkeypatch.setattr("barnabas.groups.consumer_coordinator.random_uuid", capture.new_member_id)
    ours = list(records(b"".join(asyncio.run(capture.run()))))
    theirs = list(records(capture.log))
    assert sorted(map(repr, ours)) == sorted(map(repr, theirs))
    if name == "consumer_walks":  # and in the same order, but for offsets of a topic that went
        assert [each for each in ours if not is_forgotten(each)] == [each for each in theirs if not is_forgotten(each)]


def is_forgotten(record: Any) -> bool:
    return record.value is None and type(record.key).__name__ == "OffsetCommitKey"
