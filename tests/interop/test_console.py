"""The console against Apache Kafka 4.3.1, in Chromium: every page of a node, and three brokers with a reassignment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tools.apache_kafka import VERSION, ApacheKafka

from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.admin.topics import NewTopic
from barnabas.client.records import TopicPartition
from barnabas.client.sync import Admin, Producer
from barnabas.console.settings import ClusterEntry
from tests.console.browser import CHROMEDRIVER, Browser
from tests.console.running_console import NAME
from tests.interop.conftest import jars

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(CHROMEDRIVER is None, reason="Chromium and its driver are not installed"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    chromium.reset()
    with chromium.consoles:
        yield chromium
        said = chromium.messages()
        chromium.open("about:blank")
    assert said == []


@pytest.fixture(scope="module")
def three() -> Iterator[list[ApacheKafka]]:
    """Three brokers; the first is the controller."""
    jars(VERSION)
    with ExitStack() as stack:
        first = stack.enter_context(ApacheKafka())
        nodes = [first]
        for number in (2, 3):
            overrides = {
                "node.id": str(number),
                "process.roles": "broker",
                "controller.quorum.bootstrap.servers": first.controller,
            }
            nodes.append(stack.enter_context(ApacheKafka(overrides, cluster_id=first.cluster_id)))
        settings = {"bootstrap.servers": first.bootstrap}
        with Admin(settings) as admin:
            admin.create_topics([NewTopic("orders", 3, 2), NewTopic("alone", 1, 1)])
            op = AlterConfigOp("retention.ms", AlterConfigOpType.SET, "86400000")
            admin.incremental_alter_configs({ConfigResource.topic("orders"): [op]})
            admin.alter_consumer_group_offsets("billing", {TopicPartition("orders", 0): 1})
        with Producer(settings) as producer:
            for number in range(300):
                producer.send("orders", b"x" * 1000, b"key-%d" % number)
            producer.flush()
        yield nodes


def entry(nodes: list[ApacheKafka]) -> ClusterEntry:
    return ClusterEntry(NAME, {"bootstrap.servers": nodes[0].bootstrap}, ("-b", nodes[0].bootstrap))


PAGES = {
    "": "Brokers running",
    "/topics": "orders",
    "/topics/orders": "Eligible leaders",
    "/topics/orders?tab=settings&history=1": "86400000",
    "/topics/orders/records": "key-",
    "/topics/__consumer_offsets/records?count=5": "OffsetCommit",
    "/groups": "billing",
    "/group?id=billing": "Positions",
    "/brokers": "active controller",
    "/quorum": "it is the only one",
    "/access": "",
    "/access?tab=users": "",
    "/metadata?path=image/topics/byName": "orders",
    "/metadata?tab=log": "TopicRecord",
    "/transactions?topic=orders": "Producers of orders",
    "/history": "retention.ms",
}


def test_every_page_of_apache_kafka(three: list[ApacheKafka], browser: Browser) -> None:
    console = browser.start(entry(three))
    for path, text in PAGES.items():
        browser.open(console.base + path)
        browser.wait_for(text, "main")
        assert browser.violations() == []


def test_brokers_their_roles_and_whether_they_can_be_stopped(three: list[ApacheKafka], browser: Browser) -> None:
    console = browser.start(entry(three))
    browser.open(f"{console.base}/brokers")
    assert len(browser.every(".table:first-of-type tbody tr")) >= 3
    browser.open(f"{console.base}/brokers/1")
    browser.wait_for("Safe to stop?", "main")
    assert "the metadata quorum would be lost" in browser.text()


def test_replicas_are_moved_with_a_plan_in_bytes_and_progress(three: list[ApacheKafka], browser: Browser) -> None:
    console = browser.start(entry(three), allow_changes=True)
    with Admin({"bootstrap.servers": three[0].bootstrap}) as admin:
        browser.open(f"{console.base}/reassignments?goal=factor&factor=3&topics=orders")
        browser.wait_for("3 partitions to move", "main")
        browser.press("Show the plan to start")
        browser.wait_for("have to be copied", "main")
        browser.press("Carry out")
        browser.wait_for("Done: 3 items", "main")
        browser.press("Back")
        browser.wait_for("Nothing is being reassigned", "#live")
        described = admin.describe_topics(["orders"])["orders"]
        assert not isinstance(described, Exception)
        assert {len(each.replicas) for each in described.partitions} == {3}
