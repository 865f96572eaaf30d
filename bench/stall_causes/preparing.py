"""What several causes need: topics, batches, and requests over many partitions."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from itertools import count

from tools.apache_kafka import Node

from barnabas.batches import BatchHeader, Compression, Record, build_batch
from barnabas.batches.builder import encode_batch
from barnabas.wire import ErrorCode
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from bench.connection import Client, frame

TIMEOUT_S = 300.0
TIMEOUT_MS = round(TIMEOUT_S * 1000)
CREATE_VERSION, METADATA_VERSION, PRODUCE_VERSION, FIND_VERSION = 7, 12, 12, 4
GROUP_KEY, TRANSACTION_KEY = 0, 1
PARTITIONS_AT_ONCE = 1_000
PARTITIONS_OF_ONE = 100  # of each of the topics that have very many partitions together
MANY = int(os.environ.get("BENCH_STALLS_PARTITIONS", "5000"))
BASE_TIMESTAMP = 1_700_000_000_000
ONE_RECORD = build_batch([Record(0, 1_000, None, b"x" * 10)])
_moments = count(1)


def asking(node: Node) -> Client:
    """A connection that waits long enough for anything in this benchmark."""
    return Client(node, TIMEOUT_S)


def ask(client: Client, request: bytes) -> bytes:
    """Send a request that was made beforehand, and return the answer."""
    client.send(request)
    return client.receive()


def settled_coordinators(node: Node, group_id: str = "committing") -> None:
    """Wait until the internal topics exist and their coordinators answer."""
    with asking(node) as client:
        for key_type in (GROUP_KEY, TRANSACTION_KEY):
            asked = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[group_id])
            deadline = time.monotonic() + TIMEOUT_S
            while client.call(asked, FIND_VERSION)[0].coordinators[0].error_code:
                if time.monotonic() > deadline:
                    raise RuntimeError("there is no coordinator yet")
                time.sleep(0.1)


def create_topics(node: Node, names: Iterable[str], partitions: int, configs: Mapping[str, str] | None = None) -> None:
    """Create the topics that do not exist, a thousand partitions per request, and wait until all have leaders."""
    wanted = list(names)
    step = max(1, PARTITIONS_AT_ONCE // partitions)
    with asking(node) as client:
        for start in range(0, len(wanted), step):
            _create(client, wanted[start : start + step], partitions, configs or {})


def _create(client: Client, names: list[str], partitions: int, configs: Mapping[str, str]) -> None:
    config = CreateTopicsRequest.CreatableTopicConfig
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[config(name=key, value=value) for key, value in configs.items()],
        )
        for name in names
    ]
    answer, _ = client.call(CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), CREATE_VERSION)
    for each in answer.topics:
        if each.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise RuntimeError(f"{each.name}: {ErrorCode(each.error_code).name} {each.error_message}")
    asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names])
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        found, _ = client.call(asked, METADATA_VERSION)
        rows = [row for topic in found.topics for row in topic.partitions]
        if len(rows) == len(names) * partitions and all(row.leader_id >= 0 for row in rows):
            return
        if time.monotonic() > deadline:
            raise RuntimeError("topics have no leaders yet")
        time.sleep(0.05)


def produce(topics: Mapping[str, Iterable[int]], batch: bytes = ONE_RECORD, acks: int = 1) -> bytes:
    """A Produce request with the batch for each partition, as a frame."""
    data = ProduceRequest.PartitionProduceData
    rows = [
        ProduceRequest.TopicProduceData(
            name=name, partition_data=[data(index=index, records=batch) for index in partitions]
        )
        for name, partitions in topics.items()
    ]
    return frame(ProduceRequest(acks=acks, timeout_ms=TIMEOUT_MS, topic_data=rows), PRODUCE_VERSION)


def next_moment() -> int:
    """A timestamp ten seconds after the last one: a batch with it makes a segment roll if segments are short."""
    return BASE_TIMESTAMP + next(_moments) * 10_000


def spread(number: int, prefix: str = "many") -> dict[str, range]:
    """Partitions of topics with 100 each, `number` altogether."""
    return {f"{prefix}-{each}": range(PARTITIONS_OF_ONE) for each in range(number // PARTITIONS_OF_ONE)}


def create_spread(node: Node, topics: Mapping[str, range], configs: Mapping[str, str] | None = None) -> None:
    create_topics(node, topics, PARTITIONS_OF_ONE, configs)


def restart(node: Node) -> None:
    """Stop the node in order and start it again: no log is open where logs are opened when they are needed."""
    node.stop(timeout_s=TIMEOUT_S)
    node.start(timeout_s=TIMEOUT_S)


def of_size(record: bytes, number: int, compression: Compression, *, max_timestamp: int = BASE_TIMESTAMP) -> bytes:
    """A batch that contains the same encoded record many times."""
    attributes = int(compression)
    header = BatchHeader(0, 0, -1, 2, 0, attributes, number - 1, BASE_TIMESTAMP, max_timestamp, -1, -1, -1, number)
    return encode_batch(header, record * number, compression)
