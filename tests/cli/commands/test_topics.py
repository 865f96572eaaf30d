"""`barnabas topics` against a node of barnabas: looking, changing, and what is refused."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.cli.terminal.times import parse_time_ms
from barnabas.client.admin.reassignments import PartitionReassignment
from barnabas.client.admin.topics import PartitionDescription
from barnabas.operations.quantities import parse_bytes
from barnabas.operations.topics.facts import PartitionFacts
from barnabas.operations.topics.partition_count import Load, plan_partitions
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Command, Process

T0_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"auto.create.topics.enable": False}) as broker:
        yield broker


topics = Command("topics")
rows = topics.rows


def write(broker: Broker, topic: str, *times_ms: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for time_ms in times_ms:
        producer.produce(topic, b"x", partition=0, timestamp=time_ms)
    producer.flush()


# --- looking


def test_topics_are_listed_by_pattern_and_with_internal_ones(broker: Broker) -> None:
    for name in ("listed-a", "listed-b"):
        broker.create_topic(name, 2)
    found = rows(broker, "list", "--pattern", "listed-.*")
    assert [(row["name"], row["numPartitions"], row["replicationFactor"]) for row in found] == [
        ("listed-a", 2, 1),
        ("listed-b", 2, 1),
    ]
    assert len(found[0]["topicId"]) == 22
    table = topics(broker, "list", "--pattern", "listed-a").stdout.splitlines()
    assert table[0].split() == ["NAME", "PARTITIONS", "REPLICATION-FACTOR", "IS-INTERNAL", "TOPIC-ID"]
    assert table[1].split()[:4] == ["listed-a", "2", "1", "false"]


@pytest.mark.parametrize("command", [("topics", "list"), ("quorum", "status"), ("groups", "list", "--state", "Empty")])
def test_every_sample_of_watch_has_its_time(broker: Broker, command: tuple[str, ...]) -> None:
    broker.create_topic(f"watched-{command[0]}")
    if command[0] == "groups":
        rows_of = Command("groups").rows
        rows_of(broker, "reset", "watched", "--topic", "watched-groups", "--to-earliest", "--yes")
    now_ms = time.time() * 1000
    with Process(*command, "--watch", 0.1, "-o", "jsonl", "-b", broker.bootstrap_servers) as process:
        first = json.loads(process.until("{"))["sampleTimestamp"]
        while (later := json.loads(process.until("{"))["sampleTimestamp"]) == first:
            pass
        assert now_ms - 1 <= first < later
    once = Command(*command)(broker, "-o", "jsonl").stdout.splitlines()[0]
    assert "sampleTimestamp" not in json.loads(once)


def test_internal_topics_are_listed_when_asked_for() -> None:
    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "makes-it"})
        producer.init_transactions()
        assert rows(broker, "list") == []
        assert [row["name"] for row in rows(broker, "list", "--internal")] == ["__transaction_state"]


def test_a_topic_is_described_with_its_partitions_and_settings(broker: Broker) -> None:
    broker.create_topic("described", 2, config={"retention.ms": "1000"})
    (topic,) = rows(broker, "describe", "described")
    assert (topic["topic"], topic["numPartitions"], topic["replicationFactor"]) == ("described", 2, 1)
    first, second = topic["partitions"]
    assert (first["partition"], second["partition"]) == (0, 1)
    assert (first["leader"], first["replicas"], first["isr"], first["status"]) == (1, [1], [1], "ok")
    assert topic["configs"] == {"retention.ms": "1000"}
    assert "configs" not in rows(broker, "describe", "described", "--no-configs")[0]
    without_elr = [{**row, "eligibleLeaderReplicas": None, "lastKnownElr": None} for row in (first, second)]
    assert rows(broker, "describe", "--id", topic["topicId"]) == [{**topic, "partitions": without_elr}]
    lines = topics(broker, "describe", "described", "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line)["topic"] for line in lines] == ["described"]
    assert {row["topic"] for row in rows(broker, "describe", "--pattern", "descr.*")} == {"described"}
    head, columns, *lines = topics(broker, "describe", "described").stdout.splitlines()
    assert head.startswith("described, 2 partitions, replication factor 1, id ")
    assert head.endswith(", retention.ms=1000")
    assert columns.split() == ["PARTITION", "LEADER", "LEADER-EPOCH", "REPLICAS", "ISR", "STATUS"]
    assert [line.split() for line in lines] == [["0", "1", "0", "1", "1", "ok"], ["1", "1", "0", "1", "1", "ok"]]
    everything = topics(broker, "describe").stdout.splitlines()
    assert everything[0].split()[:2] == ["TOPIC", "PARTITION"]
    assert ["described", "1", "1", "0", "1", "1", "ok"] in [line.split() for line in everything]
    assert topics(broker, "describe", "described", "-o", "tsv").stdout.splitlines()[1] == "described\t1\t1\t0\t1\t1\tok"


def test_filters_show_partitions_that_are_not_well_and_exit_with_2_if_asked(broker: Broker) -> None:
    broker.create_topic("well", 1)
    broker.create_topic("demanding", config={"min.insync.replicas": "2"})
    assert rows(broker, "describe", "well", "demanding", "--under-replicated", "--unavailable", "--exit-code") == []
    under = rows(broker, "describe", "well", "demanding", "--under-min-isr", "--exit-code", code=2)
    assert [(row["topic"], row["partitions"][0]["status"]) for row in under] == [("demanding", "under-min-isr")]
    assert [row["topic"] for row in rows(broker, "describe", "well", "demanding", "--at-min-isr")] == ["well"]
    assert topics(broker, "describe", "demanding", "--exit-code").exit_code == 2
    assert topics(broker, "describe", "demanding").exit_code == 0
    assert topics(broker, "describe", "well", "--exit-code").exit_code == 0


def test_a_topic_that_is_not_there_is_named_with_what_to_do_and_others_are_shown(broker: Broker) -> None:
    broker.create_topic("present", 1)
    result = topics(broker, "describe", "present", "absent", "-o", "tsv")
    assert (result.exit_code, result.stdout) == (1, "present\t0\t1\t0\t1\t1\tok\n")
    assert "Error: topic absent: UNKNOWN_TOPIC_OR_PARTITION: " in result.stderr
    assert "Try: list topics with: barnabas topics list" in result.stderr


def test_a_topic_without_records_is_idle_only_since_it_was_created(broker: Broker) -> None:
    before_ms = int(time.time() * 1000)
    broker.create_topic("never-written", 1)
    pattern = ("--pattern", "never-written")
    assert rows(broker, "idle", "--since", "30d", *pattern) == []
    time.sleep(0.01)
    (found,) = rows(broker, "idle", "--since", "1ms", *pattern)
    assert (found["name"], found["lastTimestamp"], found["records"]) == ("never-written", None, 0)
    assert before_ms <= found["createdTimestamp"] <= time.time() * 1000


def test_a_topic_of_unknown_age_is_listed_with_a_note(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> None:
    async def refused(*_: object) -> list[str]:
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    broker.create_topic("of-unknown-age", 1)
    monkeypatch.setattr("barnabas.operations.quorum.controller_client.find_controllers", refused)
    listed = topics(broker, "idle", "--pattern", "of-unknown.*", "-o", "json", code=0)
    assert [(row["name"], row["createdTimestamp"]) for row in listed.json] == [("of-unknown-age", None)]
    assert "may be new, their creation time is unknown: of-unknown-age" in listed.stderr


def test_idle_topics_are_those_without_a_newer_record(broker: Broker) -> None:
    for name in ("idle-old", "idle-new", "idle-empty"):
        broker.create_topic(name, 2)
    write(broker, "idle-old", T0_MS, T0_MS + 5, T0_MS + 3)
    write(broker, "idle-new", T0_MS + 10_000)
    pattern = ("--pattern", "idle-.*")
    (old,) = rows(broker, "idle", "--since", T0_MS + 10_000, *pattern)
    assert (old["name"], old["lastTimestamp"], old["records"]) == ("idle-old", T0_MS + 5, 3)
    assert old["sizeBytes"] > 0
    assert old["groups"] == 0
    for group in ("idle-a", "idle-b"):
        Command("groups")(broker, "reset", group, "--topic", "idle-old", "--to-latest", "--yes", code=0)
    assert [row["groups"] for row in rows(broker, "idle", "--since", T0_MS + 10_000, *pattern)] == [2]
    every = rows(broker, "idle", "--since", T0_MS + 10_000, "--all", *pattern)
    assert {row["name"]: row["idle"] for row in every} == {"idle-empty": False, "idle-old": True, "idle-new": False}
    assert {row["name"]: row["groups"] for row in every}["idle-empty"] == 0
    assert len(rows(broker, "idle", "--since", "7d", *pattern)) == 2
    assert "2023-11-14T22:13:20.005Z" in topics(broker, "idle", *pattern).stdout


# --- changing


def test_topics_are_created_alike_after_the_cluster_was_asked(broker: Broker) -> None:
    result = topics(
        broker, "create", "made-a", "made-b", "--partitions", 2, "--config", "retention.ms = 5", "-o", "json"
    )
    assert result.exit_code == 0, result.output
    assert [(row["name"], row["numPartitions"], row["error"]) for row in json.loads(result.stdout)] == [
        ("made-a", 2, None),
        ("made-b", 2, None),
    ]
    assert "create topic made-a, partitions: 2, replication factor: 1, retention.ms=5" in result.stderr
    assert rows(broker, "describe", "made-b")[0]["configs"] == {"retention.ms": "5"}
    assert [row["replicas"] for row in _created(broker, "made-c", "--replica-assignment", "1,1")] == [[1], [1]]


def _created(broker: Broker, name: str, *options: str) -> Any:
    rows(broker, "create", name, *options)
    return rows(broker, "describe", name)[0]["partitions"]


def test_if_one_topic_is_refused_none_is_created(broker: Broker) -> None:
    broker.create_topic("there-already", 1)
    result = topics(broker, "create", "there-already", "not-made", "-o", "json")
    assert result.exit_code == 1
    assert [row["error"] for row in json.loads(result.stdout)] == ["TOPIC_ALREADY_EXISTS"]
    assert "no topic is created unless all of them can be" in result.stderr
    assert rows(broker, "list", "--pattern", "not-made") == []
    assert [row["name"] for row in rows(broker, "create", "there-already", "made-now", "--if-not-exists")] == [
        "made-now"
    ]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("bad!name",), "INVALID_TOPIC_EXCEPTION"),
        (("wide", "--replication-factor", "3"), "INVALID_REPLICATION_FACTOR"),
        (("odd", "--config", "retention.ms=soon"), "INVALID_CONFIG"),
        (("odd", "--config", "no.such=1"), "INVALID_CONFIG"),
        (("misplaced", "--replica-assignment", "7"), "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
def test_what_the_cluster_refuses_is_told_with_its_error(broker: Broker, options: tuple[str, ...], error: str) -> None:
    assert [row["error"] for row in rows(broker, "create", *options, code=1)] == [error]


def test_a_dry_run_changes_nothing(broker: Broker) -> None:
    result = topics(broker, "create", "only-thought-of", "--dry-run", "-o", "json")
    assert json.loads(result.stdout)[0] | {"topicId": None} == json.loads(result.stdout)[0]
    assert "would create topic only-thought-of, partitions: 1" in result.stderr
    broker.create_topic("kept", config={"retention.ms": "7"})
    broker.create_topic("kept-too")
    for command in (
        ("alter", "kept", "--partitions", 5),
        ("delete", "kept"),
        ("copy-settings", "kept", "kept-too"),
    ):
        assert topics(broker, *command, "--dry-run").exit_code == 0
    assert rows(broker, "list", "--pattern", "only.*|kept")[0]["numPartitions"] == 1
    assert rows(broker, "list", "--pattern", "only.*") == []
    assert rows(broker, "describe", "kept-too")[0]["configs"] == {}


def test_adding_partitions_says_that_keys_move_and_needs_a_yes(broker: Broker) -> None:
    broker.create_topic("keyed", 1)
    refused = topics(broker, "alter", "keyed", "--partitions", 3)
    assert refused.exit_code == 1
    assert "add partitions to topic keyed, from 1 to 3" in refused.stderr
    assert "records of a key may go to another partition" in refused.stderr
    assert "--yes" in refused.stderr
    assert len(rows(broker, "describe", "keyed")[0]["partitions"]) == 1
    assert rows(broker, "alter", "keyed", "--partitions", 3, "--yes")[0]["error"] is None
    assert len(rows(broker, "describe", "keyed")[0]["partitions"]) == 3
    fewer = rows(broker, "alter", "keyed", "--partitions", 2, "--yes", code=1)
    assert fewer[0]["error"] == "INVALID_PARTITIONS"


def test_a_replication_factor_goes_through_a_reassignment(broker: Broker) -> None:
    broker.create_topic("replicated", 2)
    result = topics(broker, "alter", "replicated", "--replication-factor", 1)
    assert result.exit_code == 0
    assert "nothing to do" in result.stderr
    too_many = topics(broker, "alter", "replicated", "--replication-factor", 2)
    assert too_many.exit_code == 1
    assert "Error: replicated-0 needs 2 replicas, but only 1 broker is available" in too_many.stderr
    assert "topic nowhere: UNKNOWN_TOPIC" in topics(broker, "alter", "nowhere", "--replication-factor", 1).stderr


def test_settings_are_copied_value_by_value(broker: Broker) -> None:
    broker.create_topic("copied", config={"retention.ms": "1", "segment.ms": "2"})
    broker.create_topic("copy-a", config={"retention.ms": "9", "max.message.bytes": "77"})
    broker.create_topic("copy-b", config={"retention.ms": "1", "segment.ms": "2"})
    result = topics(broker, "copy-settings", "copied", "copy-a", "copy-b", "-o", "json")
    assert [(row["name"], row["changes"]) for row in json.loads(result.stdout)] == [("copy-a", 2), ("copy-b", 0)]
    assert "set retention.ms=1 for copy-a (is 9)" in result.stderr
    assert "set segment.ms=2 for copy-a\n" in result.stderr
    settings = rows(broker, "describe", "copy-a")[0]["configs"]
    assert settings == {"retention.ms": "1", "segment.ms": "2", "max.message.bytes": "77"}
    exact = topics(broker, "copy-settings", "copied", "copy-a", "--exact")
    assert "unset max.message.bytes of copy-a (is 77)" in exact.stderr
    assert rows(broker, "describe", "copy-a")[0]["configs"] == {"retention.ms": "1", "segment.ms": "2"}
    assert "topic nowhere: " in topics(broker, "copy-settings", "copied", "nowhere").stderr


def test_deleting_asks_first_and_takes_names_ids_and_patterns(broker: Broker) -> None:
    for name in ("gone-a", "gone-b", "gone-c"):
        broker.create_topic(name, 1)
    refused = topics(broker, "delete", "gone-a")
    assert refused.exit_code == 1
    assert "delete topic gone-a, 1 partition, with its records" in refused.stderr
    assert [row["name"] for row in rows(broker, "delete", "gone-a", "--yes")] == ["gone-a"]
    topic_id = rows(broker, "describe", "gone-b")[0]["topicId"]
    assert rows(broker, "delete", "--id", topic_id, "--yes")[0]["name"] == "gone-b"
    assert [row["name"] for row in rows(broker, "delete", "--pattern", "gone-.*", "--yes")] == ["gone-c"]
    missing = rows(broker, "delete", "gone-a", "--yes", code=1)
    assert missing[0]["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert rows(broker, "delete", "gone-a", "--if-exists", "--yes") == []


# --- what goes wrong


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--pattern", "("),
        ("create", "x", "--partitions", "0"),
        ("create", "x", "--config", "novalue"),
        ("create", "x", "--replica-assignment", "1:1"),
        ("create", "x", "--replica-assignment", "one"),
        ("create", "x", "--replica-assignment", "1", "--partitions", "2"),
        ("alter", "x"),
        ("alter", "x", "--partitions", "2", "--replication-factor", "2"),
        ("delete",),
        ("idle", "--since", "yesterday"),
        ("plan-partitions", "--throughput", "much"),
        ("plan-partitions", "--throughput", "1MB"),
    ],
)
def test_a_command_that_is_not_understood_ends_with_2(broker: Broker, arguments: tuple[str, ...]) -> None:
    result = topics(broker, *arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("Usage: ")


def test_who_may_not_is_told_so_and_sees_the_rest() -> None:
    with guarded_broker() as guarded:
        guarded.create_topic("open")
        for command in (("describe", "secret"), ("copy-settings", "secret", "open")):
            refused = topics(guarded, *command)
            assert (refused.exit_code, refused.stdout) == (1, "")
            assert "Error: topic secret: TOPIC_AUTHORIZATION_FAILED: " in refused.stderr
            assert "User:ANONYMOUS lacks the permission DESCRIBE on topic secret" in refused.stderr
        assert rows(guarded, "delete", "secret", "--yes", code=1)[0]["error"] == "TOPIC_AUTHORIZATION_FAILED"
        assert [row["name"] for row in rows(guarded, "list")] == ["open"]
        # The cluster's reassignments and disks may not be seen, so they are not shown.
        assert [row["status"] for row in rows(guarded, "describe", "open")[0]["partitions"]] == ["ok"]
        assert [row["sizeBytes"] for row in rows(guarded, "idle")] == [None]


def test_a_cluster_that_is_not_there_is_a_failure_without_a_traceback() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        result = topics(address, "list", "-X", "default.api.timeout.ms=200", code=1)
    assert result.stderr.startswith(f"Error: {address} (--bootstrap-server): ")


def test_an_id_that_is_none_is_refused(broker: Broker) -> None:
    result = topics(broker, "describe", "--id", "short")
    assert result.exit_code == 1
    assert "not a uuid: 'short'" in result.stderr


# --- what is computed


def test_partitions_are_planned_with_reasons(broker: Broker) -> None:
    broker.create_topic("planned", 6)
    options = ("--throughput", "100MB", "--producer-throughput", "10MB", "--consumers", 6)
    plan = rows(broker, "plan-partitions", *options, "--topic", "planned")
    assert (plan["numPartitions"], plan["present"]) == (12, 6)
    assert "from 6 to 12: records of one key go to another partition" in plan["warnings"][1]
    text = topics(broker, "plan-partitions", *options).stdout
    assert text.startswith("12 partitions\n  because writing 100 MB/s at 10 MB/s per partition needs 10\n")
    assert "topic nowhere" in topics(broker, "plan-partitions", *options, "--topic", "nowhere").stderr


def test_the_largest_need_decides_and_room_to_grow_counts() -> None:
    assert plan_partitions(Load(100, 10, 5)).partitions == 20
    assert plan_partitions(Load(100, 10, 5)).reasons[0].startswith("reading 100 B/s at 5 B/s")
    assert plan_partitions(Load(100, 10, growth=1.5)).partitions == 15
    assert plan_partitions(Load(1, 10, consumers=3)).partitions == 3
    assert (
        plan_partitions(Load(1, 10), present=8).warnings[1]
        == "it has 8 already, which is enough and cannot be decreased"
    )
    assert "many" in plan_partitions(Load(10_000, 1)).warnings[-1]


def facts(leader: int, isr: tuple[int, ...], moving: PartitionReassignment | None = None) -> PartitionFacts:
    partition = PartitionDescription(0, leader, 0, (1, 2, 3), isr)
    return PartitionFacts(partition, moving, 2, frozenset({1, 2}))


def test_the_status_of_a_partition_is_the_worst_that_can_be_said() -> None:
    assert facts(1, (1, 2, 3)).status == "ok"
    assert facts(1, (1, 2)).status == "under-replicated"
    assert facts(1, (1,)).status == "under-min-isr"
    assert facts(3, (1, 2, 3)).status == facts(-1, (1, 2, 3)).status == "offline"


def test_replicas_that_are_only_being_added_do_not_count_as_missing() -> None:
    adding = PartitionReassignment((1, 2, 3), (3,), ())
    assert (facts(1, (1, 2), adding).replication_factor, facts(1, (1, 2), adding).status) == (2, "ok")
    over = PartitionReassignment((1, 4), (4,), ())
    assert facts(1, (1, 2), over).replication_factor == 3


def test_times_and_sizes_are_read_as_people_write_them() -> None:
    assert parse_time_ms("2026-01-31T12:30:00+01:00", 0) == parse_time_ms("2026-01-31T11:30", 0)
    assert parse_time_ms("1.5h", 10_000_000) == 10_000_000 - 5_400_000
    assert parse_bytes("1.5 MiB/s") == 1_572_864
    for wrong in ("", "7 days", "2026-13-01", "-5"):
        with pytest.raises(ValueError, match="not a time"):
            parse_time_ms(wrong, 0)
    with pytest.raises(ValueError, match="is not a size"):
        parse_bytes("a lot")
