"""DescribeQuorum and the three requests that change voters, against what a cluster of Apache Kafka 4.3.1 answered."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas import wire
from barnabas.raft import messages
from barnabas.raft.log import OffsetAndEpoch
from barnabas.raft.quorum_state import Election
from barnabas.raft.ready import RaftConfig
from barnabas.raft.roles import Follower, Leader
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.wire import ErrorCode, Uuid
from barnabas.wire.messages.add_raft_voter import AddRaftVoterResponse
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from barnabas.wire.messages.vote import VoteRequest
from tests.raft.harness import Replica, golden

ROWS = golden("quorum")
CLUSTER_ID = "Z29sZC1jbHVzdGVyLTAwMQ"
LEADERS = {"4-cluster": (2, 3), "4b-churn": (1, 4), "4c-voters": (3, 5), "5-final": (3, 5)}
DIRECTORIES = {
    1: "AAAAAAAAAAEAAAAAAAAAQQ",
    2: "AAAAAAAAAAIAAAAAAAAAQg",
    3: "AAAAAAAAAAMAAAAAAAAAQw",
    5: "UluenkzXm4oj8VvbDdM6sA",
}
FINAL_OFFSET = 4882


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid.parse(DIRECTORIES[node_id]))


def listeners_of(node_id: int) -> tuple[Endpoint, ...]:
    return (Endpoint("CONTROLLER", "127.0.0.1", 19110 + node_id),)


VOTERS = VoterSet(Voter(key_of(node_id), listeners_of(node_id)) for node_id in (1, 2, 3))


def replica_of(node_id: int, epoch: int) -> Replica:
    config = RaftConfig(node_id, key_of(node_id).wire_directory_id, CLUSTER_ID, "CONTROLLER", listeners_of(node_id))
    return Replica(node_id, VOTERS, config=config, election=Election(epoch))


def leader_of(node_id: int, epoch: int) -> Replica:
    """A replica that leads this epoch, whose start is committed."""
    replica = replica_of(node_id, epoch - 1)
    replica.after(2000)
    for _ in range(2):
        for send in replica.take_sends():
            if isinstance(send.message, VoteRequest):
                view = messages.LeaderView(None, replica.core.epoch)
                replica.respond(send, messages.vote_response(2, ErrorCode.NONE, view, granted=True))
    assert isinstance(replica.core.role, Leader)
    assert replica.core.epoch == epoch
    for voter in VOTERS:
        if voter.id != node_id:
            fetch(replica, voter.key)
    assert replica.core.role.high_watermark == replica.log.end_offset
    return replica


def fetch(replica: Replica, key: ReplicaKey, offset: int | None = None) -> Any:
    end = OffsetAndEpoch(replica.log.end_offset if offset is None else offset, replica.core.epoch)
    return replica.ask(messages.fetch_request(CLUSTER_ID, replica.core.epoch, key, end, 1 << 62, 0, 1 << 20), 17)


def follower_of(node_id: int, leader_id: int, epoch: int) -> Replica:
    replica = replica_of(node_id, epoch)
    listeners = listeners_of(leader_id)
    begin: BeginQuorumEpochRequest = messages.begin_request(CLUSTER_ID, epoch, leader_id, listeners, key_of(node_id))
    replica.ask(begin, 1)
    assert isinstance(replica.core.role, Follower)
    return replica


def asked_replica(row: dict[str, Any]) -> Replica:
    """Who answers: the node itself on its controller listener; a broker hands the request to the leader."""
    leader_id, epoch = LEADERS[row["phase"]]
    if row["listener"] == "broker" or row["node"] == leader_id:
        return leader_of(leader_id, epoch)
    return follower_of(row["node"], leader_id, epoch)


def request_of(row: dict[str, Any]) -> wire.Message:
    return wire.message_class(f"{row['api']}Request").from_json(row["request"], row["version"])


def rows_of(*apis: str) -> list[dict[str, Any]]:
    return [row for row in ROWS if row["api"] in apis]


def name_of(row: dict[str, Any]) -> str:
    return f"{row['api']} v{row['version']} {row['case']} {row['listener']}"


IMMEDIATE = [
    row
    for row in rows_of("AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter")
    if row["case"] not in ("a fifth voter", "the same voter again", "remove the fifth node")
]
DESCRIBED = [row for row in rows_of("DescribeQuorum") if row["phase"] == "5-final"]


@pytest.mark.parametrize("row", IMMEDIATE, ids=name_of)
def test_a_change_of_voters_is_refused_in_kafkas_words(row: dict[str, Any]) -> None:
    answer = asked_replica(row).ask(request_of(row), row["version"])
    assert answer.to_json(row["version"]) == row["response"]


def case_of(api: str, case: str) -> dict[str, Any]:
    return next(row for row in rows_of(api) if row["case"] == case)


def add_fifth(replica: Replica, low: int = 0, high: int = 1) -> Any:
    """Up to the record of the fifth voter; the answer if there is one already."""
    row = case_of("AddRaftVoter", "a fifth voter")
    before = len(replica.answers)
    assert replica.ask(request_of(row), row["version"]) is None
    send = next(send for send in replica.take_sends() if isinstance(send.message, ApiVersionsRequest))
    assert send.destination == (5, "127.0.0.1", 19115)
    feature = ApiVersionsResponse.SupportedFeatureKey(name="kraft.version", min_version=low, max_version=high)
    replica.respond(send, ApiVersionsResponse(supported_features=[feature]))
    return replica.answers[-1].message if len(replica.answers) > before else None


def added_in(replica: Replica) -> list[Any]:
    return [each.message.to_json(1) for each in replica.answers if isinstance(each.message, AddRaftVoterResponse)]


def test_a_fifth_voter_is_added_removed_and_refused_as_in_kafka() -> None:
    replica = leader_of(2, 3)
    fetch(replica, key_of(5))
    assert add_fifth(replica) is None
    assert replica.core.voters.current.ids == {1, 2, 3, 5}
    fetch(replica, key_of(1))
    assert added_in(replica) == []
    fetch(replica, key_of(3))  # with the leader that is a majority of four
    assert added_in(replica) == [case_of("AddRaftVoter", "a fifth voter")["response"]]
    again = case_of("AddRaftVoter", "the same voter again")
    assert replica.ask(request_of(again), 1).to_json(1) == again["response"]
    remove = case_of("RemoveRaftVoter", "remove the fifth node")
    assert replica.ask(request_of(remove), 0) is None
    fetch(replica, key_of(1))
    assert replica.answers[-2].message.to_json(0) == remove["response"]
    assert replica.core.voters.current == VOTERS


def test_a_voter_that_cannot_do_the_version_is_not_added() -> None:
    replica = leader_of(2, 3)
    fetch(replica, key_of(5))
    refusal = add_fifth(replica, 0, 0)
    assert refusal.error_code == ErrorCode.INVALID_REQUEST
    assert "(min: 0, max: 0 doesn't support the finalized version 1" in refusal.error_message


def test_a_voter_that_never_caught_up_is_not_added() -> None:
    refusal = add_fifth(leader_of(2, 3))
    assert (refusal.error_code, "lagging behind" in refusal.error_message) == (ErrorCode.REQUEST_TIMED_OUT, True)


def test_a_voter_that_does_not_answer_is_not_added() -> None:
    replica = leader_of(2, 3)
    fetch(replica, key_of(5))
    assert replica.ask(request_of(case_of("AddRaftVoter", "a fifth voter")), 1) is None
    replica.after(2000)
    refusal = replica.answers[-1].message
    assert isinstance(refusal, AddRaftVoterResponse)
    assert refusal.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert replica.core.voters.current == VOTERS


def test_one_change_at_a_time() -> None:
    replica = leader_of(2, 3)
    fetch(replica, key_of(5))
    assert add_fifth(replica) is None
    row = case_of("RemoveRaftVoter", "remove the fifth node")
    answer = replica.ask(request_of(row), 0)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert answer.error_message == "Request timed out waiting for leader to handle previous voter change request"


def test_a_voter_is_added_without_waiting_for_the_commit_if_that_is_asked() -> None:
    replica = leader_of(2, 3)
    fetch(replica, key_of(5))
    row = case_of("AddRaftVoter", "a fifth voter")
    row["request"]["ackWhenCommitted"] = False
    try:
        assert add_fifth(replica).error_code == ErrorCode.NONE
        count = len(replica.answers)
        fetch(replica, key_of(1))
        fetch(replica, key_of(3))
        assert len(replica.answers) == count + 2  # the fetches; nobody is answered twice
    finally:
        row["request"]["ackWhenCommitted"] = True


def test_voters_of_the_configuration_cannot_be_changed() -> None:
    static = VoterSet.parse("2@127.0.0.1:19112", "CONTROLLER")
    config = RaftConfig(2, key_of(2).wire_directory_id, CLUSTER_ID, "CONTROLLER", listeners_of(2))
    replica = Replica(2, static_voters=static, config=config)
    answer = replica.ask(request_of(case_of("AddRaftVoter", "a fifth voter")), 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.error_message == "Cluster doesn't support adding voter because the kraft.version feature is 0"


@pytest.mark.parametrize("row", DESCRIBED, ids=name_of)
def test_the_quorum_is_described_as_kafka_does(row: dict[str, Any]) -> None:
    expected = row["response"]
    if not any(partition["leaderId"] for topic in expected["topics"] for partition in topic["partitions"]):
        assert asked_replica(row).ask(request_of(row), row["version"]).to_json(row["version"]) == expected
        return
    replica = leader_of(3, 5)
    replica.propose(*[b""] * (FINAL_OFFSET - replica.log.end_offset))
    partition = expected["topics"][0]["partitions"][0]
    states = [state for state in partition["currentVoters"] if state["replicaId"] != 3] + partition["observers"]
    for state in sorted(states, key=lambda state: state.get("lastFetchTimestamp", 0)):
        replica.now_ms = state.get("lastFetchTimestamp", replica.now_ms)
        directory_id = Uuid.parse(state.get("replicaDirectoryId", DIRECTORIES.get(state["replicaId"], "A" * 22)))
        fetch(replica, ReplicaKey.of(state["replicaId"], directory_id))
    own = next(state for state in partition["currentVoters"] if state["replicaId"] == 3)
    replica.now_ms = own.get("lastFetchTimestamp", replica.now_ms)
    assert replica.ask(request_of(row), row["version"]).to_json(row["version"]) == expected


def test_a_voter_that_never_fetched_is_described_as_unknown() -> None:
    row = next(row for row in rows_of("DescribeQuorum") if row["case"] == "node 2 down")
    expected = row["response"]["topics"][0]["partitions"][0]["currentVoters"][1]
    replica = replica_of(1, 3)
    replica.after(2000)
    for _ in range(2):
        for send in replica.take_sends():
            if isinstance(send.message, VoteRequest):
                view = messages.LeaderView(None, replica.core.epoch)
                replica.respond(send, messages.vote_response(2, ErrorCode.NONE, view, granted=True))
    answer = replica.ask(request_of(row), 2).to_json(2)["topics"][0]["partitions"][0]
    assert answer["currentVoters"][1] == expected
    assert answer["highWatermark"] == -1
