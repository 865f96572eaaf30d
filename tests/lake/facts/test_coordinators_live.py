"""Groups and transactions made on a live broker: the facts of its logs, read while it runs, are what it says of itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.client.admin.part import checked
from barnabas.client.records import TopicPartition
from barnabas.client.sync import Admin, Consumer, Producer
from barnabas.lake.facts import schema
from barnabas.lake.facts.coordinator_logs import COLUMNS, RecordsFold, family
from barnabas.lake.facts.groups import TOPIC as GROUPS_TOPIC
from barnabas.lake.facts.groups import GroupsFold
from barnabas.lake.facts.spark import run_shard
from barnabas.lake.facts.transactions import TOPIC as TRANSACTIONS_TOPIC
from barnabas.lake.facts.transactions import TransactionsFold
from barnabas.lake.reading.coordinator_rows import LOGS, TYPES, read_rows
from barnabas.lake.reading.log_planning import plan
from barnabas.lake.sources.coordinator_reading import parse_options
from barnabas.testing import Broker

ORDERS = {TopicPartition("orders", 0): 2, TopicPartition("orders", 1): 1}


def facts_of(directory: Path, topic: str, make: Callable[[], RecordsFold]) -> dict[str, list[dict[str, Any]]]:
    """What is true now by the log, read and folded as Spark does it, without Spark."""
    names = ("cluster_id", "partition", *COLUMNS)
    wanted = pa.schema([pa.field(name, TYPES[name]) for name in names])

    def rows() -> Iterator[pa.RecordBatch]:
        for task in plan(parse_options("a source", topic, {"path": str(directory)})):
            for batch in read_rows(task, wanted, LOGS[topic], fail_fast=True):
                count = batch.num_rows
                log = pa.array([f"{topic}-{number}" for number in batch.column("partition").to_pylist()], pa.string())
                shard, packed = pa.array([0] * count, pa.int32()), pa.nulls(count, pa.binary())
                columns = {**dict(zip(batch.schema.names, batch.columns, strict=True)), "shard": shard, "log": log}
                yield pa.RecordBatch.from_pydict({**columns, "packed": packed})

    found: dict[str, list[dict[str, Any]]] = {}
    for batch in run_shard(rows(), family(topic, make), 1):
        for _, _, kind, facts in schema.facts_of(batch):
            for fact in facts:
                if kind[0] != "_" and fact[4] is None:
                    assert fact[6], "nothing is missing in a log that was never compacted"
                    columns = schema.kinds()[kind].columns
                    found.setdefault(kind, []).append(
                        dict(zip((column.name for column in columns), fact[7], strict=True))
                    )
    return found


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker({"orders": 2}, data_dir=tmp_path / "data") as broker:
        yield broker


def wait_until(holds: Callable[[], bool]) -> None:
    """What a transaction came to is written after its producer has the answer."""
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def consume(broker: Broker, group_id: str, protocol: str) -> Consumer:
    """A member of a group that has committed what it has read."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group_id,
            "group.protocol": protocol,
            "client.id": f"client-of-{group_id}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    read = 0
    while read < 3:
        read += len(consumer.poll(2000))
    consumer.commit()
    return consumer


def test_groups_are_what_the_broker_says(broker: Broker) -> None:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    with Producer(servers) as producer:
        for partition in (0, 0, 1):
            producer.send_and_wait("orders", b"an order", partition=partition)
    with Producer({**servers, "transactional.id": "tx"}) as producer:
        producer.init_transactions()
        for group_id, ends in (("in-transaction", "commit"), ("aborted", "abort")):
            producer.begin_transaction()
            producer.send_offsets_to_transaction(ORDERS, group_id)
            getattr(producer, f"{ends}_transaction")()
    with Admin(servers) as admin:
        wait_until(
            lambda: len(checked(admin.list_consumer_group_offsets(["in-transaction"]))["in-transaction"]) == len(ORDERS)
        )
        classic, modern = consume(broker, "classic", "classic"), consume(broker, "modern", "consumer")
        with classic, modern:
            for group_id in ("by-hand", "gone"):
                admin.alter_consumer_group_offsets(group_id, ORDERS)
            assert admin.delete_groups(["gone"]) == {"gone": None}
            listed = {group.group_id: group for group in admin.list_groups()}
            wanted = [group_id for group_id in listed if group_id != "aborted"]
            described = checked(admin.describe_consumer_groups(wanted))
            offsets = checked(admin.list_consumer_group_offsets(list(described)))
            facts = facts_of(broker.data_dir, GROUPS_TOPIC, GroupsFold)

    # A group whose only commit was aborted lives in the memory of the broker, and not in what holds by the log.
    assert set(listed) - {"aborted"} == {"classic", "modern", "by-hand", "in-transaction"}
    assert {row["group_id"]: (row["group_type"], row["state"], row["members"]) for row in facts["groups"]} == {
        group_id: (group.type.lower(), group.state, len(group.members)) for group_id, group in described.items()
    }
    assert {
        (row["group_id"], row["topic"], row["partition"]): row["committed_offset"] for row in facts["group_offsets"]
    } == {
        (group_id, *place): committed.offset
        for group_id, of_group in offsets.items()
        for place, committed in checked(of_group).items()
    }
    members = {(row["group_id"], row["member_id"]): row for row in facts["group_members"]}
    assert set(members) == {
        (group_id, member.member_id) for group_id, group in described.items() for member in group.members
    }
    for (group_id, member_id), row in members.items():
        (member,) = [each for each in described[group_id].members if each.member_id == member_id]
        assert (row["client_id"], row["client_host"]) == (member.client_id, member.client_host)
        assert row["subscribed_topics"] == ["orders"]
        assert sum(len(topic["partitions"]) for topic in row["assignment"]) == len(member.assignment) == 2
        assert row["member_epoch"] == (member.member_epoch if group_id == "modern" else None)


def test_transactions_are_what_the_broker_says(broker: Broker) -> None:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    with Admin(servers) as admin, Producer({**servers, "transactional.id": "open"}) as going_on:
        for ends in ("commit", "abort"):
            with Producer({**servers, "transactional.id": ends}) as producer:
                producer.init_transactions()
                producer.begin_transaction()
                producer.send_and_wait("orders", b"an order", partition=0)
                getattr(producer, f"{ends}_transaction")()
        going_on.init_transactions()
        going_on.begin_transaction()
        going_on.send_and_wait("orders", b"an order", partition=1)
        wait_until(lambda: sum("Complete" in each.state for each in admin.list_transactions()) == 2)
        described = checked(admin.describe_transactions(["open", "commit", "abort"]))
        (rows,) = facts_of(broker.data_dir, TRANSACTIONS_TOPIC, TransactionsFold).values()
        going_on.abort_transaction()
    assert {row["transactional_id"]: row["state"] for row in rows} == {
        "open": "Ongoing",
        "commit": "CompleteCommit",
        "abort": "CompleteAbort",
    }
    for row in rows:
        said = described[row["transactional_id"]]
        assert (row["state"], row["producer_id"], row["producer_epoch"], row["timeout_ms"]) == (
            said.state,
            said.producer_id,
            said.producer_epoch,
            said.transaction_timeout_ms,
        )
        assert [(each["topic"], each["partition"]) for each in row["partitions"]] == list(said.topic_partitions)
        if said.state == "Ongoing":
            assert row["start_time"] // 1000 == said.transaction_start_time_ms
