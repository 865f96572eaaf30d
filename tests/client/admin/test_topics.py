"""`Topics` against a node of barnabas, and against scripted nodes that are old, or late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.client import CallTimeoutError, Cluster, UnsupportedByNodeError
from barnabas.client.admin.part import TimedOutError, checked
from barnabas.client.admin.topics import NewPartitions, NewTopic, TopicDescription, Topics
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.messages.create_partitions import CreatePartitionsResponse
from barnabas.wire.messages.create_topics import CreateTopicsResponse
from barnabas.wire.messages.delete_topics import DeleteTopicsResponse
from barnabas.wire.messages.metadata import MetadataResponse
from tests.client.peers import Asked, one_broker, peer, ranges, read_request

NOWHERE = Uuid(b"\x07" * 16)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"auto.create.topics.enable": False}) as broker:
        yield broker


def run(broker: Broker, scenario: Callable[[Topics], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            await scenario(Topics(cluster))

    asyncio.run(main())


def code_of(result: object) -> ErrorCode:
    assert isinstance(result, KafkaError), result
    return result.code


def test_a_topic_is_created_described_by_name_and_id_and_deleted(broker: Broker) -> None:
    async def scenario(topics: Topics) -> None:
        new = NewTopic("life", partitions=3, replication_factor=1, configs={"retention.ms": "1000"})
        created = checked(await topics.create_topics([new]))["life"]
        assert (created.num_partitions, created.replication_factor) == (3, 1)
        assert created.configs is not None
        assert created.configs["retention.ms"].value == "1000"
        found = checked(await topics.describe_topics(["life", created.topic_id]))
        assert found["life"] == found[created.topic_id]
        assert [each.partition_index for each in found["life"].partitions] == [0, 1, 2]
        assert found["life"].partitions[0].replicas == found["life"].partitions[0].isr == (1,)
        listed = {topic.name: topic for topic in await topics.list_topics()}
        assert (listed["life"].topic_id, listed["life"].num_partitions) == (created.topic_id, 3)
        assert await topics.delete_topics([created.topic_id]) == {created.topic_id: None}
        gone = await topics.describe_topics(["life", created.topic_id])
        assert code_of(gone["life"]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code_of(gone[created.topic_id]) == ErrorCode.UNKNOWN_TOPIC_ID

    run(broker, scenario)


def test_numbers_that_are_not_given_are_the_clusters_defaults(broker: Broker) -> None:
    async def scenario(topics: Topics) -> None:
        created = checked(await topics.create_topics([NewTopic("by_default")]))["by_default"]
        assert (created.num_partitions, created.replication_factor) == (1, 1)

    run(broker, scenario)


def test_the_failure_of_one_topic_is_a_value_beside_the_success_of_another(broker: Broker) -> None:
    async def scenario(topics: Topics) -> None:
        results = await topics.create_topics(
            [
                NewTopic("good"),
                NewTopic("bad!name"),
                NewTopic("wide", 1, 9),
                NewTopic("odd", configs={"retention.ms": "soon"}),
            ]
        )
        assert not isinstance(results["good"], KafkaError)
        assert code_of(results["bad!name"]) == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert code_of(results["wide"]) == ErrorCode.INVALID_REPLICATION_FACTOR
        assert code_of(results["odd"]) == ErrorCode.INVALID_CONFIG
        again = await topics.create_topics([NewTopic("good")])
        assert code_of(again["good"]) == ErrorCode.TOPIC_ALREADY_EXISTS
        deleted = await topics.delete_topics(["good", "never_there", NOWHERE])
        assert deleted["good"] is None
        assert code_of(deleted["never_there"]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code_of(deleted[NOWHERE]) == ErrorCode.UNKNOWN_TOPIC_ID

    run(broker, scenario)


def test_validating_creates_nothing(broker: Broker) -> None:
    async def scenario(topics: Topics) -> None:
        would = checked(await topics.create_topics([NewTopic("validated", 7)], validate_only=True))["validated"]
        assert would.num_partitions == 7
        assert "validated" not in {topic.name for topic in await topics.list_topics()}

    run(broker, scenario)


def test_replicas_are_placed_as_they_are_assigned(broker: Broker) -> None:
    async def scenario(topics: Topics) -> None:
        created = checked(await topics.create_topics([NewTopic("placed", assignments=[[1], [1]])]))
        assert created["placed"].num_partitions == 2
        refused = await topics.create_topics([NewTopic("misplaced", assignments=[[77]])])
        assert code_of(refused["misplaced"]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT

    run(broker, scenario)


def test_partitions_are_added_and_never_taken_away(broker: Broker) -> None:
    async def scenario(topics: Topics) -> None:
        checked(await topics.create_topics([NewTopic("grown", 2), NewTopic("as_it_was", 2)]))
        validated = await topics.create_partitions({"grown": 4}, validate_only=True)
        assert validated == {"grown": None}
        results = await topics.create_partitions({"grown": NewPartitions(3, [[1]]), "as_it_was": 1, "nowhere": 2})
        assert results["grown"] is None
        assert code_of(results["as_it_was"]) == ErrorCode.INVALID_PARTITIONS
        assert code_of(results["nowhere"]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        found = checked(await topics.describe_topics(["grown", "as_it_was"]))
        assert [len(found[name].partitions) for name in ("grown", "as_it_was")] == [3, 2]

    run(broker, scenario)


@pytest.mark.parametrize("limit", [1, 3, 4, 2000])
def test_pages_are_joined_into_whole_topics(broker: Broker, limit: int) -> None:
    sizes = {f"paged_{limit}_{number}": number for number in (1, 3, 5)}

    async def scenario(topics: Topics) -> None:
        unasked = NewTopic(f"unpaged_{limit}", 1)
        checked(await topics.create_topics([unasked, *(NewTopic(name, count) for name, count in sizes.items())]))
        wanted = [*sizes, "absent", "paged_absent"]
        pages = topics.describe_topic_partitions(wanted, response_partition_limit=limit)
        found = {name: topic async for name, topic in pages}
        assert found.keys() == set(wanted)
        assert code_of(found["absent"]) == code_of(found["paged_absent"]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for name, count in sizes.items():
            topic = found[name]
            assert isinstance(topic, TopicDescription)
            assert [each.partition_index for each in topic.partitions] == list(range(count))
            assert topic.partitions[0].leader_id == 1
        everything = [name async for name, _ in topics.describe_topic_partitions(response_partition_limit=limit)]
        assert everything == sorted(everything)
        assert set(sizes) < set(everything)
        assert [name async for name, _ in topics.describe_topic_partitions([])] == []

    run(broker, scenario)


def test_what_was_asked_for_is_split_so_that_a_controller_takes_it(broker: Broker) -> None:
    async def scenario(topics: Topics) -> None:
        names = [f"many_{number}" for number in range(12)]
        results = checked(await topics.create_topics([NewTopic(name, 1000) for name in names], validate_only=True))
        assert list(results) == names

    run(broker, scenario)


# --- scripted nodes

Answer = Callable[[Asked], Message]


@asynccontextmanager
async def scripted(answer: Answer, **versions: tuple[int, int]) -> AsyncIterator[Topics]:
    """A node that serves these versions; Metadata is answered with what `answer` has for it, if it has."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked = await read_request(reader)
            if asked.name == "ApiVersions":
                response: Message = ranges(Metadata=(0, 12), **versions)
            elif asked.name == "Metadata":
                row = answer(asked)
                rows = row.topics if isinstance(row, MetadataResponse) else []
                response = one_broker(writer.get_extra_info("sockname")[1], *rows)
            else:
                response = answer(asked)
            writer.write(asked.answer(response))

    async with peer(script) as port, Cluster({"bootstrap.servers": f"127.0.0.1:{port}"}) as cluster:
        yield Topics(cluster)


def a_topic(name: str, partitions: int = 1) -> MetadataResponse.MetadataResponseTopic:
    row = MetadataResponse.MetadataResponsePartition
    return MetadataResponse.MetadataResponseTopic(
        name=name,
        partitions=[
            row(partition_index=number, leader_id=1, replica_nodes=[1], isr_nodes=[1]) for number in range(partitions)
        ],
    )


def described(asked: Asked, *there: MetadataResponse.MetadataResponseTopic) -> MetadataResponse:
    names = None if asked.request.topics is None else {row.name for row in asked.request.topics}
    return MetadataResponse(topics=[topic for topic in there if names is None or topic.name in names])


def go(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    asyncio.run(main())


def test_a_broker_without_pages_is_asked_for_metadata() -> None:
    async def scenario() -> None:
        async with scripted(lambda asked: described(asked, a_topic("a", 2), a_topic("b"))) as topics:
            found = {name: topic async for name, topic in topics.describe_topic_partitions(["a", "c"])}
            assert isinstance(found["a"], TopicDescription)
            assert [each.eligible_leader_replicas for each in found["a"].partitions] == [None, None]
            assert code_of(found["c"]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert [name async for name, _ in topics.describe_topic_partitions()] == ["a", "b"]

    go(scenario)


def test_an_old_broker_is_told_names_and_refused_ids() -> None:
    deleted: list[str] = []

    def answer(asked: Asked) -> Message:
        if asked.name == "Metadata":
            return described(asked)
        deleted.extend(asked.request.topic_names)
        return DeleteTopicsResponse(responses=[DeleteTopicsResponse.DeletableTopicResult(name="a")])

    async def scenario() -> None:
        async with scripted(answer, DeleteTopics=(0, 3), CreateTopics=(0, 3)) as topics:
            assert await topics.delete_topics(["a"]) == {"a": None}
            assert deleted == ["a"]
            with pytest.raises(UnsupportedByNodeError, match="deleting topics by id needs version 6"):
                await topics.delete_topics([NOWHERE])
            with pytest.raises(
                UnsupportedByNodeError, match="default numbers of partitions and replicas needs version 4"
            ):
                await topics.create_topics([NewTopic("a")])

    go(scenario)


@pytest.mark.parametrize("happened", [True, False])
def test_a_change_that_was_not_confirmed_is_looked_after(happened: bool) -> None:
    late = int(ErrorCode.REQUEST_TIMED_OUT)

    def answer(asked: Asked) -> Message:
        match asked.name:
            case "CreateTopics":
                row = CreateTopicsResponse.CreatableTopicResult(name="new", error_code=late, error_message=None)
                return CreateTopicsResponse(topics=[row])
            case "DeleteTopics":
                gone = DeleteTopicsResponse.DeletableTopicResult(name="old", error_code=late)
                return DeleteTopicsResponse(responses=[gone])
            case "CreatePartitions":
                grown = CreatePartitionsResponse.CreatePartitionsTopicResult(name="grown", error_code=late)
                return CreatePartitionsResponse(results=[grown])
            case _:
                there = [a_topic("new"), a_topic("grown", 3)] if happened else [a_topic("old"), a_topic("grown", 2)]
                return described(asked, *there)

    async def scenario() -> None:
        served = {"CreateTopics": (0, 7), "DeleteTopics": (0, 6), "CreatePartitions": (0, 3)}
        async with scripted(answer, **served) as topics:
            results: list[object] = [
                (await topics.create_topics([NewTopic("new", 1, 1)]))["new"],
                (await topics.delete_topics(["old"]))["old"],
                (await topics.create_partitions({"grown": 3}))["grown"],
            ]
            for result in results:
                assert isinstance(result, TimedOutError)
                assert result.happened is happened

    go(scenario)


def test_a_node_that_does_not_answer_is_a_timeout_for_a_question() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def scenario() -> None:
        async with peer(silent) as port:
            settings = {"bootstrap.servers": f"127.0.0.1:{port}", "default.api.timeout.ms": 200}
            with pytest.raises(CallTimeoutError):
                async with Cluster(settings) as cluster:
                    await Topics(cluster).list_topics()

    go(scenario)
