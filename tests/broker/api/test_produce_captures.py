"""What Apache Kafka answered to Produce requests, asked of a node in the same state, to the byte."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from barnabas import wire
from barnabas.batches import Record, build_batch
from barnabas.wire import Message, Uuid
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.records.metadata import ConfigRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord
from tests.broker.harness import MemoryNode, register_broker
from tests.storage.made import validated

with gzip.open(Path(__file__).parents[1] / "data" / "Produce.jsonl.gz", "rt") as lines:
    CAPTURES: list[dict[str, Any]] = [json.loads(line) for line in lines]
RACKS = {1: "a", 2: "b", 3: "a", 4: "b"}


def decode(capture: dict[str, Any]) -> tuple[ProduceRequest, ProduceResponse]:
    """From version 9 on the headers have tagged fields."""
    version, name = capture["version"], b"gold"
    start = 8 + 2 + len(name) + (version >= 9)
    request = wire.decode(ProduceRequest, version, bytes.fromhex(capture["request_hex"])[start:])
    response = wire.decode(ProduceResponse, version, bytes.fromhex(capture["response_hex"])[4 + (version >= 9) :])
    return request, response


def topic_ids() -> dict[str, Uuid]:
    """Each case's topic, by the ids of version 13."""
    named = {each["case"]: decode(each)[0].topic_data[0].name for each in CAPTURES if each["version"] == 12}
    numbered = {each["case"]: decode(each)[0].topic_data[0].topic_id for each in CAPTURES if each["version"] == 13}
    return {named[case]: numbered[case] for case in named if case in numbered}


def node(tmp_path: Path) -> MemoryNode:
    brokers: list[Message] = [register_broker(number, rack=RACKS[number]) for number in RACKS]
    for broker in brokers:
        assert isinstance(broker, RegisterBrokerRecord)
        broker.end_points[0].port = 19090 + broker.broker_id
    records = [*brokers]
    for name, topic_id in topic_ids().items():
        if not name.startswith("d-"):
            continue
        records.append(TopicRecord(name=name, topic_id=topic_id))
        for number, replicas in enumerate(([1, 2], [2, 1]) if name == "d-wire" else ([1, 2],)):
            records.append(
                PartitionRecord(
                    topic_id=topic_id,
                    partition_id=number,
                    replicas=replicas,
                    isr=replicas[:1],
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                )
            )
    for name, key, value in (("d-compact", "cleanup.policy", "compact"), ("d-small", "max.message.bytes", "100")):
        records.append(ConfigRecord(resource_type=2, resource_name=name, name=key, value=value))
    (tmp_path / "log").mkdir()
    return MemoryNode({"log.dirs": str(tmp_path / "log")}, brokers=0, records=records)


def fill(found: MemoryNode, topic: str, offset: int) -> None:
    """The log as long as Kafka's was."""
    partition = found.replicas.partition(topic, 0)
    missing = offset - partition.log_end_offset
    if missing > 0:
        partition.append(validated(build_batch([Record(number, 1, b"k", b"v") for number in range(missing)])))


@pytest.mark.parametrize("version", range(3, 14))
def test_every_answer_of_a_version_is_that_of_kafka(tmp_path: Path, version: int) -> None:
    found = node(tmp_path)
    ids = {topic_id: name for name, topic_id in topic_ids().items()}
    seen = 0
    for capture in CAPTURES:
        if capture["version"] != version:
            continue
        request, response = decode(capture)
        for topic, row in zip(request.topic_data, response.responses, strict=True):
            base_offset = row.partition_responses[0].base_offset
            if base_offset >= 0:
                fill(found, topic.name or ids[topic.topic_id], base_offset)
        answer = found.answer(bytes.fromhex(capture["request_hex"]))
        assert (answer or b"").hex() == capture["response_hex"], capture["case"]
        seen += 1
    assert seen >= 5
