"""Tables of gold made of the metadata log of a real cluster, whole, against answers that were found without the lake."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.lake.asking.opened import OpenLake
from barnabas.lake.keeping.store import Lake
from tests.lake.metadata_golden import CLUSTER_ID
from tests.lake.tables.gold.answers import ANSWERED, answers
from tests.lake.tables.gold.golden import history
from tests.lake.tables.gold.replaying import Rows, same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def every_row(spark: SparkSession, lake: Path) -> dict[str, Rows]:
    """The tables of both clusters that are in the lake. What several are made of is made once."""
    opened = OpenLake(spark, Lake(lake))
    shared = [opened[name].cache() for name in ("partitions", "partition_trouble", "broker_fences")]
    found = {name: opened[name].toArrow().to_pylist() for name in (*ANSWERED, "acl_findings")}
    for frame in shared:
        frame.unpersist()
    return found


@pytest.fixture(scope="module")
def tables(every_row: dict[str, Rows]) -> dict[str, Rows]:
    """Those of the golden cluster, without its id."""
    return {
        name: [{key: row[key] for key in row if key != "cluster_id"} for row in rows if row["cluster_id"] == CLUSTER_ID]
        for name, rows in every_row.items()
    }


@pytest.fixture(scope="module")
def expected() -> dict[str, Rows]:
    return answers(history())


@pytest.mark.parametrize("name", ANSWERED)
def test_a_table_of_the_golden_cluster_is_what_its_records_say(
    name: str, tables: dict[str, Rows], expected: dict[str, Rows]
) -> None:
    same(tables[name], expected[name])


def _at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-15T{clock}+00:00")


def _clock(time: datetime) -> str:
    return f"{time:%H:%M:%S.%f}"[:-3]


def test_changes_are_told_in_words(tables: dict[str, Rows]) -> None:
    told = {row["offset"]: row["sentence"] for row in tables["changes"]}
    assert told[984] == "every broker: min.insync.replicas 2 -> 1 at 2026-11-15T19:41:18Z in epoch 3"
    assert told[1408].startswith("quota of client-id default: consumer_byte_rate set to 99999999 at ")
    assert told[1387] == "acl User:alice may READ TOPIC acl-t1 from * deleted at 2026-11-15T19:43:24Z"
    assert told[2412].startswith("partition e-pref-0: leader 1 -> 2, leader_epoch 1 -> 2 at 2026-11-15T19:49:12Z")
    assert told[2257] == "controller 1 leads at 2026-11-15T19:48:38Z in epoch 4"
    assert not [sentence for sentence in told.values() if ":  at" in sentence]


def test_fences_are_those_that_the_log_was_read_to_have(tables: dict[str, Rows]) -> None:
    end = "19:52:24.950"
    fences = [
        # broker, offset, from, to, cause: the four brokers register and are let in
        (2, 7, "19:37:18.687", "19:37:19.316", "start"),
        (4, 9, "19:37:18.960", "19:37:19.555", "start"),
        (1, 16, "19:37:19.956", "19:37:20.317", "start"),
        (3, 18, "19:37:20.317", "19:37:20.773", "start"),
        # the fifth comes, goes without having led anything, and is unregistered
        (5, 2155, "19:48:23.748", "19:48:25.795", "start"),
        (5, 2181, "19:48:34.282", "19:48:36.068", "silence"),
        (2, 2256, "19:48:38.397", "19:49:02.970", "shutdown"),
        (4, 2292, "19:48:49.390", "19:49:23.534", "silence"),  # killed
        (3, 2462, "19:49:14.452", "19:49:43.623", "shutdown"),
        (1, 4634, "19:50:29.393", "19:50:48.101", "silence"),  # ended by a fault
        # all go, and the log ends before 1 is fenced
        (4, 5015, "19:52:21.883", end, "shutdown"),
        (3, 5077, "19:52:24.294", end, "shutdown"),
        (2, 5223, end, end, "shutdown"),
    ]
    found = sorted(tables["broker_fences"], key=lambda row: row["valid_from_offset"])
    assert [
        (row["broker_id"], row["valid_from_offset"], _clock(row["began"]), _clock(row["until"]), row["cause"])
        for row in found
    ] == fences
    assert [row["is_over"] for row in found] == [offset < 5000 for _, offset, *_ in fences]
    for row, (_, _, began, until, _) in zip(found, fences, strict=True):
        assert row["minutes"] == pytest.approx((_at(until) - _at(began)) / timedelta(minutes=1))
    fenced = {row["broker_id"]: (row["fences"], row["fenced_minutes"] * 60) for row in tables["broker_availability"]}
    assert {broker: (count, round(seconds, 3)) for broker, (count, seconds) in fenced.items()} == {
        1: (1, 18.708),
        2: (2, 24.573),
        3: (2, 29.827),
        4: (2, 37.211),
        5: (1, 1.786),
    }


def test_changes_of_leader_have_the_causes_that_the_log_was_read_to_have(tables: dict[str, Rows]) -> None:
    causes = {row["offset"]: row["cause"] for row in tables["leader_changes"]}
    assert causes[2092] == "reassignment"
    assert causes[2206] == "broker 2 shut down"
    assert causes[2412] == "preferred leader election"  # a moment before broker 3 goes
    assert causes[2517] == "unclean election"  # asked for, with its broker long back
    assert (
        causes[4683] == "unclean election"
    )  # in the batch that lets broker 1 in, which had lost its place among the eligible
    assert causes[5099] == "broker 2 shut down"  # and is fenced a tenth of a second later
    assert Counter(causes.values()) == {
        "broker 1 shut down": 62,
        "broker 1 fenced": 39,
        "broker 2 shut down": 68,
        "broker 2 came back": 4,
        "broker 3 shut down": 58,
        "broker 3 came back": 2,
        "broker 4 shut down": 11,
        "broker 4 fenced": 7,
        "preferred leader election": 58,
        "reassignment": 2,
        "unclean election": 8,
    }


def test_balance_and_racks_are_those_of_the_end(tables: dict[str, Rows]) -> None:
    assert {row["broker_id"]: (row["rack"], row["replicas"], row["leaders"]) for row in tables["broker_balance"]} == {
        1: ("a", 62, 0),
        2: ("b", 79, 0),
        3: ("c", 55, 0),
        4: ("a", 19, 0),
    }
    # both replicas on brokers 1 and 4
    violated = {f"{row['topic_name']}-{row['partition']}": row["racks"] for row in tables["rack_violations"]}
    assert violated == {name: ["a"] for name in ("ct-v6-manual-2", "ct-v7-manual-2", "d-zstd-0", "r-move-1")}


def test_reassignments_and_leaders_of_the_quorum_are_those_that_the_log_was_read_to_have(
    tables: dict[str, Rows],
) -> None:
    names = ("topic_name", "valid_from_offset", "adding_replicas", "removing_replicas", "added_in_sync", "outcome")
    found = sorted(tables["reassignments"], key=lambda row: row["valid_from_offset"])
    assert [tuple(row[name] for name in names) for row in found] == [
        ("r-grow", 2084, [2], [], [2], "done"),
        ("r-move", 2086, [3, 4], [1, 2], [3, 4], "done"),
        ("r-move", 2087, [1, 4], [2, 3], [1, 4], "done"),
        # to [3, 4], then to [4, 2], then cancelled
        ("r-cancel", 2108, [3, 4], [1, 2], [4], "changed"),
        ("r-cancel", 2112, [3, 4], [1, 3], [], "cancelled"),
    ]
    assert [(row["epoch"], row["leader_id"], _clock(row["began"]), row["is_over"]) for row in sorted(
        tables["quorum_leaders"], key=lambda row: row["epoch"]
    )] == [
        (1, 2, "19:37:18.108", True),
        (2, 1, "19:41:16.399", True),
        (3, 2, "19:41:17.548", True),
        (4, 1, "19:48:38.864", True),
        (5, 3, "19:50:20.200", True),
        (6, 1, "19:52:24.677", False),
    ]  # fmt: skip


def test_findings_about_acls_are_those_that_the_entries_were_read_to_have(tables: dict[str, Rows]) -> None:
    """What is left of three rounds of entries: those of a prefix for transactions, a deny for a user without any other entry,
    and for names that never were."""
    dave = [f"ALLOW User:dave to ALL topic:acl-all{number}" for number in (1, 2, 3)]
    nowhere = [f"ALLOW User:alice from  to READ topic:acl-eh{number}" for number in (1, 2, 3)]  # the host is empty
    tokens = [f"ALLOW User:alice to DESCRIBE delegation-token:acl-k{number}" for number in (1, 2, 3)]
    users = [f"ALLOW User:alice to CREATE_TOKENS user:User:u{number}" for number in (1, 2, 3)]
    missing = [
        *dave, *nowhere, "ALLOW User:alice to READ topic:in valid", "ALLOW User:alice to READ topic:acl-keep",
        "ALLOW User:alice to WRITE topic:acl-keep- (PREFIXED)", "ALLOW User:alice to READ group:alice- (PREFIXED)",
    ]  # fmt: skip
    expected = [
        ("never-denies", ["DENY User:mallory to ALL topic:*"], None),
        *(("wildcard", [entry], None) for entry in dave),
        ("replaceable", dave, "ALLOW User:dave to ALL topic:acl- (PREFIXED)"),
        ("replaceable", nowhere, "ALLOW User:alice from  to READ topic:acl- (PREFIXED)"),
        ("replaceable", tokens, "ALLOW User:alice to DESCRIBE delegation-token:acl- (PREFIXED)"),
        ("replaceable", users, "ALLOW User:alice to CREATE_TOKENS user:User: (PREFIXED)"),
        *(("no-such-resource", [entry], None) for entry in missing),
    ]
    found = [(row["finding"], row["entries"], row["because"]) for row in tables["acl_findings"]]
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_another_cluster_of_the_same_lake_has_answers_of_its_own(every_row: dict[str, Rows]) -> None:
    others = {name: [row for row in rows if row["cluster_id"] != CLUSTER_ID] for name, rows in every_row.items()}
    assert len({row["cluster_id"] for rows in others.values() for row in rows}) == 1
    assert [row["broker_id"] for row in others["broker_balance"]] == [1]
    (leader,) = others["quorum_leaders"]
    assert (leader["leader_id"], leader["is_over"]) == (1, False)
    assert {row["cause"] for row in others["broker_fences"]} == {"start"}
    trouble = ("partition_trouble", "topic_availability", "leader_changes", "isr_flaps", "reassignments")
    assert not any(others[name] for name in (*trouble, "rack_violations"))
