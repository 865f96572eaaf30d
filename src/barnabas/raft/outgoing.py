"""The requests that a replica sends by itself: votes, the begin and end of an epoch, fetches, and changes of its own entry.

Its one rule: `core` decides when; this module decides what is sent, and to whom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.raft import messages
from barnabas.raft.roles import FOREVER_MS, Download, Follower, Leader, Resigned, Votes
from barnabas.raft.voters import Node, Voter, node_of
from barnabas.wire import Message

if TYPE_CHECKING:
    from barnabas.raft.core import RaftCore

FIRST_BOOTSTRAP_ID = -2


def send_votes(core: RaftCore, now_ms: int, votes: Votes, *, pre_vote: bool) -> None:
    for voter_id in sorted(votes.missing):
        voter, node = core.voters.current.get(voter_id), _node_of_voter(core, voter_id)
        if voter is not None and node is not None:
            request = messages.vote_request(
                core.config.cluster_id, core.epoch, core.key, voter.key, core.log.end, pre_vote=pre_vote
            )
            core.send(now_ms, node, request)


def remind_voters(core: RaftCore, now_ms: int, leader: Leader) -> None:
    """Tell the voters that do not fetch who leads, and decide when to look again."""
    config = core.config
    pause_ms = config.fetch_timeout_ms // 2
    leader.begin_epoch_ms = FOREVER_MS if leader.is_alone else now_ms + pause_ms
    for key in leader.voters_to_remind(now_ms, pause_ms):
        node = _node_of_voter(core, key.id)
        if node is not None:
            request = messages.begin_request(config.cluster_id, core.epoch, core.key.id, config.listeners, key)
            core.send(now_ms, node, request)


def send_end(core: RaftCore, now_ms: int, role: Resigned) -> None:
    for voter_id in sorted(role.unacknowledged):
        node = _node_of_voter(core, voter_id)
        if node is not None:
            config = core.config
            preferred = role.preferred_successors
            request = messages.end_request(config.cluster_id, core.epoch, core.key.id, config.listeners, preferred)
            core.send(now_ms, node, request)


def fetch_from_leader(core: RaftCore, now_ms: int, role: Follower) -> None:
    leader_id = core.election.leader_id
    assert leader_id is not None
    node = node_of(leader_id, role.leader_listeners, core.config.listener_name)
    if node is None or core.connections.is_backing_off(node.id):
        fetch_from_anyone(core, now_ms)  # another node may know another leader
    elif not core.is_waiting_for_disk and not core.connections.is_waiting():
        core.send(now_ms, node, _fetch_request(core, role.download))


def fetch_from_anyone(core: RaftCore, now_ms: int) -> None:
    if core.is_waiting_for_disk or core.connections.is_waiting():
        return
    node = core.connections.choose(_bootstrap_nodes(core))
    if node is not None:
        core.send(now_ms, node, _fetch_request(core, None))


def _fetch_request(core: RaftCore, download: Download | None) -> Message:
    config = core.config
    if download is not None:
        return messages.snapshot_request(
            config.cluster_id,
            core.epoch,
            core.key,
            download.snapshot_id,
            download.position,
            config.fetch_snapshot_max_bytes,
        )
    return messages.fetch_request(
        config.cluster_id,
        core.epoch,
        core.key,
        core.log.end,
        core.high_watermark,
        config.fetch_max_wait_ms,
        config.fetch_max_bytes,
    )


def tell_leader_of_itself(core: RaftCore, now_ms: int, role: Follower) -> bool:
    """Ask the leader for a change of this replica's entry among the voters. Return whether a request was sent."""
    request = _request_of_itself(core, role)
    if request is not None:
        node = node_of(core.election.leader_id or 0, role.leader_listeners, core.config.listener_name)
        if node is None or not core.send(now_ms, node, request):
            return False
    role.update_voter_ms = now_ms + core.config.fetch_timeout_ms
    return request is not None


def _request_of_itself(core: RaftCore, role: Follower) -> Message | None:
    """Return the request that would make the leader's voters right about this replica, or None if they are."""
    config, known = core.config, core.voters.current.get(core.key.id)
    if core.is_voter:
        own = Voter(core.key, config.listeners)
        is_known = known == own if core.voters.can_reconfigure else role.has_updated_leader
        versions = (own.min_kraft_version, own.max_kraft_version)
        if is_known:
            return None
        return messages.update_voter_request(config.cluster_id, core.epoch, core.key, config.listeners, versions)
    if not config.joins or not core.voters.can_reconfigure or not role.has_fetched:
        return None
    if known is not None:  # with another directory: that of a disk which was replaced
        return messages.remove_voter_request(config.cluster_id, known.key)
    return messages.add_voter_request(config.cluster_id, config.request_timeout_ms, core.key, config.listeners)


def _node_of_voter(core: RaftCore, voter_id: int) -> Node | None:
    return node_of(voter_id, core.voters.current.listeners_of(voter_id), core.config.listener_name)


def _bootstrap_nodes(core: RaftCore) -> list[Node]:
    """Return the nodes to ask for the leader: the configured servers and the other voters."""
    own = {(host, port) for _, host, port in core.config.listeners}
    nodes = [
        Node(FIRST_BOOTSTRAP_ID - index, host, port)
        for index, (host, port) in enumerate(core.config.bootstrap_servers)
        if (host, port) not in own
    ]
    voters = (_node_of_voter(core, voter_id) for voter_id in sorted(core.voters.current.ids - {core.key.id}))
    return nodes + [node for node in voters if node is not None]
