"""Three brokers in a browser: a reassignment with throttle, progress and cancel; a replication factor; a broker that dies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.admin.topics import NewTopic
from barnabas.client.sync import Admin, Producer
from barnabas.console.settings import ClusterEntry
from barnabas.testing import Cluster
from tests.console.browser import PHONE, Browser
from tests.console.running_console import NAME
from tests.console.test_changes import confirm

pytestmark = pytest.mark.browser
RECORDS, SIZE = 400, 10_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3, racks=("a", "b", "c")) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        yield admin


def entry(cluster: Cluster) -> ClusterEntry:
    servers = cluster.bootstrap_servers
    return ClusterEntry(NAME, {"bootstrap.servers": servers}, ("-b", servers))


def replicas(admin: Admin, topic: str) -> list[int]:
    found = admin.describe_topics([topic])[topic]
    assert not isinstance(found, Exception)
    return [each.id if hasattr(each, "id") else each for each in found.partitions[0].replicas]


def test_a_throttled_reassignment_is_followed_and_cancelled(cluster: Cluster, admin: Admin, browser: Browser) -> None:
    admin.create_topics([NewTopic("orders", 1, 1)])
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for _ in range(RECORDS):
            producer.send("orders", bytes(SIZE))
        producer.flush()
    before = replicas(admin, "orders")
    console = browser.start(entry(cluster), allow_changes=True)
    browser.open(f"{console.base}/reassignments?goal=factor&factor=3&topics=orders")
    browser.wait_for("1 partition to move", "main")
    assert browser.violations() == []
    browser.driver.execute_script(
        "const field = document.querySelector('[name=throttle]'); field.value = '10kB'; field.form.requestSubmit()"
    )
    confirm(browser)
    browser.wait_for("started", "main")
    browser.press("Back")
    browser.wait_for("Partitions moving", "#live")
    browser.wait_for("orders-0", "#live")
    assert "of 8" in browser.one("#live").text, "bytes of two copies"
    assert browser.violations() == []
    browser.driver.execute_script(
        "const form = document.querySelector('form[action$=\"/throttle\"]');"
        "form.querySelector('[name=rate]').value = '20kB'; form.requestSubmit()"
    )
    browser.wait_for("20", "#steps")
    confirm(browser)
    browser.wait_for("Done", "main")
    browser.press("Back")
    browser.wait_for("orders-0", "#live")
    browser.click('form[action$="/cancel"] button')
    confirm(browser)
    browser.wait_for("Done", "main")
    browser.press("Back")
    browser.wait_for("Nothing is being reassigned", "#live")
    assert replicas(admin, "orders") == before
    browser.driver.execute_script(
        "document.querySelector('form[action$=\"/throttle\"] [name=clear]').click()",
    )
    confirm(browser)
    browser.wait_for("Done", "main")


def test_the_replication_factor_is_changed_on_the_page_of_the_topic(
    cluster: Cluster, admin: Admin, browser: Browser
) -> None:
    admin.create_topics([NewTopic("payments", 1, 1)])
    console = browser.start(entry(cluster), allow_changes=True)
    browser.open(f"{console.base}/topics/payments?tab=changes")
    browser.fill("replication_factor", "2")
    browser.driver.execute_script("document.querySelector('form[action$=\"/replication-factor\"]').requestSubmit()")
    browser.wait_for("payments", "#steps")
    confirm(browser)
    browser.wait_for("Done: 1 item", "main")
    browser.open(f"{console.base}/topics/payments")
    browser.wait_for("Replication factor", "#live")
    assert len(replicas(admin, "payments")) == 2


def test_what_would_become_of_the_cluster_is_rehearsed_step_by_step(
    cluster: Cluster, admin: Admin, browser: Browser
) -> None:
    admin.create_topics([NewTopic("alone", assignments=[[2]]), NewTopic("safe", 3, 3)])
    console = browser.start(entry(cluster))
    browser.open(f"{console.base}/brokers/2")
    browser.wait_for("Safe to stop?", "#live")
    browser.press("it dies")
    browser.wait_for("Nothing was changed", "#summary")
    assert "0 partitions go offline" not in browser.one("#summary").text
    assert "rehearse --kill 2" in browser.one("#command").text
    rows = browser.texts("#live table tbody tr")
    assert any(row.startswith("alone-0") and "offline" in row and "2 -> -" in row for row in rows), rows
    assert any(row.startswith("2") and "ok -> fenced" in row for row in rows), rows
    assert browser.violations() == []
    browser.fill("kind", "start")
    browser.fill("subject", "2")
    browser.press("Rehearse")
    browser.wait_for("0 partitions go offline", "#summary")
    assert browser.driver.current_url.endswith("/rehearsal?do=kill%3A2&do=start%3A2")
    assert browser.texts("#asked strong") == ["2", "2"]
    browser.click("#records summary")
    assert "PartitionChangeRecord" in browser.one("#records").text
    browser.show(PHONE, "dark")
    assert browser.violations() == []
    assert not browser.is_too_wide()
    for do, said in {"kill:9": "there is no such node", "kill:x": "is not the id of a node", "fly:1": "fly"}.items():
        browser.open(f"{console.base}/rehearsal?do={do}")
        browser.wait_for(said, "main")
    browser.open(f"{console.base}/rehearsal?do=kill-rack:a&do=kill-rack:b")
    browser.wait_for("quorum", "main")
    browser.open(f"{console.base}/brokers")
    browser.wait_for("active controller", "#live")
    assert "fenced" not in browser.one("#live").text, "nothing has happened"


def test_a_broker_that_dies_and_returns_is_seen_on_an_open_page(
    cluster: Cluster, admin: Admin, browser: Browser
) -> None:
    admin.create_topics([NewTopic("shared", 3, 3)])
    console = browser.start(entry(cluster))
    for broker in cluster.node_ids:
        browser.open(f"{console.base}/brokers/{broker}")
        browser.wait_for("Safe to stop?", "#live")
        assert browser.violations() == []
    browser.open(f"{console.base}/brokers")
    browser.wait_for("active controller", "#live")
    assert len(browser.every(".table:first-of-type tbody tr")) == 3
    cluster.kill(3)
    browser.wait_for("fenced", "#live")
    browser.open(console.base)
    browser.wait_for("broker 3", ".findings")
    assert browser.one(".findings a[href$='/brokers/3']").text == "broker 3"
    cluster.start_node(3)
    browser.wait_gone("it is fenced", "#live")


def test_a_page_about_a_broker_that_was_unregistered_says_that_there_is_none(
    cluster: Cluster, admin: Admin, browser: Browser
) -> None:
    admin.delete_topics([each.name for each in admin.list_topics()])  # a broker with replicas is missing instead
    console = browser.start(entry(cluster))
    browser.open(f"{console.base}/brokers/3")
    browser.wait_for("Safe to stop?", "#live")
    cluster.kill(3)
    browser.wait_for("it is registered", "#live")
    admin.unregister_broker(3)
    browser.wait_for("there is no such broker", "#live [data-outdated]")
    assert "it is registered" in browser.one("#live").text, "what is shown stays"
    cluster.start_node(3)
    browser.wait_gone("there is no such broker", "#live")
