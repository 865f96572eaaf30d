"""Every page in a real browser: at both widths, in both themes, accessible, and without a message on the browser's console."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from barnabas.console.pages import records
from barnabas.operations.records.browsing import SearchStep
from barnabas.testing import Broker
from tests.console.browser import DESKTOP, PHONE, WAIT_S, Browser
from tests.console.running_console import RunningConsole, entry
from tests.console.shop import AUTHORIZED, HOSTILE, fill

pytestmark = pytest.mark.browser

LONG = "x" * 249
"""The longest name that a topic may have."""
CASES = "cases:\n  - principal: User:alice\n    resource: topic:orders\n    may: READ\n    mayNot: WRITE\n"
PAGES = {
    "": "Brokers running",
    "/topics": "payments",
    "/topics?q=pay&sort=-size&internal=1": "payments",
    "/topics/orders": "Eligible leaders",
    "/topics/payments?tab=settings&history=1": "86400000",
    "/topics/orders?tab=groups": "billing",
    "/topics/orders?tab=acls": "User:alice",
    "/topics/orders?tab=changes&throughput=50MB&producer=10MB": "5 partitions",
    "/topics/orders/records": "this list follows the log",
    "/topics/orders/records?partition=0&offset=2&count=3": "3 records",
    "/topics/orders/records?form=hex": "6b65792d",
    "/topics/payments/records": "abort marker",
    "/topics/__consumer_offsets/records?count=5": "OffsetCommit",
    "/groups": "billing",
    "/group?id=billing": "Positions",
    "/brokers": "active controller",
    "/brokers/1": LONG,
    "/brokers/1?tab=settings": "authorizer.class.name",
    "/brokers/1?tab=settings&all=1&q=log.retention&history=1": "log.retention.ms",
    f"/topics/{LONG}": "Eligible leaders",
    f"/topics/{LONG}/records": "no records here",
    f"/topics/{LONG}?tab=changes": "Delete the topic",
    "/quorum": "it is the only one",
    "/reassignments?goal=rebalance": "Nothing to move",
    "/access": "User:alice",
    "/access?tab=users": "SCRAM",
    "/access?tab=quotas": "producer_byte_rate",
    "/access?tab=tokens": "oken",
    "/access?tab=audit": "",
    f"/access?tab=test&cases={quote(CASES)}": "an entry allows it",
    "/access/explain?principal=alice&operation=READ&resource=topic:orders": "Allowed: an entry allows it",
    "/metadata": "image",
    "/metadata?path=image/topics/byName/orders": "byName",
    "/metadata?find=orders": "found",
    "/metadata?path=image/topics/byName&as_of=2999-01-01": "the tree as it is now",
    "/metadata?path=image/topics/byName/orders&as_of=3": "no",
    "/metadata?as_of=soon": "is not an offset",
    "/rehearsal": "Choose what happens",
    "/rehearsal?do=kill:1": "Nothing was changed",
    "/metadata?tab=log": "ConfigRecord",
    "/metadata?tab=difference&from=5": "orders",
    "/transactions?topic=payments": "payments-writer",
    "/history": "retention.ms",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 3, "payments": 1, LONG: 1}, config=AUTHORIZED) as broker:
        fill(broker)
        yield broker


@pytest.fixture(scope="module")
def console(broker: Broker) -> Iterator[RunningConsole]:
    with RunningConsole(entry(broker), allow_changes=True) as console:
        yield console


@pytest.fixture
def visitor(browser: Browser, console: RunningConsole) -> Browser:
    browser.enter(console)
    return browser


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_its_subject_is_accessible_and_fits(visitor: Browser, console: RunningConsole, path: str) -> None:
    visitor.look_at(console.base + path, PAGES[path])
    assert visitor.driver.title != "owned"


def test_pages_outside_of_a_cluster_are_accessible(browser: Browser, broker: Broker) -> None:
    other = entry(broker, "other")
    secured = replace(other, name="secured", settings={**other.settings, "security.protocol": "SASL_PLAINTEXT"})
    console = browser.start(other, secured)
    browser.wait_for("Clusters", "h1")
    for path, text in {"/": "secured", "/c/secured": "Log in to secured", "/c/none": "no such cluster"}.items():
        for size, theme in ((DESKTOP, "light"), (PHONE, "dark")):
            browser.show(size, theme)
            browser.open(console.url + path)
            browser.wait_for(text)
            assert browser.violations() == []
            assert not browser.is_too_wide()
    browser.driver.delete_all_cookies()
    browser.open(f"{console.url}/c/other/topics")
    browser.wait_for("token")
    assert browser.violations() == []
    assert all("401" in each or "404" in each for each in browser.messages()), "only that these pages are refusals"


def test_a_plan_and_its_result_are_accessible(visitor: Browser, console: RunningConsole) -> None:
    visitor.open(f"{console.base}/topics")
    visitor.click("#create summary")
    visitor.fill("topic", "planned")
    visitor.press("Show the plan")
    visitor.wait_for("create topic planned", "#steps")
    for size, theme in ((DESKTOP, "dark"), (PHONE, "light")):
        visitor.show(size, theme)
        assert visitor.violations() == []
        assert not visitor.is_too_wide()
    visitor.press("Carry out")
    visitor.wait_for("Done", "main")
    assert visitor.violations() == []


def test_on_a_phone_the_value_of_a_record_is_in_sight(visitor: Browser, console: RunningConsole) -> None:
    visitor.show(PHONE)
    visitor.open(f"{console.base}/topics/orders/records")
    visitor.wait_for('"total"', "#live .records")
    place = visitor.one("#live .records tbody td:nth-child(5)").rect
    assert place["x"] + place["width"] <= PHONE[0]
    assert place["width"] > PHONE[0] / 2


def test_a_search_can_be_cancelled(visitor: Browser, console: RunningConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()

    async def slowly(*args: Any) -> AsyncIterator[SearchStep]:
        yield SearchStep([], 10, 1000, 100, None)
        while not held.is_set():
            await asyncio.sleep(0.01)

    monkeypatch.setattr("barnabas.console.pages.records.search", slowly)
    visitor.open(f"{console.base}/topics/orders/records")
    visitor.click("#search summary")
    visitor.fill("where", "total>=171")
    visitor.driver.execute_script("document.querySelector('form[data-search]').requestSubmit()")
    visitor.wait_for("10 of 1,000 offsets read", "#search-state")
    assert visitor.one("#search-progress").is_displayed()
    visitor.click("#cancel-search")
    visitor.wait_for("Cancelled", "#search-state")
    WebDriverWait(visitor.driver, WAIT_S).until(lambda _: records._searches == 0, "the search goes on")
    held.set()


def test_names_and_values_of_others_never_run(visitor: Browser, console: RunningConsole) -> None:
    seen = 0
    for path in (
        "/groups",
        f"/group?id={quote(HOSTILE)}",
        "/topics/orders/records",
        "/access",
        "/access?tab=quotas",
        "/topics/orders?tab=acls",
        "/topics/orders?tab=groups",
        "/metadata?tab=log",
        "/history",
        f"/topics?q={quote(HOSTILE)}",
        f"/metadata?find={quote(HOSTILE)}",
    ):
        visitor.open(console.base + path)
        text = visitor.text()
        seen += HOSTILE in text
        assert visitor.driver.title != "owned"
        assert visitor.every("img[onerror], main script") == []
        assert str(77777 * 7) not in text
    assert seen >= 6


def test_a_search_shows_what_it_finds_and_its_progress(visitor: Browser, console: RunningConsole) -> None:
    visitor.open(f"{console.base}/topics/orders/records")
    visitor.click("#search summary")
    visitor.fill("where", "total>=171")
    visitor.driver.execute_script("document.querySelector('form[data-search]').requestSubmit()")
    visitor.wait_for("everything was read", "#search-state")
    assert "3 found" in visitor.one("#search-state").text
    rows = visitor.texts("#search-results tbody tr")
    assert sorted(int(row.partition('"id": ')[2].partition(",")[0]) for row in rows) == [57, 58, 59]
    address = visitor.driver.current_url
    visitor.open("about:blank")
    visitor.open(address)  # as somebody does who was sent it
    visitor.wait_for("3 found", "#search-state")
    visitor.wait_for("everything was read", "#search-state")
    assert visitor.one("#search [name=where]").get_attribute("value") == "total>=171"


def test_a_search_for_nonsense_is_refused(console: RunningConsole) -> None:
    with_session = console.enter()
    refused = with_session.get("/c/test/topics/orders/records/search?key=(")
    assert refused.status == 400
    assert "not a regular expression" in refused.text
    console.cookies.clear()


def test_a_download_is_an_attachment_of_lines(console: RunningConsole) -> None:
    answer = console.enter().get("/c/test/topics/orders/records/download?offset=0")
    assert answer.headers["content-disposition"] == 'attachment; filename="orders.jsonl"'
    assert len(answer.text.splitlines()) == 61
    console.cookies.clear()


def test_keys_lead_to_the_search_and_to_pages(visitor: Browser, console: RunningConsole) -> None:
    visitor.open(f"{console.base}/topics")
    visitor.one("body").send_keys("/")
    assert visitor.driver.switch_to.active_element.get_attribute("name") == "q"
    visitor.driver.switch_to.active_element.send_keys("orders", Keys.ENTER)
    visitor.wait_for("1 topic of", "main")
    visitor.one("body").send_keys("g")
    visitor.one("body").send_keys("b")
    visitor.wait_for("Under-replicated", "main")
    assert visitor.driver.current_url.endswith("/brokers")
    visitor.one("body").send_keys("g")
    visitor.one("body").send_keys("g")
    visitor.wait_for("Unread records", "main")
    assert visitor.driver.current_url.endswith("/groups")
    visitor.one("body").send_keys("?")
    assert visitor.one("dialog").is_displayed()
    assert visitor.violations() == []
    visitor.type(Keys.ESCAPE)
    visitor.click("#show-keys")
    assert visitor.one("dialog").is_displayed()


def test_on_a_phone_the_navigation_folds(visitor: Browser, console: RunningConsole) -> None:
    visitor.show(PHONE)
    visitor.open(console.base)
    assert not visitor.one("nav a").is_displayed()
    assert visitor.texts(".narrow-name") == ["test"], "on which cluster one is"
    visitor.one(".menu-button").click()
    assert visitor.one("nav a").is_displayed()


def test_on_a_phone_a_wide_table_shows_that_it_goes_on(visitor: Browser, console: RunningConsole) -> None:
    visitor.show(PHONE)
    visitor.open(f"{console.base}/topics")
    visitor.wait_for("orders", "#topics")
    assert len(visitor.every(".table[data-more]")) == 1
    visitor.driver.execute_script("document.querySelector('.table').scrollLeft = 10000")
    WebDriverWait(visitor.driver, WAIT_S).until(lambda _: not visitor.every(".table[data-more]"), "it still goes on")
    visitor.show(DESKTOP)
    visitor.open(f"{console.base}/topics")
    assert visitor.every(".table[data-more]") == []


def test_an_error_on_a_page_of_a_cluster_leads_to_the_cluster(console: RunningConsole) -> None:
    page = console.enter().get("/c/test/brokers/99")
    assert page.status == 404
    assert '<a href="/c/test">Overview of test</a>' in page.text
    console.cookies.clear()


def test_the_theme_can_be_chosen_and_stays(visitor: Browser, console: RunningConsole) -> None:
    visitor.open(console.base)
    for _ in range(2):
        visitor.click("#theme")
    visitor.open(f"{console.base}/topics")
    assert visitor.one("html").get_attribute("data-theme") == "dark"
    assert visitor.violations() == []
