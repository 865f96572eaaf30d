"""`Transactions` and `Producers` against a node of barnabas, and against scripted nodes that are old."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException

from barnabas.client import Cluster, UnsupportedByNodeError
from barnabas.client.admin.part import checked
from barnabas.client.admin.producers import Producers
from barnabas.client.admin.transactions import ProducerIdAndEpoch, TransactionDescription, Transactions
from barnabas.client.records import TopicPartition
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.list_transactions import ListTransactionsResponse
from tests.client.admin.group_scenes import WAIT_S, WITHOUT_VERIFICATION, hang, transaction
from tests.client.peers import one_broker, peer, ranges, read_request

Scenario = Callable[[Transactions], Coroutine[Any, Any, None]]
PAID_0, PAID_1 = TopicPartition("paid", 0), TopicPartition("paid", 1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"paid": 2, "hung": 2, "ended": 1}, config=WITHOUT_VERIFICATION) as broker:
        yield broker


def run(broker: Broker, scenario: Scenario) -> None:
    async def main() -> None:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            await scenario(Transactions(cluster))

    asyncio.run(main())


def code_of(result: object) -> ErrorCode:
    assert isinstance(result, KafkaError), result
    return result.code


def test_a_transaction_is_listed_and_described_while_it_is_open(broker: Broker) -> None:
    before_ms = int(time.time() * 1000)

    async def opened(transactions: Transactions) -> None:
        listed = {each.transactional_id: each for each in await transactions.list_transactions(states=["Ongoing"])}
        assert (listed["open"].state, listed["open"].coordinator_id) == ("Ongoing", 1)
        results = await transactions.describe_transactions(["open", "nobody"])
        assert code_of(results["nobody"]) == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        found = results["open"]
        assert isinstance(found, TransactionDescription)
        assert set(found.topic_partitions) == {PAID_0, PAID_1}
        assert before_ms <= (found.transaction_start_time_ms or 0) <= time.time() * 1000
        states = checked(await Producers(transactions.cluster).describe_producers([PAID_0, PAID_1]))
        for (state,) in states.values():
            assert (state.producer_id, state.current_txn_start_offset) == (found.producer_id, 0)

    async def ended(transactions: Transactions) -> None:
        found = checked(await transactions.describe_transactions(["open"]))["open"]
        assert (found.topic_partitions, found.state) == ((), "CompleteCommit")
        assert "open" not in {
            each.transactional_id for each in await transactions.list_transactions(states=["Ongoing"])
        }

    producer = transaction(broker.bootstrap_servers, "open", PAID_0, PAID_1)
    run(broker, opened)
    producer.commit_transaction(WAIT_S)
    run(broker, ended)


def test_transactions_are_filtered_by_producer_duration_and_pattern(broker: Broker) -> None:
    async def scenario(transactions: Transactions) -> None:
        ids = checked(await transactions.fence_producers(["by-1", "by-2"]))
        assert all(isinstance(each, ProducerIdAndEpoch) for each in ids.values())
        (found,) = await transactions.list_transactions(producer_ids=[ids["by-2"].producer_id])
        assert found.transactional_id == "by-2"
        matched = await transactions.list_transactions(transactional_id_pattern="by-[0-9]")
        assert sorted(each.transactional_id for each in matched) == ["by-1", "by-2"]
        assert await transactions.list_transactions(transactional_id_pattern="by") == []
        # One that never began counts as having run since 1970, in Kafka as here.
        running = {
            each.transactional_id for each in await transactions.list_transactions(running_longer_than_ms=3_600_000)
        }
        assert {"by-1", "by-2"} <= running
        assert await transactions.list_transactions(running_longer_than_ms=3_600_000, states=["Ongoing"]) == []

    run(broker, scenario)


def test_a_state_that_nobody_knows_is_an_error(broker: Broker) -> None:
    async def scenario(transactions: Transactions) -> None:
        with pytest.raises(KafkaError, match="does not know transaction state Sleeping"):
            await transactions.list_transactions(states=["Sleeping"])

    run(broker, scenario)


def test_a_transaction_that_nobody_will_end_is_found_and_aborted(broker: Broker) -> None:
    offset = hang(broker.bootstrap_servers, "hung", 0, producer_id=4711, age_s=3600)
    hang(broker.bootstrap_servers, "hung", 1, producer_id=4712, age_s=1)

    async def scenario(transactions: Transactions) -> None:
        (found,) = await transactions.find_hanging_transactions(topics=["hung"])
        assert (found.topic, found.partition, found.producer.producer_id) == ("hung", 0, 4711)
        assert found.producer.current_txn_start_offset == offset
        assert [found] == await transactions.find_hanging_transactions()
        assert [found] == await transactions.find_hanging_transactions(broker_id=1)
        younger = await transactions.find_hanging_transactions(topics=["hung"], max_transaction_timeout_ms=0)
        assert {each.partition for each in younger} == {0, 1}
        epoch = found.producer.producer_epoch
        with pytest.raises(KafkaError) as error:
            await transactions.abort_transaction("hung", 0, producer_id=4711, producer_epoch=epoch - 1)
        assert error.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
        await transactions.abort_transaction("hung", 0, producer_id=4711, producer_epoch=epoch)
        assert await transactions.find_hanging_transactions(partitions=[TopicPartition("hung", 0)]) == []

    run(broker, scenario)


def test_a_transaction_that_its_coordinator_knows_does_not_hang(broker: Broker) -> None:
    async def scenario(transactions: Transactions) -> None:
        assert await transactions.find_hanging_transactions(topics=["ended"], max_transaction_timeout_ms=-1) == []
        await transactions.force_terminate_transaction("known")
        found = checked(await transactions.describe_transactions(["known"]))["known"]
        assert (found.state, found.topic_partitions) == ("Empty", ())

    producer = transaction(broker.bootstrap_servers, "known", ("ended", 0))
    run(broker, scenario)
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_S)


def test_topics_and_partitions_that_are_not_there_are_errors(broker: Broker) -> None:
    async def scenario(transactions: Transactions) -> None:
        with pytest.raises(KafkaError, match="nowhere") as error:
            await transactions.find_hanging_transactions(topics=["nowhere"])
        assert error.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        absent = [TopicPartition("paid", 9), TopicPartition("nowhere", 0)]
        results = await Producers(transactions.cluster).describe_producers([PAID_0, *absent])
        assert isinstance(results[PAID_0], list)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [code_of(results[each]) for each in absent] == [missing] * 2

    run(broker, scenario)


def test_an_old_broker_is_asked_without_a_pattern() -> None:
    row = ListTransactionsResponse.TransactionState

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked = await read_request(reader)
            response: Message
            if asked.name == "ApiVersions":
                response = ranges(Metadata=(0, 12), ListTransactions=(0, 0))
            elif asked.name == "Metadata":
                response = one_broker(writer.get_extra_info("sockname")[1])
            else:
                names = ("pay-1", "pay-22", "other")
                response = ListTransactionsResponse(transaction_states=[row(transactional_id=name) for name in names])
            writer.write(asked.answer(response))

    async def main() -> None:
        async with peer(script) as port, Cluster({"bootstrap.servers": f"127.0.0.1:{port}"}) as cluster:
            found = await Transactions(cluster).list_transactions(transactional_id_pattern="pay-[0-9]")
            assert [each.transactional_id for each in found] == ["pay-1"]
            with pytest.raises(UnsupportedByNodeError, match="filtering transactions needs version 1"):
                await Transactions(cluster).list_transactions(running_longer_than_ms=5)

    asyncio.run(main())
