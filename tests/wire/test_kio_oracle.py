"""kio, an independent implementation of the protocol, reads what is written here, and writes what is read here."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.create_topics.v7 import request as create_topics
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.metadata.v12 import response as metadata
from kio.schema.request_header.v2 import header
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32, i32Timedelta

from barnabas import wire
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.metadata import MetadataResponse
from tests.wire.golden import NAMES, vectors_of, versions_of

APIS = [name for name in NAMES if name.endswith(("Request", "Response"))]


def kio_bytes(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def make_meaningful(value: Any) -> Any:
    """kio turns error codes, durations and timestamps into types that do not hold every number."""
    if isinstance(value, list):
        return [make_meaningful(item) for item in value]
    if isinstance(value, wire.Struct):
        defaults = type(value)()
        for name in type(value).__slots__:
            member = getattr(value, name)
            if member == getattr(defaults, name):  # also what the version does not have
                continue
            if name.endswith("error_code"):
                member = int(wire.ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif name.endswith(("_ms", "timestamp")):
                member %= 1_000_000
            setattr(value, name, make_meaningful(member))
    return value


@pytest.mark.parametrize("name", APIS)
def test_kio_reads_and_writes_the_same_bytes(name: str) -> None:
    version = versions_of(name)[-1]
    for vector in vectors_of(name):
        if vector.version != version or vector.case == "tags":  # kio refuses tags that it does not know
            continue
        message = make_meaningful(wire.decode(name, version, vector.data))
        encoded = wire.encode(message, version)
        load = load_request_schema if name.endswith("Request") else load_response_schema
        entity, size = entity_reader(load(vector.facts["apiKey"], version))(encoded, 0)
        assert size == len(encoded)
        assert wire.decode(name, version, kio_bytes(entity)) == message


def test_a_request_header_is_the_same_in_both() -> None:
    theirs = header.RequestHeader(
        request_api_key=i16(3), request_api_version=i16(12), correlation_id=i32(77), client_id="a client"
    )
    ours = RequestHeader(request_api_key=3, request_api_version=12, correlation_id=77, client_id="a client")
    assert wire.encode(ours, 2) == kio_bytes(theirs)
    assert wire.decode(RequestHeader, 2, kio_bytes(theirs)) == ours
    assert entity_reader(header.RequestHeader)(wire.encode(ours, 2), 0)[0] == theirs


def test_create_topics_is_the_same_in_both() -> None:
    theirs = create_topics.CreateTopicsRequest(
        topics=(
            create_topics.CreatableTopic(
                name=TopicName("orders"),
                num_partitions=i32(-1),
                replication_factor=i16(-1),
                assignments=(
                    create_topics.CreatableReplicaAssignment(
                        partition_index=i32(0), broker_ids=(BrokerId(1), BrokerId(2))
                    ),
                ),
                configs=(create_topics.CreatableTopicConfig(name="retention.ms", value=None),),
            ),
        ),
        timeout=i32Timedelta.parse(timedelta(milliseconds=1500)),
        validate_only=True,
    )
    ours = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name="orders",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2])],
                configs=[CreateTopicsRequest.CreatableTopicConfig(name="retention.ms", value=None)],
            )
        ],
        timeout_ms=1500,
        validate_only=True,
    )
    assert wire.encode(ours, 7) == kio_bytes(theirs)
    assert wire.decode(CreateTopicsRequest, 7, kio_bytes(theirs)) == ours
    assert entity_reader(create_topics.CreateTopicsRequest)(wire.encode(ours, 7), 0)[0] == theirs


def test_kio_sees_the_values_of_a_metadata_response() -> None:
    partition = MetadataResponse.MetadataResponsePartition(
        partition_index=4, leader_id=1, leader_epoch=9, replica_nodes=[1, 2], isr_nodes=[1], offline_replicas=[2]
    )
    topic_id = wire.Uuid(bytes(range(16)))
    topic = MetadataResponse.MetadataResponseTopic(
        error_code=5, name="orders", topic_id=topic_id, is_internal=True, partitions=[partition]
    )
    broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="localhost", port=9092, rack="r")
    ours = MetadataResponse(brokers=[broker], cluster_id="c", controller_id=1, topics=[topic])

    theirs, _ = entity_reader(metadata.MetadataResponse)(wire.encode(ours, 12), 0)
    assert (theirs.cluster_id, theirs.controller_id) == ("c", 1)
    [their_broker], [their_topic] = theirs.brokers, theirs.topics
    assert (their_broker.node_id, their_broker.host, their_broker.port, their_broker.rack) == (
        1,
        "localhost",
        9092,
        "r",
    )
    assert their_topic.error_code is KioErrorCode.leader_not_available
    assert (their_topic.name, their_topic.topic_id, their_topic.is_internal) == ("orders", UUID(bytes=topic_id), True)
    [their_partition] = their_topic.partitions
    assert (their_partition.partition_index, their_partition.leader_id, their_partition.leader_epoch) == (4, 1, 9)
    assert (their_partition.replica_nodes, their_partition.isr_nodes) == ((1, 2), (1,))
    assert their_partition.offline_replicas == (2,)
