"""Reassignments and elections through the client: begun, listed, cancelled, refused; answers that never come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from barnabas.client.admin.elections import Elections, ElectionType
from barnabas.client.admin.part import TimedOutError, checked
from barnabas.client.admin.reassignments import PartitionReassignment, Reassignments
from barnabas.client.cluster import Cluster
from barnabas.client.errors import UnsupportedByNodeError
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.elect_leaders import ElectLeadersResponse
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from barnabas.wire.messages.metadata import MetadataResponse
from tests.client.admin.absent_brokers import create_topic, with_absent_brokers
from tests.client.admin.guarded import guarded_broker
from tests.client.peers import Asked, answering, one_broker, peer, ranges

T = TypeVar("T")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with with_absent_brokers({1: None, 2: None, 3: None}) as running:
        yield running


def ask(address: str, question: Callable[[Cluster], Awaitable[T]], **settings: Any) -> T:
    async def main() -> T:
        async with Cluster({"bootstrap.servers": address, **settings}) as cluster:
            return await question(cluster)

    return asyncio.run(main())


def _code(result: object) -> ErrorCode:
    assert isinstance(result, KafkaError), result
    return result.code


def test_a_reassignment_begins_and_is_listed_and_cancelled(broker: Broker) -> None:
    create_topic(broker, "began", [1, 2], [1, 2])

    async def work(cluster: Cluster) -> None:
        part = Reassignments(cluster)
        checked(await part.alter_partition_reassignments({("began", 0): (3, 1), ("began", 1): (1, 2, 3)}))
        ongoing = await part.list_partition_reassignments([("began", 0), ("began", 1), ("missing", 0)])
        assert ongoing == {
            ("began", 0): PartitionReassignment((3, 1, 2), (3,), (2,)),
            ("began", 1): PartitionReassignment((1, 2, 3), (3,), ()),
        }
        assert ongoing["began", 0].target_replicas == (3, 1)
        assert set(ongoing) <= set(await part.list_partition_reassignments())
        checked(await part.alter_partition_reassignments({("began", 0): None, ("began", 1): None}))
        assert await part.list_partition_reassignments(ongoing) == {}
        assert (await cluster.metadata(["began"])).topics["began"].partitions[0].replicas == (1, 2)

    ask(broker.bootstrap_servers, work)


def test_each_partition_is_refused_for_itself(broker: Broker) -> None:
    create_topic(broker, "refused", [1], [1], [1], [1])
    targets = {
        ("refused", 0): (1,),
        ("refused", 1): (1, 1),
        ("refused", 2): (9,),
        ("refused", 3): None,
        ("refused", 8): (1,),
        ("missing", 0): (1,),
    }
    results = ask(
        broker.bootstrap_servers, lambda cluster: Reassignments(cluster).alter_partition_reassignments(targets)
    )
    assert results.pop(("refused", 0)) is None
    assert [_code(result) for result in results.values()] == [
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_another_number_of_replicas_can_be_forbidden(broker: Broker) -> None:
    create_topic(broker, "kept", [1])
    results = ask(
        broker.bootstrap_servers,
        lambda cluster: Reassignments(cluster).alter_partition_reassignments(
            {("kept", 0): (1, 2)}, allow_replication_factor_change=False
        ),
    )
    assert _code(results["kept", 0]) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_the_preferred_replica_is_elected_and_only_where_it_does_not_lead(broker: Broker) -> None:
    create_topic(broker, "led", [2, 1], [1, 2])

    async def work(cluster: Cluster) -> None:
        part = Elections(cluster)
        keys = [("led", 0), ("led", 1), ("led", 5), ("missing", 0)]
        unneeded = await part.elect_leaders(ElectionType.PREFERRED, keys)
        assert [_code(each) for each in unneeded.values()] == [
            ErrorCode.ELECTION_NOT_NEEDED,
            ErrorCode.ELECTION_NOT_NEEDED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        checked(await Reassignments(cluster).alter_partition_reassignments({("led", 0): (1, 2)}))
        assert (await cluster.metadata(["led"])).topics["led"].partitions[0].leader_id == 2
        assert (await part.elect_leaders())["led", 0] is None
        assert (await cluster.metadata(["led"])).topics["led"].partitions[0].leader_id == 1
        assert _code((await part.elect_leaders(ElectionType.UNCLEAN, [("led", 0)]))["led", 0]) is (
            ErrorCode.ELECTION_NOT_NEEDED
        )
        assert await part.elect_leaders(ElectionType.PREFERRED, []) == {}

    ask(broker.bootstrap_servers, work)


def test_whoever_may_not_is_told_so() -> None:
    with guarded_broker() as guarded:
        for work in (
            lambda cluster: Reassignments(cluster).alter_partition_reassignments({("secret", 0): (1,)}),
            lambda cluster: Reassignments(cluster).list_partition_reassignments(),
            lambda cluster: Elections(cluster).elect_leaders(),
        ):
            with pytest.raises(KafkaError) as error:
                ask(guarded.bootstrap_servers, work)
            assert error.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def ask_peer(work: Callable[[Cluster], Awaitable[T]], answer: Callable[[Asked], bytes], **versions: Any) -> T:
    """A node that answers as it is told, and stays silent where that is nothing."""

    async def main() -> T:
        port = [0]

        def reply(asked: Asked) -> bytes:
            if asked.name == "ApiVersions":
                return asked.answer(ranges(Metadata=(0, 9), **versions))
            if asked.name == "Metadata":
                of = MetadataResponse.MetadataResponseTopic
                row = MetadataResponse.MetadataResponsePartition(
                    partition_index=0, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1, 2]
                )
                topics = [of(name=each.name, partitions=[row]) for each in asked.request.topics or ()]
                return asked.answer(one_broker(port[0], *topics))
            return answer(asked)

        async with peer(answering(reply)) as port[0]:
            settings = {
                "bootstrap.servers": f"127.0.0.1:{port[0]}",
                "default.api.timeout.ms": 400,
                "request.timeout.ms": 200,
            }
            async with Cluster(settings) as cluster:
                return await work(cluster)

    return asyncio.run(main())


def test_after_an_answer_that_never_came_the_client_looks_whether_it_happened() -> None:
    targets = {("there", 0): (1, 2), ("other", 0): (2, 1)}

    def answer(asked: Asked) -> bytes:
        if asked.name == "ListPartitionReassignments":
            return asked.answer(ListPartitionReassignmentsResponse())
        return b""

    results = ask_peer(
        lambda cluster: Reassignments(cluster).alter_partition_reassignments(targets),
        answer,
        AlterPartitionReassignments=(0, 1),
        ListPartitionReassignments=(0, 0),
    )
    there, other = results.values()
    assert isinstance(there, TimedOutError)
    assert there.happened is True
    assert isinstance(other, TimedOutError)
    assert other.happened is False


def test_after_an_election_that_was_not_confirmed_the_client_looks_who_leads() -> None:
    def answer(asked: Asked) -> bytes:
        of = ElectLeadersResponse
        rows = [of.PartitionResult(partition_id=0, error_code=ErrorCode.REQUEST_TIMED_OUT)]
        return asked.answer(of(replica_election_results=[of.ReplicaElectionResult(topic="t", partition_result=rows)]))

    results = ask_peer(
        lambda cluster: Elections(cluster).elect_leaders(ElectionType.PREFERRED, [("t", 0)]),
        answer,
        ElectLeaders=(0, 2),
    )
    assert isinstance(results["t", 0], TimedOutError)
    assert results["t", 0].happened is True


def test_what_an_old_broker_cannot_do_is_named() -> None:
    old = {"ElectLeaders": (0, 0), "AlterPartitionReassignments": (0, 0)}
    with pytest.raises(UnsupportedByNodeError, match="unclean elections"):
        ask_peer(lambda cluster: Elections(cluster).elect_leaders(ElectionType.UNCLEAN), lambda asked: b"", **old)
    with pytest.raises(UnsupportedByNodeError, match="allow_replication_factor_change=False"):
        ask_peer(
            lambda cluster: Reassignments(cluster).alter_partition_reassignments(
                {("t", 0): (1,)}, allow_replication_factor_change=False
            ),
            lambda asked: b"",
            **old,
        )
