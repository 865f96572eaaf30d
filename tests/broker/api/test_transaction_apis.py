"""AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26), DescribeTransactions (65) and ListTransactions (66).

What is answered in which state is in tests/transactions, with Kafka's own answers; here is who may, and how it is shown.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from barnabas.batches import iterate_batches
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.transactions.state import TOPIC
from barnabas.wire import ErrorCode
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import ALICE, AUTHORIZER, Capture, allow, params
from tests.replicated.memory_log import MemoryLog
from tests.transactions.world import topic_records

LOGS = Path(__file__).parents[2] / "transactions" / "data"
LEADERS = [2, 3, 1]  # of the transaction log's partitions in the golden cluster
TX_OPEN_ABORTED = 15  # where tx-open was aborted, in the log of partition 0
CAPTURED_MS = 1_794_771_830_000

Topics = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
MAY_WRITE_TX = (AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx")
MAY_DESCRIBE_TX = (AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "tx")


# --- Kafka's answers


def golden_node(capture: Capture) -> MemoryNode:
    """A node that leads what the captured one led, with its logs as they were."""
    made = MemoryNode(
        {"node.id": str(capture.node)}, brokers=4, records=topic_records(TOPIC, LEADERS), now_ms=CAPTURED_MS
    )
    for partition_id, leader in enumerate(LEADERS):
        data = gzip.decompress((LOGS / f"transaction_state_{partition_id}.log.gz").read_bytes())
        end = TX_OPEN_ABORTED if (partition_id, capture.phase) == (0, "3-data") else 1 << 62
        batches = [data[at : at + h.size_in_bytes] for at, h in iterate_batches(data) if h.base_offset < end]
        if leader == capture.node:
            made.memory_transactions.logs[partition_id] = MemoryLog(batches)
    return made


@pytest.mark.parametrize("capture", params("DescribeTransactions"))
def test_transactions_are_described_as_kafka_does(capture: Capture) -> None:
    assert capture.ask(golden_node(capture)) == capture.answer


@pytest.mark.parametrize("capture", params("ListTransactions"))
def test_transactions_are_listed_as_kafka_does(capture: Capture) -> None:
    answer, expected = capture.decode(capture.ask(golden_node(capture))), capture.response
    expected.transaction_states.sort(key=lambda row: row.transactional_id)  # Kafka's are in the order of a hash table
    assert answer == expected


# --- a node with one transaction


def node(*entries: Any, **more: Any) -> MemoryNode:
    records = [
        *topic_records(TOPIC, [1]),
        *topic_records("t", [1, 1]),
        *topic_records("u", [1]),
        *topic_records("__consumer_offsets", [1, 1, 1]),
        *(allow("User:alice", *entry) for entry in entries),
    ]
    made = MemoryNode(records=records, authorizer=AUTHORIZER, **more)
    made.call(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000), 5)
    return made


def add(made: MemoryNode, *topics: tuple[str, list[int]], version: int = 3, **peer: Any) -> list[tuple[str, int, int]]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_topics=[Topics(name=name, partitions=partitions) for name, partitions in topics],
    )
    rows = made.call(request, version, **peer).results_by_topic_v3_and_below
    return [
        (row.name, each.partition_index, each.partition_error_code) for row in rows for each in row.results_by_partition
    ]


def end(made: MemoryNode, version: int = 5, *, epoch: int = 0, committed: bool = True, **peer: Any) -> Any:
    request = EndTxnRequest(transactional_id="tx", producer_epoch=epoch, committed=committed)
    response = made.call(request, version, **peer)
    return response.error_code, response.producer_id, response.producer_epoch


def describe(made: MemoryNode, **peer: Any) -> Any:
    return made.call(DescribeTransactionsRequest(transactional_ids=["tx"]), 0, **peer).transaction_states[0]


def test_partitions_are_added_together_or_not_at_all() -> None:
    made = node()
    nothing = [("t", 0, ErrorCode.OPERATION_NOT_ATTEMPTED)]
    assert add(made, ("t", [0, 7])) == [*nothing, ("t", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert add(made, ("t", [0]), ("no", [0])) == [*nothing, ("no", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    internal = ("__consumer_offsets", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert add(made, ("t", [0]), ("__consumer_offsets", [0])) == [*nothing, internal]
    assert describe(made).transaction_state == "Empty"
    assert add(made, ("t", [1, 0]), ("u", [0])) == [("t", 1, 0), ("t", 0, 0), ("u", 0, 0)]
    assert [(row.topic, row.partitions) for row in describe(made).topics] == [("t", [0, 1]), ("u", [0])]


def test_clients_need_the_transactional_id_and_the_topics() -> None:
    refused = [("t", 0, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)]
    assert add(node(), ("t", [0]), principal=ALICE) == refused
    may_t = (AclOperation.WRITE, ResourceType.TOPIC, "t")
    assert add(node(may_t, MAY_WRITE_TX), ("t", [0]), principal=ALICE) == [("t", 0, 0)]
    assert add(node(may_t, MAY_WRITE_TX), ("t", [0]), ("u", [0]), principal=ALICE) == [
        ("t", 0, ErrorCode.OPERATION_NOT_ATTEMPTED),
        ("u", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]


def test_brokers_add_and_verify_for_many_transactions_at_once() -> None:
    made = node()
    add(made, ("t", [0]))
    request = AddPartitionsToTxnRequest(
        transactions=[
            Transaction(transactional_id="tx", verify_only=True, topics=[Topics(name="t", partitions=[0, 1])]),
            Transaction(transactional_id="other", topics=[Topics(name="t", partitions=[1])]),
        ]
    )
    response = made.call(request, 5)
    assert [
        (
            row.transactional_id,
            [(p.partition_index, p.partition_error_code) for p in row.topic_results[0].results_by_partition],
        )
        for row in response.results_by_transaction
    ] == [
        ("tx", [(0, 0), (1, ErrorCode.TRANSACTION_ABORTABLE)]),
        ("other", [(1, ErrorCode.INVALID_PRODUCER_ID_MAPPING)]),
    ]
    refused = made.call(request, 5, principal=ALICE)
    assert (refused.error_code, refused.results_by_transaction) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])


def test_the_end_says_who_is_next_from_version_5_on() -> None:
    made = node()
    add(made, ("t", [0]))
    assert end(made, 4) == (0, -1, -1)
    add(made, ("t", [0]))
    assert end(made, 5) == (0, 0, 1)
    assert end(made, 5) == (0, 0, 1)
    assert [ended.producer.producer_epoch for _, ended in made.memory_transactions.markers] == [0, 1]


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
def test_who_is_fenced_is_told_in_words_that_it_knows(version: int, code: ErrorCode) -> None:
    made = node()
    assert end(made, version, epoch=9) == (code, -1, -1)
    request = AddOffsetsToTxnRequest(transactional_id="tx", producer_epoch=9, group_id="g")
    assert made.call(request, version).error_code == code
    stale = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_epoch=9,
        v3_and_below_topics=[Topics(name="t", partitions=[0])],
    )
    (row,) = made.call(stale, version).results_by_topic_v3_and_below
    assert row.results_by_partition[0].partition_error_code == code


def test_who_may_end_a_transaction() -> None:
    assert end(node(), principal=ALICE) == (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1, -1)
    assert end(node(MAY_WRITE_TX), committed=False, principal=ALICE) == (0, 0, 1)


@pytest.mark.parametrize("version", range(5))
def test_offsets_of_a_group_are_part_of_a_transaction(version: int) -> None:
    made = node()
    request = AddOffsetsToTxnRequest(transactional_id="tx", group_id="g")
    assert made.call(request, version).error_code == 0
    (topic,) = describe(made).topics
    assert (topic.topic, topic.partitions) == ("__consumer_offsets", [ord("g") % 3])


def test_who_may_add_offsets() -> None:
    request = AddOffsetsToTxnRequest(transactional_id="tx", group_id="g")
    may_group = (AclOperation.READ, ResourceType.GROUP, "g")
    for entries, code in (
        ([may_group], ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ([MAY_WRITE_TX], ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ([MAY_WRITE_TX, may_group], ErrorCode.NONE),
    ):
        assert node(*entries).call(request, 4, principal=ALICE).error_code == code


def test_what_is_described_is_what_the_caller_may_see() -> None:
    may_t = (AclOperation.DESCRIBE, ResourceType.TOPIC, "t")
    made = node(MAY_DESCRIBE_TX, may_t)
    add(made, ("t", [0]), ("u", [0]))
    seen = describe(made, principal=ALICE)
    assert (seen.transaction_state, [row.topic for row in seen.topics]) == ("Ongoing", ["t"])
    assert describe(node(), principal=ALICE).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_while_it_ends_a_transaction_shows_what_is_left_to_do() -> None:
    made = node()
    add(made, ("t", [0, 1]))
    made.memory_transactions.marker_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert end(made) == (0, 0, 1)
    assert describe(made).transaction_state == "PrepareCommit"
    assert [row.partitions for row in describe(made).topics] == [[0, 1]]


def test_an_empty_transactional_id_is_none() -> None:
    request = DescribeTransactionsRequest(transactional_ids=["", "no"])
    rows = node().call(request, 0).transaction_states
    assert [row.error_code for row in rows] == [ErrorCode.INVALID_REQUEST, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND]


def listed(made: MemoryNode, *, version: int = 2, principal: Any = None, **filters: Any) -> list[str]:
    peer = {} if principal is None else {"principal": principal}
    response = made.call(ListTransactionsRequest(**filters), version, **peer)
    return [row.transactional_id for row in response.transaction_states]


def test_transactions_are_listed_by_what_is_asked_for() -> None:
    made = node(MAY_DESCRIBE_TX)
    for name in ("tx-10", "tx-2"):
        made.call(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000), 5)
    add(made, ("t", [0]))
    assert listed(made) == ["tx", "tx-10", "tx-2"]
    assert listed(made, state_filters=["Ongoing"]) == ["tx"]
    assert listed(made, state_filters=["ongoing"]) == []
    assert listed(made, producer_id_filters=[2, 5]) == ["tx-2"]
    assert listed(made, transactional_id_pattern="tx-[0-9]") == ["tx-2"]
    assert listed(made, transactional_id_pattern="") == ["tx", "tx-10", "tx-2"]
    assert listed(made, principal=ALICE) == ["tx"]
    made.memory_transactions.clock.advance(500)
    assert listed(made, duration_filter=500, state_filters=["Ongoing"]) == []
    assert listed(made, duration_filter=499, state_filters=["Ongoing"]) == ["tx"]


def test_states_that_nobody_knows_are_named_once() -> None:
    response = node().call(ListTransactionsRequest(state_filters=["Nope", "Dead", "Nope", "empty"]), 0)
    assert (response.unknown_state_filters, response.transaction_states) == (["Nope", "empty"], [])
