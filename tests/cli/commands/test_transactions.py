"""`barnabas transactions` and `barnabas producers` against a node."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from tests.client.admin.group_scenes import WAIT_S, WITHOUT_VERIFICATION, hang, transaction
from tests.command_line import Command


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    topics = {"paid": 2, "hung": 2, "quiet": 1, "fenced": 1}
    with Broker(topics, config=WITHOUT_VERIFICATION) as running:
        yield running


run = Command()
rows = run.rows


def test_an_open_transaction_is_listed_and_described(broker: Broker) -> None:
    before_ms = int(time.time() * 1000)
    producer = transaction(broker.bootstrap_servers, "pay-1", ("paid", 0), ("paid", 1))
    (listed,) = rows(broker, "transactions", "list", "--state", "ongoing", "--transactional-id-pattern", "pay-.*")
    assert (listed["transactionalId"], listed["coordinatorId"], listed["transactionState"]) == ("pay-1", 1, "Ongoing")
    assert rows(broker, "transactions", "list", "--longer-than", "1h") == []
    (long,) = rows(broker, "transactions", "list", "--longer-than", "1ms", "--transactional-id-pattern", "pay-.*")
    assert before_ms + long["durationMs"] <= time.time() * 1000
    assert before_ms <= long["transactionStartTimeMs"]
    assert "DURATION" in run(broker, "transactions", "list", "--longer-than", "1ms", code=0).stdout
    (described,) = rows(broker, "transactions", "describe", "pay-1")
    assert sorted(described["topicPartitions"]) == ["paid-0", "paid-1"]
    assert described["topics"] == [{"topic": "paid", "partitions": [0, 1]}]
    assert described["durationMs"] >= 0
    assert before_ms + described["durationMs"] <= time.time() * 1000
    open_ones = rows(broker, "producers", "list", "paid", "--open")
    assert [row["partition"] for row in open_ones] == [0, 1]
    assert {row["producerId"] for row in open_ones} == {listed["producerId"]}
    producer.commit_transaction(WAIT_S)
    (described,) = rows(broker, "transactions", "describe", "pay-1")
    assert (described["topicPartitions"], described["durationMs"]) == ([], None)
    assert len(rows(broker, "producers", "list", "paid", "--partition", "1")) == 1
    assert rows(broker, "producers", "list", "paid", "--open") == []


def test_what_is_not_there_is_named(broker: Broker) -> None:
    result = run(broker, "transactions", "describe", "nobody")
    assert result.exit_code == 1
    assert "Error: transactional id nobody: TRANSACTIONAL_ID_NOT_FOUND" in result.stderr
    for arguments, says in (
        (["producers", "list", "nowhere"], "topic nowhere: UNKNOWN_TOPIC_OR_PARTITION"),
        (["producers", "list", "quiet", "--partition", "3"], "topic quiet: no partition 3; number of partitions: 1"),
        (["producers", "list", "quiet", "--broker-id", "9"], "broker 9: is not in the cluster; its brokers are 1"),
        (["transactions", "find-hanging", "--topic", "nowhere"], "topic nowhere: UNKNOWN_TOPIC_OR_PARTITION"),
    ):
        result = run(broker, *arguments)
        assert (result.exit_code, says in result.stderr) == (1, True), result.stderr


def test_a_hanging_transaction_is_found_with_exit_code_2_and_aborted(broker: Broker) -> None:
    before_ms = int(time.time() * 1000)
    offset = hang(broker.bootstrap_servers, "hung", 0, producer_id=4711, age_s=3600)
    (found,) = rows(broker, "transactions", "find-hanging", code=2)
    assert (found["topic"], found["partition"], found["producerId"]) == ("hung", 0, 4711)
    assert found["currentTxnStartOffset"] == offset
    assert found["durationMs"] >= 3600_000
    assert before_ms - 3600_001 + found["durationMs"] <= time.time() * 1000
    assert rows(broker, "transactions", "find-hanging", "--topic", "hung", "--partition", "1") == []
    assert rows(broker, "transactions", "find-hanging", "--max-transaction-timeout", "2h") == []
    abort = ("transactions", "abort", "--topic", "hung", "--partition", "0", "--start-offset")
    wrong = run(broker, *abort, offset + 1, "--yes")
    assert (wrong.exit_code, "no open transaction starts at offset" in wrong.stderr) == (1, True)
    dry = run(broker, *abort, offset, "--dry-run")
    assert (dry.exit_code, dry.stderr) == (0, "would abort the transaction of producer 4711 (epoch 0) in hung-0\n")
    unanswered = run(broker, *abort, offset)
    assert (unanswered.exit_code, "standard input is not a terminal" in unanswered.stderr) == (1, True)
    assert len(rows(broker, "transactions", "find-hanging", code=2)) == 1
    done = run(broker, *abort, offset, "--yes", "-o", "json")
    assert json.loads(done.stdout)["producerId"] == 4711
    assert json.loads(done.stdout)["currentTxnStartOffset"] is None
    assert rows(broker, "transactions", "find-hanging") == []


def test_a_hanging_transaction_is_aborted_by_its_producer(broker: Broker) -> None:
    hang(broker.bootstrap_servers, "hung", 1, producer_id=4712, age_s=3600)
    abort = ("transactions", "abort", "--topic", "hung", "--partition", "1", "--producer-id", "4712")
    assert run(broker, *abort, "--yes").exit_code == 2
    assert run(broker, *abort, "--producer-epoch", "0", "--yes").exit_code == 0
    assert rows(broker, "transactions", "find-hanging", "--topic", "hung", "--partition", "1") == []


def test_a_transaction_is_aborted_by_its_id(broker: Broker) -> None:
    producer = transaction(broker.bootstrap_servers, "fenced", ("fenced", 0))
    dry = run(broker, "transactions", "abort", "--transactional-id", "fenced", "--dry-run")
    assert dry.stderr == "would fence the producer of fenced; its transaction is Ongoing\n"
    assert len(rows(broker, "producers", "list", "fenced", "--open")) == 1
    done = run(broker, "transactions", "abort", "--transactional-id", "fenced", "--yes", "-o", "json", code=0)
    assert (done.json["transactionState"], done.json["durationMs"]) == ("Empty", None)
    assert rows(broker, "producers", "list", "fenced", "--open") == []
    missing = run(broker, "transactions", "abort", "--transactional-id", "nobody", "--yes")
    assert "Error: transactional id nobody: TRANSACTIONAL_ID_NOT_FOUND" in missing.stderr
    assert missing.exit_code == 1
    del producer


@pytest.mark.parametrize(
    "arguments",
    [
        ["abort"],
        ["abort", "--topic", "paid"],
        ["abort", "--topic", "paid", "--partition", "0"],
        ["abort", "--transactional-id", "a", "--topic", "paid", "--partition", "0"],
        ["list", "--longer-than", "soon"],
        ["list", "--state", "Sleeping"],
    ],
)
def test_what_does_not_go_together_is_not_understood(broker: Broker, arguments: list[str]) -> None:
    assert run(broker, "transactions", *arguments).exit_code == 2


def test_find_hanging_judges_so_what_it_does_not_understand_is_1(broker: Broker) -> None:
    assert run(broker, "transactions", "find-hanging", "--nonsense").exit_code == 1
