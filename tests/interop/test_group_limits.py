"""Kafka's own consumer at a node whose groups are full: it raises an error that names the limit, and does not retry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer
from tools.apache_kafka import VERSION, Barnabas, run_tool

from tests.interop.conftest import jars

pytestmark = pytest.mark.interop

WAIT_S = 240


@pytest.fixture(scope="module")
def full() -> Iterator[Barnabas]:
    """A node with room for one group, which exists."""
    jars(VERSION)
    with Barnabas({"barnabas.groups.max.count": "1", "offsets.topic.replication.factor": "1"}) as node:
        run_tool("kafka-topics", "--bootstrap-server", node.bootstrap, "--create", "--topic", "t", timeout_s=WAIT_S)
        first = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "first", "enable.auto.commit": False})
        first.subscribe(["t"])
        while not first.assignment():
            first.poll(0.1)
        yield node
        first.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_of_a_group_beyond_the_limit_gets_an_error(full: Barnabas, protocol: str) -> None:
    where = "--bootstrap-server", full.bootstrap, "--topic", "t", "--group", f"second-{protocol}"
    how = "--command-property", f"group.protocol={protocol}", "--timeout-ms", "120000"
    done = run_tool("kafka-console-consumer", *where, *how, timeout_s=WAIT_S)
    assert "GroupMaxSizeReachedException" in done.stdout + done.stderr


def test_offsets_of_a_group_beyond_the_limit_are_refused(full: Barnabas) -> None:
    where = "--bootstrap-server", full.bootstrap, "--group", "third", "--topic", "t"
    done = run_tool("kafka-consumer-groups", *where, "--reset-offsets", "--to-earliest", "--execute", timeout_s=WAIT_S)
    assert "InvalidCommitOffsetSizeException" in done.stdout + done.stderr
