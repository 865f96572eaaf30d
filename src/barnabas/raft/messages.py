"""Builds and parses Kafka's requests and responses for the only partition of `__cluster_metadata`.

Its one rule: a message about any other partition, or about several, is not parsed: the result is None. Nothing is
decided here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from barnabas.config.internal_topics import CLUSTER_METADATA_TOPIC
from barnabas.raft.log import OffsetAndEpoch
from barnabas.raft.voters import Endpoint, Endpoints, Node, ReplicaKey
from barnabas.steps import Slices, mapped
from barnabas.wire import ErrorCode, Uuid
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from barnabas.wire.messages.vote import VoteRequest, VoteResponse

TOPIC = CLUSTER_METADATA_TOPIC
TOPIC_ID = Uuid(bytes(15) + b"\x01")
PARTITION = 0
NO_LEADER = -1
UNKNOWN_OFFSET = -1

# Since these versions a response contains the leader's address.
_FIRST_WITH_ENDPOINTS = 1
_FIRST_FETCH_WITH_ENDPOINTS = 17

P = TypeVar("P")


class LeaderView(NamedTuple):
    """The leader and epoch to put in a response, with the leader's address on the listener of the request."""

    leader_id: int | None
    epoch: int
    node: Node | None = None

    @property
    def wire_id(self) -> int:
        return NO_LEADER if self.leader_id is None else self.leader_id


def optional_leader(leader_id: int) -> int | None:
    return None if leader_id < 0 else leader_id


def learned_listeners(
    leader_id: int | None, endpoints: Iterable[Any], listener_name: str, otherwise: Endpoints = ()
) -> Endpoints:
    """Return the leader's address from a response, under the name of the listener that was used, or `otherwise`."""
    for endpoint in endpoints:
        if endpoint.node_id == leader_id:
            return (Endpoint(listener_name, endpoint.host, endpoint.port),)
    return otherwise


def _only_partition(topics: list[Any], partitions: str = "partitions", index: str = "partition_index") -> Any:
    if len(topics) != 1 or len(getattr(topics[0], partitions)) != 1:
        return None
    found = getattr(topics[0], partitions)[0]
    return found if getattr(found, index) == PARTITION else None


def _named(topics: list[Any], name: str = "topic_name", index: str = "partition_index") -> Any:
    found = _only_partition(topics, index=index)
    return found if found is not None and getattr(topics[0], name) == TOPIC else None


# --- Vote ------------------------------------------------------------------------------------------------------------


def vote_request(
    cluster_id: str, epoch: int, replica: ReplicaKey, voter: ReplicaKey, log_end: OffsetAndEpoch, *, pre_vote: bool
) -> VoteRequest:
    partition = VoteRequest.PartitionData(
        partition_index=PARTITION,
        replica_epoch=epoch,
        replica_id=replica.id,
        replica_directory_id=replica.wire_directory_id,
        voter_directory_id=voter.wire_directory_id,
        last_offset_epoch=log_end.epoch,
        last_offset=log_end.offset,
        pre_vote=pre_vote,
    )
    topic = VoteRequest.TopicData(topic_name=TOPIC, partitions=[partition])
    return VoteRequest(cluster_id=cluster_id, voter_id=voter.id, topics=[topic])


def vote_response(version: int, error: ErrorCode, leader: LeaderView, *, granted: bool = False) -> VoteResponse:
    partition = VoteResponse.PartitionData(
        partition_index=PARTITION,
        error_code=error,
        leader_id=leader.wire_id,
        leader_epoch=leader.epoch,
        vote_granted=granted,
    )
    response = VoteResponse(topics=[VoteResponse.TopicData(topic_name=TOPIC, partitions=[partition])])
    if version >= _FIRST_WITH_ENDPOINTS and leader.node is not None:
        response.node_endpoints = [_endpoint(VoteResponse.NodeEndpoint, leader.node)]
    return response


def vote_partition(message: VoteRequest) -> VoteRequest.PartitionData | None:
    found: VoteRequest.PartitionData | None = _named(message.topics)
    return found


def voted_partition(message: VoteResponse) -> VoteResponse.PartitionData | None:
    found: VoteResponse.PartitionData | None = _named(message.topics)
    return found


# --- BeginQuorumEpoch and EndQuorumEpoch -----------------------------------------------------------------------------


def begin_request(
    cluster_id: str, epoch: int, leader_id: int, listeners: Endpoints, voter: ReplicaKey
) -> BeginQuorumEpochRequest:
    partition = BeginQuorumEpochRequest.PartitionData(
        partition_index=PARTITION,
        voter_directory_id=voter.wire_directory_id,
        leader_id=leader_id,
        leader_epoch=epoch,
    )
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter.id,
        topics=[BeginQuorumEpochRequest.TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[BeginQuorumEpochRequest.LeaderEndpoint(name=n, host=h, port=p) for n, h, p in listeners],
    )


def begin_response(version: int, error: ErrorCode, leader: LeaderView) -> BeginQuorumEpochResponse:
    partition = BeginQuorumEpochResponse.PartitionData(
        partition_index=PARTITION, error_code=error, leader_id=leader.wire_id, leader_epoch=leader.epoch
    )
    topic = BeginQuorumEpochResponse.TopicData(topic_name=TOPIC, partitions=[partition])
    response = BeginQuorumEpochResponse(topics=[topic])
    if version >= _FIRST_WITH_ENDPOINTS and leader.node is not None:
        response.node_endpoints = [_endpoint(BeginQuorumEpochResponse.NodeEndpoint, leader.node)]
    return response


def begin_partition(message: BeginQuorumEpochRequest) -> BeginQuorumEpochRequest.PartitionData | None:
    found: BeginQuorumEpochRequest.PartitionData | None = _named(message.topics)
    return found


def begun_partition(message: BeginQuorumEpochResponse) -> BeginQuorumEpochResponse.PartitionData | None:
    found: BeginQuorumEpochResponse.PartitionData | None = _named(message.topics)
    return found


def end_request(
    cluster_id: str, epoch: int, leader_id: int, listeners: Endpoints, preferred: tuple[ReplicaKey, ...]
) -> EndQuorumEpochRequest:
    partition = EndQuorumEpochRequest.PartitionData(
        partition_index=PARTITION,
        leader_id=leader_id,
        leader_epoch=epoch,
        preferred_successors=[key.id for key in preferred],
        preferred_candidates=[
            EndQuorumEpochRequest.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.wire_directory_id)
            for key in preferred
        ],
    )
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[EndQuorumEpochRequest.TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[EndQuorumEpochRequest.LeaderEndpoint(name=n, host=h, port=p) for n, h, p in listeners],
    )


def end_response(version: int, error: ErrorCode, leader: LeaderView) -> EndQuorumEpochResponse:
    partition = EndQuorumEpochResponse.PartitionData(
        partition_index=PARTITION, error_code=error, leader_id=leader.wire_id, leader_epoch=leader.epoch
    )
    topic = EndQuorumEpochResponse.TopicData(topic_name=TOPIC, partitions=[partition])
    response = EndQuorumEpochResponse(topics=[topic])
    if version >= _FIRST_WITH_ENDPOINTS and leader.node is not None:
        response.node_endpoints = [_endpoint(EndQuorumEpochResponse.NodeEndpoint, leader.node)]
    return response


def end_partition(message: EndQuorumEpochRequest) -> EndQuorumEpochRequest.PartitionData | None:
    found: EndQuorumEpochRequest.PartitionData | None = _named(message.topics)
    return found


def ended_partition(message: EndQuorumEpochResponse) -> EndQuorumEpochResponse.PartitionData | None:
    found: EndQuorumEpochResponse.PartitionData | None = _named(message.topics)
    return found


def preferred_candidates(partition: EndQuorumEpochRequest.PartitionData) -> list[ReplicaKey]:
    """Return the preferred successors in order. Version 0 has only their ids."""
    if partition.preferred_candidates:
        return [
            ReplicaKey.of(each.candidate_id, each.candidate_directory_id) for each in partition.preferred_candidates
        ]
    return [ReplicaKey(voter_id) for voter_id in partition.preferred_successors]


# --- Fetch -----------------------------------------------------------------------------------------------------------


def fetch_request(
    cluster_id: str,
    epoch: int,
    replica: ReplicaKey,
    log_end: OffsetAndEpoch,
    high_watermark: int | None,
    max_wait_ms: int,
    max_bytes: int,
) -> FetchRequest:
    partition = FetchRequest.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=epoch,
        fetch_offset=log_end.offset,
        last_fetched_epoch=log_end.epoch,
        replica_directory_id=replica.wire_directory_id,
        high_watermark=UNKNOWN_OFFSET if high_watermark is None else high_watermark,
    )
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=FetchRequest.ReplicaState(replica_id=replica.id),
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        topics=[FetchRequest.FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
    )


def fetch_response(
    version: int, error: ErrorCode, leader: LeaderView, log_start_offset: int, high_watermark: int | None = None
) -> FetchResponse:
    partition = FetchResponse.PartitionData(
        partition_index=PARTITION,
        error_code=error,
        high_watermark=UNKNOWN_OFFSET if high_watermark is None else high_watermark,
        log_start_offset=log_start_offset,
        current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=leader.wire_id, leader_epoch=leader.epoch),
        records=b"",
    )
    response = FetchResponse(
        responses=[FetchResponse.FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])]
    )
    if version >= _FIRST_FETCH_WITH_ENDPOINTS and leader.node is not None:
        response.node_endpoints = [_endpoint(FetchResponse.NodeEndpoint, leader.node)]
    return response


def fetch_partition(message: FetchRequest) -> FetchRequest.FetchPartition | None:
    """Return the partition if the topic id matches. Kafka uses only the id here, so versions before 13 never match."""
    found: FetchRequest.FetchPartition | None = _only_partition(message.topics, index="partition")
    return found if found is not None and message.topics[0].topic_id == TOPIC_ID else None


def fetched_partition(message: FetchResponse) -> FetchResponse.PartitionData | None:
    found: FetchResponse.PartitionData | None = _only_partition(message.responses)
    return found if found is not None and message.responses[0].topic_id == TOPIC_ID else None


def replica_id_of(message: FetchRequest) -> int:
    return message.replica_id if message.replica_id >= 0 else message.replica_state.replica_id


# --- FetchSnapshot ---------------------------------------------------------------------------------------------------


def snapshot_request(
    cluster_id: str, epoch: int, replica: ReplicaKey, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int
) -> FetchSnapshotRequest:
    partition = FetchSnapshotRequest.PartitionSnapshot(
        partition=PARTITION,
        current_leader_epoch=epoch,
        snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
        position=position,
        replica_directory_id=replica.wire_directory_id,
    )
    return FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=replica.id,
        max_bytes=max_bytes,
        topics=[FetchSnapshotRequest.TopicSnapshot(name=TOPIC, partitions=[partition])],
    )


def snapshot_response(
    version: int, error: ErrorCode, leader: LeaderView | None, topic: str = TOPIC, index: int = PARTITION
) -> FetchSnapshotResponse:
    """Build a response. For any other partition there is no leader."""
    partition = FetchSnapshotResponse.PartitionSnapshot(index=index, error_code=error, unaligned_records=b"")
    response = FetchSnapshotResponse(
        topics=[FetchSnapshotResponse.TopicSnapshot(name=topic, partitions=[partition])],
    )
    if leader is not None:
        partition.current_leader.leader_id = leader.wire_id
        partition.current_leader.leader_epoch = leader.epoch
        if version >= _FIRST_WITH_ENDPOINTS and leader.node is not None:
            response.node_endpoints = [_endpoint(FetchSnapshotResponse.NodeEndpoint, leader.node)]
    return response


def snapshot_partition(message: FetchSnapshotRequest) -> FetchSnapshotRequest.PartitionSnapshot | None:
    found: FetchSnapshotRequest.PartitionSnapshot | None = _named(message.topics, "name", "partition")
    return found


def snapshotted_partition(message: FetchSnapshotResponse) -> FetchSnapshotResponse.PartitionSnapshot | None:
    found: FetchSnapshotResponse.PartitionSnapshot | None = _named(message.topics, "name", "index")
    return found


# --- UpdateRaftVoter and DescribeQuorum ------------------------------------------------------------------------------


def update_voter_request(
    cluster_id: str, epoch: int, replica: ReplicaKey, listeners: Endpoints, versions: tuple[int, int]
) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=epoch,
        voter_id=replica.id,
        voter_directory_id=replica.wire_directory_id,
        listeners=[UpdateRaftVoterRequest.Listener(name=n, host=h, port=p) for n, h, p in listeners],
        k_raft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
            min_supported_version=versions[0], max_supported_version=versions[1]
        ),
    )


def add_voter_request(
    cluster_id: str, timeout_ms: int, replica: ReplicaKey, listeners: Endpoints
) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=timeout_ms,
        voter_id=replica.id,
        voter_directory_id=replica.wire_directory_id,
        listeners=[AddRaftVoterRequest.Listener(name=n, host=h, port=p) for n, h, p in listeners],
        ack_when_committed=False,
    )


def remove_voter_request(cluster_id: str, replica: ReplicaKey) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=replica.id, voter_directory_id=replica.wire_directory_id
    )


def update_voter_response(error: ErrorCode, leader: LeaderView) -> UpdateRaftVoterResponse:
    current = UpdateRaftVoterResponse.CurrentLeader(leader_id=leader.wire_id, leader_epoch=leader.epoch)
    if leader.node is not None:
        current.host, current.port = leader.node.host, leader.node.port
    return UpdateRaftVoterResponse(error_code=error, current_leader=current)


def is_described(message: DescribeQuorumRequest) -> bool:
    return _named(message.topics) is not None


def describe_errors(message: DescribeQuorumRequest, error: ErrorCode, text: str) -> Slices[DescribeQuorumResponse]:
    """Return the same error for each requested partition."""

    def row(partition: DescribeQuorumRequest.PartitionData) -> DescribeQuorumResponse.PartitionData:
        index = partition.partition_index
        return DescribeQuorumResponse.PartitionData(partition_index=index, error_code=error, error_message=text)

    topics = []
    for topic in message.topics:
        yield
        rows = yield from mapped(row, topic.partitions)
        topics.append(DescribeQuorumResponse.TopicData(topic_name=topic.topic_name, partitions=rows))
    return DescribeQuorumResponse(error_message="", topics=topics)


def unknown_topic(message: DescribeQuorumRequest) -> Slices[DescribeQuorumResponse]:
    """Return the response to a request for anything but the metadata log."""
    text = "This server does not host this topic-partition."
    return describe_errors(message, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)


def _endpoint(cls: type[P], node: Node) -> P:
    return cls(**{"node_id": node.id, "host": node.host, "port": node.port})


def as_error(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
