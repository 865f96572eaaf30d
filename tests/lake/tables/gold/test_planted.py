"""Tables of gold on histories that were made for it: known facts in one, and some hundred random requests in others.

All are in the same tables, under different clusters: what is said of one must not depend on another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.declared.document import DeclaredTopic
from barnabas.lake.asking.declaring import TABLES as DECLARED
from barnabas.lake.asking.declaring import rollback
from barnabas.lake.tables.all import TABLES
from tests.lake.facts.metadata_facts import as_of
from tests.lake.tables.gold.answers import ANSWERED, answers
from tests.lake.tables.gold.made_histories import Made, Planted, make, random_history, silver
from tests.lake.tables.gold.replaying import Rows, same

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _planted() -> Made:
    """Each line is one batch, one minute after the one before."""
    plan = Planted()
    plan.create("kept", [2], retention_ms="604800000")  # 1
    plan.set("kept", "retention.ms", "86400000")  # 2
    plan.set("kept", "retention.ms", "604800000")  # 3: as it was
    plan.create("orders", [1, 2, 3])  # 4
    plan.create("near", [1, 4], [1, 4])  # 5: both on rack a
    plan.fence(3)  # 6: orders has 1 and 2 left
    plan.set("orders", "min.insync.replicas", "3")  # 7: below its minimum from here on
    plan.fence(2)  # 8: 1 left; kept is without a leader
    plan.let_in(2)  # 9
    plan.set_isr("orders", 1, 2)  # 10
    plan.let_in(3)  # 11
    plan.set_isr("orders", 1, 2, 3)  # 12: all well
    plan.set_isr("orders", 1, 2)  # 13: 3 leaves
    plan.set_isr("orders", 1, 2, 3)  # 14
    plan.set_isr("orders", 1, 2)  # 15: and again
    plan.set_isr("orders", 1, 2, 3)  # 16
    plan.elect_controller(2)  # 17
    plan.shut_down(1)  # 18: its leaders go to others
    plan.shut_down(1)  # 19: it is fenced
    plan.register_again(1)  # 20
    plan.let_in(1)  # 21
    plan.set_isr("orders", 1, 2, 3)  # 22
    plan.elect()  # 23: 1 leads again
    plan.reassign("orders", [4, 2, 3])  # 24
    plan.set_isr("orders", 1, 2, 3, 4)  # 25: done, and 1 has no replica any more
    plan.delete("orders")  # 26
    plan.create("orders", [2, 3])  # 27: another one
    plan.reassign("near", [2, 3])  # 28: goes on
    plan.fence(3)  # 29: goes on
    plan.nothing()  # 30
    plan.nothing()  # 31: the end of the log
    return make("planted", plan.batches)


@pytest.fixture(scope="module")
def made() -> list[Made]:
    return [_planted(), *(random_history(f"random {seed}", seed, 400) for seed in (12, 15, 17))]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, made: list[Made]) -> dict[str, dict[str, Rows]]:
    """The rows of each table, by cluster."""
    frames = silver(spark, made)

    def frame(name: str) -> DataFrame:
        if name not in frames:
            frames[name] = TABLES[name].build(*(frame(each) for each in TABLES[name].inputs))
        return frames[name]

    shared = [frame(name).cache() for name in ("partitions", "partition_trouble", "broker_fences")]
    found: dict[str, dict[str, Rows]] = {}
    for name in ANSWERED:
        by_cluster: dict[str, Rows] = {each.cluster_id: [] for each in made}
        for row in frame(name).toArrow().to_pylist():
            by_cluster[row.pop("cluster_id")].append(row)
        found[name] = by_cluster
    for each in shared:
        each.unpersist()
    return found


@pytest.mark.parametrize("name", ANSWERED)
def test_a_table_of_any_history_is_what_its_records_say(
    name: str, made: list[Made], tables: dict[str, dict[str, Rows]]
) -> None:
    for each in made:
        same(tables[name][each.cluster_id], answers(each.history)[name])


def test_what_can_happen_has_happened_in_these_histories(tables: dict[str, dict[str, Rows]]) -> None:
    def all_of(table: str, column: str) -> set[Any]:
        return {row[column] for rows in tables[table].values() for row in rows}

    causes = {re.sub(r"broker \d ", "", cause) for cause in all_of("leader_changes", "cause")}
    assert causes >= {
        "fenced",
        "shut down",
        "came back",
        "reassignment",
        "preferred leader election",
        "unclean election",
    }
    assert all_of("reassignments", "outcome") == {"done", "cancelled", "changed", "deleted", "running"}
    assert all_of("broker_fences", "cause") >= {"silence", "shutdown"}
    assert all_of("partition_trouble", "below_min_isr") == all_of("partition_trouble", "offline") == {False, True}
    assert len(all_of("partition_trouble", "min_isr")) == 3
    assert any(tables["rack_violations"].values())


def _of_planted(tables: dict[str, dict[str, Rows]], name: str, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[column] for column in columns) for row in tables[name]["planted"])


def test_a_setting_that_was_changed_and_changed_back_leaves_no_plan(
    made: list[Made], tables: dict[str, dict[str, Rows]]
) -> None:
    told = [row["sentence"] for row in tables["changes"]["planted"] if row["sentence"].startswith("kept: ")]
    assert sorted(told, key=lambda sentence: sentence.partition(" at ")[2]) == [
        "kept: retention.ms set to 604800000 at 2026-03-01T12:01:00Z in epoch 1",
        "kept: retention.ms 604800000 -> 86400000 at 2026-03-01T12:02:00Z in epoch 1",
        "kept: retention.ms 86400000 -> 604800000 at 2026-03-01T12:03:00Z in epoch 1",
    ]
    steps = [
        (row["before"], row["after"]) for row in tables["config_history"]["planted"] if row["resource_name"] == "kept"
    ]
    assert sorted(steps, key=str) == [("604800000", "86400000"), ("86400000", "604800000"), (None, "604800000")]
    offsets = [row["offset"] for row in tables["config_history"]["planted"] if row["resource_name"] == "kept"]
    first, changed, back = (
        {name: as_of(made[0].facts, offset).get(name, []) for name in DECLARED} for offset in sorted(offsets)
    )
    assert rollback(first, changed).document.topics == {
        "kept": DeclaredTopic("kept", configs={"retention.ms": "604800000"})
    }
    assert rollback(first, back).document.topics is None


def test_minutes_of_trouble_overlap_and_end_with_the_log(tables: dict[str, dict[str, Rows]]) -> None:
    found = sorted(tables["partition_trouble"]["planted"], key=lambda row: row["valid_from_offset"])
    names = ("minutes", "min_isr", "missing", "below_min_isr", "offline", "is_over")
    by_place: dict[str, list[Any]] = {}
    for row in found:
        place = by_place.setdefault(f"{row['topic_name']}-{row['partition']} {row['topic_id']}", [])
        place.append(tuple(row[name] for name in names))
    (kept,), (near, other), (first, second) = (
        [rows for place, rows in by_place.items() if place.startswith(topic)] for topic in ("kept", "near", "orders")
    )
    assert kept == [(1.0, 1, [2], True, True, True)]
    assert near == other == [(13.0, 1, [1], False, False, False)]  # 12:18 until the end at 12:31
    assert first == [
        (1.0, 1, [3], False, False, True),  # 12:06
        (1.0, 3, [3], True, False, True),  # the minimum is three
        (2.0, 3, [2, 3], True, False, True),
        (2.0, 3, [3], True, False, True),
        (1.0, 3, [3], True, False, True),  # 12:13
        (1.0, 3, [3], True, False, True),  # 12:15
        (4.0, 3, [1], True, False, True),  # 12:18
    ]
    assert second == [(2.0, 1, [3], False, False, False)]  # created again, without the setting
    totals = ("topic_name", "under_replicated_minutes", "offline_minutes", "below_min_isr_minutes", "is_over")
    assert _of_planted(tables, "topic_availability", *totals) == [
        ("kept", 1.0, 1.0, 1.0, True),
        ("near", 13.0, 0.0, 0.0, False),
        ("orders", 2.0, 0.0, 0.0, False),
        ("orders", 12.0, 0.0, 11.0, True),
    ]
    names = ("broker_id", "out_of_sync_minutes", "below_min_isr_minutes", "partitions", "fenced_minutes", "fences")
    assert _of_planted(tables, "broker_availability", *names) == [
        (1, 13.0, 4.0, 3, 2.0, 1),
        (2, 2.0, 2.0, 2, 1.0, 1),  # of both topics at the same time
        (3, 10.0, 7.0, 2, 7.0, 2),
        (4, 0.0, 0.0, 0, 0.0, 0),
    ]


def test_fences_flaps_leaders_and_moves_are_those_that_were_planted(tables: dict[str, dict[str, Rows]]) -> None:
    assert _of_planted(tables, "broker_fences", "broker_id", "minutes", "cause", "is_over") == [
        (1, 2.0, "shutdown", True),
        (2, 1.0, "silence", True),
        (3, 2.0, "silence", False),
        (3, 5.0, "silence", True),
    ]
    assert max(_of_planted(tables, "isr_flaps", "times", "topic_name", "broker_id", "shortest_minutes")) == (
        3,
        "orders",
        3,
        2.0,
    )
    assert _of_planted(tables, "leader_changes", "offset", "topic_name", "leader_before", "leader", "cause") == [
        (21, "kept", 2, -1, "broker 2 fenced"),
        (25, "kept", -1, 2, "broker 2 came back"),
        (35, "near", 1, 4, "broker 1 shut down"),
        (36, "near", 1, 4, "broker 1 shut down"),
        (37, "orders", 1, 2, "broker 1 shut down"),
        (42, "orders", 2, 1, "preferred leader election"),
        (44, "orders", 1, 4, "reassignment"),
    ]
    assert _of_planted(tables, "rack_violations", "topic_name", "partition", "racks", "possible_racks") == [
        ("near", 1, ["a"], 2)
    ]
    assert _of_planted(tables, "reassignments", "topic_name", "minutes", "added_in_sync", "outcome") == [
        ("near", 3.0, [], "running"),
        ("orders", 1.0, [4], "done"),
    ]
    assert _of_planted(tables, "quorum_leaders", "epoch", "leader_id", "minutes", "is_over") == [
        (1, 1, 17.0, True),
        (2, 2, 14.0, False),
    ]
