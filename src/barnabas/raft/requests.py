"""Handlers of the requests of the quorum protocol: checks, decisions and errors as in Kafka.

Its one rule: a request changes state through the core's own transitions before the response is built, so that the
response has the new leader and epoch. Handlers never wait: a fetch that must wait is parked in the core.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.raft import messages, reconfiguration
from barnabas.raft.log import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch, Validity
from barnabas.raft.messages import LeaderView
from barnabas.raft.ready import LogRead, ParkedFetch, Request, SnapshotRead
from barnabas.raft.reconfiguration import AddVoter, RemoveVoter
from barnabas.raft.roles import Candidate, Follower, Leader, Progress, Prospective, Resigned, Unattached
from barnabas.raft.voters import Endpoint, Endpoints, Node, ReplicaKey
from barnabas.steps import at_once
from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from barnabas.wire.messages.vote import VoteRequest, VoteResponse

if TYPE_CHECKING:
    from barnabas.raft.core import RaftCore

MAX_FETCH_BYTES = 8 << 20
_FIRST_WITH_DIRECTORY = 2
_FIRST_WITH_NODES = 2
_NOT_LEADER_TEXT = (
    "For requests intended only for the leader, this error indicates that the broker is not the current leader. "
    "For requests intended for any replica, this error indicates that the broker is not a replica of the topic partition."
)


def answer(core: RaftCore, now_ms: int, request: Request) -> None:
    """Handle a request. It is answered now, or later if it must wait."""
    _HANDLERS[type(request.message)](core, now_ms, request, request.message)


def is_answered(message: Message) -> bool:
    """Whether this is a request of the quorum protocol."""
    return type(message) in _HANDLERS


def _is_other_cluster(core: RaftCore, cluster_id: str | None) -> bool:
    return cluster_id is not None and cluster_id != core.config.cluster_id


def _is_for_other_voter(core: RaftCore, voter: ReplicaKey) -> bool:
    """Whether a request is meant for another replica: another node, or one whose directory was replaced."""
    return voter.id >= 0 and not voter.is_known_as(core.key)


def _voter_error(core: RaftCore, replica_id: int, epoch: int) -> ErrorCode:
    if epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if replica_id < 0 else ErrorCode.NONE


def _leader_error(core: RaftCore, epoch: int) -> ErrorCode:
    """Return NONE if this replica leads `epoch`, or the error."""
    if epoch != core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH if epoch < core.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
    if not core.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.BROKER_NOT_AVAILABLE if core.is_shutting_down else ErrorCode.NONE


# --- elections -------------------------------------------------------------------------------------------------------


def _vote(core: RaftCore, now_ms: int, request: Request, message: VoteRequest) -> None:
    if _is_other_cluster(core, message.cluster_id):
        core.reply(request.id, VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    partition = messages.vote_partition(message)
    if partition is None:
        core.reply(request.id, VoteResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    error, granted = _decide_vote(core, now_ms, message.voter_id, partition)
    leader = core.leader_view(request.listener_name)
    core.reply(request.id, messages.vote_response(request.version, error, leader, granted=granted))


def _decide_vote(
    core: RaftCore, now_ms: int, voter_id: int, partition: VoteRequest.PartitionData
) -> tuple[ErrorCode, bool]:
    epoch = partition.replica_epoch
    log_end = OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch)
    last_possible_epoch = epoch if partition.pre_vote else epoch - 1
    if log_end.offset < 0 or not 0 <= log_end.epoch <= last_possible_epoch:
        return ErrorCode.INVALID_REQUEST, False
    error = _voter_error(core, partition.replica_id, epoch)
    if error is not ErrorCode.NONE:
        return error, False
    if epoch > core.epoch:
        core.become_unattached(now_ms, epoch)
    if _is_for_other_voter(core, ReplicaKey.of(voter_id, partition.voter_directory_id)):
        return ErrorCode.INVALID_VOTER_KEY, False
    candidate = ReplicaKey.of(partition.replica_id, partition.replica_directory_id)
    granted = can_grant_vote(
        core, candidate, is_up_to_date=not log_end.is_behind(core.log.end), pre_vote=partition.pre_vote
    )
    if granted and not partition.pre_vote and core.election.voted_key is None:
        core.grant_vote(now_ms, candidate)
    return ErrorCode.NONE, granted


def can_grant_vote(core: RaftCore, candidate: ReplicaKey, *, is_up_to_date: bool, pre_vote: bool) -> bool:
    """Whether to grant a vote.

    There is one vote per epoch, for a log that is at least as up to date. A pre-vote is denied while a leader is alive.
    """
    match core.role:
        case Unattached() | Prospective():
            if pre_vote:
                return is_up_to_date
            if core.election.voted_key is not None:
                return core.election.voted_key.is_known_as(candidate)
            return is_up_to_date and core.election.leader_id is None
        case Follower(has_fetched=has_fetched):
            return pre_vote and is_up_to_date and not has_fetched
        case Candidate() | Resigned():
            return pre_vote and is_up_to_date
        case Leader():
            return False


def _leader_listeners(
    core: RaftCore,
    leader_id: int,
    endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint] | list[EndQuorumEpochRequest.LeaderEndpoint],
) -> Endpoints:
    named = tuple(Endpoint(each.name, each.host, each.port) for each in endpoints)
    return named or core.voters.current.listeners_of(leader_id)


def _begin_quorum_epoch(core: RaftCore, now_ms: int, request: Request, message: BeginQuorumEpochRequest) -> None:
    if _is_other_cluster(core, message.cluster_id):
        core.reply(request.id, BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    partition = messages.begin_partition(message)
    if partition is None:
        core.reply(request.id, BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    leader_id, epoch = partition.leader_id, partition.leader_epoch
    error = _voter_error(core, leader_id, epoch)
    if error is ErrorCode.NONE:
        listeners = _leader_listeners(core, leader_id, message.leader_endpoints)
        if not core.learn_leader(now_ms, epoch, leader_id, listeners):
            error = ErrorCode.INVALID_REQUEST
        elif _is_for_other_voter(core, ReplicaKey.of(message.voter_id, partition.voter_directory_id)):
            error = ErrorCode.INVALID_VOTER_KEY
    leader = core.leader_view(request.listener_name)
    core.reply(request.id, messages.begin_response(request.version, error, leader))


def _end_quorum_epoch(core: RaftCore, now_ms: int, request: Request, message: EndQuorumEpochRequest) -> None:
    if _is_other_cluster(core, message.cluster_id):
        core.reply(request.id, EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    partition = messages.end_partition(message)
    if partition is None:
        core.reply(request.id, EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    leader_id, epoch = partition.leader_id, partition.leader_epoch
    error = _voter_error(core, leader_id, epoch)
    if error is ErrorCode.NONE:
        listeners = _leader_listeners(core, leader_id, message.leader_endpoints)
        if not core.learn_leader(now_ms, epoch, leader_id, listeners):
            error = ErrorCode.INVALID_REQUEST
        elif isinstance(core.role, Follower) and core.election.leader_id == leader_id:
            candidates = messages.preferred_candidates(partition)
            core.role.deadline_ms = now_ms + succession_backoff_ms(
                core.key, candidates, core.config.election_backoff_max_ms
            )
    leader = core.leader_view(request.listener_name)
    core.reply(request.id, messages.end_response(request.version, error, leader))


def succession_backoff_ms(replica: ReplicaKey, candidates: list[ReplicaKey], max_ms: int) -> int:
    """Return how long a voter waits before an election: the first candidate 0, each next one twice as long."""
    position = next((index for index, key in enumerate(candidates) if key.is_known_as(replica)), len(candidates))
    if position == 0:
        return 0
    if position >= len(candidates):
        return max_ms
    return min(max_ms, (max_ms >> (len(candidates) - 1)) << (position - 1))


# --- the log ---------------------------------------------------------------------------------------------------------


def _fetch(core: RaftCore, now_ms: int, request: Request, message: FetchRequest) -> None:
    if _is_other_cluster(core, message.cluster_id):
        core.reply(request.id, FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    partition = messages.fetch_partition(message)
    if partition is None:
        core.reply(request.id, FetchResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    replica = ReplicaKey.of(messages.replica_id_of(message), partition.replica_directory_id)
    error = ErrorCode.NONE
    if (
        message.max_wait_ms < 0
        or partition.fetch_offset < 0
        or not 0 <= partition.last_fetched_epoch <= partition.current_leader_epoch
    ):
        error = ErrorCode.INVALID_REQUEST
    elif (error := _leader_error(core, partition.current_leader_epoch)) is ErrorCode.NONE:
        if replica.id == core.key.id:
            error = ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka's answer to a replica with the leader's own id
        elif (found := _validate(core, partition)) is not None:
            core.reply(request.id, _other_log(core, request, *found))
            return
    if error is not ErrorCode.NONE:
        leader = core.leader_view(request.listener_name)
        core.reply(request.id, messages.fetch_response(request.version, error, leader, core.log.start.offset))
        return
    offset = partition.fetch_offset
    if replica.id >= 0:
        _note_fetch(core, now_ms, replica, offset)
    max_bytes = min(message.max_bytes, MAX_FETCH_BYTES)
    fetch = ParkedFetch(request, offset, partition.high_watermark, max_bytes, now_ms + message.max_wait_ms)
    leader_role = core.role
    assert isinstance(leader_role, Leader)
    known = -1 if leader_role.high_watermark is None else leader_role.high_watermark
    has_news = offset < core.log.written_offset or fetch.high_watermark < known
    if has_news or message.max_wait_ms == 0 or not core.park(fetch):
        answer_fetch(core, fetch)


def _validate(core: RaftCore, partition: FetchRequest.FetchPartition) -> tuple[Validity, OffsetAndEpoch] | None:
    """Return how the replica's log differs from this one, or None if it is a prefix."""
    snapshot_id = core.log.snapshot_id
    if partition.fetch_offset == 0 and snapshot_id not in (None, BOOTSTRAP_SNAPSHOT_ID):
        assert snapshot_id is not None
        return Validity.SNAPSHOT, snapshot_id  # an empty replica is served faster by a snapshot
    validity, where = core.log.validate(partition.fetch_offset, partition.last_fetched_epoch)
    return None if validity is Validity.VALID else (validity, where)


def _other_log(core: RaftCore, request: Request, validity: Validity, where: OffsetAndEpoch) -> FetchResponse:
    assert isinstance(core.role, Leader)
    leader = core.leader_view(request.listener_name)
    response = messages.fetch_response(
        request.version, ErrorCode.NONE, leader, core.log.start.offset, core.role.high_watermark
    )
    partition = response.responses[0].partitions[0]
    if validity is Validity.DIVERGING:
        partition.diverging_epoch = FetchResponse.EpochEndOffset(epoch=where.epoch, end_offset=where.offset)
    else:
        partition.snapshot_id = FetchResponse.SnapshotId(end_offset=where.offset, epoch=where.epoch)
    return response


def _note_fetch(core: RaftCore, now_ms: int, replica: ReplicaKey, offset: int) -> None:
    leader = core.role
    assert isinstance(leader, Leader)
    leader.heard_from(replica, now_ms)
    progress = leader.progress_of(replica, now_ms)
    if progress is not None:
        progress.fetched(now_ms, offset, core.log.end_offset)
        core.advance_high_watermark(now_ms)


def answer_fetch(core: RaftCore, fetch: ParkedFetch) -> None:
    """Answer a fetch with what is available now. Only called on the leader."""
    assert isinstance(core.role, Leader)
    request = fetch.request
    leader = core.leader_view(request.listener_name)
    response = messages.fetch_response(
        request.version, ErrorCode.NONE, leader, core.log.start.offset, core.role.high_watermark
    )
    has_records = fetch.offset < core.log.written_offset
    core.reply(request.id, response, LogRead(fetch.offset, fetch.max_bytes) if has_records else None)


def _fetch_snapshot(core: RaftCore, now_ms: int, request: Request, message: FetchSnapshotRequest) -> None:
    if _is_other_cluster(core, message.cluster_id):
        core.reply(request.id, FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    if not message.topics or not message.topics[0].partitions:
        core.reply(request.id, FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    partition = messages.snapshot_partition(message)
    leader = core.leader_view(request.listener_name)
    version = request.version
    if partition is None:
        topic, asked = message.topics[0].name, message.topics[0].partitions[0].partition
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        core.reply(request.id, messages.snapshot_response(version, unknown, None, topic, asked))
        return
    error = _leader_error(core, partition.current_leader_epoch)
    snapshot_id = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    if error is ErrorCode.NONE and snapshot_id == BOOTSTRAP_SNAPSHOT_ID:
        error = ErrorCode.SNAPSHOT_NOT_FOUND
    if error is not ErrorCode.NONE:
        core.reply(request.id, messages.snapshot_response(version, error, leader))
        return
    assert isinstance(core.role, Leader)
    replica = ReplicaKey.of(message.replica_id, partition.replica_directory_id)
    if 0 <= replica.id != core.key.id:
        core.role.heard_from(replica, now_ms)
    read = SnapshotRead(snapshot_id, partition.position, min(message.max_bytes, MAX_FETCH_BYTES))
    core.reply(request.id, messages.snapshot_response(version, ErrorCode.NONE, leader), read)


# --- the quorum ------------------------------------------------------------------------------------------------------


def _describe_quorum(core: RaftCore, now_ms: int, request: Request, message: DescribeQuorumRequest) -> None:
    if not messages.is_described(message):
        core.reply(request.id, at_once(messages.unknown_topic(message)))
    elif not core.is_leader:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        core.reply(request.id, at_once(messages.describe_errors(message, error, _NOT_LEADER_TEXT)))
    else:
        core.reply(request.id, describe_quorum(core, now_ms, request.version))


def describe_quorum(core: RaftCore, now_ms: int, version: int) -> DescribeQuorumResponse:
    """Return the state of the quorum as its leader sees it, for a response of this version."""
    leader = core.role
    assert isinstance(leader, Leader)
    leader.forget_observers(now_ms)
    own = Progress(leader.own_key, core.log.written_offset, now_ms, now_ms)
    voters = [own if voter == core.key.id else progress for voter, progress in sorted(leader.voters.items())]
    partition = DescribeQuorumResponse.PartitionData(
        partition_index=messages.PARTITION,
        error_message="",
        leader_id=core.key.id,
        leader_epoch=core.epoch,
        high_watermark=messages.UNKNOWN_OFFSET if leader.high_watermark is None else leader.high_watermark,
        current_voters=[_replica_state(progress, version) for progress in voters],
        observers=[_replica_state(progress, version) for progress in leader.observers.values()],
    )
    response = DescribeQuorumResponse(
        error_message="",
        topics=[DescribeQuorumResponse.TopicData(topic_name=messages.TOPIC, partitions=[partition])],
    )
    if version >= _FIRST_WITH_NODES:
        response.nodes = [
            DescribeQuorumResponse.Node(
                node_id=voter.id,
                listeners=[DescribeQuorumResponse.Listener(name=n, host=h, port=p) for n, h, p in voter.listeners],
            )
            for voter in core.voters.current
        ]
    return response


def _replica_state(progress: Progress, version: int) -> DescribeQuorumResponse.ReplicaState:
    state = DescribeQuorumResponse.ReplicaState(
        replica_id=progress.key.id,
        log_end_offset=progress.end_offset,
        last_fetch_timestamp=progress.last_fetch_ms,
        last_caught_up_timestamp=progress.last_caught_up_ms,
    )
    if version >= _FIRST_WITH_DIRECTORY:
        state.replica_directory_id = progress.key.wire_directory_id
    return state


def _add_voter(core: RaftCore, now_ms: int, request: Request, message: AddRaftVoterRequest) -> None:
    refusal = reconfiguration.check_add(message, core.situation(_leader_error(core, core.epoch)))
    if refusal is not None:
        core.reply(request.id, refusal)
        return
    key = ReplicaKey(message.voter_id, message.voter_directory_id)
    listeners = reconfiguration.requested_listeners(message.listeners)
    address = next(each for each in listeners if each.name == core.config.listener_name)
    asked = ApiVersionsRequest(client_software_name="barnabas", client_software_version="0")
    if not core.send(now_ms, Node(key.id, address.host, address.port), asked):
        text = f"New voter {key} is not ready to receive requests"
        core.reply(request.id, reconfiguration.add_response(ErrorCode.REQUEST_TIMED_OUT, text))
        return
    assert isinstance(core.role, Leader)
    deadline_ms = now_ms + core.config.request_timeout_ms
    core.role.change = AddVoter(request.id, key, listeners, message.ack_when_committed, deadline_ms)


def _remove_voter(core: RaftCore, now_ms: int, request: Request, message: RemoveRaftVoterRequest) -> None:
    refusal, voters = reconfiguration.check_remove(message, core.situation(_leader_error(core, core.epoch)))
    if refusal is not None:
        core.reply(request.id, refusal)
        return
    assert isinstance(core.role, Leader) and voters is not None
    offset = core.append_voters(now_ms, voters)
    core.role.change = RemoveVoter(request.id, now_ms + core.config.request_timeout_ms, offset)


def _update_voter(core: RaftCore, now_ms: int, request: Request, message: UpdateRaftVoterRequest) -> None:
    situation = core.situation(_leader_error(core, message.current_leader_epoch))
    error, voters = reconfiguration.check_update(message, situation)
    if voters is not None and core.voters.can_reconfigure:
        core.append_voters(now_ms, voters)
    elif voters is not None:  # kept until kraft.version is raised, when the voters are written to the log
        updated = voters.get(message.voter_id)
        assert isinstance(core.role, Leader) and updated is not None
        core.role.updated_voters[updated.id] = updated
    leader: LeaderView = core.leader_view(request.listener_name)
    core.reply(request.id, messages.update_voter_response(error or ErrorCode.NONE, leader))


_HANDLERS: dict[type[Message], Callable[[RaftCore, int, Request, Any], None]] = {
    VoteRequest: _vote,
    BeginQuorumEpochRequest: _begin_quorum_epoch,
    EndQuorumEpochRequest: _end_quorum_epoch,
    FetchRequest: _fetch,
    FetchSnapshotRequest: _fetch_snapshot,
    DescribeQuorumRequest: _describe_quorum,
    AddRaftVoterRequest: _add_voter,
    RemoveRaftVoterRequest: _remove_voter,
    UpdateRaftVoterRequest: _update_voter,
}
