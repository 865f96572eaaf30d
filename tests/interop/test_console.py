"""The console against Apache Kafka 4.3.1, in Chromium: what tests/console does with nodes of barnabas.

Every page, every change, groups of every type, logins, many topics, a hanging transaction; three brokers with a reassignment, a
rehearsal, and one that dies and returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tools.apache_kafka import VERSION, ApacheKafka

from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.admin.quotas import quota_entity
from barnabas.client.admin.topics import NewTopic
from barnabas.client.admin.users import ScramMechanism, ScramUpsertion
from barnabas.client.records import TopicPartition
from barnabas.client.sync import Admin, Producer
from barnabas.config import properties
from barnabas.console.settings import ClusterEntry
from barnabas.security.acl import AclFilter
from tests.cli.commands.test_groups_of_any_type import AT_ONCE
from tests.client.admin.group_scenes import WITHOUT_VERIFICATION
from tests.command_line import invoke
from tests.console import test_changes, test_entrance, test_groups, test_live, test_pages
from tests.console.browser import CHROMEDRIVER, Browser
from tests.console.running_console import NAME, RunningConsole
from tests.console.running_console import entry as entry_of
from tests.console.shop import AUTHORIZED, HOSTILE, fill
from tests.interop.conftest import jars
from tests.interop.test_security import SecuredNode, apache_in, settings_of

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


class Apache:
    """A node of Apache Kafka in the place of a `barnabas.testing.Broker`."""

    def __init__(self, node: ApacheKafka | SecuredNode, settings: dict[str, str] | None = None) -> None:
        self._settings = {"bootstrap.servers": node.bootstrap, **(settings or {})}
        self.bootstrap_servers = self._settings["bootstrap.servers"]

    def client_config(self, user: str | None = None) -> dict[str, str]:
        return self._settings

    def create(self, **topics: int) -> None:
        with Admin(self.client_config()) as admin:
            admin.create_topics([NewTopic(name, count) for name, count in topics.items()])


@pytest.fixture(scope="module")
def node() -> Iterator[Apache]:
    jars(VERSION)
    with ApacheKafka({**AUTHORIZED, **{name: str(value) for name, value in AT_ONCE.items()}}) as node:
        yield Apache(node)


# --- every page


@pytest.fixture(scope="class")
def shop(node: Apache) -> Iterator[RunningConsole]:
    node.create(**{"orders": 3, "payments": 1, test_pages.LONG: 1})
    fill(node)  # type: ignore[arg-type]
    with RunningConsole(entry_of(node), allow_changes=True) as console:  # type: ignore[arg-type]
        yield console
    with Admin(node.client_config()) as admin:  # before the tests of changes, which count
        admin.delete_topics(["orders", "payments", test_pages.LONG])
        admin.delete_groups(["billing", HOSTILE])
        admin.delete_acls([AclFilter()])
        admin.alter_client_quotas({quota_entity(user=HOSTILE): {"producer_byte_rate": None}})


class TestPages:
    @pytest.mark.parametrize("path", test_pages.PAGES)
    def test_a_page_shows_its_subject_is_accessible_and_fits(
        self, shop: RunningConsole, browser: Browser, path: str
    ) -> None:
        browser.enter(shop)
        browser.look_at(shop.base + path, test_pages.PAGES[path])
        assert browser.driver.title != "owned"

    def test_names_and_values_of_others_never_run(self, shop: RunningConsole, browser: Browser) -> None:
        browser.enter(shop)
        test_pages.test_names_and_values_of_others_never_run(browser, shop)


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


def test_what_would_become_of_the_cluster_is_rehearsed(three: list[ApacheKafka], browser: Browser) -> None:
    console = browser.start(entry(three))
    browser.look_at(f"{console.base}/rehearsal?do=kill:2&do=start:2", "0 partitions go offline", "node 2 returns")
    browser.look_at(f"{console.base}/rehearsal?do=kill:1", "quorum")


def test_a_broker_that_dies_and_returns_is_seen_on_an_open_page(three: list[ApacheKafka], browser: Browser) -> None:
    console = browser.start(entry(three))
    browser.open(f"{console.base}/brokers")
    browser.wait_for("active controller", "#live")
    three[2].kill()
    browser.wait_for("fenced", "#live")
    three[2].start()
    browser.wait_gone("fenced", "#live")


# --- every change, groups of every type, logins, many topics


@pytest.fixture(scope="module")
def broker(node: Apache) -> Apache:
    node.create(orders=1)
    return node


@pytest.fixture
def admin(broker: Apache) -> Iterator[Admin]:
    with Admin(broker.client_config()) as admin:
        yield admin


@pytest.fixture
def unverified() -> Iterator[Apache]:
    with ApacheKafka({name: str(value) for name, value in WITHOUT_VERIFICATION.items()}) as node:
        made = Apache(node)
        made.create(hung=1)
        yield made


class TestChanges(test_changes.TestInABrowser):
    """Every change."""


@pytest.fixture(scope="module")
def filled(node: Apache) -> Apache:
    node.create(words=2)
    test_groups.write_words(node.bootstrap_servers)
    return node


class TestGroups(test_groups.TestGroups):
    """Groups of every type."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apache]:
    """A node on which alice may read orders, bob may read payments, and admin everything."""
    jars(VERSION)
    folder: Path = tmp_path_factory.mktemp("secured") / "node"
    done = invoke("security", "init", folder)
    assert done.exit_code == 0, done.output
    with apache_in(folder) as node:
        made = Apache(node, dict(properties.loads(settings_of(folder, "admin").read_text())))
        made.create(orders=1, payments=1)
        with Admin(made.client_config()) as admin:
            admin.create_acls(test_entrance.ACLS)
            admin.alter_user_scram_credentials(
                [
                    ScramUpsertion(user, ScramMechanism.SCRAM_SHA_512, password)
                    for user, password in test_entrance.USERS.items()
                ]
            )
        yield made


class TestLogins(test_entrance.TestLogins):
    """Logins, and what users see."""


class TestLoginsInABrowser(test_entrance.TestLoginsInABrowser):
    """Two users in two browsers."""


def test_ten_thousand_topics_are_listed_searched_and_sorted_a_page_at_a_time(browser: Browser) -> None:
    with ApacheKafka() as node:
        made = Apache(node)
        made.create(orders=1)
        test_live.test_ten_thousand_topics_are_listed_searched_and_sorted_a_page_at_a_time(made, browser)  # type: ignore[arg-type]
