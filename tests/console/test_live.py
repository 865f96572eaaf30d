"""Live updates: one poller for all browsers, a broker that dies and returns, many topics, several clusters, drift."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from selenium.webdriver.support.wait import WebDriverWait

from barnabas.client.admin.topics import NewTopic
from barnabas.client.sync import Admin
from barnabas.console.links import MAX_IDLE_S, ClientThread, Link, Links
from barnabas.console.live import MAX_PAUSE_AFTER_ERROR_S, MAX_PAUSE_S, Live, Question, _Entry
from barnabas.console.settings import ClusterEntry
from barnabas.testing import Broker
from tests.console.browser import WAIT_S, Browser
from tests.console.running_console import NAME, RunningConsole, entry, with_declared

MANY = 10_000
T = TypeVar("T")


class Asked:
    """A link that counts questions, and a question that waits until it is let go."""

    def __init__(self) -> None:
        self.count = 0
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, cluster: object) -> int:
        self.count += 1
        await self.go.wait()
        return self.count


class NoCluster(Link):
    """A link whose questions need no cluster."""

    def __init__(self, name: str = "a") -> None:
        super().__init__(ClusterEntry(name, {}), None, ClientThread())

    async def ask(self, question: Callable[[Any], Awaitable[T]], *, is_waiting: bool = True) -> T:
        return await question(None)


def test_however_many_pages_wait_a_question_is_asked_once() -> None:
    async def main() -> None:
        live, link, asked = Live(), NoCluster(), Asked()
        asked.go.clear()
        waiting = [asyncio.create_task(live.answer(link, Question("q", asked))) for _ in range(10)]
        await asyncio.sleep(0.01)
        asked.go.set()
        answers = await asyncio.gather(*waiting)
        assert asked.count == 1
        assert {each.value for each in answers} == {1}
        assert (await live.answer(link, Question("q", asked))).value == 1, "it is young"
        await live.close()

    asyncio.run(main())


def test_ten_watchers_cause_as_many_questions_as_one() -> None:
    async def count(watchers: int) -> int:
        live, link, asked = Live(), NoCluster(), Asked()
        answer = await live.answer(link, Question("q", asked, every_s=0.05))
        stacks = [live.watch(link.key, [answer.key]) for _ in range(watchers)]
        events = [each.__enter__() for each in stacks]
        assert all(each is not None for each in events)
        while asked.count < 5:
            await asyncio.sleep(0.01)
        found = asked.count
        for each in stacks:
            each.__exit__(None, None, None)
        await asyncio.sleep(0.2)
        assert asked.count <= found + 1, "without a watcher nothing is asked"
        await live.close()
        return found

    assert asyncio.run(count(10)) == asyncio.run(count(1)) == 5


def test_an_error_keeps_the_last_value_and_a_change_makes_all_answers_new() -> None:
    async def main() -> None:
        live, link, asked = Live(), NoCluster(), Asked()
        question = Question("q", asked, every_s=1000)
        assert (await live.answer(link, question)).value == 1
        live.expire(link)
        assert (await live.answer(link, question)).value == 2

        async def fails(cluster: object) -> int:
            raise OSError("gone")

        failing = Question("fails", fails, every_s=1000)
        answer = await live.answer(link, failing)
        assert (answer.value, answer.problem) == (None, "gone")
        await live.close()

    asyncio.run(main())


def test_the_errors_of_questions_that_are_asked_together_are_those_of_one(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        live, link = Live(), NoCluster()
        for group, said in (([OSError("gone"), OSError("too")], "gone"), ([OSError("gone"), KeyError("a")], "its log")):

            async def fails(cluster: object, group: Sequence[Exception] = group) -> int:
                raise ExceptionGroup("together", group)

            answer = await live.answer(link, Question(said, fails, every_s=1000))
            assert said in (answer.problem or "")
        await live.close()

    asyncio.run(main())
    assert len(caplog.records) == 1, "what is expected is not logged"


def test_answers_belong_to_their_link() -> None:
    async def main() -> None:
        live, one, other, asked = Live(), NoCluster("a"), NoCluster("b"), Asked()
        first = await live.answer(one, Question("q", asked))
        second = await live.answer(other, Question("q", asked))
        assert (first.value, second.value) == (1, 2)
        with live.watch(other.key, [first.key]) as event:
            assert event is not None, "the same question has the same key"
        live.forget([other.key])
        with live.watch(other.key, [first.key]) as event:
            assert event is None
        await live.close()

    asyncio.run(main())


def test_a_page_is_told_of_an_answer_that_came_before_it_listened() -> None:
    async def main() -> None:
        live, link, asked = Live(), NoCluster(), Asked()
        answer = await live.answer(link, Question("q", asked, every_s=1000))
        for shown_ms, is_new in ((0, True), (int(answer.at_s * 1000), False)):
            with live.watch(link.key, [answer.key], [shown_ms]) as event:
                assert event is not None
                assert event.is_set() == is_new
        await live.close()

    asyncio.run(main())


def test_a_client_that_nobody_uses_is_closed_and_its_answers_are_forgotten() -> None:
    async def main() -> None:
        links, live, asked = Links(), Live(), Asked()
        used, idle = NoCluster("used"), NoCluster("idle")
        links._links.update({each.key: each for each in (used, idle)})
        answers = {each.key: await live.answer(each, Question("q", asked)) for each in (used, idle)}
        idle.used_s -= MAX_IDLE_S + 1
        gone = links.keep_only(set())
        assert gone == [idle.key]
        live.forget(gone)
        for each in (used, idle):
            with live.watch(each.key, [answers[each.key].key]) as event:
                assert (event is None) == (each is idle)
        await live.close()
        await links.close()

    asyncio.run(main())


# --- in a browser


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(topics={"orders": 1}, data_dir=tmp_path / "data") as broker:
        yield broker


@pytest.mark.browser
def test_a_page_says_that_the_broker_is_gone_and_shows_when_it_is_back(broker: Broker, browser: Browser) -> None:
    console = browser.start(entry(broker, **{"default.api.timeout.ms": "2000", "request.timeout.ms": "1000"}))
    browser.open(f"{console.base}/topics")
    browser.wait_for("orders", "#topics")
    browser.wait_for("live", "#live-state")
    broker.stop()
    browser.wait_for("The cluster does not answer", "#live")
    assert "orders" in browser.one("#topics").text, "the last answer stays"
    broker.start()
    broker.create_topic("made-after-the-return", 1)
    browser.wait_for("made-after-the-return", "#topics")
    browser.wait_gone("The cluster does not answer", "#live")


@pytest.mark.browser
def test_a_cluster_that_was_never_there_is_an_error_on_the_page(browser: Browser) -> None:
    console = browser.start(ClusterEntry(NAME, {"bootstrap.servers": "127.0.0.1:1", "bootstrap.timeout.ms": "500"}))
    browser.open(f"{console.base}/topics")
    assert "No answer" in browser.text()
    assert all("503" in each for each in browser.messages())


@pytest.mark.browser
def test_ten_thousand_topics_are_listed_searched_and_sorted_a_page_at_a_time(broker: Broker, browser: Browser) -> None:
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        for begin in range(0, MANY, 1000):
            admin.create_topics([NewTopic(f"topic-{number:05}", 1) for number in range(begin, begin + 1000)])
        while len(admin.list_topics()) <= MANY:  # Apache Kafka makes their logs, and tells clients of them, bit by bit
            time.sleep(0.5)
    console = browser.start(entry(broker))
    browser.open(f"{console.base}/topics")
    browser.wait_for("10,001 topics", "caption")
    assert len(browser.every("#topics tbody tr")) == 100
    assert len(browser.driver.page_source) < 300_000
    browser.press("Next")
    browser.wait_for("topic-00150", "#topics")
    browser.open(f"{console.base}/topics?q=07777")
    browser.wait_for("1 topic of 10,001", "caption")
    assert browser.texts("#topics tbody th") == ["topic-07777"]
    browser.open(f"{console.base}/topics?sort=-partitions&page=101")
    browser.wait_for("10,001-10,001 of 10,001".replace("-", "\u2013"), "main")


@pytest.mark.browser
def test_several_clusters_are_in_one_console(broker: Broker, browser: Browser) -> None:
    with Broker(topics=["of-another-cluster"]) as other:
        dead = ClusterEntry("dead", {"bootstrap.servers": "127.0.0.1:1", "bootstrap.timeout.ms": "500"})
        console = browser.start(entry(broker, "one"), entry(other, "two"), dead)
        assert browser.texts("tbody th") == ["one", "two", "dead"]

        def has_all(_: object) -> bool:
            browser.open(console.url)
            return browser.texts("tbody td:nth-child(2)") == ["1 broker running", "1 broker running", "does not answer"]

        WebDriverWait(browser.driver, WAIT_S).until(has_all)
        assert browser.violations() == []
        browser.press("two")
        browser.wait_for("Brokers running")
        browser.open(f"{console.url}/c/two/topics")
        assert "of-another-cluster" in browser.text()
        browser.press("switch cluster")
        browser.wait_for("Clusters", "h1")


@pytest.mark.browser
def test_more_windows_than_a_browser_has_connections_all_load_and_are_kept_up_to_date(
    broker: Broker, browser: Browser
) -> None:
    console = browser.start(entry(broker))
    first = browser.driver.current_window_handle
    states = []
    try:
        for number in range(8):
            if number:
                browser.driver.switch_to.new_window("window")
            browser.open(f"{console.base}/topics")
            browser.wait_for("orders", "#topics")
            browser.wait_for("live", "#live-state")
            states += browser.texts("#live-state")
        assert states[:4] == ["live"] * 4
        assert set(states[4:]) == {"live, every 5 s"}
        broker.create_topic("made-meanwhile", 1)
        for window in browser.driver.window_handles:
            browser.driver.switch_to.window(window)
            browser.wait_for("made-meanwhile", "#topics")
        browser.driver.switch_to.window(browser.driver.window_handles[1])
        browser.driver.close()  # its place is free
        browser.driver.switch_to.window(browser.driver.window_handles[-1])
        WebDriverWait(browser.driver, WAIT_S).until(
            lambda _: any(state_of(browser, each) == "live" for each in browser.driver.window_handles[3:])
        )
    finally:
        for window in browser.driver.window_handles:
            if window != first:
                browser.driver.switch_to.window(window)
                browser.driver.close()
        browser.driver.switch_to.window(first)


def state_of(browser: Browser, window: str) -> str:
    browser.driver.switch_to.window(window)
    return browser.texts("#live-state")[0]


def test_a_page_that_waited_long_enough_says_so_and_is_no_error(broker: Broker) -> None:
    with RunningConsole(entry(broker), patience_s=0.0) as console:
        page = console.enter().get(f"/c/{NAME}/topics")
        assert page.status == 200
        assert "has not answered yet" in page.text


def test_drift_from_a_file_is_a_finding(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("topics:\n  orders: {partitions: 1}\n  missing: {partitions: 2}\n")
    with RunningConsole(with_declared(entry(broker), file)) as console:
        page = console.enter().get(f"/c/{NAME}").text
        assert "drift" in page or "differs" in page
        assert "missing" in page


def test_a_stopped_console_leaves_nothing_behind(broker: Broker) -> None:
    with RunningConsole(entry(broker)) as console:
        assert console.enter().get(f"/c/{NAME}").status == 200
    with pytest.raises(OSError):
        console.get("/")


def test_a_signal_tells_only_what_is_new_and_makes_other_answers_new() -> None:
    async def main() -> None:
        live, link, asked = Live(), NoCluster(), Asked()
        now: list[frozenset[int] | OSError] = [frozenset({1, 2})]

        async def running(cluster: object) -> frozenset[int]:
            if isinstance(now[0], OSError):
                raise now[0]
            return now[0]

        signal = Question("running", running, every_s=0.01, is_signal=True)
        slow = await live.answer(link, Question("slow", asked, every_s=1000))
        first = await live.answer(link, signal)
        with live.watch(link.key, [slow.key, first.key]) as event:
            assert event is not None
            await asyncio.sleep(0.1)
            assert not event.is_set(), "nothing is new"
            for value in (frozenset({1}), OSError("gone")):
                now[0] = value
                await asyncio.wait_for(event.wait(), 10)
                event.clear()
            assert (await live.answer(link, signal)).problem == "gone"
            now[0] = frozenset({1})
            while asked.count < 3:
                await asyncio.wait_for(event.wait(), 10)
                event.clear()
        assert (await live.answer(link, signal)).problem is None
        await live.close()

    asyncio.run(main())


def test_a_question_that_fails_slowly_is_asked_again_soon() -> None:
    entry_of_live = _Entry(Question("q", Asked(), every_s=5), NoCluster(), took_s=30.0)
    assert entry_of_live.pause_s == MAX_PAUSE_S
    entry_of_live.problem = "gone"
    assert entry_of_live.pause_s == MAX_PAUSE_AFTER_ERROR_S
    entry_of_live.took_s = 0.1
    assert entry_of_live.pause_s == 5


def test_only_the_first_visits_wait_for_an_answer_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    real = asyncio.wait

    async def wait(tasks: Any, **options: Any) -> Any:
        waits.append(options["timeout"])
        return await real(tasks, **options)

    async def main() -> None:
        live, link, asked = Live(), NoCluster(), Asked()
        asked.go.clear()
        question = Question("q", asked, patience_s=0.05)
        monkeypatch.setattr(asyncio, "wait", wait)
        assert (await live.answer(link, question)).value is None
        assert (await live.answer(link, question)).value is None
        monkeypatch.undo()
        asked.go.set()
        await live.close()

    asyncio.run(main())
    assert 0 < waits[0] <= 0.05
    assert waits[1] == 0, "the second visit waits no more"
