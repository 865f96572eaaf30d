"""The metadata quorum: DescribeQuorum (55), AddRaftVoter (80), RemoveRaftVoter (81), UpdateRaftVoter (82).

Brokers forward these to the leader, except UpdateRaftVoter, which only controllers accept (`bootstrap.controllers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.client.admin.part import Part, change_one, failed
from barnabas.client.routing import controller
from barnabas.config.endpoints import address_text
from barnabas.config.internal_topics import CLUSTER_METADATA_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from barnabas.wire.primitives import Uuid

_UNKNOWN = -1


class RaftEndpoint(NamedTuple):
    """An endpoint of a controller, with the name of its listener."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{address_text(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A voter or an observer, as known to the leader. Times are of the leader's clock, None if unknown."""

    replica_id: int
    replica_directory_id: Uuid
    log_end_offset: int
    last_fetch_timestamp_ms: int | None = None
    last_caught_up_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class QuorumInfo:
    """The quorum, as known to its leader. `nodes` has the endpoints of voters, since Kafka 3.9."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...] = ()
    nodes: Mapping[int, tuple[RaftEndpoint, ...]] = field(default_factory=dict)

    @property
    def leader(self) -> ReplicaState | None:
        """The state of the leader, or None if it is no longer a voter."""
        return next((voter for voter in self.voters if voter.replica_id == self.leader_id), None)

    def voter(self, replica_id: int, directory_id: Uuid | None = None) -> ReplicaState | None:
        """Return a voter by id, and by directory id if given, or None."""
        for each in self.voters:
            if each.replica_id == replica_id and directory_id in (None, each.replica_directory_id):
                return each
        return None


class Quorum(Part):
    """The metadata quorum.

    >>> import asyncio
    >>> from barnabas.client import Cluster
    >>> from barnabas.testing import Broker
    >>> async def main() -> None:
    ...     async with Broker() as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
    ...         info = await Quorum(cluster).describe_quorum()
    ...         print(info.leader_id, [voter.replica_id for voter in info.voters])
    >>> asyncio.run(main())
    1 [1]
    """

    async def describe_quorum(self, *, timeout_ms: float | None = None) -> QuorumInfo:
        """Return the leader, the voters and the observers, with their end offsets."""
        partition = DescribeQuorumRequest.PartitionData(partition_index=0)
        topic = DescribeQuorumRequest.TopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[partition])
        response: DescribeQuorumResponse = await self.cluster.call(
            DescribeQuorumRequest(topics=[topic]), controller(), feature="describing the quorum", timeout_ms=timeout_ms
        )
        rows = [row for each in response.topics if each.topic_name == CLUSTER_METADATA_TOPIC for row in each.partitions]
        if not rows:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the response to DescribeQuorum has no row for the quorum")
        if (error := failed(rows[0].error_code, rows[0].error_message)) is not None:
            raise error
        return _info(rows[0], response.nodes)

    async def add_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: Uuid,
        endpoints: Sequence[RaftEndpoint],
        *,
        cluster_id: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Make an observer a voter. Raises `KafkaError`, such as DUPLICATE_VOTER."""
        request = AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=int(timeout_ms or self.cluster.settings.get_int("request.timeout.ms")),
            voter_id=voter_id,
            voter_directory_id=voter_directory_id,
            listeners=[AddRaftVoterRequest.Listener(name=n, host=h, port=p) for n, h, p in endpoints],
        )

        async def ask() -> None:
            await self.cluster.call(request, controller(), feature="adding a voter", timeout_ms=timeout_ms)

        async def look() -> bool:
            info = await self.describe_quorum(timeout_ms=timeout_ms)
            return info.voter(voter_id, voter_directory_id) is not None

        await change_one(ask, look, f"adding voter {voter_id}")

    async def remove_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: Uuid,
        *,
        cluster_id: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Remove a voter; it becomes an observer. Raises `KafkaError`, such as VOTER_NOT_FOUND."""
        request = RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=voter_directory_id
        )

        async def ask() -> None:
            await self.cluster.call(request, controller(), feature="removing a voter", timeout_ms=timeout_ms)

        async def look() -> bool:
            info = await self.describe_quorum(timeout_ms=timeout_ms)
            return info.voter(voter_id, voter_directory_id) is None

        await change_one(ask, look, f"removing voter {voter_id}")

    async def update_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: Uuid,
        endpoints: Sequence[RaftEndpoint],
        *,
        kraft_versions: tuple[int, int] = (0, 1),
        cluster_id: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Update the endpoints of a voter and its supported kraft.versions. Voters do this themselves when they start."""
        info = await self.describe_quorum(timeout_ms=timeout_ms)
        first, last = kraft_versions
        request = UpdateRaftVoterRequest(
            cluster_id=cluster_id,
            current_leader_epoch=info.leader_epoch,
            voter_id=voter_id,
            voter_directory_id=voter_directory_id,
            listeners=[UpdateRaftVoterRequest.Listener(name=n, host=h, port=p) for n, h, p in endpoints],
            k_raft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
                min_supported_version=first, max_supported_version=last
            ),
        )

        async def ask() -> None:
            feature = "updating a voter through controllers (bootstrap.controllers)"
            await self.cluster.call(request, controller(), feature=feature, timeout_ms=timeout_ms)

        async def look() -> bool:
            nodes = (await self.describe_quorum(timeout_ms=timeout_ms)).nodes
            return set(nodes.get(voter_id, ())) == set(endpoints)

        await change_one(ask, look, f"updating voter {voter_id}")


def _info(row: DescribeQuorumResponse.PartitionData, nodes: Iterable[DescribeQuorumResponse.Node]) -> QuorumInfo:
    return QuorumInfo(
        leader_id=row.leader_id,
        leader_epoch=row.leader_epoch,
        high_watermark=row.high_watermark,
        voters=tuple(map(_state, row.current_voters)),
        observers=tuple(map(_state, row.observers)),
        nodes={each.node_id: tuple(RaftEndpoint(e.name, e.host, e.port) for e in each.listeners) for each in nodes},
    )


def _state(row: DescribeQuorumResponse.ReplicaState) -> ReplicaState:
    return ReplicaState(
        row.replica_id,
        row.replica_directory_id,
        row.log_end_offset,
        _time(row.last_fetch_timestamp),
        _time(row.last_caught_up_timestamp),
    )


def _time(timestamp_ms: int) -> int | None:
    return None if timestamp_ms == _UNKNOWN else timestamp_ms
