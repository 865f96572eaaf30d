"""Groups of every type in a browser: a share group and a streams group with members, their offsets, and a reset."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator

import pytest

from barnabas.client import Admin as AsyncAdmin
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.admin.topics import NewTopic
from barnabas.client.records import TopicPartition
from barnabas.client.sync import Admin, Consumer, Producer, ShareConsumer
from barnabas.testing import Broker
from tests.cli.commands.test_groups_of_any_type import AT_ONCE, GROUP, beat, join
from tests.console.browser import Browser
from tests.console.running_console import NAME, RunningConsole, entry
from tests.console.test_changes import confirm

pytestmark = pytest.mark.browser
RECORDS = 30


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"words": 2}, config=AT_ONCE) as broker:
        yield broker


@pytest.fixture(scope="module")
def filled(broker: Broker) -> Broker:
    write_words(broker.bootstrap_servers)
    return broker


def write_words(bootstrap: str) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(RECORDS):
            producer.send("words", b"word %d" % number, partition=0)
        producer.flush()


class TestGroups:
    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_a_group_of_consumers_is_shown_with_its_members_lag_and_trend(
        self, filled: Broker, browser: Browser, protocol: str
    ) -> None:
        console = browser.start(entry(filled))
        settings = {"bootstrap.servers": filled.bootstrap_servers}
        topic, group = f"lines-{protocol}", f"readers-{protocol}"
        with Admin(settings) as admin:
            admin.create_topics([NewTopic(topic, 1)])
        own = {"group.id": group, "group.protocol": protocol, "client.id": "reader", "auto.offset.reset": "earliest"}
        with (
            Producer(settings) as producer,
            Consumer({**settings, **own, "enable.auto.commit": "false"}, topics=[topic]) as consumer,
        ):
            producer.send(topic, b"first")
            producer.flush()
            while not consumer.poll(1000):
                pass
            consumer.commit()
            page = f"{console.base}/group?id={group}"
            browser.open(page)
            browser.wait_for("reader", "#live table")
            for _ in range(100):
                producer.send(topic, b"unread")
                producer.flush()
                if re.search(r"\+(?!0\.0)[\d.]+ records/s", browser.text()):
                    break
                time.sleep(0.3)
            else:
                raise AssertionError(browser.text())
            facts = dict(zip(browser.texts("dt"), browser.texts("dd"), strict=True))
            assert (facts["State"], facts["Members"]) == ("Stable", "1")
            assert facts["Type"].lower().startswith(protocol)
            browser.look_at(page, "Oldest unread", f"{topic}-0")
            browser.open(f"{console.base}/groups?type={protocol.capitalize()}")
            browser.wait_for(group, "#live tbody")

    def test_a_share_group_is_shown_with_its_start_offsets_and_reset(self, filled: Broker, browser: Browser) -> None:
        console = browser.start(entry(filled), allow_changes=True)
        settings = {"bootstrap.servers": filled.bootstrap_servers}
        with Admin(settings) as admin:
            op = AlterConfigOp("share.auto.offset.reset", AlterConfigOpType.SET, "earliest")
            admin.incremental_alter_configs({ConfigResource.group("shared"): [op]})
            with ShareConsumer({**settings, "group.id": "shared"}) as consumer:
                consumer.subscribe(["words"])
                seen = 0
                while seen < RECORDS:
                    seen += len(consumer.poll(1000))
                consumer.commit()
                browser.open(f"{console.base}/groups?type=Share")
                browser.wait_for("shared", "#live tbody")
                with RunningConsole(entry(filled)) as other:
                    overview = other.enter().get(f"/c/{NAME}").text
                    assert int(re.findall(r"<dt>Groups</dt><dd><a [^>]*>(\d+)", overview)[0]) >= 1
                browser.look_at(f"{console.base}/group?id=shared", "Start", "all members", "words-0, words-1")
            browser.open(f"{console.base}/group?id=shared")
            browser.fill("rule", "offset")
            browser.fill("value", "7")
            browser.fill("topics", "words:0")
            browser.driver.execute_script("document.querySelector('form[action$=\"/reset\"]').requestSubmit()")
            browser.wait_for("to 7", "#steps")
            confirm(browser)
            browser.wait_for("Done: 1 item", "main")
            found = admin.list_share_group_offsets(["shared"])["shared"]
            assert not isinstance(found, Exception)
            place = found[TopicPartition("words", 0)]
            assert getattr(place, "start_offset", None) == 7

    def test_a_streams_group_is_shown_with_its_topology_and_tasks(self, filled: Broker, browser: Browser) -> None:
        console = browser.start(entry(filled), allow_changes=True)

        async def scenario() -> None:
            async with AsyncAdmin({"bootstrap.servers": filled.bootstrap_servers}) as admin:
                await join(admin)
                page = f"{console.base}/group?id={GROUP}"
                await asyncio.to_thread(browser.look_at, page, "Topology epoch 1", "0_0, 0_1", "Standby")
                await beat(admin, -1)

        asyncio.run(scenario())
        browser.open(f"{console.base}/group?id={GROUP}")
        browser.fill("rule", "latest")
        browser.fill("topics", "words")
        browser.driver.execute_script("document.querySelector('form[action$=\"/reset\"]').requestSubmit()")
        browser.wait_for(f"from none to {RECORDS}", "#steps")
        confirm(browser)
        browser.wait_for("Done: 2 items", "main")
        browser.open(f"{console.base}/group?id={GROUP}")
        browser.driver.execute_script("document.querySelector('form[action$=\"/group/delete\"]').requestSubmit()")
        confirm(browser, GROUP)
        browser.wait_for("Done", "main")
