"""What an Apache Kafka 4.3.1 controller answered, and what this core answers to the same requests in the same order.

Recorded from a controller that leads alone, with its voters in the log (`leader`), and from one of three configured
voters whose peers are silent and whose timeouts are endless (`voter`).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas import wire
from barnabas.raft.ready import RaftConfig
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.wire import Uuid
from tests.raft.harness import Replica, golden

ROWS = golden("answers")
ENDLESS_MS = 600_000
# Kafka answers -1, because it cannot encode its own answer with an error in it; the codes here are those it means.
UNENCODABLE = {
    "snapshot, not there": 98,
    "snapshot, of formatting": 98,
    "snapshot, older epoch": 74,
    "snapshot, later epoch": 75,
    "snapshot, other topic": 3,
    "snapshot, other partition": 3,
}


def rows_of(scene: str) -> list[dict[str, Any]]:
    return [row for row in ROWS if row["scene"] == scene and "case" in row]


def facts_of(scene: str) -> dict[str, Any]:
    found: dict[str, Any] = next(row["facts"] for row in ROWS if row["scene"] == scene and "facts" in row)
    return found


def leading_replica() -> Replica:
    facts = facts_of("leader")
    key = ReplicaKey(1, Uuid.parse(facts["directory_id"]))
    listeners = (Endpoint("CONTROLLER", "127.0.0.1", facts["port"]),)
    config = RaftConfig(1, Uuid.parse(facts["directory_id"]), facts["cluster_id"], "CONTROLLER", listeners)
    replica = Replica(1, VoterSet([Voter(key, listeners)]), config=config)
    while replica.core.high_watermark < facts["high_watermark"]:
        replica.propose(b"")
    assert replica.core.epoch == facts["epoch"]
    return replica


def voting_replica() -> Replica:
    facts = facts_of("voter")
    text = ",".join(f"{index}@127.0.0.1:{port}" for index, port in enumerate(facts["ports"], 1))
    config = RaftConfig(
        1,
        Uuid.parse(facts["directory_id"]),
        facts["cluster_id"],
        "CONTROLLER",
        (Endpoint("CONTROLLER", "127.0.0.1", facts["ports"][0]),),
        election_timeout_ms=ENDLESS_MS,
        fetch_timeout_ms=ENDLESS_MS,
        election_backoff_max_ms=ENDLESS_MS,
    )
    return Replica(1, config=config, static_voters=VoterSet.parse(text, "CONTROLLER"))


def ask(replica: Replica, row: dict[str, Any]) -> dict[str, Any]:
    cls = wire.message_class(row["api"])
    answer = replica.ask(cls.from_json(row["request"], row["version"]), row["version"])
    content: dict[str, Any] = answer.to_json(row["version"])
    for topic in content.get("responses", []):
        for partition in topic["partitions"]:
            partition["records"] = "..." if partition["records"] else ""
    return content


@pytest.mark.parametrize("row", rows_of("leader"), ids=lambda row: f"{row['case']} v{row['version']}")
def test_a_leader_answers_as_kafka_does(row: dict[str, Any]) -> None:
    answer = ask(leading_replica(), row)
    if row["case"] in UNENCODABLE:
        assert row["response"]["errorCode"] == -1
        assert answer["errorCode"] == 0
        assert answer["topics"][0]["partitions"][0]["errorCode"] == UNENCODABLE[row["case"]]
    else:
        assert answer == row["response"]


def test_a_voter_answers_a_whole_history_as_kafka_does() -> None:
    replica = voting_replica()
    for row in rows_of("voter"):
        assert ask(replica, row) == row["response"], row["case"]


def test_a_voter_saves_what_kafka_saves() -> None:
    replica = voting_replica()
    for row in rows_of("voter"):
        ask(replica, row)
    state = next(ready.quorum_state for ready in reversed(replica.readies) if ready.quorum_state is not None)
    data, version = state.to_record()
    expected = next(row["quorum_state"] for row in ROWS if "quorum_state" in row)
    assert wire.encode(data, version)
    assert {**data.to_json(version), "data_version": version} == json.loads(expected)


def test_only_the_asked_listener_is_named() -> None:
    replica = leading_replica()
    row = next(row for row in rows_of("leader") if row["case"] == "vote, this epoch" and row["version"] == 2)
    cls = wire.message_class(row["api"])
    assert replica.ask(cls.from_json(row["request"], 2), 2, "CONTROLLER").node_endpoints
    assert not replica.ask(cls.from_json(row["request"], 2), 2, "OTHER").node_endpoints
