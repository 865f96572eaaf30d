"""The metadata log of a cluster of Apache Kafka 4.3.1: facts as of an offset are what the cluster showed, and its snapshots."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from barnabas import wire
from barnabas.batches.control import decode_control_key
from barnabas.batches.reader import decode_records, iterate_batches
from barnabas.metadata.loader import MetadataLoader
from barnabas.wire.records import control
from tests.lake.facts.metadata_facts import Item, as_of, comparable, fold_in_runs, image_rows, public
from tests.metadata import golden

Rows = list[dict[str, Any]]
CONTROL = {
    2: control.LeaderChangeMessage,
    3: control.SnapshotHeaderRecord,
    4: control.SnapshotFooterRecord,
    5: control.KRaftVersionRecord,
    6: control.VotersRecord,
}


def items(name: str) -> list[Item]:
    """The records of a segment, or of a snapshot, control records included."""
    data, found = golden.files()[name], []
    end_offset = int(name.partition("-")[0]) if name.endswith(".checkpoint") else None
    for position, header in iterate_batches(data):
        for index, record in enumerate(decode_records(data, position)):
            raw = record.value or b""
            kind = CONTROL[int(decode_control_key(record.key))] if header.is_control else "metadata"
            found.append(
                Item(
                    header.base_offset + index if end_offset is None else end_offset,
                    wire.decode_record(raw, kind).record,
                    end_offset is not None,
                    header.max_timestamp,
                    header.partition_leader_epoch,
                    raw,
                )
            )
    return found


@cache
def log() -> list[Item]:
    return [item for name in sorted(golden.files()) if name.endswith(".log") for item in items(name)]


@cache
def facts() -> Rows:
    return fold_in_runs([(log(), 1)])


@cache
def shown() -> dict[str, Rows]:
    return as_of(facts(), golden.expected()["metadata_offset_before"] - 1)


def test_topics_and_partitions_are_what_the_cluster_showed() -> None:
    partitions: dict[str, list[Any]] = {topic["name"]: [] for topic in shown()["topics"]}
    for row in shown()["partitions"]:
        names = ("partition", "leader", "leader_epoch", "replicas", "isr", "elr", "last_known_elr")
        partitions[row["topic_name"]].append([sorted(row[name]) if name == "isr" else row[name] for name in names])
        assert row["adding_replicas"] == row["removing_replicas"] == golden.expected()["reassignments"] == []
    assert {name: sorted(rows) for name, rows in partitions.items()} == {
        topic["name"]: [[*p[:4], sorted(p[4]), *p[5:]] for p in topic["partitions"]]
        for topic in golden.expected()["topics"]
    }
    ids = {topic["name"]: topic["topicId"] for topic in golden.expected()["topics"]}
    assert {row["name"]: row["topic_id"] for row in shown()["topics"]} == ids


def test_settings_are_what_the_cluster_showed() -> None:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in shown()["configs"]:
        found.setdefault((row["resource_type"], row["resource_name"]), {})[row["name"]] = row["value"]
    for name, config in golden.expected()["topic_configs"].items():
        assert found.get(("TOPIC", name), {}) == config
    kinds = {"4": "BROKER", "16": "CLIENT_METRICS", "32": "GROUP"}
    for key, config in golden.expected()["other_configs"].items():
        number, _, name = key.partition(":")
        mine = found.get((kinds[number], name), {})
        mine.pop("no.such.config", None)  # shown without its value, as a setting that nobody knows
        assert mine == config["default" if key == "4:" else "set"], key


def test_acls_quotas_users_and_features_are_what_the_cluster_showed() -> None:
    expected = golden.expected()
    names = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")
    assert sorted(tuple(row[name] for name in names) for row in shown()["acls"]) == sorted(
        (
            pattern["resource_type"],
            pattern["name"],
            pattern["pattern_type"],
            *(acl[name] for name in ("principal", "host", "operation", "permission")),
        )
        for pattern in expected["acls"]
        for acl in pattern["acls"]
    )
    quotas = {(str(row["entity"]), row["name"]): row["value"] for row in shown()["quotas"]}
    assert quotas == {
        (str(sorted_entity(entry["entity"])), value["key"]): value["value"]
        for entry in expected["quotas"]
        for value in entry["values"]
    }
    assert {(row["name"], row["mechanism"]): row["iterations"] for row in shown()["users"]} == {
        (name, {"1": "SCRAM-SHA-256", "2": "SCRAM-SHA-512"}[mechanism]): iterations
        for name, credentials in expected["scram"].items()
        for mechanism, iterations in credentials.items()
    }
    assert {row["name"]: row["level"] for row in shown()["features"]} == expected["features"]


def sorted_entity(entity: Rows) -> Rows:
    parts = [{"type": part["entityType"], "name": part["entityName"]} for part in entity]
    return sorted(parts, key=lambda part: str(part["type"]))


def test_brokers_controllers_and_the_quorum_are_what_the_cluster_showed() -> None:
    expected = golden.expected()
    brokers = sorted(shown()["brokers"], key=lambda row: int(row["broker_id"]))
    listeners = [next(e for e in row["listeners"] if e["name"] == "PLAINTEXT") for row in brokers]
    assert [
        [row["broker_id"], e["host"], e["port"], row["rack"], row["fenced"]]
        for row, e in zip(brokers, listeners, strict=True)
    ] == expected["brokers"]
    controllers = [
        [row["controller_id"], e["host"], e["port"]] for row in shown()["controllers"] for e in row["listeners"]
    ]
    assert sorted(controllers) == expected["controllers"]
    voters = {row["voter_id"]: (row["directory_id"], row["endpoints"]) for row in shown()["voters"]}
    assert {voter: directory for voter, (directory, _) in voters.items()} == {
        1: "AAAAAAAAAAEAAAAAAAAAQQ",
        2: "AAAAAAAAAAIAAAAAAAAAQg",
        3: "AAAAAAAAAAMAAAAAAAAAQw",
    }
    assert [e["port"] for _, (_, endpoints) in sorted(voters.items()) for e in endpoints] == [19111, 19112, 19113]
    assert [(row["epoch"], row["leader_id"]) for row in shown()["leader_epochs"]] == [(5, 3)]


def test_a_fifth_voter_came_and_went() -> None:
    fifth = [row for row in facts() if row["kind"] == "voters" and row["value"]["voter_id"] == 5]
    assert fifth and all(row["valid_to_offset"] is not None and row["exact"] for row in fifth)


def test_as_of_batch_ends_the_facts_are_the_image() -> None:
    loader, loaded = MetadataLoader(), 0
    for index, batch in enumerate(golden.log()):
        if index % 41 == 0:
            loader.load(golden.log()[loaded : index + 1])
            loaded = index + 1
            assert comparable(as_of(facts(), batch.last_offset)) == image_rows(loader.image)
    assert loaded > 2000


@pytest.mark.parametrize("shards", [1, 3])
def test_kafkas_own_snapshots_in_between_change_nothing(shards: int) -> None:
    names = [name for name in sorted(golden.files()) if name.endswith(".checkpoint")]
    ends = [int(name.partition("-")[0]) for name in names]
    assert ends == [0, 1568, 3603]
    runs = []
    for name, start, end in zip(names, ends, [*ends[1:], len(log())], strict=True):
        runs.append(([*items(name), *log()[start:end]], shards))
    found = public(fold_in_runs(runs))
    # The snapshot before the first offset has the first voters; so it is known that they were there before.
    quorum = {"voters", "features"}
    assert [row for row in found if row["kind"] not in quorum] == [
        row for row in public(facts()) if row["kind"] not in quorum
    ]
    assert comparable(as_of(found, 5000)) == comparable(as_of(facts(), 5000))


def test_a_history_that_begins_at_a_snapshot_is_not_exact_there_and_right_after_it() -> None:
    name = "00000000000000003603-0000000004.checkpoint"
    found = fold_in_runs([([*items(name), *log()[3603:]], 2)])
    here = [row for row in public(found) if row["valid_from_offset"] == 3603]
    assert len(here) > 300
    # What the record at that very offset says is known exactly.
    assert [row for row in here if row["exact"]] == [row for row in facts() if row["valid_from_offset"] == 3603]
    assert all(row["exact"] for row in public(found) if row["valid_from_offset"] > 3603)
    offset = golden.expected()["metadata_offset_before"] - 1
    then = as_of(found, offset)
    assert comparable(then) == comparable(shown())
    assert then["voters"] == shown()["voters"]


def test_a_snapshot_of_the_past_is_left_alone() -> None:
    name = "00000000000000001568-0000000003.checkpoint"
    assert public(fold_in_runs([(log(), 1), (items(name), 2)])) == public(facts())
