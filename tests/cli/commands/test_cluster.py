"""`barnabas cluster` and `barnabas quorum` against a node: what they show, judge and refuse."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.admin.quorum import RaftEndpoint
from barnabas.client.state import Partition, Topic
from barnabas.operations.quorum.controllers import ControllerError, controller_of, parse_endpoint
from barnabas.operations.safe_to_stop import Effect, StopReport, affected_by, reasons
from barnabas.testing import Broker
from barnabas.wire import ZERO_UUID
from tests.client.admin.absent_brokers import with_absent_brokers
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Command, Done, invoke

SOME_ID = "JEXY6aqzQY-32P5TStzaFg"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"kept": 2}) as broker:
        yield broker


run = invoke
ask = Command()


def document(done: Done) -> Any:
    return done.json


# --- cluster


def test_describe_shows_the_brokers_or_the_controllers(broker: Broker) -> None:
    found = document(ask(broker, "cluster", "describe", "-o", "json"))
    assert (found["clusterId"], found["brokers"][0]["port"]) == (broker.cluster_id, broker.port)
    table = ask(broker, "cluster", "describe", "--authorized-operations").stdout
    assert "ALTER_CONFIGS" in table
    assert "FENCED" in table
    controllers = run("cluster", "describe", "--bootstrap-controller", broker.listeners["CONTROLLER"], "-o", "tsv")
    assert controllers.stdout.split("\t")[3:] == ["true\n"]


def test_the_controller_is_the_leader_of_the_quorum_and_no_random_broker() -> None:
    with with_absent_brokers({1: None, 2: None, 3: None}) as broker:
        found = [document(ask(broker, "cluster", "describe", "-o", "json")) for _ in range(6)]
    assert [len(each["brokers"]) for each in found] == [3] * 6
    assert [each["controllerId"] for each in found] == [1] * 6


def test_a_controller_that_may_not_be_asked_for_is_not_known() -> None:
    with guarded_broker() as broker:
        described = ask(broker, "cluster", "describe", "-o", "json", code=0)
    assert document(described)["controllerId"] is None
    assert "the active controller is not known" in described.stderr
    assert "CLUSTER_AUTHORIZATION_FAILED" in described.stderr


def test_features_are_shown_and_changed_after_a_check(broker: Broker) -> None:
    rows = {row["feature"]: row for row in document(ask(broker, "cluster", "features", "-o", "json"))}
    assert rows["metadata.version"]["metadataVersion"] == "4.3-IV0"
    unasked = ask(broker, "cluster", "downgrade", "group.version=0")
    assert (unasked.exit_code, "--yes" in unasked.stderr) == (1, True)
    dry = ask(broker, "cluster", "downgrade", "group.version=0", "--dry-run")
    assert dry.stderr == "would lower group.version from 1 to 0\n"
    done = ask(broker, "cluster", "downgrade", "group.version=0", "--yes", "-o", "json")
    assert document(done) == [{"feature": "group.version", "level": 0, "error": None, "message": None}]
    again = ask(broker, "cluster", "upgrade", "--release-version", "4.3", "--yes")
    assert "raise group.version from 0 to 1" in again.stderr
    assert again.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("upgrade", "group.version=9", "--dry-run"), 1, "INVALID_UPDATE_VERSION"),
        (("upgrade", "metadata.version=9.9"), 2, "Unknown metadata.version '9.9'"),
        (("upgrade", "group.version"), 2, "equals sign not found"),
        (("upgrade", "group.version=0"), 2, "SAFE_DOWNGRADE"),
        (("upgrade", "group.version=1", "group.version=1"), 2, "more than once"),
        (("upgrade",), 2, "Give either FEATURE=LEVEL or --release-version"),
        (("downgrade", "group.version=0", "--release-version", "4.0"), 2, "Give either FEATURE=LEVEL or"),
        (("unregister", "77", "--yes"), 1, "BROKER_ID_NOT_REGISTERED"),
        (("unregister", "77"), 1, "pass --yes"),
        (("safe-to-stop", "7"), 1, "there is no such broker; there are 1"),
        (("safe-to-stop", "one"), 1, "'one' is not a valid integer"),
        (("api-versions", "Nonsense"), 2, "there is no API 'Nonsense'"),
        (("api-versions", "--node", "9"), 1, "node 9: BROKER_NOT_AVAILABLE"),
        (("features", "--node", "9"), 1, "BROKER_NOT_AVAILABLE"),
    ],
)
def test_what_is_wrong_is_said(broker: Broker, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = ask(broker, "cluster", *arguments, "-X", "default.api.timeout.ms=2000")
    assert (result.exit_code, message in result.output) == (code, True), result.output


def test_a_dry_run_forgets_no_broker(broker: Broker) -> None:
    result = ask(broker, "cluster", "unregister", "1", "--dry-run")
    assert (result.exit_code, result.stderr) == (0, "would unregister broker 1\n")


def test_versions_of_apis_are_shown_by_node(broker: Broker) -> None:
    rows = document(ask(broker, "cluster", "api-versions", "fetch", "produce", "-o", "json"))
    assert [(row["nodeId"], row["api"]) for row in rows] == [(1, "Produce"), (1, "Fetch")]
    assert rows[1]["usable"] == rows[1]["maxVersion"]


def test_the_only_broker_cannot_be_stopped(broker: Broker) -> None:
    result = ask(broker, "cluster", "safe-to-stop", "1", "-o", "json")
    assert result.exit_code == 2
    rows = [(row["topic"], row["partition"], row["effect"]) for row in document(result)]
    assert rows == [("kept", 0, "offline"), ("kept", 1, "offline"), ("__cluster_metadata", 0, "quorumLost")]
    offline = "2 partitions would be offline, because no other replica is in sync: kept (2)"
    assert f"broker 1 cannot be stopped: {offline}; the metadata quorum would be lost" in result.stderr
    shown = ask(broker, "cluster", "safe-to-stop", "1").stdout.splitlines()
    assert shown[:2] == ["broker 1 cannot be stopped", f"- {offline}"]
    assert [line.split(":")[0] for line in shown[2:]] == ["- the metadata quorum would be lost"]
    table = ask(broker, "cluster", "safe-to-stop", "1", "--verbose").stdout
    assert table.splitlines()[5].split() == ["TOPIC", "PARTITION", "EFFECT", "REPLICAS", "ISR", "MIN-ISR"]


def test_reasons_name_the_topics_with_most_partitions_and_count_the_rest() -> None:
    topics = [topic(f"t{number}", *[(1,)] * number) for number in (1, 2, 3)] + [topic("few", (1, 2), (1, 2))]
    report = StopReport(list(affected_by(1, topics, {"few": 2})), None, [], False, [])
    assert reasons(report, 2) == [
        "6 partitions would be offline, because no other replica is in sync: t3 (3), t2 (2), and 1 more topic",
        "2 partitions would refuse acks=all, because fewer than min.insync.replicas replicas would be in sync: few (2)",
    ]
    assert reasons(StopReport([], None, [], False, []), 2) == []


def test_controllers_cannot_say_what_stops(broker: Broker) -> None:
    result = run("cluster", "safe-to-stop", "1", "--bootstrap-controller", broker.listeners["CONTROLLER"])
    assert (result.exit_code, "--bootstrap-server" in result.stderr) == (1, True)


def topic(name: str, *isrs: tuple[int, ...]) -> Topic:
    partitions = {index: Partition(index, isr[0] if isr else -1, 1, (1, 2, 3), isr) for index, isr in enumerate(isrs)}
    return Topic(name, ZERO_UUID, False, partitions)


def test_only_what_gets_worse_by_stopping_counts() -> None:
    topics = [topic("b", (1,), (1, 2), (2, 3)), topic("a", (), (2, 1), (1, 2, 3))]
    found = list(affected_by(1, topics, {"a": 2, "b": 1}))
    assert [(each.topic, each.partition.partition_index, each.effect) for each in found] == [
        ("a", 1, Effect.BELOW_MIN_ISR),
        ("b", 0, Effect.OFFLINE),
    ]
    assert str(found[0]) == "a-1 would refuse acks=all: 1 of 2 replicas needed would be in sync"


# --- quorum


def test_status_shows_replicas_and_a_verdict(broker: Broker) -> None:
    table = ask(broker, "quorum", "status")
    assert table.exit_code == 0
    assert table.stdout.splitlines()[-1] == "healthy: 1 of 1 voter works; it is the only one, so it cannot be lost"
    found = document(run("quorum", "status", "--bootstrap-controller", broker.listeners["CONTROLLER"], "-o", "json"))
    (row,) = found["replicas"]
    assert (row["role"], row["status"], row["lag"]) == ("leader", "ok", 0)
    assert found["verdict"] == {"healthy": True, "canLose": 0, "problems": []}
    assert len(ask(broker, "quorum", "status", "-o", "tsv").stdout.splitlines()) == 1


def test_status_is_no_when_more_must_be_lost_than_can(broker: Broker) -> None:
    result = ask(broker, "quorum", "status", "--can-lose", "1")
    assert (result.exit_code, "- it can lose no voters, and should be able to lose 1" in result.stdout) == (2, True)
    assert ask(broker, "quorum", "status", "--nonsense").exit_code == 1


def test_voters_that_are_wrong_are_refused(broker: Broker) -> None:
    removed = ask(broker, "quorum", "remove", "7", "--yes")
    assert (removed.exit_code, "is not a voter; voters are 1 (" in removed.stderr) == (1, True)
    added = ask(broker, "quorum", "add", "4", "--directory-id", SOME_ID, "--endpoint", "CONTROLLER://localhost:1")
    assert (added.exit_code, "voter" in added.stderr) == (1, True)
    unasked = ask(broker, "quorum", "remove", "1")
    assert (unasked.exit_code, "pass --yes" in unasked.stderr) == (1, True)
    dry = ask(broker, "quorum", "remove", "1", "--dry-run")
    assert (dry.exit_code, dry.stdout) == (0, "")
    assert "remaining voters: 0; working: 0; needed: 1" in dry.stderr
    planned = document(ask(broker, "quorum", "remove", "1", "--dry-run", "-o", "json"))
    assert list(planned) == ["voterId", "voterDirectoryId"]


@pytest.mark.parametrize("option", ["--bootstrap-controller", "--bootstrap-server"])
def test_a_voter_is_updated_through_controllers(option: str) -> None:
    with Broker() as broker:
        own = document(ask(broker, "quorum", "status", "-o", "json"))["replicas"][0]
        given = ("quorum", "update", 1, "--directory-id", own["replicaDirectoryId"], "--endpoint", own["endpoints"][0])
        at = broker.bootstrap_servers if option == "--bootstrap-server" else broker.listeners["CONTROLLER"]
        done = run(*given, option, at, "-o", "json", code=0)
        assert document(done)["endpoints"] == own["endpoints"]
        for command in ("add", "update"):
            planned = document(ask(broker, "quorum", command, *given[2:], "--dry-run", "-o", "json"))
            assert planned == document(done)


def test_controllers_are_found_through_the_brokers(broker: Broker) -> None:
    controller = broker.listeners["CONTROLLER"]
    for line in (("metadata", "ls", "topics/byName"), ("configs", "history", "--name", "segment*", "-o", "json")):
        assert ask(broker, *line, code=0).stdout == run(*line, "--bootstrap-controller", controller, code=0).stdout
    assert ask(broker, "metadata", "ls", "topics/byName", code=0).stdout == "kept\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", "4"), "Give either CONTROLLER, --directory-id and --endpoint, or --config"),
        (("add", "4", "--directory-id", "short"), "not a uuid"),
        (("update", "4", "--directory-id", SOME_ID, "--endpoint", "C://h:1", "--kraft-versions", "x"), "FIRST-LAST"),
    ],
)
def test_a_voter_is_given_whole(arguments: tuple[str, ...], message: str) -> None:
    result = run("quorum", *arguments)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_a_controller_is_known_from_its_files(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id=4\ndirectory.id={SOME_ID}\n")
    settings = {
        "node.id": "4",
        "process.roles": "controller",
        "log.dirs": f"{tmp_path / 'data'},elsewhere",
        "listeners": "CONTROLLER://:9093,PLAIN://localhost:9092",
        "advertised.listeners": "CONTROLLER://[::1]:9095",
        "controller.listener.names": "controller",
    }
    found = controller_of(settings)
    assert (found.id, str(found.directory_id)) == (4, SOME_ID)
    assert found.endpoints == (RaftEndpoint("CONTROLLER", "::1", 9095),)
    wrong = {
        "node.id": ("-1", "node.id was negative"),
        "process.roles": ("broker", "did not contain 'controller'"),
        "log.dirs": (str(tmp_path), "Unable to read meta.properties"),
        "controller.listener.names": ("OTHER", "Cannot find information about controller listener name: OTHER"),
        "listeners": ("nonsense", "is not an endpoint"),
    }
    for name, (value, message) in wrong.items():
        with pytest.raises(ControllerError, match=message):
            controller_of({**settings, name: value})
    for name in ("node.id", "process.roles", "log.dirs", "controller.listener.names"):
        with pytest.raises(ControllerError, match="Is this a valid controller configuration file"):
            controller_of({key: value for key, value in settings.items() if key != name})
    with pytest.raises(ControllerError):
        parse_endpoint("CONTROLLER://host:99999")


# --- who may not, and who is not there


def test_who_may_not_is_told_so() -> None:
    with guarded_broker() as guarded:
        for command in (("quorum", "status"), ("cluster", "unregister", "9", "--yes")):
            result = ask(guarded, *command)
            assert (result.exit_code, "CLUSTER_AUTHORIZATION_FAILED" in result.output) == (1, True), result.output
        stopping = ask(guarded, "cluster", "safe-to-stop", "1")
        assert "the effect on the quorum is unknown" in stopping.stderr


@pytest.mark.parametrize("command", [("cluster", "describe"), ("quorum", "status"), ("raw", "Metadata")])
def test_a_refused_connection_names_the_address(command: tuple[str, ...]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    result = run(*command, "-b", address, "-X", "default.api.timeout.ms=300")
    assert (result.exit_code, address in result.stderr, "Try: " in result.stderr) == (1, True, True)


def test_brokers_are_shown_with_their_load(broker: Broker) -> None:
    (row,) = document(ask(broker, "cluster", "brokers", "-o", "json"))
    assert (row["broker"], row["status"], row["underReplicated"], row["outOfSync"]) == (1, "ok", 0, 0)
    assert row["leaders"] == row["replicas"] >= 2
    assert (row["leaderSkewPercent"], row["replicaSkewPercent"]) == (0.0, 0.0)
    assert 0 <= row["sizeBytes"] < row["totalBytes"]
    assert 0 < row["usableBytes"] <= row["totalBytes"]
    table = ask(broker, "cluster", "brokers").stdout.splitlines()
    assert table[0].split()[:6] == ["BROKER", "STATUS", "RACK", "LEADERS", "SKEW", "REPLICAS"]
    assert table[1].split()[:6] == ["1", "ok", "-", str(row["leaders"]), "0%", str(row["replicas"])]
    refused = run("cluster", "brokers", "--bootstrap-controller", broker.listeners["CONTROLLER"])
    assert (refused.exit_code, "--bootstrap-server" in refused.stderr) == (1, True)
