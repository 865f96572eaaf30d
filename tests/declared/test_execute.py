"""Changes are done in their order, up to the first that fails, whatever the failure."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.client.admin.part import TimedOutError
from barnabas.client.admin.reassignments import Reassignments
from barnabas.client.cluster import Cluster
from barnabas.declared.difference import (
    AddPartitions,
    Change,
    ChangeReplicationFactor,
    CreateTopic,
    DeleteTopic,
    SetUser,
)
from barnabas.declared.document import DeclaredTopic, Password
from barnabas.declared.execute import Outcome, execute, read_passwords
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError
from tests.client.admin.absent_brokers import create_topic, with_absent_brokers

NEW = CreateTopic(DeclaredTopic("new", 1))


async def outcomes(cluster: Cluster, *changes: Change, validate_only: bool = False) -> list[Outcome]:
    return [outcome async for outcome in execute(cluster, changes, {}, validate_only=validate_only)]


def test_a_change_after_one_that_failed_is_not_tried() -> None:
    async def main() -> None:
        async with Broker() as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            found = await outcomes(cluster, NEW, AddPartitions("missing", 1, 2), DeleteTopic("new", 1))
            assert [(each.change.name, each.is_done) for each in found] == [("new", True), ("missing", False)]
            assert isinstance(found[1].error, KafkaError)
            assert found[1].error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert "new" in (await cluster.metadata(None)).topics

    asyncio.run(main())


def test_validating_does_nothing_and_says_all_that_would_be_refused() -> None:
    async def main() -> None:
        async with Broker() as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            odd = CreateTopic(DeclaredTopic("odd", configs={"retention.ms": "soon"}))
            changes = (odd, AddPartitions("missing", 1, 2), DeleteTopic("missing", 1))
            found = await outcomes(cluster, NEW, *changes, validate_only=True)
            assert [(each.change.name, each.error is None) for each in found] == [
                ("new", True),
                ("odd", False),
                ("missing", False),
            ]
            assert not (await cluster.metadata(None)).topics

    asyncio.run(main())


def test_a_cluster_that_has_gone_is_the_failure_of_the_change() -> None:
    async def main() -> None:
        async with Broker() as broker:
            settings = {"bootstrap.servers": broker.bootstrap_servers, "default.api.timeout.ms": 300}
            async with Cluster({**settings, "request.timeout.ms": 200}) as cluster:
                await broker.stop()
                found = await outcomes(cluster, NEW, DeleteTopic("new", 1))
                assert [(each.change, each.is_done) for each in found] == [(NEW, False)]
                assert isinstance(found[0].error, OSError | KafkaError)

    asyncio.run(main())


def test_partitions_added_a_moment_ago_get_the_declared_replication_factor() -> None:
    async def main(broker: Broker) -> None:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            change = ChangeReplicationFactor("t", (1,), 2, {0: (1, 2)})
            assert [each.error for each in await outcomes(cluster, AddPartitions("t", 1, 3), change)] == [None, None]
            moves = await Reassignments(cluster).list_partition_reassignments()
            assert moves["t", 0].target_replicas == (1, 2)
            targets = [move.target_replicas for _, move in sorted(moves.items())]
            assert [len(each) for each in targets] == [2, 2, 2]
            assert {each for target in targets for each in target} == {1, 2, 3}, "broker 3 has the fewest"

    with with_absent_brokers({1: None, 2: None, 3: None}) as broker:
        create_topic(broker, "t", [1])
        asyncio.run(main(broker))


@pytest.mark.parametrize(("happened", "is_done"), [(True, True), (False, False), (None, False)])
def test_what_was_not_confirmed_and_is_there_counts_as_done(happened: bool | None, is_done: bool) -> None:
    assert Outcome(NEW, TimedOutError("creating it", happened)).is_done is is_done


def test_passwords_come_from_variables_and_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    (tmp_path / "empty").write_text("\n")

    def read(**password: str) -> str:
        change = SetUser("u", "SCRAM-SHA-512", None, 4096, Password(**password, folder=str(tmp_path)))
        return read_passwords([NEW, change], {"A": "from a variable", "B": ""})[change.password]

    assert (read(env="A"), read(file="secret")) == ("from a variable", "from a file")
    for password in ({"env": "B"}, {"env": "C"}, {"file": "empty"}, {"file": "none"}):
        with pytest.raises(ValueError, match=r"^the password of user u: "):
            read(**password)
