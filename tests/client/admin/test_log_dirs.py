"""Log dirs through the client: what lies where, moves between them, brokers that do not answer, old brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from barnabas.client.admin.log_dirs import LogDirs, Replica, ReplicaLogDir
from barnabas.client.admin.part import checked
from barnabas.client.cluster import Cluster
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsResponse
from tests.client.admin.absent_brokers import create_topic, with_absent_brokers
from tests.client.admin.guarded import guarded_broker
from tests.client.peers import Asked, answering, one_broker, peer, ranges

T = TypeVar("T")


@pytest.fixture(scope="module")
def dirs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root: Path = tmp_path_factory.mktemp("disks")
    return str(root / "first"), str(root / "second")


@pytest.fixture(scope="module")
def broker(dirs: tuple[str, str]) -> Iterator[Broker]:
    with with_absent_brokers({1: None, 2: None}, {"log.dirs": ",".join(dirs)}, refusing={2}) as running:
        yield running


def ask(address: str, question: Callable[[LogDirs], Awaitable[T]], **settings: Any) -> T:
    async def main() -> T:
        async with Cluster({"bootstrap.servers": address, **settings}) as cluster:
            return await question(LogDirs(cluster))

    return asyncio.run(main())


def _code(result: object) -> ErrorCode:
    assert isinstance(result, KafkaError), result
    return result.code


def test_every_log_dir_is_told_with_its_room(broker: Broker, dirs: tuple[str, str]) -> None:
    create_topic(broker, "described", [1], [1], [1], [1])
    found = ask(broker.bootstrap_servers, lambda part: part.describe_log_dirs([1]))
    log_dirs = checked(found)[1]
    assert set(log_dirs) == set(dirs)
    for each in log_dirs.values():
        assert each.error is None
        assert 0 < (each.usable_bytes or 0) <= (each.total_bytes or 0)
    stored = {(r.topic, r.partition) for each in log_dirs.values() for r in each.replicas}
    assert {("described", index) for index in range(4)} <= stored


def test_only_the_partitions_that_are_asked_for_are_told(broker: Broker) -> None:
    create_topic(broker, "some", [1], [1])
    asked = [("some", 1), ("absent", 0)]
    found = ask(broker.bootstrap_servers, lambda part: part.describe_log_dirs([1], partitions=asked))
    assert [(r.topic, r.partition) for each in checked(found)[1].values() for r in each.replicas] == [("some", 1)]


def test_a_broker_that_does_not_answer_is_an_error_of_its_own(broker: Broker) -> None:
    found = ask(broker.bootstrap_servers, lambda part: part.describe_log_dirs([1, 2, 77], timeout_ms=1000))
    assert not isinstance(found[1], KafkaError)
    assert _code(found[2]) is ErrorCode.NETWORK_EXCEPTION
    assert "Connection refused" in str(found[2])
    assert _code(found[77]) is ErrorCode.BROKER_NOT_AVAILABLE


def test_without_a_list_all_brokers_are_asked(broker: Broker) -> None:
    assert set(ask(broker.bootstrap_servers, lambda part: part.describe_log_dirs(timeout_ms=1000))) == {1, 2}


def test_a_replica_moves_to_another_log_dir(broker: Broker, dirs: tuple[str, str]) -> None:
    create_topic(broker, "moving", [1])
    replica = Replica("moving", 0, 1)

    async def move(part: LogDirs) -> tuple[str | None, str]:
        before = checked(await part.describe_replica_log_dirs([replica]))[replica].log_dir
        other = next(each for each in dirs if each != before)
        assert await part.alter_replica_log_dirs({replica: other}) == {replica: None}
        for _ in range(500):
            now = checked(await part.describe_replica_log_dirs([replica]))[replica]
            if now.log_dir == other and now.future_log_dir is None:
                break
            assert now.future_log_dir in (other, None)
            await asyncio.sleep(0.01)
        return now.log_dir, other

    now, other = ask(broker.bootstrap_servers, move)
    assert now == other


def test_what_cannot_move_is_told_for_each_replica(broker: Broker, dirs: tuple[str, str]) -> None:
    create_topic(broker, "staying", [1])
    wanted = {
        Replica("staying", 0, 1): "/no/such/dir",
        Replica("missing", 0, 1): dirs[0],
        Replica("staying", 0, 2): dirs[0],
    }
    results = ask(broker.bootstrap_servers, lambda part: part.alter_replica_log_dirs(wanted, timeout_ms=1000))
    assert [_code(result) for result in results.values()] == [
        ErrorCode.LOG_DIR_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
    ]


def test_a_replica_that_is_nowhere_has_no_log_dir(broker: Broker) -> None:
    replica = Replica("nowhere", 3, 1)
    found = ask(broker.bootstrap_servers, lambda part: part.describe_replica_log_dirs([replica]))
    assert found == {replica: ReplicaLogDir()}


def test_whoever_may_not_is_told_so_for_the_broker() -> None:
    with guarded_broker() as guarded:
        found = ask(guarded.bootstrap_servers, lambda part: part.describe_log_dirs())
        moved = ask(
            guarded.bootstrap_servers, lambda part: part.alter_replica_log_dirs({Replica("secret", 0, 1): "/x"})
        )
    assert _code(found[1]) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert _code(moved[Replica("secret", 0, 1)]) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_an_old_broker_tells_no_room_and_an_empty_answer_is_a_refusal() -> None:
    async def main() -> tuple[Any, Any]:
        rows = [DescribeLogDirsResponse.DescribeLogDirsResult(log_dir="/d")]
        port = [0]

        def answer(asked: Asked) -> bytes:
            if asked.name == "ApiVersions":
                return asked.answer(ranges(Metadata=(0, 5), DescribeLogDirs=(0, 1)))
            if asked.name == "Metadata":
                return asked.answer(one_broker(port[0]))
            assert asked.version == 1
            return asked.answer(DescribeLogDirsResponse(results=rows))

        async with (
            peer(answering(answer)) as port[0],
            Cluster({"bootstrap.servers": f"127.0.0.1:{port[0]}"}) as cluster,
        ):
            told = await LogDirs(cluster).describe_log_dirs()
            rows.clear()
            return told, await LogDirs(cluster).describe_log_dirs()

    told, refused = asyncio.run(main())
    assert told[1]["/d"].usable_bytes is None
    assert _code(refused[1]) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
