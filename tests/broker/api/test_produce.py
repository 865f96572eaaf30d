"""Produce: what a leader takes, what it answers, and what is then in the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas import batches
from barnabas.batches import Compression, Record, build_batch, decode_records
from barnabas.batches.format import HEADER, Buffer
from barnabas.broker.dispatch import Refused
from barnabas.security.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.transactions.state import TOPIC as TRANSACTIONS
from barnabas.wire import ErrorCode, Message, Uuid
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.records.metadata import (
    AccessControlEntryRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from tests.broker.harness import MemoryNode
from tests.transactions.world import topic_records

NOW_MS = 1_700_000_000_000
TOPIC_ID = Uuid(bytes([7]) * 16)
VERSIONS = range(3, 14)


def topic(name: str = "t", topic_id: Uuid = TOPIC_ID, leader: int = 1, isr: tuple[int, ...] = (1,)) -> list[Message]:
    return [
        TopicRecord(name=name, topic_id=topic_id),
        PartitionRecord(
            topic_id=topic_id,
            partition_id=0,
            replicas=[1, 2][: len(isr)],
            isr=list(isr),
            leader=leader,
            leader_epoch=5,
            partition_epoch=5,
        ),
    ]


def config(name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name="t", name=name, value=value)


def node(tmp_path: Path, *records: Message, authorizer: AuthorizerSettings | None = None) -> MemoryNode:
    (tmp_path / "log").mkdir(exist_ok=True)
    return MemoryNode({"log.dirs": str(tmp_path / "log")}, brokers=2, records=records, authorizer=authorizer)


def batch(*values: bytes, key: bytes | None = b"k", timestamp: int = NOW_MS, **how: object) -> bytes:
    return build_batch([Record(i, timestamp, key, value) for i, value in enumerate(values)], **how)  # type: ignore[arg-type]


def produce(
    data: bytes | None, *, name: str = "t", topic_id: Uuid = TOPIC_ID, acks: int = -1, index: int = 0
) -> ProduceRequest:
    rows = [ProduceRequest.PartitionProduceData(index=index, records=data)]
    topics = [ProduceRequest.TopicProduceData(name=name, topic_id=topic_id, partition_data=rows)]
    return ProduceRequest(acks=acks, timeout_ms=50, topic_data=topics)


def answer(found: MemoryNode, request: ProduceRequest, version: int = 13) -> ProduceResponse.PartitionProduceResponse:
    response: ProduceResponse = found.call(request, version)
    return response.responses[0].partition_responses[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_batch_gets_the_next_offsets_and_the_epoch_in_every_version(tmp_path: Path, version: int) -> None:
    found = node(tmp_path, *topic())
    for base_offset in (0, 2):
        row = answer(found, produce(batch(b"one", b"two")), version)
        assert (row.error_code, row.base_offset, row.log_append_time_ms) == (0, base_offset, -1)
    partition = found.replicas.partition("t", 0)
    assert (partition.log_end_offset, partition.high_watermark) == (4, 4)
    assert [record.value for record in decode_records(partition.read(0, 1000))] == [b"one", b"two"]


def test_a_topic_that_is_not_known_by_name_or_id(tmp_path: Path) -> None:
    found = node(tmp_path, *topic())
    assert answer(found, produce(batch(b"x"), name="u"), 12).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer(found, produce(batch(b"x"), index=1), 12).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    unknown = Uuid(bytes([8]) * 16)
    assert answer(found, produce(batch(b"x"), topic_id=unknown)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_acks_that_do_not_exist(tmp_path: Path) -> None:
    assert answer(node(tmp_path, *topic()), produce(batch(b"x"), acks=2)).error_code == 21


def test_an_internal_topic_is_for_coordinators(tmp_path: Path) -> None:
    found = node(tmp_path, *topic("__consumer_offsets"))
    assert answer(found, produce(batch(b"x"), name="__consumer_offsets"), 12).error_code == 17


def test_another_broker_leads(tmp_path: Path) -> None:
    found = node(tmp_path, *topic(leader=2, isr=(1, 2)))
    assert answer(found, produce(batch(b"x"))).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_replica_in_sync_that_does_not_fetch_lets_acks_all_time_out_but_not_acks_one(tmp_path: Path) -> None:
    found = node(tmp_path, *topic(isr=(1, 2)))
    row = answer(found, produce(batch(b"x")))
    assert (row.error_code, row.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert answer(found, produce(batch(b"x"), acks=1)).base_offset == 1
    partition = found.replicas.partition("t", 0)
    assert (partition.log_end_offset, partition.high_watermark) == (2, 0)
    partition.fetched(2, 2)
    assert partition.high_watermark == 2


def test_too_few_replicas_in_sync_refuse_acks_all_before_anything_is_written(tmp_path: Path) -> None:
    found = node(
        tmp_path,
        *topic(isr=(1, 2)),
        config("min.insync.replicas", "2"),
        PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=[1]),
    )
    assert answer(found, produce(batch(b"x"))).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert found.replicas.partition("t", 0).log_end_offset == 0
    assert answer(found, produce(batch(b"x"), acks=1)).error_code == 0


def test_acks_zero_is_not_answered_and_its_error_closes_the_connection(tmp_path: Path) -> None:
    found = node(tmp_path, *topic())
    with pytest.raises(AssertionError):
        found.call(produce(batch(b"x"), acks=0), 13)
    assert found.replicas.partition("t", 0).log_end_offset == 1
    with pytest.raises(Refused):
        found.call(produce(b"junk", acks=0), 13)


def test_records_of_a_compacted_topic_need_keys_and_the_answer_says_which_do_not(tmp_path: Path) -> None:
    found = node(tmp_path, *topic(), config("cleanup.policy", "compact"))
    row = answer(found, produce(batch(b"x", b"y", key=None)))
    assert (row.error_code, row.log_start_offset) == (ErrorCode.INVALID_RECORD, 0)
    assert [each.batch_index for each in row.record_errors] == [0, 1]


def test_a_topic_may_stamp_its_own_time_and_want_its_own_codec(tmp_path: Path) -> None:
    settings = [config("message.timestamp.type", "LogAppendTime"), config("compression.type", "gzip")]
    found = node(tmp_path, *topic(), *settings)
    row = answer(found, produce(batch(b"x" * 100, timestamp=5)))
    assert (row.error_code, row.log_append_time_ms) == (0, NOW_MS)
    (record,) = decode_records(found.replicas.partition("t", 0).read(0, 1000))
    assert (record.timestamp, record.value) == (NOW_MS, b"x" * 100)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (batch(b"x") + batch(b"y"), ErrorCode.INVALID_RECORD),
        (batch(b"x")[:-1] + b"y", ErrorCode.CORRUPT_MESSAGE),
        (batch(b"x" * 1_100_000), ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
def test_what_is_no_single_sound_batch_is_refused_and_nothing_is_written(
    tmp_path: Path, data: bytes | None, code: ErrorCode
) -> None:
    found = node(tmp_path, *topic())
    row = answer(found, produce(data))
    assert (row.error_code, row.base_offset) == (code, -1)
    assert found.replicas.partition("t", 0).log_end_offset == 0


def test_zstd_needs_a_version_that_knows_it(tmp_path: Path) -> None:
    found = node(tmp_path, *topic())
    data = batch(b"x", compression=Compression.ZSTD)
    assert answer(found, produce(data), 6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert answer(found, produce(data), 7).error_code == 0


def test_who_may_not_write_is_told_so(tmp_path: Path) -> None:
    allow = AccessControlEntryRecord(
        id=Uuid(bytes([3]) * 16),
        resource_type=ResourceType.TOPIC,
        resource_name="u",
        pattern_type=PatternType.LITERAL,
        principal="User:ANONYMOUS",
        host="*",
        operation=AclOperation.WRITE,
        permission_type=AclPermissionType.ALLOW,
    )
    other = Uuid(bytes([9]) * 16)
    found = node(tmp_path, *topic(), *topic("u", other), allow, authorizer=AuthorizerSettings(enabled=True))
    assert answer(found, produce(batch(b"x"))).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert answer(found, produce(batch(b"x"), topic_id=other)).error_code == 0


def test_a_transaction_that_waits_for_no_answer_and_fails_closes_the_connection(tmp_path: Path) -> None:
    found = node(tmp_path, *topic())
    data = batch(b"x", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    request = produce(data, acks=0)
    with pytest.raises(Refused, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        found.call(request, 13)
    request.transactional_id = "t"
    with pytest.raises(Refused, match="acks=0 from client 'test' failed"):
        found.call(request, 13)
    assert found.replicas.partition("t", 0).log_end_offset == 0


class CountingHeader:
    """The layout of a batch header; counts how often one is unpacked."""

    def __init__(self) -> None:
        self.decoded = 0

    def unpack_from(self, data: Buffer, position: int = 0) -> tuple[Any, ...]:
        self.decoded += 1
        return HEADER.unpack_from(data, position)


PRODUCER = {"producer_id": 0, "producer_epoch": 0}


@pytest.mark.parametrize(
    ("settings", "how", "expected"),
    [
        ({}, {}, 1),
        ({}, {"compression": Compression.LZ4}, 1),
        ({}, PRODUCER, 1),
        ({}, {**PRODUCER, "is_transactional": True}, 1),
        ({"cleanup.policy": "compact"}, {}, 1),
        ({"message.timestamp.type": "LogAppendTime"}, {}, 1),
        ({"compression.type": "gzip"}, {}, 2),  # that of the batch that came, and of the one that is made of it
    ],
)
def test_the_header_of_a_batch_is_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], how: dict[str, Any], expected: int
) -> None:
    configs = [config(name, value) for name, value in settings.items()]
    found = node(tmp_path, *topic(), *topic_records(TRANSACTIONS, [1]), *configs)
    found.call(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000), 5)
    counter = CountingHeader()
    for sequence in range(2):  # the first one begins the transaction, which the coordinator writes to its own log
        first: dict[str, Any] = {"base_sequence": sequence} if "producer_id" in how else {}
        request = produce(batch(b"x", **how, **first))
        request.transactional_id = "tx"
        counter.decoded = 0
        with monkeypatch.context() as patched:
            patched.setattr(batches.format, "HEADER", counter)
            assert answer(found, request).base_offset == sequence
    assert counter.decoded == expected


@pytest.mark.parametrize("is_transactional", [False, True])
def test_batches_of_several_partitions_keep_their_own_headers(tmp_path: Path, is_transactional: bool) -> None:
    """One partition is named twice, and one batch cannot be read."""
    other = Uuid(bytes([8]) * 16)
    found = node(tmp_path, *topic(), *topic("u", other), *topic_records(TRANSACTIONS, [1]))
    found.call(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000), 5)
    how: dict[str, Any] = {**PRODUCER, "is_transactional": is_transactional}
    request = produce(batch(b"1", b"2", base_sequence=0, **how))
    request.transactional_id = "tx"
    rows = request.topic_data[0].partition_data
    rows.append(ProduceRequest.PartitionProduceData(index=0, records=b"junk"))
    rows.append(ProduceRequest.PartitionProduceData(index=0, records=batch(b"3", base_sequence=2, **how)))
    rows_of_other = [
        ProduceRequest.PartitionProduceData(index=0, records=batch(b"4", b"5", b"6", base_sequence=0, **how))
    ]
    request.topic_data.append(ProduceRequest.TopicProduceData(name="u", topic_id=other, partition_data=rows_of_other))
    response: ProduceResponse = found.call(request, 13)
    answers = [(row.error_code, row.base_offset) for each in response.responses for row in each.partition_responses]
    assert answers == [(0, 0), (ErrorCode.INVALID_RECORD, -1), (0, 2), (0, 0)]
    ends = [found.replicas.partition(name, 0).log_end_offset for name in ("t", "u")]
    assert ends == [3, 3]
