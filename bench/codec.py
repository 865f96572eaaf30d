"""Encoding and decoding: barnabas against kio, kafka-python and aiokafka, each in the newest version both can do.

Before anything is timed, every peer decodes the bytes of barnabas and must encode them again to the same bytes.
Messages are timed without headers, from and to each library's own objects. kio's reader is native code and has no
target; its writer is Python. None of the peers knows metadata records: PartitionRecord is declared here in the terms of
kio and kafka-python, which their engines then compile as their own; aiokafka has no uuid and sits that one out.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable
from importlib.metadata import version as installed
from typing import Any, NamedTuple

from barnabas import wire
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.records.metadata import PartitionRecord
from bench import peer_records
from bench.table import Row, from_rounds, not_possible
from bench.timing import in_turns

SECTION = "codec"
ENCODE_TARGET = 2.0
DECODE_TARGET = 1.0
TOPIC_ID = wire.Uuid(bytes(range(16)))
BATCH = bytes(range(256)) * 4


class Workload(NamedTuple):
    """`version` is for kio and kafka-python, `older` for aiokafka: the newest it has, None when it has none."""

    question: str
    build: Callable[[int], list[wire.Message]]
    version: int
    older: int | None


class Codec(NamedTuple):
    name: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    native_decode: bool = False


# ---- what is encoded


def metadata_response() -> MetadataResponse:
    """Ten topics of a hundred partitions on three brokers."""
    partitions = [
        MetadataResponse.MetadataResponsePartition(
            partition_index=index,
            leader_id=1 + index % 3,
            leader_epoch=5,
            replica_nodes=[1, 2, 3],
            isr_nodes=[1, 2, 3],
        )
        for index in range(100)
    ]
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=1 + index, host="broker.example", port=9092, rack="a")
        for index in range(3)
    ]
    topics = [
        MetadataResponse.MetadataResponseTopic(name=f"orders-{index}", topic_id=TOPIC_ID, partitions=partitions)
        for index in range(10)
    ]
    return MetadataResponse(brokers=brokers, cluster_id="cluster", controller_id=1, topics=topics)


def produce_request() -> ProduceRequest:
    data = [ProduceRequest.PartitionProduceData(index=index, records=BATCH) for index in range(100)]
    topics = [ProduceRequest.TopicProduceData(name="orders", partition_data=data)]
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)


def fetch_response(version: int) -> FetchResponse:
    partitions = [
        FetchResponse.PartitionData(
            partition_index=index,
            high_watermark=1_000 + index,
            last_stable_offset=1_000 + index,
            log_start_offset=0,
            aborted_transactions=[],
            records=BATCH,
        )
        for index in range(100)
    ]
    topic = FetchResponse.FetchableTopicResponse(partitions=partitions)
    if version >= 13:
        topic.topic_id = TOPIC_ID
    else:
        topic.topic = "orders"
    return FetchResponse(session_id=9, responses=[topic])


def create_topics_request() -> CreateTopicsRequest:
    configs = [
        CreateTopicsRequest.CreatableTopicConfig(name="cleanup.policy", value="compact"),
        CreateTopicsRequest.CreatableTopicConfig(name="retention.ms", value="604800000"),
    ]
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=f"orders-{index}", num_partitions=12, replication_factor=3, configs=configs
        )
        for index in range(100)
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=60_000)


def partition_record(index: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=TOPIC_ID,
        replicas=[1, 2, 3],
        isr=[1, 2, 3],
        leader=1 + index % 3,
        leader_epoch=5,
        partition_epoch=7,
        directories=[TOPIC_ID, TOPIC_ID, TOPIC_ID],
    )


WORKLOADS = [
    Workload("Metadata response, 1,000 partitions", lambda version: [metadata_response()], 12, 5),
    Workload("Produce request, 100 partitions", lambda version: [produce_request()], 12, 8),
    Workload("Fetch response, 100 partitions", lambda version: [fetch_response(version)], 16, 11),
    Workload("CreateTopics request, 100 topics", lambda version: [create_topics_request()], 7, 3),
    Workload("10,000 PartitionRecords", lambda version: [partition_record(index) for index in range(10_000)], 1, None),
]


# ---- who encodes it


def barnabas(name: str, version: int) -> Codec:
    cls = wire.message_class(name)
    return Codec(
        "barnabas", lambda message: wire.encode(message, version), lambda data: wire.decode(cls, version, data)
    )


def kio(name: str, version: int) -> Codec:
    from kio.serial import entity_reader, entity_writer  # a peer is loaded only when it is timed

    if name == "PartitionRecord":
        cls = peer_records.kio_partition_record()
    else:
        api, kind = api_and_kind(name)
        cls = getattr(importlib.import_module(f"kio.schema.{api}.v{version}.{kind}"), name)
    read, write = entity_reader(cls), entity_writer(cls)

    def encode(message: Any) -> bytes:
        buffer = io.BytesIO()
        write(buffer, message)
        return buffer.getvalue()

    return Codec(f"kio {installed('kio')}", encode, lambda data: read(data, 0)[0], native_decode=True)


def kafka_python(name: str, version: int) -> Codec:
    title = f"kafka-python {installed('kafka-python')}"
    if name == "PartitionRecord":
        return Codec(title, *peer_records.kafka_python_partition_record(version))
    module = {"Metadata": "metadata", "Produce": "producer", "Fetch": "consumer", "CreateTopics": "admin"}
    package = importlib.import_module(f"kafka.protocol.{module[name.removesuffix('Request').removesuffix('Response')]}")
    cls = getattr(package, name)
    return Codec(title, lambda message: message.encode(), lambda data: cls.decode(data, version=version))


def aiokafka(name: str, version: int) -> Codec:
    module = {"CreateTopics": "admin"}.get(name.removesuffix("Request"), api_and_kind(name)[0])
    cls = getattr(importlib.import_module(f"aiokafka.protocol.{module}"), f"{name}_v{version}")
    return Codec(f"aiokafka {installed('aiokafka')}", lambda message: message.encode(), cls.decode)


def api_and_kind(name: str) -> tuple[str, str]:
    kind = "request" if name.endswith("Request") else "response"
    words = name.removesuffix("Request").removesuffix("Response")
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in words).lstrip("_"), kind


# ---- the comparison


def run() -> list[Row]:
    rows: list[Row] = []
    for workload in WORKLOADS:
        rows += compare(workload, workload.version, [kio, kafka_python])
        if workload.older is not None:
            rows += compare(workload, workload.older, [aiokafka])
        else:
            rows += [not_possible(SECTION, f"{what} {workload.question}", "aiokafka") for what in ("encode", "decode")]
    return rows


def compare(workload: Workload, version: int, makers: list[Callable[[str, int], Codec]]) -> list[Row]:
    """Encode and decode of one workload in one version, all contestants in turns."""
    messages = workload.build(version)
    ours, *peers = (make(type(messages[0]).__name__, version) for make in (barnabas, *makers))
    data = [ours.encode(message) for message in messages]
    encoders: dict[str, Callable[[], Any]] = {}
    decoders: dict[str, Callable[[], Any]] = {}
    for codec in (ours, *peers):
        objects = [codec.decode(each) for each in data]
        assert [codec.encode(each) for each in objects] == data, f"{codec.name} writes {workload.question} otherwise"
        encoders[codec.name] = over(codec.encode, objects)
        decoders[codec.name] = over(codec.decode, data)
    rows = []
    for what, functions in (("encode", encoders), ("decode", decoders)):
        times = in_turns(functions)
        for peer in peers:
            title = f"{peer.name} v{version}"
            target: float | None = ENCODE_TARGET
            if what == "decode":
                title += " (native)" if peer.native_decode else ""
                target = None if peer.native_decode else DECODE_TARGET
            our_ms, their_ms = ([each * 1e3 for each in times[codec.name]] for codec in (ours, peer))
            rows.append(from_rounds(SECTION, f"{what} {workload.question}", our_ms, title, their_ms, "ms", target))
    return rows


def over(function: Callable[[Any], Any], items: list[Any]) -> Callable[[], Any]:
    if len(items) == 1:
        return lambda: function(items[0])
    return lambda: [function(each) for each in items]
