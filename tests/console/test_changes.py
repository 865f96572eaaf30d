"""Every change in a real browser: with --allow-changes it is planned, confirmed and made; without, it is refused."""

from __future__ import annotations

import html
import json
import shlex
from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from barnabas.client.admin.config_values import ConfigResource
from barnabas.client.admin.topics import NewTopic
from barnabas.client.records import TopicPartition
from barnabas.client.sync import Admin, Producer
from barnabas.console.app import FORMS as APP_FORMS
from barnabas.security.acl import AclFilter, AclOperation, AclPermissionType, PatternType
from barnabas.testing import Broker
from tests.client.admin.group_scenes import WITHOUT_VERIFICATION, hang
from tests.command_line import invoke
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
def unverified() -> Iterator[Broker]:
    """A broker that does not ask the coordinator whether a transaction exists."""
    with Broker({"hung": 1}, config=WITHOUT_VERIFICATION) as broker:
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
        ("/topics", {"topic": "x", "partitions": "99999999999"}, "from 0 to 2,147,483,647"),
        ("/topics", {"topic": "x", "replication_factor": "99999"}, "from 0 to 32,767"),
        ("/topics/orders/partitions", {"partitions": "-1"}, "partitions must be a number from 0"),
        ("/topics/orders/records", {"partition": "\u0663"}, "partition must be a number"),
        ("/group/reset", {"id": "g", "rule": "offset", "value": "far"}, "the offset must be a number, not"),
        ("/group/reset", {"id": "g", "rule": "none"}, "no such rule"),
        ("/reassignments", {"goal": "drain"}, "say which brokers"),
        ("/reassignments", {"goal": "add", "brokers": "a"}, "a broker must be a number"),
        ("/reassignments", {"goal": "factor", "factor": "x"}, "the replication factor must be a number"),
        ("/reassignments/throttle", {"rate": ""}, "is not a size"),
        ("/transactions/fence", {}, "the transactional id is missing"),
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


def test_what_is_not_possible_is_no_failure_of_the_cluster_and_leads_back(broker: Broker) -> None:
    with RunningConsole(entry(broker), allow_changes=True) as console:
        form = {"form_token": console.enter().form_token(), "rule": "earliest", "id": "nobody"}
        page = f"/c/{NAME}/group?id=nobody"
        refused = console.request("POST", f"/c/{NAME}/group/reset", form, {"Referer": f"{console.url}{page}"})
        assert refused.status == 409
        assert "has no offsets" in refused.text
        assert f'href="{page}" data-back' in refused.text
        elsewhere = console.request("POST", f"/c/{NAME}/group/reset", form, {"Referer": "http://evil.example/x"})
        assert "evil" not in elsewhere.text


@pytest.mark.parametrize(
    "path",
    [
        "/topics/nothing",
        "/topics/nothing/records",
        "/topics/orders/records?partition=99999999999",
        "/group?id=nobody",
        "/brokers/99999999999999999999",
    ],
)
def test_what_is_not_there_is_not_found(broker: Broker, path: str) -> None:
    with RunningConsole(entry(broker)) as console:
        page = console.enter().get(f"/c/{NAME}{path}")
        assert page.status == 404
        assert "does not answer" not in page.text


def test_the_command_that_deletes_acls_selects_those_of_the_plan_and_no_others(broker: Broker, admin: Admin) -> None:
    entries = [allow("User:dave", "orders", each) for each in (AclOperation.READ, AclOperation.WRITE)]
    others = [
        entries[0]._replace(host="10.0.0.1"),
        entries[0]._replace(pattern_type=PatternType.PREFIXED),
        entries[0]._replace(permission=AclPermissionType.DENY),
    ]
    admin.create_acls([*entries, *others])
    form = {"resource": "topic:orders", "principal": "User:dave", "operations": "READ WRITE"}
    with RunningConsole(entry(broker), allow_changes=True) as console:
        planned = console.enter().post(f"/c/{NAME}/access/acl/delete", **form)
        page = html.unescape(console.get(planned.headers["location"]).text)
    command = page.partition('id="command">')[2].partition("<")[0]
    for each in command.split(" && "):
        invoke(*shlex.split(each)[1:], "--yes", code=0)
    assert set(admin.describe_acls()) == set(others)
    admin.delete_acls([AclFilter()])


@pytest.mark.parametrize(
    "form",
    [
        {"key": "it's", "value": '{"a": 1}', "headers": "trace=t 1"},
        {"key": "6b", "value": "ff00", "encoding": "hex", "partition": "0"},
        {"key": "gone", "no_value": "1"},
    ],
)
def test_the_command_that_writes_a_record_writes_the_one_of_the_plan(
    broker: Broker, admin: Admin, form: dict[str, str]
) -> None:
    admin.create_topics([NewTopic("twice", 1)])
    with RunningConsole(entry(broker), allow_changes=True) as console:
        planned = console.enter().post(f"/c/{NAME}/topics/twice/records", **form).headers["location"]
        page = html.unescape(console.get(planned).text)
        command = page.partition('id="command">')[2].partition("</code>")[0]
        console.post(planned)
        line, _, produce = command.partition(" | ")
        invoke(*shlex.split(produce)[1:], stdin=shlex.split(line)[2], code=0)
        lines = console.get(f"/c/{NAME}/topics/twice/records/download?offset=0").text.splitlines()
    records = [
        {name: value for name, value in json.loads(each).items() if name not in ("offset", "timestamp")}
        for each in lines
    ]
    assert len(records) == 2
    assert records[0] == records[1]
    admin.delete_topics(["twice"])


@pytest.mark.parametrize("growth", ["x", "nan", "inf", "-1", "0"])
def test_a_growth_that_is_no_factor_is_said(broker: Broker, growth: str) -> None:
    with RunningConsole(entry(broker)) as console:
        page = console.enter().get(f"/c/{NAME}/topics/orders?tab=changes&throughput=5MB&growth={growth}")
        assert (page.status, "must be a number above 0" in page.text) == (200, True)


def confirm(browser: Browser, name: str | None = None) -> None:
    """Confirm the plan that is shown."""
    browser.wait_at("/changes/")
    browser.wait_for("barnabas ", "#command")
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
        browser.press("to before this")
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

    def test_a_topic_is_created_and_deleted_with_the_keyboard_alone(
        self, broker: Broker, browser: Browser, admin: Admin
    ) -> None:
        console = browser.start(entry(broker), allow_changes=True)
        browser.open(f"{console.base}/topics")
        browser.tab_to("#create summary")
        browser.type(Keys.ENTER)
        browser.tab_to("#create [name=topic]")
        browser.type("by-keyboard", Keys.ENTER)
        browser.wait_for("create topic by-keyboard", "#steps")
        browser.tab_to("main form button.main")
        browser.type(Keys.ENTER)
        browser.wait_for("Done", "main")
        browser.open(f"{console.base}/topics/by-keyboard?tab=changes")
        browser.tab_to("form[action$='/delete'] button")
        browser.type(Keys.ENTER)
        browser.wait_for("To confirm, type", "main")
        browser.type("by-keyboard", Keys.ENTER)  # the field has the focus
        browser.wait_for("Done", "main")
        assert "by-keyboard" not in {each.name for each in admin.list_topics()}

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
        browser.open(f"{console.base}/access?tab=users")
        browser.click("#create summary")
        browser.fill("user", "carol")
        browser.press("Delete the credential")
        confirm(browser, "carol")
        browser.wait_for("Done", "main")
        assert list(admin.describe_user_scram_credentials()) == []

        browser.open(f"{console.base}/access?tab=quotas")
        browser.click("#create summary")
        browser.fill("user", "carol")
        browser.fill("value", "1024")
        browser.press("Show the plan")
        confirm(browser)
        browser.wait_for("Done", "main")
        assert list(admin.describe_client_quotas().values()) == [{"producer_byte_rate": 1024.0}]
        browser.open(f"{console.base}/access?tab=quotas")
        browser.click("#create summary")
        browser.fill("user", "carol")
        browser.press("Show the plan")
        browser.wait_for("producer_byte_rate", "#steps")
        confirm(browser)
        browser.wait_for("Done", "main")
        assert list(admin.describe_client_quotas()) == []

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

    def test_a_hanging_transaction_is_a_finding_and_is_aborted(self, unverified: Broker, browser: Browser) -> None:
        offset = hang(unverified.bootstrap_servers, "hung", 0, producer_id=4711, age_s=3600)
        console = browser.start(entry(unverified), allow_changes=True)
        browser.wait_for("hung-0", ".findings")
        browser.open(f"{console.base}/transactions")
        browser.wait_for(f"hangs from offset {offset} on", "#live")
        assert f"--start-offset {offset}" in browser.one("#abort-1").text
        assert browser.violations() == []
        browser.press("Abort it")
        confirm(browser, "hung")
        browser.wait_for("Done: 1 item", "main")
        browser.press("Back")
        browser.wait_gone("hangs from offset", "#live")

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
