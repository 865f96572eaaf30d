"""Every change in a real browser: with --allow-changes it is planned, confirmed and made; without, it is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.admin.config_values import ConfigResource
from barnabas.client.records import TopicPartition
from barnabas.client.sync import Admin, Producer
from barnabas.console.app import FORMS as APP_FORMS
from barnabas.testing import Broker
from tests.console.browser import Browser
from tests.console.running_console import NAME, RunningConsole, entry
from tests.console.shop import AUTHORIZED, allow

FORMS = (
    "/topics",
    "/topics/orders/delete",
    "/topics/orders/partitions",
    "/topics/orders/replication-factor",
    "/topics/orders/config",
    "/topics/orders/rollback",
    "/topics/orders/records",
    "/group/reset",
    "/group/delete",
    "/reassignments",
    "/reassignments/cancel",
    "/reassignments/throttle",
    "/access/acl",
    "/access/acl/delete",
    "/access/user",
    "/access/quota",
    "/transactions/abort",
    "/transactions/fence",
    "/changes/anything",
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1}, config=AUTHORIZED) as broker:
        yield broker


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        yield admin


@pytest.mark.parametrize("path", FORMS)
def test_without_allow_changes_every_form_is_refused(broker: Broker, path: str) -> None:
    with RunningConsole(entry(broker)) as console:
        refused = console.enter().post(f"/c/{NAME}{path}", topic="orders", id="billing")
        assert refused.status == 403
        assert "--allow-changes" in refused.text


def test_all_forms_are_in_this_list() -> None:
    assert {path.replace("{topic}", "orders").replace("{plan_id}", "anything") for path in APP_FORMS} == set(FORMS)


@pytest.mark.parametrize(
    ("path", "form", "said"),
    [
        ("/topics", {"topic": "x", "partitions": "many"}, "partitions must be a number"),
        ("/topics", {"topic": "x", "configs": "no sign"}, "must be NAME=VALUE"),
        ("/topics/orders/records", {"partition": "\u0663"}, "partition must be a number"),
        ("/group/reset", {"id": "g", "rule": "offset", "value": "far"}, "invalid literal"),
        ("/group/reset", {"id": "g", "rule": "none"}, "no such rule"),
        ("/reassignments", {"goal": "drain"}, "say which brokers"),
        ("/reassignments/cancel", {"topic": "orders", "partition": "x"}, "partition must be a number"),
        ("/reassignments/throttle", {"rate": "fast"}, "fast"),
        ("/access/acl", {"principal": "User:a", "resource": "topic:orders"}, "at least one operation"),
        ("/access/acl/delete", {"principal": "User:a", "resource": "topic:orders"}, "at least one operation"),
        (
            "/access/acl",
            {"principal": "User:a", "resource": "topic:orders", "operations": "READ", "pattern": "odd"},
            "is no pattern",
        ),
        ("/access/user", {"user": "a", "password": "b", "mechanism": "odd"}, "odd"),
        ("/access/quota", {"user": "a", "key": "producer_byte_rate", "value": "much"}, "is not a number"),
        ("/transactions/abort", {"topic": "orders", "partition": "0", "start_offset": "x"}, "must be a number"),
    ],
)
def test_a_wrong_field_is_refused_with_its_reason(broker: Broker, path: str, form: dict[str, str], said: str) -> None:
    with RunningConsole(entry(broker), allow_changes=True) as console:
        refused = console.enter().post(f"/c/{NAME}{path}", **form)
        assert (refused.status, said in refused.text) == (400, True), refused.text


def confirm(browser: Browser, name: str | None = None) -> None:
    """Confirm the plan that is shown."""
    browser.wait_for("Plan", "main h2")
    assert "barnabas " in browser.one("#command").text
    if name is not None:
        browser.fill("name", name)
    browser.press("Carry out")


@pytest.mark.browser
class TestInABrowser:
    def test_a_topic_is_created_changed_and_deleted(self, broker: Broker, browser: Browser, admin: Admin) -> None:
        console = browser.start(entry(broker), allow_changes=True)
        browser.open(f"{console.base}/topics")
        browser.click("#create summary")
        browser.fill("topic", "made")
        browser.fill("partitions", "2")
        browser.fill("configs", "retention.ms=1000")
        browser.press("Show the plan")
        confirm(browser)
        browser.wait_for("Done: 1 item", "main")
        browser.press("Back")
        browser.wait_for("made", "#topics")

        browser.open(f"{console.base}/topics/made?tab=changes")
        browser.fill("partitions", "3")
        browser.driver.execute_script("document.querySelector('form[action$=\"/partitions\"]').requestSubmit()")
        browser.wait_for("from 2 to 3", "#steps")
        confirm(browser)
        browser.wait_for("Done", "main")

        browser.open(f"{console.base}/topics/made?tab=changes")
        browser.fill("key", "cleanup.policy")
        browser.fill("value", "compact")
        browser.driver.execute_script("document.querySelector('form[action$=\"/config\"]').requestSubmit()")
        confirm(browser, "made" if browser.every("[name=name]") else None)
        browser.wait_for("Done", "main")
        described = admin.describe_configs([ConfigResource.topic("made")])[ConfigResource.topic("made")]
        assert isinstance(described, dict)
        assert described["cleanup.policy"].value == "compact"

        browser.open(f"{console.base}/topics/made?tab=settings&history=1")
        browser.wait_for("cleanup.policy", "#history + .table")
        browser.press("before this")
        browser.wait_for("unset cleanup.policy", "#steps")
        confirm(browser, "made" if browser.every("[name=name]") else None)
        browser.wait_for("Done", "main")

        browser.open(f"{console.base}/topics/made?tab=changes")
        browser.driver.execute_script("document.querySelector('form[action$=\"/delete\"]').requestSubmit()")
        browser.wait_for("delete topic made", "#steps")
        browser.fill("name", "another")
        browser.press("Carry out")
        browser.wait_for("That is not the name", "main")
        assert "made" in {each.name for each in admin.list_topics()}
        browser.messages()  # the refusal has the status 400
        confirm(browser, "made")
        browser.wait_for("Done", "main")
        assert "made" not in {each.name for each in admin.list_topics()}

    def test_a_topic_that_the_cluster_refuses_is_not_created(self, broker: Broker, browser: Browser) -> None:
        console = browser.start(entry(broker), allow_changes=True)
        browser.open(f"{console.base}/topics")
        browser.click("#create summary")
        browser.fill("topic", "orders")
        browser.press("Show the plan")
        browser.wait_for("TOPIC_ALREADY_EXISTS", "main")
        assert browser.every("form button.main") == []

    def test_a_record_is_produced_and_appears_in_the_tail(self, broker: Broker, browser: Browser) -> None:
        console = browser.start(entry(broker), allow_changes=True)
        browser.open(f"{console.base}/topics/orders/records")
        browser.click("#produce summary")
        browser.driver.execute_script("document.querySelector('#produce [name=key]').value = 'a key'")
        browser.driver.execute_script("document.querySelector('#produce [name=value]').value = '{\"made\": 1}'")
        browser.press("Show the plan")
        confirm(browser)
        browser.wait_for("offset 0", "main")
        browser.press("Back")
        browser.wait_for('"made": 1', "#live .records")
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            producer.send("orders", b"written meanwhile")
            producer.flush()
        browser.wait_for("written meanwhile", "#live .records")

    def test_offsets_are_reset_and_a_group_is_deleted(self, broker: Broker, browser: Browser, admin: Admin) -> None:
        admin.alter_consumer_group_offsets("billing", {TopicPartition("orders", 0): 1})
        console = browser.start(entry(broker), allow_changes=True)
        browser.open(f"{console.base}/group?id=billing")
        browser.fill("rule", "earliest")
        browser.driver.execute_script("document.querySelector('form[action$=\"/reset\"]').requestSubmit()")
        browser.wait_for("from 1 to 0", "#steps")
        confirm(browser)
        browser.wait_for("Done", "main")
        browser.open(f"{console.base}/group?id=billing")
        browser.driver.execute_script("document.querySelector('form[action$=\"/group/delete\"]').requestSubmit()")
        confirm(browser, "billing")
        browser.wait_for("Done", "main")
        assert [each.group_id for each in admin.list_groups()] == []

    def test_acls_users_and_quotas_are_changed(self, broker: Broker, browser: Browser, admin: Admin) -> None:
        console = browser.start(entry(broker), allow_changes=True)
        browser.open(f"{console.base}/access")
        browser.click("#create summary")
        script = "document.querySelector('#create [name=%s]').value = '%s'"
        browser.driver.execute_script(script % ("principal", "User:carol"))
        browser.driver.execute_script(script % ("resource", "topic:orders"))
        browser.driver.execute_script(script % ("operations", "READ"))
        browser.press("Show the plan")
        confirm(browser)
        browser.wait_for("Done", "main")
        assert admin.describe_acls() == [allow("User:carol", "orders")]
        browser.open(f"{console.base}/access")
        browser.press("delete")
        confirm(browser, "User:carol")
        browser.wait_for("Done", "main")
        assert admin.describe_acls() == []

        browser.open(f"{console.base}/access?tab=users")
        browser.click("#create summary")
        browser.fill("user", "carol")
        browser.fill("password", "a secret word")
        browser.press("Show the plan")
        browser.wait_for("create the SCRAM-SHA-512 credential of user carol", "#steps")
        assert "a secret word" not in browser.driver.page_source
        confirm(browser)
        browser.wait_for("Done", "main")
        assert list(admin.describe_user_scram_credentials()) == ["carol"]

        browser.open(f"{console.base}/access?tab=quotas")
        browser.click("#create summary")
        browser.fill("user", "carol")
        browser.fill("value", "1024")
        browser.press("Show the plan")
        confirm(browser)
        browser.wait_for("Done", "main")
        assert list(admin.describe_client_quotas().values()) == [{"producer_byte_rate": 1024.0}]

    def test_the_transaction_of_a_producer_is_ended(self, broker: Broker, browser: Browser, admin: Admin) -> None:
        console = browser.start(entry(broker), allow_changes=True)
        settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "forgotten"}
        with Producer(settings) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("orders", b"in a transaction")
            producer.flush()
            browser.open(f"{console.base}/transactions")
            browser.wait_for("forgotten", "main")
            browser.press("end it")
            confirm(browser, "forgotten")
            browser.wait_for("Done", "main")
        states = {each.transactional_id: each.state for each in admin.list_transactions()}
        assert states["forgotten"] in ("CompleteAbort", "Empty")

    def test_a_plan_is_carried_out_once_and_only_by_its_session(self, broker: Broker, browser: Browser) -> None:
        console = browser.start(entry(broker), allow_changes=True)
        other = console.enter()
        browser.open(f"{console.base}/topics")
        browser.click("#create summary")
        browser.fill("topic", "once")
        browser.press("Show the plan")
        browser.wait_for("create topic once", "#steps")
        path = browser.driver.current_url.removeprefix(console.url)
        assert other.get(path).status == 404
        assert other.post(path).status == 404
        confirm(browser)
        browser.wait_for("Done", "main")
        browser.driver.refresh()
        browser.wait_for("Done", "main")
