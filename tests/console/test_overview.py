"""The overview in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from tests.console.browser import DESKTOP, PHONE, Browser
from tests.console.running_console import entry

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 3}) as broker:
        yield broker


def test_a_node_in_numbers(broker: Broker, browser: Browser) -> None:
    browser.start(entry(broker))
    assert browser.driver.title == "Overview · test"
    assert "Nothing found" in browser.text()
    browser.wait_for("live", "#live-state")
    facts = dict(zip(browser.texts("dt"), browser.texts("dd"), strict=True))
    assert facts["Topics"] == "1"
    assert facts["Partitions"] == "3"


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_accessible_and_fits(broker: Broker, browser: Browser, size: tuple[int, int], theme: str) -> None:
    browser.show(size, theme)
    browser.start(entry(broker))
    browser.wait_for("live", "#live-state")
    assert browser.violations() == []
    assert not browser.is_too_wide()
