"""Handlers of the responses of other replicas.

Its one rule: every response is checked for a higher epoch or an unknown leader first, and only then for its content. A
handler returns whether the response was usable; if not, the node is not contacted for the retry backoff.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.raft import messages, reconfiguration
from barnabas.raft.log import OffsetAndEpoch
from barnabas.raft.messages import as_error, optional_leader
from barnabas.raft.ready import Response, SnapshotChunk
from barnabas.raft.reconfiguration import AddVoter
from barnabas.raft.roles import Candidate, Download, Follower, Leader, Prospective, Resigned
from barnabas.raft.voters import Endpoint, Endpoints, Voter
from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.add_raft_voter import AddRaftVoterResponse
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochResponse
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotResponse
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterResponse
from barnabas.wire.messages.vote import VoteResponse

if TYPE_CHECKING:
    from barnabas.raft.core import RaftCore


def accept(core: RaftCore, now_ms: int, response: Response) -> None:
    """Handle a response, unless it is no longer expected."""
    node_id = core.connections.received(response.correlation_id)
    if node_id is None:
        return
    message = response.message
    if message is None:
        is_handled = False
        _end_add_voter(core, now_ms, node_id, None)
    else:
        is_handled = _HANDLERS[type(message)](core, now_ms, node_id, message)
    if not is_handled:
        core.connections.failed(node_id, now_ms)


def _common(
    core: RaftCore, now_ms: int, error: ErrorCode, leader_id: int | None, epoch: int, listeners: Endpoints
) -> bool | None:
    """Handle epoch, leader and error, which all responses have.

    Returns None if the content still has to be processed.
    """
    before = core.election
    if epoch < before.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        return False  # the other replica is in an older epoch, and of no help yet
    if epoch > before.epoch or error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        core.learn_leader(now_ms, epoch, leader_id, listeners)
        return core.election != before
    if leader_id is not None and before.leader_id is None:
        core.learn_leader(now_ms, epoch, leader_id, listeners)
        return None if error is ErrorCode.NONE else True
    return None if error is ErrorCode.NONE else False


def _listeners(core: RaftCore, leader_id: int | None, endpoints: list[Any]) -> Endpoints:
    known = () if leader_id is None else core.voters.current.listeners_of(leader_id)
    return messages.learned_listeners(leader_id, endpoints, core.config.listener_name, known)


def _vote(core: RaftCore, now_ms: int, node_id: int, message: VoteResponse) -> bool:
    if message.error_code == ErrorCode.UNSUPPORTED_VERSION and isinstance(core.role, Prospective):
        core.become_candidate(now_ms)  # a voter does not support pre-votes
        return True
    partition = messages.voted_partition(message)
    if message.error_code or partition is None:
        return False
    leader_id = optional_leader(partition.leader_id)
    listeners = _listeners(core, leader_id, message.node_endpoints)
    error = as_error(partition.error_code)
    handled = _common(core, now_ms, error, leader_id, partition.leader_epoch, listeners)
    if handled is not None:
        return handled
    if isinstance(core.role, Prospective | Candidate):
        core.role.votes.record(node_id, granted=partition.vote_granted)
        core.election_changed(now_ms)
    return True


def _begin_quorum_epoch(core: RaftCore, now_ms: int, node_id: int, message: BeginQuorumEpochResponse) -> bool:
    partition = messages.begun_partition(message)
    if message.error_code or partition is None:
        return False
    leader_id = optional_leader(partition.leader_id)
    listeners = _listeners(core, leader_id, message.node_endpoints)
    handled = _common(core, now_ms, as_error(partition.error_code), leader_id, partition.leader_epoch, listeners)
    return True if handled is None else handled


def _end_quorum_epoch(core: RaftCore, now_ms: int, node_id: int, message: EndQuorumEpochResponse) -> bool:
    partition = messages.ended_partition(message)
    if message.error_code or partition is None:
        return False
    leader_id = optional_leader(partition.leader_id)
    listeners = _listeners(core, leader_id, message.node_endpoints)
    handled = _common(core, now_ms, as_error(partition.error_code), leader_id, partition.leader_epoch, listeners)
    if handled is None and isinstance(core.role, Resigned):
        core.role.unacknowledged.discard(node_id)
    return True if handled is None else handled


def _fetch(core: RaftCore, now_ms: int, node_id: int, message: FetchResponse) -> bool:
    partition = messages.fetched_partition(message)
    if message.error_code or partition is None:
        return False
    current = partition.current_leader
    leader_id = optional_leader(current.leader_id)
    listeners = _listeners(core, leader_id, message.node_endpoints)
    handled = _common(core, now_ms, as_error(partition.error_code), leader_id, current.leader_epoch, listeners)
    if handled is not None:
        return handled
    follower = core.role
    if not isinstance(follower, Follower):
        return True
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    if diverging.epoch >= 0 or diverging.end_offset >= 0:
        if diverging.epoch < 0 or diverging.end_offset < 0:
            return False
        core.truncate(core.log.truncation_offset(OffsetAndEpoch(diverging.end_offset, diverging.epoch)))
    elif snapshot.epoch >= 0 or snapshot.end_offset >= 0:
        snapshot_id = OffsetAndEpoch(snapshot.end_offset, snapshot.epoch)
        if min(snapshot_id) < 0 or not core.log.end.is_behind(snapshot_id) or snapshot_id.offset < core.high_watermark:
            return False
        if follower.download is None or follower.download.snapshot_id != snapshot_id:
            follower.download = Download(snapshot_id)
    else:
        if not core.append_fetched(partition.records or b""):
            return False
        core.follower_high_watermark(partition.high_watermark)
    follower.has_fetched = True
    follower.deadline_ms = now_ms + core.config.fetch_timeout_ms
    return True


def _fetch_snapshot(core: RaftCore, now_ms: int, node_id: int, message: FetchSnapshotResponse) -> bool:
    partition = messages.snapshotted_partition(message)
    if message.error_code or partition is None:
        return False
    current = partition.current_leader
    leader_id = optional_leader(current.leader_id)
    listeners = _listeners(core, leader_id, message.node_endpoints)
    error = as_error(partition.error_code)
    gone = error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)
    handled = _common(core, now_ms, ErrorCode.NONE if gone else error, leader_id, current.leader_epoch, listeners)
    if handled is not None:
        return handled
    follower = core.role
    if not isinstance(follower, Follower) or follower.download is None:
        return True
    download = follower.download
    if gone or download.snapshot_id != (partition.snapshot_id.end_offset, partition.snapshot_id.epoch):
        follower.download = None  # the leader has a newer snapshot: start again with a fetch
    elif partition.position != download.position or not partition.unaligned_records:
        return False
    else:
        data = partition.unaligned_records
        download.position += len(data)
        is_last = download.position >= partition.size
        core.write_chunk(SnapshotChunk(download.snapshot_id, partition.position, data, is_last))
        if is_last:
            follower.download = None
    follower.deadline_ms = now_ms + core.config.fetch_timeout_ms
    return True


def _update_voter(core: RaftCore, now_ms: int, node_id: int, message: UpdateRaftVoterResponse) -> bool:
    current = message.current_leader
    leader_id = optional_leader(current.leader_id)
    listeners: Endpoints = ()
    if leader_id is not None and current.host:
        listeners = (Endpoint(core.config.listener_name, current.host, current.port),)
    handled = _common(core, now_ms, as_error(message.error_code), leader_id, current.leader_epoch, listeners)
    if handled is None and isinstance(core.role, Follower):
        core.role.has_updated_leader = True
    return True if handled is None else handled


def _joined(core: RaftCore, now_ms: int, node_id: int, message: AddRaftVoterResponse | RemoveRaftVoterResponse) -> bool:
    """Do nothing: the change arrives with the log, and this replica asks again if it does not."""
    return True


def _api_versions(core: RaftCore, now_ms: int, node_id: int, message: ApiVersionsResponse) -> bool:
    return _end_add_voter(core, now_ms, node_id, message)


def _end_add_voter(core: RaftCore, now_ms: int, node_id: int, message: ApiVersionsResponse | None) -> bool:
    """Continue to add a voter, which answered with its supported versions, or None if it did not answer."""
    leader = core.role
    if not isinstance(leader, Leader):
        return True
    change = leader.change
    if not isinstance(change, AddVoter) or change.key.id != node_id or change.offset is not None:
        return True
    is_caught_up = leader.is_caught_up(change.key, now_ms)
    found = reconfiguration.check_api_versions(change, message, core.situation(), is_caught_up=is_caught_up)
    voters = core.voters.current.add(found) if isinstance(found, Voter) else None
    if voters is None:
        assert not isinstance(found, Voter)
        core.end_change(ErrorCode(found.error_code), found.error_message)
        return message is not None
    change.offset = core.append_voters(now_ms, voters)
    if not change.ack_when_committed:
        core.reply(change.request_id, reconfiguration.add_response(ErrorCode.NONE, None))
    return True


_HANDLERS: dict[type[Message], Callable[[RaftCore, int, int, Any], bool]] = {
    VoteResponse: _vote,
    BeginQuorumEpochResponse: _begin_quorum_epoch,
    EndQuorumEpochResponse: _end_quorum_epoch,
    FetchResponse: _fetch,
    FetchSnapshotResponse: _fetch_snapshot,
    UpdateRaftVoterResponse: _update_voter,
    AddRaftVoterResponse: _joined,
    RemoveRaftVoterResponse: _joined,
    ApiVersionsResponse: _api_versions,
}
