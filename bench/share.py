"""Members of a share group that consume 1 kB records: barnabas beside Apache Kafka in one run, over the bare protocol.

Each response is decoded as far as the acquired offsets, and acknowledged by the next fetch: its records as one batch, or each
with a type of its own. The state of the group is initialized as its coordinator does it, so no other client takes part.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from tools.apache_kafka import KAFKA_JVM, VERSION, ApacheKafka, Barnabas, Node

from barnabas.batches.builder import build_batch
from barnabas.batches.format import Record
from barnabas.wire import Uuid
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.share_fetch import ShareFetchRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from bench.connection import Client
from bench.table import Row, from_rounds
from bench.timing import alternating

SECTION = "share"
PEER = f"Apache Kafka {VERSION}"
ROUNDS = 5
BATCHES = 400
RECORDS = 50  # of a batch
VALUE = bytes(1000)
ACCEPT = 1
MAX_RECORDS = 500
TARGET = 1.0
GIVE_UP_S = 60.0
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class _Consumed(NamedTuple):
    """One round of one node."""

    mb_per_s: float
    cpu_us: float  # of the node, for each record


def run() -> list[Row]:
    rows = []
    with Barnabas(overrides=SETTINGS) as ours, ApacheKafka(overrides=SETTINGS, jvm=KAFKA_JVM) as theirs:
        _enable(ours)
        _enable(theirs)
        for by_record in (False, True):
            seen: tuple[list[_Consumed], list[_Consumed]] = ([], [])
            for number in range(ROUNDS + 1):  # the first one warms up
                for side, node in alternating([(0, ours), (1, theirs)], number):
                    seen[side].append(_consume(node, f"share-{by_record}-{number}", by_record=by_record))
            rows += _rows("each record" if by_record else "each batch", *(each[1:] for each in seen))
    return rows


def _rows(what: str, ours: list[_Consumed], theirs: list[_Consumed]) -> list[Row]:
    question = f"consume {BATCHES * RECORDS // 1000}k records of 1 kB, acknowledge {what}"
    speed = [[each.mb_per_s for each in side] for side in (ours, theirs)]
    cpu = [[each.cpu_us for each in side] for side in (ours, theirs)]
    return [
        from_rounds(SECTION, question, speed[0], PEER, speed[1], "MB/s", TARGET, more_is_better=True),
        from_rounds(SECTION, f"{question}, server CPU", cpu[0], PEER, cpu[1], "us/record", None),
    ]


def _enable(node: Node) -> None:
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="share.version", max_version_level=1, upgrade_type=1)
    with Client(node) as client:
        client.call(UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update]), 2)


def _prepare(client: Client, name: str) -> Uuid:
    """Create and fill a topic, and begin a group at its start."""
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    created, _ = client.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
    topic_id: Uuid = created.topics[0].topic_id
    now_ms = time.time_ns() // 1_000_000
    records = build_batch([Record(0, now_ms, None, VALUE) for _ in range(RECORDS)])
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    produced = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[ProduceRequest.TopicProduceData(topic_id=topic_id, partition_data=[data])],
    )
    deadline = time.monotonic() + GIVE_UP_S
    written = 0
    while written < BATCHES:
        answer, _ = client.call(produced, 13)
        if not answer.responses[0].partition_responses[0].error_code:
            written += 1
        else:  # a new topic has no leader yet
            assert not written and time.monotonic() < deadline, answer
            time.sleep(0.1)
    kind = InitializeShareGroupStateRequest
    state = kind.InitializeStateData(topic_id=topic_id, partitions=[kind.PartitionData(state_epoch=1)])
    while True:
        client.call(FindCoordinatorRequest(key_type=2, coordinator_keys=[f"{name}:{topic_id}:0"]), 6)
        done, _ = client.call(kind(group_id=name, topics=[state]), 0)
        if not done.results[0].partitions[0].error_code:
            return topic_id
        assert time.monotonic() < deadline, done
        time.sleep(0.1)


def _consume(node: Node, name: str, *, by_record: bool) -> _Consumed:
    kind = ShareFetchRequest
    with Client(node) as client:
        topic_id = _prepare(client, name)
        cpu_s, started = node.cpu_s(), time.perf_counter()
        deadline = started + GIVE_UP_S
        said: list[ShareFetchRequest.AcknowledgementBatch] = []
        accepted = epoch = 0
        while accepted < BATCHES * RECORDS:
            partition = kind.FetchPartition(partition_index=0, acknowledgement_batches=said)
            request = kind(
                group_id=name,
                member_id="bench",
                share_session_epoch=epoch,
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=50 << 20,
                max_records=MAX_RECORDS,
                batch_size=MAX_RECORDS,
                topics=[kind.FetchTopic(topic_id=topic_id, partitions=[partition])] if said or not epoch else [],
            )
            response, _ = client.call(request, 2)
            assert not response.error_code and time.perf_counter() < deadline, response.error_code
            epoch += 1
            accepted += sum(each.last_offset - each.first_offset + 1 for each in said)
            said = []
            for topic in response.responses:
                for row in topic.partitions:
                    assert not row.error_code and not row.acknowledge_error_code, row
                    for first, last in ((each.first_offset, each.last_offset) for each in row.acquired_records):
                        types = [ACCEPT] * (last - first + 1) if by_record else [ACCEPT]
                        said.append(
                            kind.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
                        )
        seconds = time.perf_counter() - started
        count = BATCHES * RECORDS
        return _Consumed(count * len(VALUE) / 1e6 / seconds, (node.cpu_s() - cpu_s) / count * 1e6)
