"""`barnabas groups copy`: the same offsets in the same topics, the same place in copies, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from barnabas.testing import Broker
from tests.client.admin.group_scenes import commit, committed, member
from tests.command_line import Command

T0_MS = 1_700_000_000_000
TIMES = [0, 10, 5, 20, 15, 30, 25, 40]
"""Times of records in the order of their offsets: some are older than the one before."""

groups, topics = Command("groups"), Command("topics")
rows = groups.rows


def write(broker: Broker, topic: str, times: list[int], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for time_ms in times:
        producer.produce(topic, b"%d" % time_ms, partition=partition, timestamp=T0_MS + time_ms)
    producer.flush()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 2, "empty": 1}, config={"group.initial.rebalance.delay.ms": 0}) as broker:
        write(broker, "orders", TIMES)
        write(broker, "orders", TIMES, 1)
        Command("records")(broker, "delete", "orders:0", "--before-offset", 2, "--yes", code=0)
        topics(broker, "copy", "orders", "orders-2", "--records", "--yes", code=0)
        yield broker


@pytest.fixture(scope="module")
def other(broker: Broker) -> Iterator[Broker]:
    with Broker() as other:
        to = ("--to-bootstrap-server", other.bootstrap_servers)
        topics(broker, "copy", "orders", "orders", "--records", "--yes", *to, code=0)
        yield other


def test_offsets_are_copied_as_they_are(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "app", {("orders", 0): 3, ("orders", 1): 8, ("empty", 0): 0})
    commit(broker.bootstrap_servers, "app-2", {("orders", 0): 1})
    preview = groups(broker, "copy", "app", "app-2", "--dry-run", code=0)
    assert "would set the offset of app-2 in orders-0 from 1 to 3\n" in preview.stderr
    assert committed(broker.bootstrap_servers, "app-2") == {("orders", 0): 1}
    refused = groups(broker, "copy", "app", "app-2")
    assert (refused.exit_code, "pass --yes" in refused.stderr) == (1, True)
    made = rows(broker, "copy", "app", "app-2", "--yes")
    assert [(row["topic"], row["oldOffset"], row["newOffset"], row["error"]) for row in made] == [
        ("empty", None, 0, None),
        ("orders", 1, 3, None),
        ("orders", None, 8, None),
    ]
    assert committed(broker.bootstrap_servers, "app-2") == committed(broker.bootstrap_servers, "app")
    rows(broker, "copy", "app", "app-3", "--topic", "orders:1", "--yes")
    assert committed(broker.bootstrap_servers, "app-3") == {("orders", 1): 8}


@pytest.mark.parametrize("where", ["renamed", "other"])
@pytest.mark.parametrize("read", range(2, len(TIMES) + 1))
def test_a_copy_skips_no_record_whatever_the_order_of_times(
    broker: Broker, other: Broker, read: int, where: str
) -> None:
    group = f"by-time-{where}-{read}"
    commit(broker.bootstrap_servers, group, {("orders", 0): read})
    if where == "other":
        (made,) = rows(broker, "copy", group, group, "--yes", "--to-bootstrap-server", other.bootstrap_servers)
        found = committed(other.bootstrap_servers, group)
    else:
        (made,) = rows(broker, "copy", group, f"{group}-2", "--yes", "--renamed", "orders=orders-2")
        found = committed(broker.bootstrap_servers, f"{group}-2")
    assert list(found.values()) == [made["newOffset"]]
    same_place = read - 2  # the two first records were deleted before the topic was copied
    assert made["sourceOffset"] == read
    assert made["newOffset"] <= same_place
    in_order = all(time < min(TIMES[read:], default=99) for time in TIMES[2:read])
    assert made["newOffset"] == same_place or not in_order


def test_an_offset_before_the_log_start_continues_at_the_first_record(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "late", {("orders", 0): 0})
    (made,) = rows(broker, "copy", "late", "late-2", "--renamed", "orders=orders-2", "--yes")
    assert made["newOffset"] == 0


def test_records_that_are_not_copied_yet_leave_the_group_at_the_end(broker: Broker) -> None:
    for name in ("growing", "grown"):
        broker.create_topic(name)
    write(broker, "growing", [0, 1])
    commit(broker.bootstrap_servers, "early", {("growing", 0): 1})
    result = groups(broker, "copy", "early", "early-2", "--renamed", "growing=grown", "--yes", "-o", "json", code=0)
    assert result.json[0]["newOffset"] == 0
    assert "grown-0: the oldest unread record was not copied yet" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("app", "app"), "a group cannot be copied to itself"),
        (("nothing", "x"), "group nothing: has no committed offsets to copy"),
        (("app", "x", "--topic", "orders-2"), "group app: has no committed offsets to copy"),
        (("app", "x", "--renamed", "stock=stock-2"), "group app: has no committed offsets in stock"),
        (("app", "x", "--renamed", "orders=none"), "topic none: UNKNOWN_TOPIC_OR_PARTITION"),
        (("app", "x", "--renamed", "orders=empty"), "the copy has 1 partitions and the source 2"),
        (
            ("app", "x", "--topic", "empty", "--renamed", "empty=one"),
            "the time of the oldest unread record is not known",
        ),
    ],
)
def test_what_cannot_be_copied_is_refused(broker: Broker, arguments: tuple[str, ...], message: str) -> None:
    commit(broker.bootstrap_servers, "app", {("orders", 0): 3, ("orders", 1): 8, ("empty", 0): 0})
    if "one" not in [row["name"] for row in topics.rows(broker, "list")]:
        broker.create_topic("one")
        write(broker, "one", [0])
    result = groups(broker, "copy", *arguments, "--yes")
    assert (result.exit_code, message in result.stderr) == (1, True), result.output
    assert committed(broker.bootstrap_servers, "x") == {}


def test_a_group_with_members_is_not_changed(broker: Broker) -> None:
    commit(broker.bootstrap_servers, "app", {("orders", 0): 3})
    with member(broker.bootstrap_servers, "busy", ["orders"], 2):
        result = groups(broker, "copy", "app", "busy", "--yes")
    assert (result.exit_code, "group busy: is Stable, with 1 member" in result.stderr) == (1, True)
    assert groups(broker, "copy", "app", "x", "--renamed", "orders").exit_code == 2
