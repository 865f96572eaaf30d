"""Raft as in Kafka (KIP-595, KIP-853, KIP-996), as a state machine: events go in, actions come out.

Its one rule: no I/O, clock or randomness of its own. `tick`, `step`, `propose`, `on_appended` and `on_flushed` report
events and their time; `ready` returns all actions to execute, in order:

    core.step(now_ms, request)              # or tick, or propose, ...
    ready = core.ready()
    if ready.quorum_state is not None:      # 1. save to disk, before anything else
        store.save(ready.quorum_state)
    if ready.disk is not None:              # 2. write; then core.on_appended(now_ms)
        ...
    for send in ready.sends: ...            # 3. network
    for answer in ready.answers: ...
    log.flush()                             # 4. when it has finished: core.on_flushed(now_ms)

Messages wait only for the quorum state. Those that depend on a flush are created after it was reported: a follower's
next fetch implies that it has flushed everything before, and a leader counts itself for the high watermark. One piece
of disk work is in progress at a time; meanwhile proposals accumulate, and share one write and one flush.

`requests` handles requests, `responses` handles responses, and `outgoing` has the requests of this replica; this module
has the roles, the timers and the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from barnabas.batches import BatchError, Record, build_batch, build_control_batch, check_crc, iterate_batches
from barnabas.raft import messages, outgoing, records, requests, responses
from barnabas.raft.connections import Connections
from barnabas.raft.log import LogView, OffsetAndEpoch
from barnabas.raft.messages import LeaderView
from barnabas.raft.quorum_state import Election, QuorumState
from barnabas.raft.ready import (
    Answer,
    CommittedLogLostError,
    DiskWork,
    Leadership,
    LogRead,
    NotLeaderError,
    ParkedFetch,
    ProposalTooLargeError,
    RaftConfig,
    Ready,
    Request,
    Response,
    Send,
    SnapshotChunk,
    SnapshotRead,
    TooManyProposalsError,
)
from barnabas.raft.reconfiguration import AddVoter, VoterSituation, add_response, remove_response
from barnabas.raft.records import ControlRecord
from barnabas.raft.roles import (
    FOREVER_MS,
    TRANSITIONS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    Votes,
)
from barnabas.raft.voters import (
    RECONFIGURATION_VERSION,
    Endpoints,
    Node,
    ReplicaKey,
    Voter,
    VoterHistory,
    VoterSet,
    node_of,
)
from barnabas.wire import ErrorCode, KafkaError, MalformedError, Message

MAX_TURNS = 10
MAX_PARKED_FETCHES = 10_000
CHECK_QUORUM_FACTOR = 1.5
FIRST_ELECTION_DIVISOR = 4  # of the election timeout


class _Proposal(NamedTuple):
    timestamp: int
    values: Sequence[bytes] = ()
    controls: Sequence[ControlRecord] = ()
    voters: VoterSet | None = None
    size_in_bytes: int = 0


class RaftCore:
    """One replica of the metadata partition."""

    def __init__(
        self,
        config: RaftConfig,
        log: LogView,
        voters: VoterHistory,
        election: Election | None,
        now_ms: int,
        random: Random,
    ) -> None:
        self.config = config
        self.key = ReplicaKey(config.node_id, config.directory_id)
        self.log = log
        self.voters = voters
        self.connections = Connections(config.request_timeout_ms, config.retry_backoff_ms, random)
        # The content of a snapshot was committed when it was made.
        self.high_watermark = max(log.start.offset, 0 if log.snapshot_id is None else log.snapshot_id.offset)
        self.parked: dict[int, ParkedFetch] = {}
        self._random = random
        self._sends: list[Send] = []
        self._answers: list[Answer] = []
        self._proposals: list[_Proposal] = []
        self._proposed_bytes = 0
        self._next_offset = log.end_offset
        self._disk_is_busy = False
        self._handed_offset = log.end_offset  # end of the log that was written, or passed to the disk to write
        self._truncate_to: int | None = None
        self._batches: list[bytes] = []
        self._chunk: SnapshotChunk | None = None
        self._shutdown_deadline_ms: int | None = None
        self._saved_election = election
        self._told_high_watermark: int | None = None
        self._told_leadership: Leadership | None = None
        self.election = Election() if election is None else election
        self.role = self._first_role(now_ms)
        if self.voters.current.is_only_voter(self.key) and not isinstance(self.role, Candidate):
            self.become_prospective(now_ms)
        if isinstance(self.role, Candidate):
            self.election_changed(now_ms)
        self._poll(now_ms)

    # --- events ------------------------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        """Advance time. Must be called at `deadline_ms` at the latest."""
        self._poll(now_ms)

    def step(self, now_ms: int, message: Request | Response) -> None:
        self.connections.expire(now_ms)
        if isinstance(message, Request):
            requests.answer(self, now_ms, message)
        else:
            responses.accept(self, now_ms, message)
        self._poll(now_ms)

    def propose(self, now_ms: int, epoch: int, values: Sequence[bytes]) -> int:
        """Propose records as the leader of `epoch`, in one batch, and return the offset that the last one will have."""
        if not isinstance(self.role, Leader) or epoch != self.election.epoch or self.role.resign_requested:
            raise NotLeaderError(
                f"node {self.key.id} does not lead epoch {epoch}; the current epoch is {self.election.epoch}"
            )
        if not values:
            raise ValueError("nothing was proposed")
        size = sum(map(len, values))
        if size > self.config.max_batch_bytes:
            raise ProposalTooLargeError(f"{size} bytes of records are more than {self.config.max_batch_bytes}")
        if self._proposed_bytes + size > self.config.max_proposed_bytes:
            raise TooManyProposalsError(f"{self._proposed_bytes} bytes of records are waiting for the disk")
        return self._propose(_Proposal(now_ms, values, size_in_bytes=size))

    def on_appended(self, now_ms: int) -> None:
        """Report that the disk work of the last Ready is written and can be read."""
        self.log.written_offset = self._handed_offset
        self._serve_parked()

    def on_flushed(self, now_ms: int) -> None:
        """Report that the disk work of the last Ready is flushed."""
        self._disk_is_busy = False
        self.log.written_offset = self.log.flushed_offset = self._handed_offset
        self._serve_parked()
        self.advance_high_watermark(now_ms)
        self._poll(now_ms)

    def on_snapshot_installed(self, now_ms: int, snapshot_id: OffsetAndEpoch, voters: VoterHistory) -> None:
        """Report that a complete snapshot of the leader replaced the log. `voters` are those in the snapshot."""
        self.log.replace_by(snapshot_id)
        self._handed_offset = snapshot_id.offset
        self.voters = voters
        self._set_high_watermark(snapshot_id.offset)
        self.on_flushed(now_ms)

    def on_snapshot_created(self, snapshot_id: OffsetAndEpoch) -> None:
        """Report a new snapshot of the local state."""
        self.log.snapshot_id = snapshot_id

    def on_trimmed(self, snapshot_id: OffsetAndEpoch) -> None:
        """Report that the log now starts at the end of this snapshot."""
        self.log.trim(snapshot_id)
        self.voters.forget(snapshot_id.offset)

    def resign(self, now_ms: int, epoch: int) -> None:
        """Give up leadership of `epoch`. Does nothing for an older epoch."""
        if isinstance(self.role, Leader) and epoch == self.election.epoch:
            self.role.resign_requested = True
            self._poll(now_ms)

    def shutdown(self, now_ms: int, timeout_ms: int) -> None:
        """Shut down. A leader resigns and waits, for at most `timeout_ms`, until another one leads.

        See `is_shut_down`.
        """
        self._shutdown_deadline_ms = now_ms + timeout_ms
        self._poll(now_ms)

    def is_shut_down(self, now_ms: int) -> bool:
        if self._shutdown_deadline_ms is None:
            return False
        others_lead = self.election.leader_id not in (None, self.key.id)
        alone = self.voters.current.is_only_voter(self.key)
        return now_ms >= self._shutdown_deadline_ms or not self.is_voter or alone or others_lead

    # --- actions and state -------------------------------------------------------------------------------------------

    @property
    def has_answers(self) -> bool:
        """Whether the next `ready` returns answers, which may read what the log has now."""
        return bool(self._answers)

    def ready(self) -> Ready:
        """Return everything to be done now. Each action is returned once."""
        self._cut_batches()
        disk = None
        if not self._disk_is_busy and (self._truncate_to is not None or self._batches or self._chunk is not None):
            disk = DiskWork(self._truncate_to, b"".join(self._batches), self._chunk)
            self._truncate_to, self._batches, self._chunk = None, [], None
            self._disk_is_busy = True
            self._handed_offset = self.log.end_offset
        quorum_state = None
        if self.election != self._saved_election:
            self._saved_election = self.election
            quorum_state = QuorumState(self.election, self.voters.kraft_version, self.voters.current)
        high_watermark = None
        committed = min(self.high_watermark, self._handed_offset)
        if committed != self._told_high_watermark:
            high_watermark = self._told_high_watermark = committed
        leadership: Leadership | None = self.leadership
        if leadership == self._told_leadership:
            leadership = None
        else:
            self._told_leadership = leadership
        sends, self._sends = self._sends, []
        answers, self._answers = self._answers, []
        return Ready(quorum_state, disk, sends, answers, high_watermark, leadership)

    def deadline_ms(self) -> int:
        """Return when `tick` must be called if nothing else happens before."""
        deadlines = [fetch.deadline_ms for fetch in self.parked.values()]
        role = self.role
        if self._shutdown_deadline_ms is not None:
            deadlines.append(self._shutdown_deadline_ms)
        elif isinstance(role, Leader):
            deadlines += (role.quorum_deadline_ms, role.begin_epoch_ms)
            if role.change is not None:
                deadlines.append(role.change.deadline_ms)
        elif isinstance(role, Unattached | Follower) and (self.is_waiting_for_disk or not self.can_be_elected):
            pass  # nothing to do before the flush, and an observer only fetches
        else:
            deadlines.append(role.deadline_ms)
        retry_ms = self.connections.next_ms()
        if retry_ms is not None:
            deadlines.append(retry_ms)
        return min(deadlines, default=FOREVER_MS)

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role, Leader)

    @property
    def is_voter(self) -> bool:
        return self.voters.current.is_voter(self.key)

    @property
    def can_be_elected(self) -> bool:
        """Whether this replica may start an election: a voter, or one whose removal may not be committed yet.

        No other replica may have the record of the removal.
        """
        offset = self.voters.current_offset
        if self.is_voter or offset is None or offset < self.high_watermark:
            return self.is_voter
        before = self.voters.at(offset)[1]
        return before is not None and before.is_voter(self.key)

    @property
    def is_shutting_down(self) -> bool:
        return self._shutdown_deadline_ms is not None

    @property
    def next_offset(self) -> int:
        """The offset of the next proposal."""
        return self._next_offset if self.is_leader else self.log.end_offset

    @property
    def leadership(self) -> Leadership:
        if isinstance(self.role, Leader):
            return Leadership(self.key.id, self.election.epoch, self.role.epoch_start_offset)
        leader_id = self.election.leader_id
        return Leadership(None if leader_id == self.key.id else leader_id, self.election.epoch)

    @property
    def leader_listeners(self) -> Endpoints:
        match self.role:
            case Leader() | Resigned():
                return self.config.listeners
            case Follower(leader_listeners=listeners) | Prospective(leader_listeners=listeners):
                return listeners
            case _:
                return ()

    def leader_view(self, listener_name: str) -> LeaderView:
        """Return the leader as responses on this listener name it."""
        leader_id = self.election.leader_id
        node = None if leader_id is None else node_of(leader_id, self.leader_listeners, listener_name)
        return LeaderView(leader_id, self.election.epoch, node)

    def situation(self, leader_error: ErrorCode = ErrorCode.NONE) -> VoterSituation:
        """Return the state that decides about changes of voters."""
        leader = self.role if isinstance(self.role, Leader) else None
        return VoterSituation(
            self.config.cluster_id,
            self.config.listener_name,
            leader_error,
            leader is not None and leader.change is not None,
            None if leader is None else leader.high_watermark,
            self.voters.kraft_version,
            self.voters.current,
            self.voters.current_offset,
        )

    # --- called by requests and responses ----------------------------------------------------------------------------

    def reply(self, request_id: int, message: Message, read: LogRead | SnapshotRead | None = None) -> None:
        self._answers.append(Answer(request_id, message, read))

    def send(self, now_ms: int, node: Node, message: Message) -> bool:
        """Send a request, unless the node has another one pending or is backing off. Return whether it was sent."""
        if not self.connections.is_ready(node.id):
            return False
        self._sends.append(Send(self.connections.sent(node.id, now_ms), node, message))
        return True

    def grant_vote(self, now_ms: int, candidate: ReplicaKey) -> None:
        """Vote for a candidate in this epoch, and wait a full election timeout for it."""
        assert isinstance(self.role, Unattached | Prospective) and self.election.voted_key is None
        self.election = self.election._replace(voted_key=candidate)
        self.role.deadline_ms = self._election_deadline(now_ms)

    def learn_leader(self, now_ms: int, epoch: int, leader_id: int | None, listeners: Endpoints) -> bool:
        """Adopt a higher epoch or an unknown leader. Returns False for a second leader in the same epoch."""
        current = self.election
        if leader_id == self.key.id:
            return self.is_leader and epoch == current.epoch
        if epoch > current.epoch:
            if leader_id is None:
                self.become_unattached(now_ms, epoch)
            else:
                self.become_follower(now_ms, epoch, leader_id, listeners)
        elif epoch == current.epoch and leader_id is not None:
            if current.leader_id not in (None, leader_id):
                return False
            known = listeners or self.voters.current.listeners_of(leader_id)
            if current.leader_id is None or len(known) > len(self.leader_listeners):
                self.become_follower(now_ms, epoch, leader_id, known)
        return True

    def append_fetched(self, data: bytes) -> bool:
        """Append whole batches sent by the leader. Returns False if none of them continues the log."""
        end = 0
        try:
            for position, header in iterate_batches(data, tolerate_truncated=True):
                epoch = header.partition_leader_epoch
                if header.base_offset != self.log.end_offset or not self.log.last_epoch <= epoch <= self.epoch:
                    break
                check_crc(header, data, position)
                if header.is_control:
                    records.apply_control_batch(self.voters, data, position, header)
                self.log.append(epoch, header.next_offset)
                end = position + header.size_in_bytes
        except (BatchError, MalformedError):
            self.voters.truncate(self.log.end_offset)  # batches after the damage are dropped and fetched again
        if end:
            self._batches.append(data[:end])
        return end > 0 or not data

    def truncate(self, end_offset: int) -> None:
        """Truncate the end of the log, which the leader does not have."""
        if end_offset < self.high_watermark:
            raise CommittedLogLostError(
                f"the leader {self.election.leader_id} of epoch {self.election.epoch} diverges from this log at "
                f"{end_offset}, but it is committed up to {self.high_watermark}"
            )
        if end_offset < self.log.end_offset:
            self.log.truncate(end_offset)
            self.voters.truncate(end_offset)
            self._handed_offset = min(self._handed_offset, end_offset)
            self._truncate_to = end_offset

    def write_chunk(self, chunk: SnapshotChunk) -> None:
        self._chunk = chunk

    def follower_high_watermark(self, offset: int) -> None:
        self._set_high_watermark(min(offset, self.log.end_offset))

    def advance_high_watermark(self, now_ms: int) -> None:
        """Advance the high watermark to what a majority has. Only has an effect on the leader."""
        leader = self.role
        if not isinstance(leader, Leader) or not leader.advance(self.log.flushed_offset):
            return
        assert leader.high_watermark is not None
        self._set_high_watermark(leader.high_watermark)
        self._serve_parked()
        change = leader.change
        if change is not None and change.offset is not None and leader.high_watermark > change.offset:
            self.end_change(ErrorCode.NONE, None)
        if not self.is_voter and (self.voters.current_offset or 0) < leader.high_watermark:
            leader.resign_requested = True  # the removal of this voter is committed

    def append_voters(self, now_ms: int, voters: VoterSet) -> int:
        """Propose another voter set, and return the offset of its record."""
        return self._propose(_Proposal(now_ms, controls=[records.voters(voters)], voters=voters))

    def raise_kraft_version(self, now_ms: int, epoch: int) -> None:
        """Move the voter set from the configuration to the log, if every voter supports that.

        Raises NotLeaderError, or KafkaError if a voter has not sent its endpoints and versions, or supports only 0.
        """
        if not isinstance(self.role, Leader) or epoch != self.election.epoch:
            raise NotLeaderError(
                f"node {self.key.id} does not lead epoch {epoch}; the current epoch is {self.election.epoch}"
            )
        if self.voters.can_reconfigure or any(proposal.voters is not None for proposal in self._proposals):
            return
        known = {**self.role.updated_voters, self.key.id: Voter(self.key, self.config.listeners)}
        voters = VoterSet(known[each] for each in self.voters.current.ids if each in known)
        is_supported = all(each.max_kraft_version >= RECONFIGURATION_VERSION for each in voters)
        if voters.ids != self.voters.current.ids or not is_supported:
            message = "Invalid upgrade of kraft.version to 1 because not all of the voters support it"
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, message)
        controls = [records.kraft_version(RECONFIGURATION_VERSION), records.voters(voters)]
        self._propose(_Proposal(now_ms, controls=controls, voters=voters))

    def end_change(self, error: ErrorCode, message: str | None) -> None:
        """Answer the request of the pending voter change."""
        assert isinstance(self.role, Leader)
        change, self.role.change = self.role.change, None
        if isinstance(change, AddVoter):
            if change.ack_when_committed or change.offset is None:
                self.reply(change.request_id, add_response(error, message))
        elif change is not None:
            self.reply(change.request_id, remove_response(error, message))

    def park(self, fetch: ParkedFetch) -> bool:
        """Park a fetch until there is data. Returns False if too many are parked."""
        if len(self.parked) >= MAX_PARKED_FETCHES:
            return False
        self.parked[fetch.request.id] = fetch
        return True

    def cancel(self, request_id: int) -> None:
        """Drop a parked fetch whose sender no longer waits."""
        self.parked.pop(request_id, None)

    # --- role transitions --------------------------------------------------------------------------------------------

    def become_unattached(self, now_ms: int, epoch: int, leader_id: int | None = None) -> None:
        match self.role:
            case _ if not self.can_be_elected:
                deadline_ms = FOREVER_MS
            case Unattached(deadline_ms=left) | Candidate(deadline_ms=left) | Resigned(deadline_ms=left):
                deadline_ms = left
            case Prospective(votes=votes, deadline_ms=left) if not votes.is_lost:
                deadline_ms = left
            case _:
                deadline_ms = self._election_deadline(now_ms)
        voted_key = self.election.voted_key if epoch == self.election.epoch else None
        self._enter(now_ms, Unattached(deadline_ms), Election(epoch, leader_id, voted_key))

    def become_follower(self, now_ms: int, epoch: int, leader_id: int, listeners: Endpoints) -> None:
        known = listeners or self.voters.current.listeners_of(leader_id)
        if node_of(leader_id, known, self.config.listener_name) is None:
            self.become_unattached(now_ms, epoch, leader_id)  # the leader is known, but not its address
            return
        timeout_ms = self.config.fetch_timeout_ms
        voted_key = self.election.voted_key if epoch == self.election.epoch else None
        role = Follower(known, now_ms + timeout_ms, now_ms + timeout_ms)
        self._enter(now_ms, role, Election(epoch, leader_id, voted_key))

    def become_prospective(self, now_ms: int) -> None:
        votes = Votes(self.voters.current, self.key.id)
        listeners = self.role.leader_listeners if isinstance(self.role, Follower) else ()
        role = Prospective(votes, self._election_deadline(now_ms), listeners)
        self._enter(now_ms, role, self.election)
        self.election_changed(now_ms)

    def become_candidate(self, now_ms: int) -> None:
        votes = Votes(self.voters.current, self.key.id)
        role = Candidate(votes, self._election_deadline(now_ms))
        self._enter(now_ms, role, Election(self.election.epoch + 1, None, self.key))
        self.election_changed(now_ms)

    def election_changed(self, now_ms: int) -> None:
        """React to a counted vote.

        A candidate that lost waits for its deadline; a prospective replica returns at once.
        """
        match self.role:
            case Prospective(votes=votes) if votes.is_won:
                self.become_candidate(now_ms)
            case Prospective(votes=votes) if votes.is_lost:
                self._end_prospects(now_ms)
            case Candidate(votes=votes) if votes.is_won:
                self._become_leader(now_ms, votes)
            case _:
                pass

    def _end_prospects(self, now_ms: int) -> None:
        leader_id = self.election.leader_id
        if leader_id is not None and self.leader_listeners:
            self.become_follower(now_ms, self.election.epoch, leader_id, self.leader_listeners)
        else:
            self.become_unattached(now_ms, self.election.epoch, leader_id)

    def _become_leader(self, now_ms: int, votes: Votes) -> None:
        voters = self.voters.current
        timeout_ms = int(self.config.fetch_timeout_ms * CHECK_QUORUM_FACTOR)
        leader = Leader(self.key, self.log.end_offset, timeout_ms, now_ms + timeout_ms, begin_epoch_ms=now_ms)
        leader.set_voters(voters)
        self._enter(now_ms, leader, self.election._replace(leader_id=self.key.id))
        self._next_offset = self.log.end_offset
        first = [records.leader_change(self.key.id, voters.ids, votes.granting)]
        changed = None
        if self.voters.can_reconfigure:
            own = Voter(self.key, self.config.listeners)
            # Voters that are only in the formatted checkpoint are not known to the other replicas yet.
            if self.voters.current_offset == -1 or (self.is_voter and voters.get(self.key.id) != own):
                changed = voters.update(own) or voters
                first += [records.kraft_version(self.voters.kraft_version), records.voters(changed)]
        self._propose(_Proposal(now_ms, controls=first, voters=changed))

    def _resign(self, now_ms: int, leader: Leader) -> None:
        others = set(self.voters.current.ids) - {self.key.id}
        role = Resigned(others, leader.successors(), self._election_deadline(now_ms))
        self._enter(now_ms, role, self.election)

    def _enter(self, now_ms: int, role: Role, election: Election) -> None:
        before = self.role
        assert type(role) in TRANSITIONS[type(before)], f"{type(before).__name__} to {type(role).__name__}"
        assert election.epoch >= self.election.epoch, "an epoch never goes back"
        if isinstance(before, Leader):
            self.end_change(ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
        self.role, self.election = role, election
        self.connections.reset()
        if isinstance(before, Leader):
            self._proposals.clear()
            self._proposed_bytes = 0
            for fetch in self.parked.values():
                self._refuse_parked(fetch)
            self.parked.clear()

    def _first_role(self, now_ms: int) -> Role:
        """Return the role after a start: never leader, and never one that could vote twice in an epoch."""
        election = self.election
        deadline_ms = self._election_deadline(now_ms) if self.can_be_elected else FOREVER_MS
        if election.epoch < self.log.last_epoch:
            self.election = Election(self.log.last_epoch)
            return Unattached(deadline_ms)
        if election == Election() and self.can_be_elected:  # in a new cluster, soon: a pre-vote disturbs no leader
            soon_ms = self.config.election_timeout_ms // FIRST_ELECTION_DIVISOR
            return Unattached(now_ms + self._random.randrange(max(1, soon_ms)))
        if election.leader_id == self.key.id:
            others = set(self.voters.current.ids) - {self.key.id}
            return Resigned(others, (), self._election_deadline(now_ms))
        if election.voted_key is not None and election.voted_key.is_known_as(self.key) and self.can_be_elected:
            return Candidate(Votes(self.voters.current, self.key.id), deadline_ms)
        if election.leader_id is not None:
            listeners = self.voters.current.listeners_of(election.leader_id)
            if node_of(election.leader_id, listeners, self.config.listener_name) is not None:
                timeout_ms = self.config.fetch_timeout_ms
                return Follower(listeners, now_ms + timeout_ms, now_ms + timeout_ms)
        return Unattached(deadline_ms)

    def _election_deadline(self, now_ms: int) -> int:
        timeout_ms = self.config.election_timeout_ms
        return now_ms + timeout_ms + (self._random.randrange(timeout_ms) if timeout_ms else 0)

    # --- timers ------------------------------------------------------------------------------------------------------

    def _poll(self, now_ms: int) -> None:
        self.connections.expire(now_ms)
        for request_id in [key for key, fetch in self.parked.items() if now_ms >= fetch.deadline_ms]:
            requests.answer_fetch(self, self.parked.pop(request_id))
        for _ in range(MAX_TURNS):
            before = self.role
            self._poll_role(now_ms)
            if self.role is before:
                return

    def _poll_role(self, now_ms: int) -> None:
        match self.role:
            case Unattached() as unattached:
                self._poll_unattached(now_ms, unattached)
            case Follower() as follower:
                self._poll_follower(now_ms, follower)
            case Prospective() as prospective:
                if now_ms >= prospective.deadline_ms and not self.is_shutting_down:
                    self._end_prospects(now_ms)
                else:
                    outgoing.send_votes(self, now_ms, prospective.votes, pre_vote=True)
            case Candidate() as candidate:
                if now_ms >= candidate.deadline_ms and not self.is_shutting_down:
                    self.become_prospective(now_ms)
                elif not candidate.votes.is_lost:
                    outgoing.send_votes(self, now_ms, candidate.votes, pre_vote=False)
            case Leader() as leader:
                self._poll_leader(now_ms, leader)
            case Resigned() as resigned:
                if now_ms >= resigned.deadline_ms and not self.is_shutting_down:
                    self.become_unattached(now_ms, self.election.epoch + 1)
                else:
                    outgoing.send_end(self, now_ms, resigned)

    def _poll_unattached(self, now_ms: int, role: Unattached) -> None:
        if self.is_shutting_down:
            return
        if self.can_be_elected and now_ms >= role.deadline_ms:
            self._stand_for_election(now_ms)
        else:
            outgoing.fetch_from_anyone(self, now_ms)

    def _poll_follower(self, now_ms: int, role: Follower) -> None:
        if self.is_shutting_down:
            return
        if self.can_be_elected and now_ms >= role.deadline_ms:
            self._stand_for_election(now_ms)
        elif now_ms >= role.update_voter_ms and outgoing.tell_leader_of_itself(self, now_ms, role):
            return
        elif now_ms >= role.deadline_ms:
            outgoing.fetch_from_anyone(self, now_ms)
        else:
            outgoing.fetch_from_leader(self, now_ms, role)

    def _poll_leader(self, now_ms: int, leader: Leader) -> None:
        leader.expect_fetches(now_ms)
        if self.is_shutting_down or leader.resign_requested or now_ms >= leader.quorum_deadline_ms:
            self._resign(now_ms, leader)
            return
        if leader.change is not None and now_ms >= leader.change.deadline_ms:
            self.end_change(ErrorCode.REQUEST_TIMED_OUT, None)
        if now_ms < leader.begin_epoch_ms:
            return
        outgoing.remind_voters(self, now_ms, leader)

    def _stand_for_election(self, now_ms: int) -> None:
        """Start an election once the log is flushed: after a crash, a repeated vote does not check the log again."""
        if not self.is_waiting_for_disk:
            self.become_prospective(now_ms)

    @property
    def is_waiting_for_disk(self) -> bool:
        has_work = self._truncate_to is not None or self._chunk is not None
        return self._disk_is_busy or has_work or self.log.flushed_offset != self.log.end_offset

    # --- log ---------------------------------------------------------------------------------------------------------

    def _propose(self, proposal: _Proposal) -> int:
        self._proposals.append(proposal)
        self._proposed_bytes += proposal.size_in_bytes
        self._next_offset += len(proposal.values) + len(proposal.controls)
        return self._next_offset - 1

    def _cut_batches(self) -> None:
        """Build batches of all proposals, unless the disk is busy: then more of them accumulate for the next write."""
        if not self._proposals or self._disk_is_busy or not self.is_leader:
            return
        gathered: list[_Proposal] = []
        size = 0
        for proposal in self._proposals:
            is_full = size + proposal.size_in_bytes > self.config.max_batch_bytes
            if gathered and (proposal.controls or is_full):
                self._append_values(gathered)
                gathered, size = [], 0
            if proposal.controls:
                self._append_controls(proposal)
            else:
                gathered.append(proposal)
                size += proposal.size_in_bytes
        if gathered:
            self._append_values(gathered)
        self._proposals.clear()
        self._proposed_bytes = 0

    def _append_values(self, proposals: list[_Proposal]) -> None:
        timestamp = proposals[0].timestamp  # of all: Apache Kafka ends if records of a batch have different ones
        batch = build_batch(
            (Record(0, timestamp, None, value) for each in proposals for value in each.values),
            base_offset=self.log.end_offset,
            partition_leader_epoch=self.epoch,
        )
        self._append(batch, sum(len(each.values) for each in proposals))

    def _append_controls(self, proposal: _Proposal) -> None:
        batch = build_control_batch(
            proposal.controls,
            timestamp=proposal.timestamp,
            base_offset=self.log.end_offset,
            partition_leader_epoch=self.epoch,
        )
        self._append(batch, len(proposal.controls))
        for position, header in iterate_batches(batch):
            records.apply_control_batch(self.voters, batch, position, header)
        leader = self.role
        if proposal.voters is not None and isinstance(leader, Leader):
            before = leader.voters.keys()
            leader.set_voters(proposal.voters)
            if leader.voters.keys() != before:
                leader.begin_epoch_ms = 0  # send BeginQuorumEpoch to new voters at once

    def _append(self, batch: bytes, count: int) -> None:
        self._batches.append(batch)
        self.log.append(self.epoch, self.log.end_offset + count)

    def _set_high_watermark(self, offset: int) -> None:
        self.high_watermark = max(offset, self.high_watermark)

    def _serve_parked(self) -> None:
        leader = self.role
        if not isinstance(leader, Leader):
            return
        known = -1 if leader.high_watermark is None else leader.high_watermark
        served = [
            key
            for key, fetch in self.parked.items()
            if fetch.offset < self.log.written_offset or fetch.high_watermark < known
        ]
        for key in served:
            requests.answer_fetch(self, self.parked.pop(key))

    def _refuse_parked(self, fetch: ParkedFetch) -> None:
        view = self.leader_view(fetch.request.listener_name)
        message = messages.fetch_response(
            fetch.request.version, ErrorCode.NOT_LEADER_OR_FOLLOWER, view, self.log.start.offset
        )
        self.reply(fetch.request.id, message)
