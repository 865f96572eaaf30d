"""Sequences of requests about transactions that Apache Kafka 4.3.1 was given, at each transaction.version: we answer the same.

They were drawn at random, with producers that are current, fenced or made up, and every version of the requests; each was
sent when the markers of the one before had been written. Beside each is the log of `__transaction_state` that Kafka wrote.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import wire
from barnabas.batches import build_batch, decode_records, iterate_batches
from barnabas.batches.format import Record
from barnabas.replicated.machines import decode_key_value
from barnabas.transactions.state import TOPIC, Transaction, TransactionState, record
from barnabas.wire import APIS, ApiKey
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from tests.broker.harness import FEATURES, MemoryNode
from tests.replicated.memory_log import MemoryLog
from tests.transactions.world import topic_records

STATE = TransactionState
DATA = Path(__file__).parent / "data"


def exchanges(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / f"kafka_{name}.jsonl.gz", "rt") as lines:
        yield from map(json.loads, lines)


def node(version: int, log: MemoryLog, claimed: int = 1) -> MemoryNode:
    """A node that has given so many producer ids to others, as Kafka had."""
    records = [*topic_records(TOPIC, [1]), *topic_records("t", [1, 1, 1]), *topic_records("__consumer_offsets", [1])]
    made = MemoryNode(records=records, features={**FEATURES, "transaction.version": version})
    made.memory_transactions.logs[0] = log
    for number in range(claimed):
        assert made.call(InitProducerIdRequest(transactional_id=None), 5).producer_id == number
    return made


def shown(exchange: dict[str, Any], answer: bytes) -> tuple[Any, ...]:
    api = APIS[ApiKey(int(exchange["request_hex"][:4], 16))]
    version = exchange["version"]
    body = answer[4 + api.response_header_version(version) :]
    return exchange["case"], version, _ordered(wire.decode(api.response, version, body))


def _ordered(response: Any) -> str:
    """Kafka lists the partitions of a transaction by hash where it has an error for each."""
    for result in getattr(response, "results_by_transaction", ()):
        result.topic_results.sort(key=lambda topic: topic.name)
        for topic in result.topic_results:
            topic.results_by_partition.sort(key=lambda each: each.partition_index)
    for topic in getattr(response, "results_by_topic_v3_and_below", ()):
        topic.results_by_partition.sort(key=lambda each: each.partition_index)
    return repr(response)


def values(log: bytes) -> list[tuple[str, int, str]]:
    """What each record says, without times."""
    found = []
    for position, header in iterate_batches(log):
        for each in decode_records(log, position, header):
            keyed = decode_key_value(each, "transaction")
            assert keyed is not None
            key: Any = keyed.key
            value: Any = keyed.value
            value.transaction_last_update_timestamp_ms = 0
            value.transaction_start_timestamp_ms = min(value.transaction_start_timestamp_ms, 0)
            for topic in value.transaction_partitions or ():
                topic.partition_ids.sort()
            (value.transaction_partitions or []).sort(key=lambda topic: topic.topic)
            version = int.from_bytes((each.value or b"")[:2])
            found.append((key.transactional_id, version, repr(value)))
    return found


def replay(made: MemoryNode, name: str) -> None:
    for number, exchange in enumerate(exchanges(name)):
        answer = made.answer(bytes.fromhex(exchange["request_hex"]))
        assert answer is not None
        assert shown(exchange, answer) == shown(exchange, bytes.fromhex(exchange["response_hex"])), number


def kafka_s_log(name: str) -> bytes:
    return gzip.decompress((DATA / f"kafka_{name}.log.gz").read_bytes())


@pytest.mark.parametrize("version", [0, 1, 2])
def test_we_answer_and_write_as_kafka_did(version: int) -> None:
    log = MemoryLog()
    replay(node(version, log), f"tv{version}")
    assert values(b"".join(log.batches)) == values(kafka_s_log(f"tv{version}"))


def test_we_go_on_to_new_producer_ids_as_kafka_did() -> None:
    """Four transactional ids shortly before their epochs are used up."""
    began = {"a": (1, 32763), "b": (3, 32762), "c": (4, 32761), "d": (2, 32760)}
    log = MemoryLog(_batch_of(name, *producer) for name, producer in began.items())
    replay(node(2, log, claimed=5), "overflow")
    before = len(began)
    assert values(b"".join(log.batches))[before:] == values(kafka_s_log("overflow"))[before:]


def _batch_of(name: str, producer_id: int, epoch: int) -> bytes:
    at = Transaction(name, producer_id, producer_id, -1, epoch, 60_000, STATE.EMPTY, frozenset(), -1, 0, 0)
    (key, value), version = record(at, 2)
    assert value is not None
    return build_batch([Record(0, 0, wire.encode_record(key, 0), wire.encode_record(value, version))])
