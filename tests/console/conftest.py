"""Chromium for the tests of this folder, one for each process; tests are skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.console.browser import CHROMEDRIVER, Browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMEDRIVER is None:
        pytest.skip("Chromium and its driver are not installed: apt-get install chromium chromium-driver")
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Chromium without cookies. A message on its console fails the test."""
    chromium.reset()
    with chromium.consoles:
        yield chromium
        said = chromium.messages()
        chromium.open("about:blank")
    assert said == []
