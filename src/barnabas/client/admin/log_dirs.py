"""Log dirs of brokers: the replicas in them, and moves of replicas between them (APIs 35 and 34).

Results are by broker; the error of an unreachable broker is its result. Its one rule: a failed log dir is in the result, with
its error. A replica that moves between log dirs of a broker is listed twice, the second time as a future replica.

>>> import asyncio
>>> from barnabas.client.cluster import Cluster
>>> from barnabas.testing import Broker
>>> async def main() -> None:
...     async with Broker({"orders": 2}) as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
...         for log_dir in (await LogDirs(cluster).describe_log_dirs())[1].values():
...             print(log_dir.error, [(each.topic, each.partition, each.size) for each in log_dir.replicas])
>>> asyncio.run(main())
None [('orders', 0, 0), ('orders', 1, 0)]
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from barnabas.client.admin.part import Part, change, failed, pieces
from barnabas.client.errors import CallTimeoutError
from barnabas.client.retry import maybe_done
from barnabas.client.routing import node
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

_MOVES_PER_REQUEST = 1000
_NOT_TOLD = -1


class Replica(NamedTuple):
    """A replica of a partition on a broker."""

    topic: str
    partition: int
    broker_id: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker_id}"


@dataclass(frozen=True, slots=True)
class StoredReplica:
    """A replica in a log dir. The lag of a future replica is relative to the replica that it will replace."""

    topic: str
    partition: int
    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log dir of a broker. Bytes are None before Kafka 3.3."""

    path: str
    error: KafkaError | None
    replicas: tuple[StoredReplica, ...]
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool


@dataclass(frozen=True, slots=True)
class ReplicaLogDir:
    """The log dir of a replica, None if it is in no working one, and the log dir that it is moving to, if any."""

    log_dir: str | None = None
    size: int = 0
    offset_lag: int = _NOT_TOLD
    future_log_dir: str | None = None
    future_size: int = 0
    future_offset_lag: int = _NOT_TOLD


class LogDirs(Part):
    """Log dirs of brokers."""

    async def describe_log_dirs(
        self,
        broker_ids: Iterable[int] | None = None,
        *,
        partitions: Iterable[tuple[str, int]] | None = None,
        timeout_ms: float | None = None,
    ) -> dict[int, dict[str, LogDir] | KafkaError]:
        """Describe the log dirs of these brokers, or of all, by path. Lists these partitions, or all."""
        if broker_ids is None:
            broker_ids = (await self.cluster.refresh(timeout_ms=timeout_ms)).brokers
        ids = list(dict.fromkeys(broker_ids))
        topics = None if partitions is None else _by_topic(partitions)
        found = await asyncio.gather(*(self._describe(each, topics, timeout_ms) for each in ids))
        return dict(zip(ids, found, strict=True))

    async def describe_replica_log_dirs(
        self, replicas: Iterable[Replica], *, timeout_ms: float | None = None
    ) -> dict[Replica, ReplicaLogDir | KafkaError]:
        """Return the log dir of each replica, and the one it is moving to."""
        wanted: dict[int, list[Replica]] = defaultdict(list)
        for replica in dict.fromkeys(replicas):
            wanted[replica.broker_id].append(replica)

        async def look(broker_id: int) -> dict[Replica, ReplicaLogDir | KafkaError]:
            asked = [(each.topic, each.partition) for each in wanted[broker_id]]
            found = (await self.describe_log_dirs([broker_id], partitions=asked, timeout_ms=timeout_ms))[broker_id]
            if isinstance(found, KafkaError):
                return dict.fromkeys(wanted[broker_id], found)
            where = _whereabouts(found)
            return {each: where.get((each.topic, each.partition), ReplicaLogDir()) for each in wanted[broker_id]}

        parts = await asyncio.gather(*map(look, wanted))
        together = {replica: where for part in parts for replica, where in part.items()}
        return {each: together[each] for replicas in wanted.values() for each in replicas}

    async def alter_replica_log_dirs(
        self, assignment: Mapping[Replica, str], *, timeout_ms: float | None = None
    ) -> dict[Replica, KafkaError | None]:
        """Start moving replicas to other log dirs of their brokers, given by absolute path. Does not wait for the copies.

        If a broker does not have the replica yet, the result is REPLICA_NOT_AVAILABLE; it will be created in that log dir.
        """

        async def ask() -> dict[Replica, KafkaError | None]:
            by_broker: dict[int, dict[Replica, str]] = defaultdict(dict)
            for replica, path in assignment.items():
                by_broker[replica.broker_id][replica] = path
            parts = await asyncio.gather(*(self._move(moves, timeout_ms) for moves in by_broker.values()))
            answers = {replica: result for part in parts for replica, result in part.items()}
            return {replica: answers[replica] for replica in assignment}

        async def look(late: list[Replica]) -> dict[Replica, bool]:
            found = await self.describe_replica_log_dirs(late, timeout_ms=timeout_ms)
            return {
                replica: assignment[replica] in (where.log_dir, where.future_log_dir)
                for replica, where in found.items()
                if isinstance(where, ReplicaLogDir)
            }

        return await change(list(assignment), ask, look, lambda replica: f"moving replica {replica}")

    async def _describe(
        self, broker_id: int, topics: dict[str, list[int]] | None, timeout_ms: float | None
    ) -> dict[str, LogDir] | KafkaError:
        of = DescribeLogDirsRequest.DescribableLogDirTopic
        rows = None if topics is None else [of(topic=name, partitions=indexes) for name, indexes in topics.items()]
        try:
            response: DescribeLogDirsResponse = await self.cluster.call(
                DescribeLogDirsRequest(topics=rows), to=node(broker_id), timeout_ms=timeout_ms
            )
        except (KafkaError, CallTimeoutError, OSError) as error:
            return _of_one_broker(error)
        if not response.results:  # the answer of brokers before Kafka 2.8 without authorization
            return KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED.message)
        return {row.log_dir: _log_dir(row) for row in response.results}

    async def _move(self, moves: Mapping[Replica, str], timeout_ms: float | None) -> dict[Replica, KafkaError | None]:
        """Start the moves of one broker."""
        of = AlterReplicaLogDirsRequest
        results: dict[Replica, KafkaError | None] = {}
        for piece in pieces(moves.items(), _MOVES_PER_REQUEST):
            by_path: dict[str, list[tuple[str, int]]] = defaultdict(list)
            for replica, path in piece:
                by_path[path].append((replica.topic, replica.partition))
            dirs = [
                of.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        of.AlterReplicaLogDirTopic(name=name, partitions=indexes)
                        for name, indexes in _by_topic(partitions).items()
                    ],
                )
                for path, partitions in by_path.items()
            ]
            broker_id = piece[0][0].broker_id
            try:
                response = await self.cluster.call(of(dirs=dirs), to=node(broker_id), timeout_ms=timeout_ms)
            except (KafkaError, CallTimeoutError, OSError) as error:
                results |= dict.fromkeys((replica for replica, _ in piece), _of_one_broker(error))
                continue
            results |= {
                Replica(topic.topic_name, row.partition_index, broker_id): failed(row.error_code)
                for topic in response.results
                for row in topic.partitions
            }
        return results


def _by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, index in dict.fromkeys(partitions):
        topics[topic].append(index)
    return topics


def _of_one_broker(error: Exception) -> KafkaError:
    """Return the error of one broker as a result, because the others may answer."""
    if isinstance(error, KafkaError):
        return error
    code = ErrorCode.REQUEST_TIMED_OUT if maybe_done(error) else ErrorCode.NETWORK_EXCEPTION
    return KafkaError(code, str(error) or type(error).__name__)


def _log_dir(row: DescribeLogDirsResponse.DescribeLogDirsResult) -> LogDir:
    return LogDir(
        path=row.log_dir,
        error=failed(row.error_code),
        replicas=tuple(
            StoredReplica(topic.name, each.partition_index, each.partition_size, each.offset_lag, each.is_future_key)
            for topic in row.topics
            for each in topic.partitions
        ),
        total_bytes=None if row.total_bytes == _NOT_TOLD else row.total_bytes,
        usable_bytes=None if row.usable_bytes == _NOT_TOLD else row.usable_bytes,
        is_cordoned=row.is_cordoned,
    )


def _whereabouts(log_dirs: Mapping[str, LogDir]) -> dict[tuple[str, int], ReplicaLogDir]:
    found: dict[tuple[str, int], ReplicaLogDir] = defaultdict(ReplicaLogDir)
    for path, log_dir in log_dirs.items():
        for each in log_dir.replicas:
            key = (each.topic, each.partition)
            if each.is_future:
                found[key] = replace(
                    found[key], future_log_dir=path, future_size=each.size, future_offset_lag=each.offset_lag
                )
            else:
                found[key] = replace(found[key], log_dir=path, size=each.size, offset_lag=each.offset_lag)
    return found
