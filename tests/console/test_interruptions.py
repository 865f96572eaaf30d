"""What may come between: a reload during a change, a session that ends, a slow cluster, another browser, the way back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from barnabas.client import Cluster
from barnabas.client.admin.topics import NewTopic
from barnabas.client.sync import Admin
from barnabas.console.visit import Visit
from barnabas.testing import Broker
from tests.console.browser import WAIT_S, Browser
from tests.console.running_console import NAME, TOKEN, RunningConsole, entry
from tests.console.test_changes import confirm


@pytest.fixture(scope="module")
def started() -> Iterator[Broker]:
    with Broker(topics={"orders": 1}) as broker:
        yield broker


@pytest.fixture
def broker(started: Broker) -> Iterator[Broker]:
    yield started
    started.faults.clear()


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        yield admin


def log_out_elsewhere(console: RunningConsole, browser: Browser) -> None:
    """End the session of a browser without the browser."""
    console.cookies = {each["name"]: each["value"] for each in browser.driver.get_cookies()}
    assert console.post("/logout").status == 303


def test_a_form_of_a_session_that_has_ended_leads_to_the_login_and_back_to_its_page(broker: Broker) -> None:
    with RunningConsole(entry(broker), allow_changes=True) as console:
        form = {"form_token": console.enter().form_token(), "topic": "made"}
        page = f"/c/{NAME}/topics?q=ma"
        console.cookies.clear()
        for referrer, target in ((f"{console.url}{page}", page), ("http://evil.example/x", "/"), ("", "/")):
            refused = console.request("POST", f"/c/{NAME}/topics", form, {"Referer": referrer})
            assert refused.status == 401
            assert f'name="next" value="{target}"' in refused.text


@pytest.mark.browser
class TestInABrowser:
    def test_a_reload_in_the_middle_of_a_change_shows_its_result(
        self, broker: Broker, admin: Admin, browser: Browser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        began, goes_on = threading.Event(), threading.Event()
        real = Visit.now

        async def held(visit: Visit, ask: Callable[[Cluster], Awaitable[Any]]) -> Any:
            began.set()
            while not goes_on.is_set():
                await asyncio.sleep(0.01)
            return await real(visit, ask)

        console = browser.start(entry(broker), allow_changes=True)
        browser.open(f"{console.base}/topics")
        browser.click("#create summary")
        browser.fill("topic", "slowly-made")
        browser.press("Show the plan")
        browser.wait_for("create topic slowly-made", "#steps")
        plan = browser.driver.current_url
        monkeypatch.setattr(Visit, "now", held)
        # As the form sends it; but the driver would wait for the answer to a form.
        browser.driver.execute_script(
            "const form = document.querySelector('main form');"
            "fetch(location.href, {method: 'POST', body: new URLSearchParams(new FormData(form))}).catch(() => null)"
        )
        assert began.wait(WAIT_S)
        browser.driver.refresh()
        assert browser.driver.current_url == plan
        browser.wait_for("This change is being carried out", "#live")
        assert browser.every("main form") == [], "it cannot be carried out again"
        goes_on.set()
        browser.wait_for("Done: 1 item", "#live")
        assert "slowly-made" in {each.name for each in admin.list_topics()}
        browser.press("Back")
        browser.wait_for("slowly-made", "#topics")
        browser.driver.back()
        browser.wait_for("Done: 1 item", "#live")
        assert browser.every("main form") == []

    def test_a_page_whose_session_ends_asks_for_the_token_and_leads_back(
        self, broker: Broker, browser: Browser
    ) -> None:
        console = browser.start(entry(broker))
        browser.open(f"{console.base}/topics?q=ord")
        browser.wait_for("live", "#live-state")
        log_out_elsewhere(console, browser)
        browser.wait_for("Start token", "h1")
        browser.fill("token", TOKEN)
        browser.press("Continue")
        browser.wait_for("orders", "#topics")
        assert browser.driver.current_url.endswith("/topics?q=ord")
        assert all("401" in each for each in browser.messages())

    def test_a_slow_cluster_is_said_and_its_answer_shown_when_it_comes(self, broker: Broker, browser: Browser) -> None:
        console = browser.start(entry(broker), patience_s=0.5)
        broker.faults.delay("DescribeLogDirs", 8000)
        assert "The cluster has not answered yet" in console.enter().get(f"/c/{NAME}/topics").text
        browser.open(f"{console.base}/topics")
        browser.wait_for("orders", "#topics")
        browser.wait_gone("has not answered yet", "#live")

    def test_what_another_browser_deletes_is_said_on_an_open_page(
        self, broker: Broker, admin: Admin, browser: Browser
    ) -> None:
        admin.create_topics([NewTopic("short-lived", 1)])
        console = browser.start(entry(broker), allow_changes=True)
        browser.open(f"{console.base}/topics/short-lived")
        browser.wait_for("live", "#live-state")
        other = Browser()
        try:
            other.enter(console)
            other.open(f"{console.base}/topics/short-lived?tab=changes")
            other.driver.execute_script("document.querySelector('form[action$=\"/delete\"]').requestSubmit()")
            other.wait_for("delete topic short-lived", "#steps")
            confirm(other, "short-lived")
            other.wait_for("Done: 1 item", "main")
            assert other.messages() == []
            other.open("about:blank")
        finally:
            other.close()
        browser.wait_for("Not possible", "#live")
        assert "UNKNOWN_TOPIC" in browser.one("#live").text
        browser.open(f"{console.base}/topics")
        browser.wait_gone("short-lived", "#topics")
