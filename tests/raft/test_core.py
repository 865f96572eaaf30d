"""One replica at a time: what each role does with time, requests and answers, and in which order things leave it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas.batches import Record, build_batch, decode_header, decode_records, iterate_batches
from barnabas.raft import messages, requests
from barnabas.raft.log import MemoryLog, OffsetAndEpoch
from barnabas.raft.messages import LeaderView
from barnabas.raft.quorum_state import Election
from barnabas.raft.ready import (
    CommittedLogLostError,
    Leadership,
    NotLeaderError,
    ProposalTooLargeError,
    Send,
    TooManyProposalsError,
)
from barnabas.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from barnabas.raft.voters import Node, ReplicaKey, VoterSet
from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from barnabas.wire.messages.vote import VoteRequest, VoteResponse
from tests.raft.harness import Replica
from tests.raft.simulation import CLUSTER_ID, START_MS, config_of, key_of, voter_of, voter_set
from tests.raft.snapshots import SnapshotBuilder

THREE = voter_set(1, 2, 3)


def of_kind(sends: list[Send], cls: type[Message]) -> list[Send]:
    return [send for send in sends if isinstance(send.message, cls)]


def grant(replica: Replica, send: Send, *, granted: bool = True, leader: LeaderView | None = None) -> None:
    view = LeaderView(None, replica.core.epoch) if leader is None else leader
    replica.respond(send, messages.vote_response(2, ErrorCode.NONE, view, granted=granted))


def elected(node_id: int = 1, voters: VoterSet = THREE, **arguments: Any) -> Replica:
    """A replica that leads epoch 1."""
    replica = Replica(node_id, voters, **arguments)
    if not replica.core.is_leader:
        replica.after(2000)
        for _ in range(2):
            for send in of_kind(replica.take_sends(), VoteRequest):
                grant(replica, send)
    assert replica.core.is_leader
    return replica


def following(leader_id: int = 2, epoch: int = 1, **arguments: Any) -> Replica:
    """A replica that follows a leader, and its first fetch is on the way."""
    replica = Replica(**arguments)
    replica.take_sends()
    begin = messages.begin_request(CLUSTER_ID, epoch, leader_id, voter_of(leader_id).listeners, replica.core.key)
    assert replica.ask(begin, 1).topics[0].partitions[0].error_code == ErrorCode.NONE
    assert isinstance(replica.core.role, Follower)
    return replica


def fetching(replica: Replica) -> Send:
    sends = of_kind(replica.take_sends(), FetchRequest)
    assert len(sends) == 1
    return sends[0]


def fetched(
    replica: Replica,
    send: Send,
    data: bytes = b"",
    high_watermark: int = -1,
    leader_id: int = 2,
    diverging: OffsetAndEpoch | None = None,
    snapshot: OffsetAndEpoch | None = None,
) -> None:
    view = LeaderView(leader_id, replica.core.epoch)
    response = messages.fetch_response(17, ErrorCode.NONE, view, 0, high_watermark)
    partition = response.responses[0].partitions[0]
    partition.records = data
    if diverging is not None:
        partition.diverging_epoch = FetchResponse.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.offset)
    if snapshot is not None:
        partition.snapshot_id = FetchResponse.SnapshotId(epoch=snapshot.epoch, end_offset=snapshot.offset)
    replica.respond(send, response)


def batch(offset: int, epoch: int = 1, *values: bytes) -> bytes:
    found = [Record(0, START_MS, None, value) for value in values or (b"value",)]
    return build_batch(found, base_offset=offset, partition_leader_epoch=epoch)


def fetch_of(
    replica: Replica,
    node_id: int,
    offset: int,
    wait_ms: int = 0,
    high_watermark: int = 1 << 62,
    epoch: int | None = None,
) -> Any:
    end = OffsetAndEpoch(offset, replica.core.log.last_epoch if offset else 0)
    current = replica.core.epoch if epoch is None else epoch
    key = key_of(node_id) if node_id >= 0 else ReplicaKey(-1)
    return replica.ask(messages.fetch_request(CLUSTER_ID, current, key, end, high_watermark, wait_ms, 1 << 20), 17)


def vote(
    epoch: int, candidate: int, end: tuple[int, int] = (0, 0), voter: int = 1, *, pre: bool = False
) -> VoteRequest:
    return messages.vote_request(
        CLUSTER_ID, epoch, key_of(candidate), key_of(voter), OffsetAndEpoch(*end), pre_vote=pre
    )


def granted(answer: VoteResponse) -> bool:
    return answer.topics[0].partitions[0].vote_granted


# --- a single voter


def test_a_single_voter_leads_at_once() -> None:
    replica = Replica(1, voter_set(1))
    assert replica.core.leadership == Leadership(1, 1, 0)
    assert replica.saved == Election(1, 1, key_of(1))
    assert replica.core.high_watermark == replica.log.end_offset == 3
    assert replica.take_sends() == []


@pytest.mark.parametrize(
    "election", [Election(7, 1, key_of(1)), Election(7), Election(7, None, ReplicaKey(2)), Election(7, 2)]
)
def test_a_single_voter_leads_the_next_epoch_after_a_restart(election: Election) -> None:
    assert Replica(1, voter_set(1), election=election).core.leadership == Leadership(1, 8, 0)


def test_a_single_voter_that_voted_for_itself_leads_that_epoch() -> None:
    assert Replica(1, voter_set(1), election=Election(7, None, key_of(1))).core.epoch == 7


def test_a_log_with_a_later_epoch_than_the_state_counts() -> None:
    first = Replica(1, voter_set(1), election=Election(7))
    again = Replica(1, log=first.log, election=Election(2))
    assert again.core.epoch == 9


def test_the_state_is_to_be_saved_before_anything_is_written() -> None:
    ready = Replica(1, voter_set(1)).readies[0]
    assert ready.quorum_state is not None
    assert ready.quorum_state.election == Election(1, 1, key_of(1))
    assert ready.disk is not None
    assert ready.leadership == Leadership(1, 1, 0)


def test_a_single_voter_never_resigns_for_lack_of_fetches() -> None:
    replica = Replica(1, voter_set(1))
    replica.after(10_000_000)
    assert replica.core.is_leader


def test_a_configured_single_voter_writes_no_voters() -> None:
    replica = Replica(1, static_voters=VoterSet.parse("1@h:1", "CONTROLLER"))
    assert replica.log.end_offset == 1
    state = replica.readies[0].quorum_state
    assert state is not None
    assert state.to_record()[1] == 0
    assert [voter.voter_id for voter in state.to_record()[0].current_voters or []] == [1]


# --- elections


def test_a_voter_asks_first_before_it_begins_an_epoch() -> None:
    replica = Replica(1, THREE)
    replica.after(2000)
    assert isinstance(replica.core.role, Prospective)
    sends = of_kind(replica.take_sends(), VoteRequest)
    assert [send.destination for send in sends] == [Node(2, "host2", 9093), Node(3, "host3", 9093)]
    for send in sends:
        assert isinstance(send.message, VoteRequest)
        partition = send.message.topics[0].partitions[0]
        assert (partition.pre_vote, partition.replica_epoch) == (True, 0)
    assert replica.saved == Election(0), "nothing is at stake yet"


def test_votes_are_asked_for_when_a_majority_would_grant_them_and_the_own_vote_is_saved_first() -> None:
    replica = Replica(1, THREE)
    replica.after(2000)
    first = of_kind(replica.take_sends(), VoteRequest)[0]
    count = len(replica.readies)
    grant(replica, first)
    assert isinstance(replica.core.role, Candidate)
    ready = replica.readies[count]
    assert ready.quorum_state is not None
    assert ready.quorum_state.election == Election(1, None, key_of(1))
    assert len(of_kind(list(ready.sends), VoteRequest)) == 2
    for send in of_kind(replica.take_sends(), VoteRequest):
        grant(replica, send)
        assert replica.core.is_leader
        break
    assert replica.saved == Election(1, 1, key_of(1))


def test_a_leader_tells_the_others_and_reminds_who_is_silent() -> None:
    replica = elected()
    begins = of_kind(replica.take_sends(), BeginQuorumEpochRequest)
    assert {send.destination.id for send in begins} == {2, 3}
    for send in begins:
        replica.respond(send, messages.begin_response(1, ErrorCode.NONE, LeaderView(1, 1)))
    fetch_of(replica, 2, 0)
    for _ in range(3):
        replica.after(500)
        fetch_of(replica, 2, replica.log.end_offset)
    assert {send.destination.id for send in of_kind(replica.take_sends(), BeginQuorumEpochRequest)} == {3}


def test_who_would_not_be_elected_waits_for_a_leader_again() -> None:
    replica = Replica(1, THREE)
    replica.after(2000)
    for send in of_kind(replica.take_sends(), VoteRequest):
        grant(replica, send, granted=False)
    assert isinstance(replica.core.role, Unattached)
    assert replica.core.epoch == 0


def test_who_had_a_leader_goes_back_to_it_when_others_hear_of_it() -> None:
    replica = following()
    replica.after(2000)
    assert isinstance(replica.core.role, Prospective)
    for send in of_kind(replica.take_sends(), VoteRequest):
        grant(replica, send, granted=False, leader=LeaderView(2, 1))
    assert isinstance(replica.core.role, Follower)
    assert replica.core.election == Election(1, 2)


def test_a_candidate_that_lost_waits_and_then_asks_again() -> None:
    replica = Replica(1, THREE)
    replica.after(2000)
    grant(replica, of_kind(replica.take_sends(), VoteRequest)[0])
    for send in of_kind(replica.take_sends(), VoteRequest):
        grant(replica, send, granted=False)
    assert isinstance(replica.core.role, Candidate)
    replica.after(500)
    assert isinstance(replica.core.role, Candidate)
    assert of_kind(replica.take_sends(), VoteRequest) == []
    replica.after(2000)
    assert isinstance(replica.core.role, Prospective)
    assert replica.core.epoch == 1


def test_voters_that_cannot_be_asked_first_are_asked_for_their_votes() -> None:
    replica = Replica(1, THREE)
    replica.after(2000)
    send = of_kind(replica.take_sends(), VoteRequest)[0]
    replica.respond(send, VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    assert isinstance(replica.core.role, Candidate)


def test_an_answer_with_a_leader_ends_the_election() -> None:
    replica = Replica(1, THREE)
    replica.after(2000)
    send = of_kind(replica.take_sends(), VoteRequest)[0]
    grant(replica, send, granted=False, leader=LeaderView(3, 4))
    assert isinstance(replica.core.role, Follower)
    assert replica.saved == Election(4, 3)


def test_a_vote_is_saved_before_it_is_told_and_survives_a_restart() -> None:
    replica = Replica(1, THREE)
    count = len(replica.readies)
    assert granted(replica.ask(vote(3, 2), 2))
    ready = replica.readies[count]
    assert ready.quorum_state is not None
    assert ready.quorum_state.election == Election(3, None, key_of(2))
    assert len(ready.answers) == 1
    again = Replica(1, log=replica.log, election=replica.saved)
    assert not granted(again.ask(vote(3, 3), 2))
    assert granted(again.ask(vote(3, 2), 2))
    assert granted(again.ask(vote(4, 3), 2))


def test_a_vote_goes_to_a_log_that_is_at_least_as_long() -> None:
    log = MemoryLog()
    log.append(batch(0, 2) + batch(1, 5))

    def would_vote(end: tuple[int, int]) -> bool:
        found = Replica(1, log=log, static_voters=THREE, election=Election(6))
        assert granted(found.ask(vote(6, 2, end, pre=True), 2)) == granted(found.ask(vote(7, 2, end), 2))
        return granted(found.ask(vote(8, 3, end), 2))

    assert would_vote((2, 5))
    assert would_vote((1, 6))
    assert would_vote((9, 5))
    assert not would_vote((1, 5))
    assert not would_vote((99, 4))


def test_a_follower_with_a_leader_that_answers_says_no_to_questions() -> None:
    replica = following()
    assert granted(replica.ask(vote(1, 3, pre=True), 2)), "it has never heard of the leader itself"
    fetched(replica, fetching(replica))
    assert not granted(replica.ask(vote(1, 3, pre=True), 2))
    assert not granted(replica.ask(vote(1, 3), 2))
    assert replica.core.election == Election(1, 2), "the question changed nothing"


def test_a_former_leader_neither_leads_nor_votes_in_its_epoch_after_a_restart() -> None:
    replica = elected()
    again = Replica(1, log=replica.log, election=replica.saved)
    assert isinstance(again.core.role, Resigned)
    assert {send.destination.id for send in of_kind(again.take_sends(), EndQuorumEpochRequest)} == {2, 3}
    assert not granted(again.ask(vote(1, 2, (99, 0)), 2))
    assert granted(again.ask(vote(1, 2, (99, 1), pre=True), 2))
    assert again.core.leadership == Leadership(None, 1)
    again.after(2000)
    assert isinstance(again.core.role, Unattached | Prospective)
    assert again.core.epoch == 2


def test_a_former_candidate_goes_on_in_its_epoch() -> None:
    replica = Replica(1, THREE, election=Election(4, None, key_of(1)))
    assert isinstance(replica.core.role, Candidate)
    for send in of_kind(replica.take_sends(), VoteRequest)[:1]:
        grant(replica, send)
    assert replica.core.leadership == Leadership(1, 4, 0)


def test_a_former_follower_goes_on_with_its_leader() -> None:
    replica = Replica(1, THREE, election=Election(4, 3))
    assert isinstance(replica.core.role, Follower)
    assert fetching(replica).destination.id == 3


def test_a_leader_of_another_address_is_found_where_it_says() -> None:
    replica = Replica(1, THREE)
    replica.take_sends()
    begin = messages.begin_request(CLUSTER_ID, 1, 9, voter_of(9).listeners, key_of(1))
    replica.ask(begin, 1)
    assert fetching(replica).destination == Node(9, "host9", 9093)


def test_a_leader_without_an_address_is_known_but_not_followed() -> None:
    replica = Replica(1, THREE)
    begin = messages.begin_request(CLUSTER_ID, 1, 9, (), key_of(1))
    answer = replica.ask(begin, 1)
    assert answer.topics[0].partitions[0].leader_id == 9
    assert isinstance(replica.core.role, Unattached)


def test_two_leaders_of_one_epoch_are_not_believed() -> None:
    replica = following(2)
    begin = messages.begin_request(CLUSTER_ID, 1, 3, voter_of(3).listeners, key_of(1))
    assert replica.ask(begin, 1).topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    assert replica.core.election.leader_id == 2
    leader = elected()
    end = messages.end_request(CLUSTER_ID, 5, 1, (), ())
    assert leader.ask(end, 1).topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    assert leader.core.is_leader, "nor that it leads an epoch of which it knows nothing"


@pytest.mark.parametrize(
    ("candidates", "backoff_ms"), [((1, 2, 3), 0), ((2, 1, 3), 250), ((2, 3, 1), 500), ((2, 3), 1000), ((), 0)]
)
def test_the_longest_log_stands_first_when_a_leader_leaves(candidates: tuple[int, ...], backoff_ms: int) -> None:
    assert requests.succession_backoff_ms(key_of(1), [key_of(each) for each in candidates], 1000) == backoff_ms


def test_a_preferred_successor_stands_at_once() -> None:
    replica = following(2)
    replica.ask(messages.end_request(CLUSTER_ID, 1, 2, (), (key_of(1), key_of(3))), 1)
    assert isinstance(replica.core.role, Prospective)
    other = following(2)
    other.ask(messages.end_request(CLUSTER_ID, 1, 2, (), (key_of(3), key_of(1))), 1)
    assert isinstance(other.core.role, Follower)
    other.after(500)
    assert isinstance(other.core.role, Prospective)


# --- a follower and its log


def test_a_follower_fetches_appends_and_commits() -> None:
    replica = following()
    send = fetching(replica)
    assert isinstance(send.message, FetchRequest)
    partition = send.message.topics[0].partitions[0]
    assert (partition.fetch_offset, partition.last_fetched_epoch, partition.current_leader_epoch) == (0, 0, 1)
    fetched(replica, send, batch(0) + batch(1), high_watermark=1)
    assert replica.log.end_offset == 2
    assert replica.core.high_watermark == 1
    partition = fetching(replica).message.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (partition.fetch_offset, partition.last_fetched_epoch, partition.high_watermark) == (2, 1, 1)


def test_a_follower_says_that_it_has_something_only_when_it_is_on_disk() -> None:
    replica = following(flushes=False)
    fetched(replica, fetching(replica), batch(0), high_watermark=1)
    assert replica.take_sends() == []
    replica.after(100)
    assert replica.take_sends() == []
    replica.flush()
    replica.process()
    assert fetching(replica).message.topics[0].partitions[0].fetch_offset == 1  # type: ignore[attr-defined]


def test_who_has_not_flushed_does_not_stand_for_election() -> None:
    replica = following(flushes=False)
    fetched(replica, fetching(replica), batch(0))
    replica.after(10_000)
    assert isinstance(replica.core.role, Follower)
    assert replica.core.deadline_ms() > replica.now_ms, "there is nothing to do before the flush"
    replica.flush()
    replica.process()
    assert isinstance(replica.core.role, Prospective)


def test_the_high_watermark_is_not_beyond_what_is_there() -> None:
    replica = following()
    fetched(replica, fetching(replica), batch(0), high_watermark=50)
    assert replica.core.high_watermark == 1
    fetched(replica, fetching(replica), high_watermark=-1)
    assert replica.core.high_watermark == 1


def test_a_follower_whose_log_diverges_truncates_it() -> None:
    log = MemoryLog()
    log.append(batch(0, 1) + batch(1, 1) + batch(2, 3))
    log.flush()
    replica = following(epoch=5, log=log, static_voters=THREE, election=Election(4))
    fetched(replica, fetching(replica), diverging=OffsetAndEpoch(2, 2))
    assert log.end_offset == 2
    assert replica.core.log.end == (2, 1)
    fetched(replica, fetching(replica), batch(2, 5))
    assert replica.core.log.end == (3, 5)


def test_what_is_committed_is_never_truncated() -> None:
    replica = following()
    fetched(replica, fetching(replica), batch(0) + batch(1), high_watermark=2)
    with pytest.raises(CommittedLogLostError):
        fetched(replica, fetching(replica), diverging=OffsetAndEpoch(1, 1))


def test_voters_take_effect_when_appended_and_are_undone_when_truncated() -> None:
    leader = elected(2)
    control = leader.log.read(0, 1 << 20)
    replica = following(static_voters=voter_set(1, 2))
    fetched(replica, fetching(replica), control)
    assert replica.core.voters.current == THREE
    assert replica.core.high_watermark == 0
    fetched(replica, fetching(replica), diverging=OffsetAndEpoch(0, 0))
    assert replica.core.voters.current == voter_set(1, 2)


@pytest.mark.parametrize(
    "data",
    [
        batch(5),
        batch(0, 2),
        batch(0)[:-1],
        batch(0)[:-1] + b"X",
        b"nonsense, and long enough to be looked at as a batch of records" * 2,
    ],
    ids=["a gap", "a later epoch than the leader's", "half a batch", "a wrong crc", "nonsense"],
)
def test_what_does_not_fit_is_not_appended(data: bytes) -> None:
    replica = following()
    fetched(replica, fetching(replica), data, high_watermark=5)
    assert replica.log.end_offset == replica.core.log.end_offset == 0
    assert replica.core.high_watermark == 0
    replica.after(20)
    assert len(replica.take_sends()) == 1, "it tries again, after a pause"


def test_a_batch_that_was_cut_off_is_left_for_the_next_fetch() -> None:
    replica = following()
    fetched(replica, fetching(replica), batch(0) + batch(1)[:-7])
    assert replica.log.end_offset == 1


def test_a_follower_that_hears_nothing_asks_whether_it_would_be_elected() -> None:
    replica = following()
    fetched(replica, fetching(replica))
    replica.after(1999)
    assert isinstance(replica.core.role, Follower)
    replica.after(1)
    assert isinstance(replica.core.role, Prospective)


def test_a_follower_asks_others_when_its_leader_does_not_answer() -> None:
    replica = following(3)
    send = fetching(replica)
    replica.respond(send, None)
    assert fetching(replica).destination.id == 2
    replica.after(20)
    assert replica.take_sends() == [], "one fetch at a time"


def test_a_snapshot_is_downloaded_and_takes_the_place_of_the_log() -> None:
    snapshot_id = OffsetAndEpoch(100, 1)
    builder = SnapshotBuilder(snapshot_id)
    data = builder.header(START_MS, START_MS, 1, voter_set(1, 2)) + builder.records([b"x"] * 30, START_MS)
    data += builder.footer(START_MS)
    replica = following()
    fetched(replica, fetching(replica), snapshot=snapshot_id)
    position = 0
    while position < len(data):
        send = of_kind(replica.take_sends(), FetchSnapshotRequest)[0]
        assert isinstance(send.message, FetchSnapshotRequest)
        assert send.message.topics[0].partitions[0].position == position
        response = messages.snapshot_response(1, ErrorCode.NONE, LeaderView(2, 1))
        partition = response.topics[0].partitions[0]
        partition.snapshot_id.end_offset, partition.snapshot_id.epoch = snapshot_id
        partition.size, partition.position = len(data), position
        partition.unaligned_records = data[position : position + 100]
        position += 100
        replica.respond(send, response)
    assert (replica.log.start_offset, replica.log.end_offset, replica.core.high_watermark) == (100, 100, 100)
    assert replica.core.voters.current == voter_set(1, 2)
    assert replica.core.voters.current_offset == 99
    partition_sent = fetching(replica).message.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (partition_sent.fetch_offset, partition_sent.last_fetched_epoch) == (100, 1)


def test_a_snapshot_that_is_gone_is_not_asked_for_again() -> None:
    replica = following()
    fetched(replica, fetching(replica), snapshot=OffsetAndEpoch(100, 1))
    send = of_kind(replica.take_sends(), FetchSnapshotRequest)[0]
    replica.respond(send, messages.snapshot_response(1, ErrorCode.SNAPSHOT_NOT_FOUND, LeaderView(2, 1)))
    assert fetching(replica)


def test_a_voter_that_moved_tells_the_leader() -> None:
    config = replace(config_of(1), listeners=voter_of(7).listeners)
    replica = following(config=config)
    for _ in range(4):
        fetched(replica, fetching(replica))
        replica.now_ms += 500
    fetched(replica, fetching(replica))
    update = of_kind(replica.take_sends(), UpdateRaftVoterRequest)[0].message
    assert isinstance(update, UpdateRaftVoterRequest)
    assert update.listeners[0].host == "host7"


# --- an observer


def test_an_observer_asks_around_finds_the_leader_and_appends_in_one_go() -> None:
    config = config_of(9, bootstrap_servers=(("host2", 9093),))
    replica = Replica(9, log=MemoryLog(), config=config)
    send = fetching(replica)
    assert send.destination == Node(-2, "host2", 9093)
    response = messages.fetch_response(17, ErrorCode.NONE, LeaderView(2, 4, Node(2, "host2", 9093)), 0, 1)
    response.responses[0].partitions[0].records = batch(0, 4)
    replica.core.learn_leader(replica.now_ms, 4, None, ())
    replica.after(0)
    send = fetching(replica)
    replica.respond(send, response)
    assert isinstance(replica.core.role, Follower)
    assert (replica.log.end_offset, replica.core.high_watermark) == (1, 1)
    assert fetching(replica).destination == Node(2, "host2", 9093)


def test_an_observer_never_stands_for_election() -> None:
    config = config_of(9, bootstrap_servers=(("host2", 9093),))
    replica = Replica(9, log=MemoryLog(), config=config)
    for _ in range(20):
        replica.after(1000)
    assert isinstance(replica.core.role, Unattached)
    follower = following(config=config_of(9), log=MemoryLog(), static_voters=THREE)
    for _ in range(20):
        follower.after(1000)
    assert isinstance(follower.core.role, Follower)
    assert of_kind(follower.take_sends(), VoteRequest) == []


def test_nobody_is_asked_in_a_hot_loop() -> None:
    config = config_of(9, bootstrap_servers=(("host2", 9093),))
    replica = Replica(9, log=MemoryLog(), config=config)
    for error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH):
        view = LeaderView(None, 0)
        replica.respond(fetching(replica), messages.fetch_response(17, error, view, 0))
        assert replica.take_sends() == []
        replica.after(20)
    replica.respond(fetching(replica), FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert replica.take_sends() == []


def test_one_that_was_removed_by_a_record_that_may_not_be_committed_can_still_be_elected() -> None:
    """Of two voters the leader removed itself, and nobody else has the record: without it nobody could be elected."""
    replica = elected(1, voter_set(1, 2))
    fetch_of(replica, 2, replica.log.end_offset)
    replica.core.append_voters(replica.now_ms, voter_set(2))
    replica.process()
    assert replica.core.voters.current.ids == {2}
    again = Replica(1, log=replica.log, election=replica.saved)
    again.after(2000)
    again.after(2000)
    assert isinstance(again.core.role, Prospective)
    for _ in range(2):
        for send in of_kind(again.take_sends(), VoteRequest):
            assert send.destination.id == 2
            grant(again, send)
    assert again.core.is_leader
    fetch_of(again, 2, again.log.end_offset)
    assert not again.core.is_leader, "it is committed that it is no voter"
    again.after(10_000)
    assert isinstance(again.core.role, Unattached)
    assert not again.core.can_be_elected


# --- a leader


def test_proposals_gather_while_the_disk_is_busy_and_become_one_batch() -> None:
    replica = elected(voters=voter_set(1), flushes=False)
    start = replica.log.end_offset
    offsets = [replica.propose(b"%d" % number) for number in range(5)]
    assert offsets == [start, start + 1, start + 2, start + 3, start + 4]
    assert replica.log.end_offset == start, "the disk is busy with the first records of the epoch"
    replica.flush()
    replica.process()
    assert replica.log.end_offset == start + 5
    header = decode_header(replica.log.read(start, 1 << 20))
    assert (header.records_count, header.partition_leader_epoch) == (5, 1)
    assert replica.core.high_watermark == start
    replica.flush()
    replica.process()
    assert replica.core.high_watermark == start + 5


def test_all_records_of_a_batch_have_one_timestamp_as_apache_kafka_requires() -> None:
    replica = elected(voters=voter_set(1), flushes=False)
    start = replica.log.end_offset
    first_ms = replica.now_ms
    for number in range(3):
        replica.propose(b"%d" % number)
        replica.now_ms += 7
    replica.flush()
    replica.process()
    data = replica.log.read(start, 1 << 20)
    header = decode_header(data)
    assert (header.base_timestamp, header.max_timestamp) == (first_ms, first_ms)
    assert [each.timestamp for each in decode_records(data, 0, header)] == [first_ms] * 3


def test_a_batch_is_not_larger_than_allowed_and_a_proposal_is_not_split() -> None:
    config = config_of(1, max_batch_bytes=100, max_proposed_bytes=250)
    replica = Replica(1, voter_set(1), config=config, flushes=False)
    start = replica.log.end_offset
    replica.propose(b"a" * 60)
    replica.propose(b"b" * 30, b"c" * 30)
    replica.propose(b"d" * 40)
    replica.propose(b"e" * 80)
    with pytest.raises(TooManyProposalsError):
        replica.propose(b"f" * 20)
    with pytest.raises(ProposalTooLargeError):
        replica.propose(b"g" * 101)
    with pytest.raises(ValueError, match="nothing"):
        replica.propose()
    replica.flush()
    replica.process()
    data = replica.log.read(start, 1 << 20)
    assert [header.records_count for _, header in iterate_batches(data)] == [1, 3, 1]


def test_only_the_leader_of_the_epoch_may_propose() -> None:
    replica = elected()
    for epoch in (0, 2):
        with pytest.raises(NotLeaderError):
            replica.core.propose(replica.now_ms, epoch, [b""])
    with pytest.raises(NotLeaderError) as raised:
        following().core.propose(START_MS, 1, [b""])
    assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_commits_with_a_majority_on_disk() -> None:
    replica = elected(flushes=False)
    end = replica.log.end_offset
    fetch_of(replica, 2, end)
    assert replica.core.high_watermark == 0, "one of three, since the leader has not flushed"
    fetch_of(replica, 3, end)
    assert replica.core.high_watermark == end, "two of three, without the leader"
    other = elected(flushes=False)
    fetch_of(other, 2, end)
    other.flush()
    assert other.core.high_watermark == end


def test_a_fetch_waits_for_records() -> None:
    replica = elected()
    end = replica.log.end_offset
    assert fetch_of(replica, 2, end, wait_ms=500, high_watermark=end) is None
    replica.propose(b"news")
    answer = replica.answers[-1]
    response = replica.disk.fill(answer)
    assert isinstance(response, FetchResponse)
    assert decode_header(response.responses[0].partitions[0].records or b"").base_offset == end


def test_a_fetch_waits_no_longer_than_it_wants() -> None:
    replica = elected()
    end = replica.log.end_offset
    assert fetch_of(replica, 2, end, wait_ms=500) is None
    count = len(replica.answers)
    replica.after(499)
    assert len(replica.answers) == count
    assert replica.core.deadline_ms() <= replica.now_ms + 1
    replica.after(1)
    assert len(replica.answers) == count + 1
    assert replica.answers[-1].read is None


def test_a_fetch_is_answered_when_the_high_watermark_moves() -> None:
    replica = elected()
    end = replica.log.end_offset
    assert fetch_of(replica, 2, end, wait_ms=500, high_watermark=end) is None, "it knows all there is"
    offset = replica.propose(b"news") + 1
    assert fetch_of(replica, 3, offset, wait_ms=500, high_watermark=offset - 1) is not None
    assert replica.core.high_watermark == offset


def test_a_fetch_of_someone_who_left_is_forgotten() -> None:
    replica = elected()
    end = replica.log.end_offset
    assert fetch_of(replica, 2, end, wait_ms=500) is None
    (request_id,) = replica.core.parked
    replica.core.cancel(request_id)
    count = len(replica.answers)
    replica.propose(b"news")
    assert len(replica.answers) == count


def test_nobody_is_registered_without_an_id() -> None:
    replica = elected(voters=voter_set(1))
    assert fetch_of(replica, -1, 0).responses[0].partitions[0].records
    assert isinstance(replica.core.role, Leader)
    assert replica.core.role.observers == {}
    fetch_of(replica, 8, 0)
    assert replica.core.role.observers.keys() == {key_of(8)}


def test_who_has_nothing_is_sent_to_the_snapshot_but_never_to_that_of_formatting() -> None:
    replica = elected(voters=voter_set(1))
    assert replica.core.log.snapshot_id == (0, 0)
    assert fetch_of(replica, 8, 0).responses[0].partitions[0].snapshot_id.end_offset == -1
    replica.core.on_snapshot_created(OffsetAndEpoch(3, 1))
    snapshot_id = fetch_of(replica, 8, 0).responses[0].partitions[0].snapshot_id
    assert (snapshot_id.end_offset, snapshot_id.epoch) == (3, 1)
    assert fetch_of(replica, 8, 3).responses[0].partitions[0].snapshot_id.end_offset == -1


def test_a_leader_without_a_majority_resigns() -> None:
    replica = elected()
    replica.take_sends()
    for _ in range(4):
        replica.after(1000)
        fetch_of(replica, 2, replica.log.end_offset)
    assert replica.core.is_leader
    replica.after(3000)
    assert isinstance(replica.core.role, Resigned)
    assert replica.readies[-2].leadership == Leadership(None, 1)
    ends = of_kind(replica.take_sends(), EndQuorumEpochRequest)
    assert {send.destination.id for send in ends} == {2, 3}
    assert isinstance(ends[0].message, EndQuorumEpochRequest)
    preferred = ends[0].message.topics[0].partitions[0].preferred_candidates
    assert [each.candidate_id for each in preferred] == [2, 3]
    replica.respond(ends[0], messages.end_response(1, ErrorCode.NONE, LeaderView(1, 1)))
    assert isinstance(replica.core.role, Resigned)
    assert replica.core.role.unacknowledged == {3}


def test_losing_the_lead_drops_proposals_and_tells_who_waits() -> None:
    replica = elected(flushes=False)
    replica.flush()
    replica.process()
    end = replica.log.end_offset
    assert fetch_of(replica, 2, end, wait_ms=500) is None
    replica.propose(b"on its way")
    assert replica.log.end_offset == end + 1
    replica.propose(b"never written")
    answer = replica.ask(vote(9, 3), 2)
    assert not granted(answer), "its log is too short"
    assert replica.core.leadership == Leadership(None, 9)
    replica.flush()
    replica.process()
    assert replica.log.end_offset == end + 1
    assert replica.core.next_offset == end + 1


def test_a_parked_fetch_is_refused_with_the_new_epoch() -> None:
    replica = elected()
    end = replica.log.end_offset
    assert fetch_of(replica, 2, end, wait_ms=500, high_watermark=1 << 62) is None
    replica.ask(vote(9, 3, (99, 8)), 2)
    fetches = [each.message for each in replica.answers if isinstance(each.message, FetchResponse)]
    partition = fetches[-1].responses[0].partitions[0]
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (-1, 9)


def test_resigning_from_an_epoch_that_is_over_does_nothing() -> None:
    replica = elected()
    replica.core.resign(replica.now_ms, 0)
    assert replica.core.is_leader
    replica.core.resign(replica.now_ms, 1)
    assert isinstance(replica.core.role, Resigned)


def test_a_leader_leaves_when_another_one_leads() -> None:
    replica = elected()
    replica.core.shutdown(replica.now_ms, 5000)
    replica.process()
    assert isinstance(replica.core.role, Resigned)
    assert not replica.core.is_shut_down(replica.now_ms)
    replica.after(4000)
    assert isinstance(replica.core.role, Resigned), "it does not stand for election again"
    replica.ask(messages.begin_request(CLUSTER_ID, 2, 2, voter_of(2).listeners, key_of(1)), 1)
    assert replica.core.is_shut_down(replica.now_ms)


def test_a_leader_does_not_wait_for_ever() -> None:
    replica = elected()
    replica.core.shutdown(replica.now_ms, 5000)
    replica.after(5000)
    assert replica.core.is_shut_down(replica.now_ms)


def test_others_leave_at_once() -> None:
    for replica in (following(), Replica(1, voter_set(1)), Replica(9, THREE)):
        assert not replica.core.is_shut_down(replica.now_ms)
        replica.core.shutdown(replica.now_ms, 5000)
        assert replica.core.is_shut_down(replica.now_ms)


def test_a_late_answer_is_not_listened_to() -> None:
    replica = following()
    send = fetching(replica)
    replica.now_ms += 1000
    fetched(replica, send, batch(0))
    assert replica.log.end_offset == 0
