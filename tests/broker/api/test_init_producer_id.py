"""InitProducerId (22)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.security.acl import AclOperation, ResourceType
from barnabas.transactions.state import TOPIC
from barnabas.wire import ErrorCode
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import ALICE, AUTHORIZER, Capture, allow, params
from tests.transactions.world import topic_records


def node(**more: Any) -> MemoryNode:
    return MemoryNode(records=[*topic_records(TOPIC, [1]), *topic_records("t", [1])], **more)


def answered(response: Any) -> tuple[int, int, int]:
    return response.error_code, response.producer_id, response.producer_epoch


@pytest.mark.parametrize("capture", params("InitProducerId"))
def test_kafka_s_answers(capture: Capture) -> None:
    made = MemoryNode()
    if capture.case != "idempotent":
        assert capture.ask(made) == capture.answer
        return
    answer, expected = capture.decode(capture.ask(made)), capture.response
    assert answered(answer) == (0, 0, 0)
    assert answered(expected)[::2] == (0, 0)


def test_producers_without_a_transactional_id_get_ids_that_nobody_had() -> None:
    made = node()
    answers = [made.call(InitProducerIdRequest(transactional_id=None), version) for version in range(6)]
    assert [answered(each) for each in answers] == [(0, number, 0) for number in range(6)]


def test_a_transactional_id_keeps_its_producer_id_and_gets_the_next_epoch() -> None:
    made = node()
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000)
    assert [answered(made.call(request, version)) for version in range(6)] == [(0, 0, epoch) for epoch in range(6)]


def test_before_the_topic_is_there_nobody_is_the_coordinator() -> None:
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000)
    assert answered(MemoryNode().call(request, 5)) == (ErrorCode.NOT_COORDINATOR, -1, -1)


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 0), (0, -1)])
def test_half_a_producer_is_none(producer_id: int, epoch: int) -> None:
    request = InitProducerIdRequest(
        transactional_id="tx", transaction_timeout_ms=1000, producer_id=producer_id, producer_epoch=epoch
    )
    assert answered(node().call(request, 3)) == (ErrorCode.INVALID_REQUEST, -1, -1)


@pytest.mark.parametrize(("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)])
def test_who_is_fenced_is_told_in_words_that_it_knows(version: int, code: ErrorCode) -> None:
    made = node()
    made.call(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000), 3)
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000, producer_id=0, producer_epoch=9)
    assert answered(made.call(request, version)) == (code, -1, -1)


def test_a_transaction_that_goes_on_is_aborted_first() -> None:
    made = node()
    begin = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000)
    made.call(begin, 5)
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    made.call(add, 3)
    assert answered(made.call(begin, 5)) == (ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1)
    (partition, ended), *more = made.memory_transactions.markers
    assert (partition.topic, ended.marker.is_commit, more) == ("t", False, [])
    assert answered(made.call(begin, 5)) == (0, 0, 2)


@pytest.mark.parametrize(
    ("entries", "transactional_id", "code"),
    [
        ([], None, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ([(AclOperation.READ, ResourceType.TOPIC, "t")], None, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ([(AclOperation.WRITE, ResourceType.TOPIC, "any")], None, ErrorCode.NONE),
        ([(AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, "kafka-cluster")], None, ErrorCode.NONE),
        ([(AclOperation.WRITE, ResourceType.TOPIC, "any")], "tx", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ([(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx")], "tx", ErrorCode.NONE),
        ([(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx")], None, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_who_may(
    entries: list[tuple[AclOperation, ResourceType, str]], transactional_id: str | None, code: ErrorCode
) -> None:
    records = [*topic_records(TOPIC, [1]), *(allow("User:alice", *entry) for entry in entries)]
    made = MemoryNode(records=records, authorizer=AUTHORIZER)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
    assert answered(made.call(request, 5, principal=ALICE)) == ((0, 0, 0) if not code else (code, -1, -1))
