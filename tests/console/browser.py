"""Chromium as tests use it: through its driver, headless, with everything it says on its console.

Its one rule: a test that leaves a message on the browser's console fails, unless it expects it.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import axe_core_python
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from barnabas.console.settings import ClusterEntry
from tests.console.running_console import TOKEN, RunningConsole

CHROMEDRIVER = shutil.which("chromedriver")
WAIT_S = 30.0
PHONE, DESKTOP = (390, 844), (1440, 900)
_AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
_MAX_REPLACED = 5
_MAX_TABS = 200
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]


class Browser:
    """One Chromium."""

    def __init__(self) -> None:
        assert CHROMEDRIVER is not None
        options = webdriver.ChromeOptions()
        for argument in (
            *("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"),
            *(
                "--no-first-run",
                "--disable-extensions",
                "--disable-background-networking",
                "--force-device-scale-factor=1",
            ),
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options, webdriver.ChromeService(CHROMEDRIVER))
        self.driver.set_page_load_timeout(WAIT_S)
        self.consoles = ExitStack()

    def close(self) -> None:
        self.driver.quit()

    def reset(self) -> None:
        """Forget cookies, sizes and colours of the last test."""
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self.show(DESKTOP)
        self.messages()

    def show(self, size: tuple[int, int], theme: str = "light") -> None:
        """Set the size of the page and the colours that the user prefers."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
        )
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {
                "features": [
                    {"name": "prefers-color-scheme", "value": theme},
                    {"name": "prefers-reduced-motion", "value": "reduce"},  # no colours between two
                ]
            },
        )

    def start(self, *entries: ClusterEntry, **settings: Any) -> RunningConsole:
        """Start a console that is stopped after the test, once this browser has left it; and begin a session."""
        console = self.consoles.enter_context(RunningConsole(*entries, **settings))
        self.enter(console)
        return console

    def enter(self, console: RunningConsole) -> None:
        self.driver.get(f"{console.url}/?token={TOKEN}")

    def open(self, url: str) -> None:
        self.driver.get(url)

    # --- looking

    def text(self) -> str:
        return self.one("body").text

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def every(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements at one moment: a live update may replace them between two questions."""
        script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText.trim())"
        return list(self.driver.execute_script(script, selector))

    def wait_for(self, text: str, selector: str = "body") -> None:
        """Wait until a part of the page has this text."""
        script = "const found = document.querySelector(arguments[0]); return found === null ? '' : found.innerText"
        WebDriverWait(self.driver, WAIT_S).until(
            lambda driver: text in driver.execute_script(script, selector), f"no {text!r}"
        )

    def wait_gone(self, text: str, selector: str = "body") -> None:
        script = "const found = document.querySelector(arguments[0]); return found === null ? '' : found.innerText"
        WebDriverWait(self.driver, WAIT_S).until(
            lambda driver: text not in driver.execute_script(script, selector), f"still {text!r}"
        )

    def wait_at(self, part: str) -> None:
        """Wait until the address has this part: other pages may have the same headings."""
        WebDriverWait(self.driver, WAIT_S).until(lambda driver: part in driver.current_url, f"not at {part}")

    # --- doing

    def click(self, selector: str) -> None:
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.one(selector))
        self.one(selector).click()

    def press(self, text: str) -> None:
        """Press the button or follow the link with this text. A live update may replace it meanwhile."""
        for _ in range(_MAX_REPLACED):
            with suppress(StaleElementReferenceException):
                return self._press(text)
        raise AssertionError(f"the button {text!r} is replaced again and again")

    def _press(self, text: str) -> None:
        found = [each for each in self.every("button, a") if each.text.strip() == text and each.is_displayed()]
        assert found, f"no button {text!r} on {self.driver.current_url}: {self.text()}"
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", found[0])
        found[0].click()

    def fill(self, name: str, value: str) -> None:
        """Write a field, or choose an option by its value."""
        field = next(each for each in self.every(f"[name='{name}']") if each.is_displayed())
        if field.tag_name == "select":
            self.driver.execute_script(
                "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))", field, value
            )
            return
        field.clear()
        field.send_keys(value)

    def type(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, selector: str) -> None:
        """Move the focus with the keyboard until such an element has it."""
        for _ in range(_MAX_TABS):
            self.type(Keys.TAB)
            if self.driver.execute_script("return document.activeElement.matches(arguments[0])", selector):
                return
        raise AssertionError(f"the keyboard does not reach {selector}")

    # --- judging

    def messages(self) -> list[str]:
        """What the browser has said on its console since the last call."""
        return [f"{each['level']}: {each['message']}" for each in self.driver.get_log("browser")]

    def violations(self) -> list[str]:
        """Violations of WCAG AA that axe finds on the page."""
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": _AXE})  # not subject to the page's policy
        found: Any = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {runOnly: arguments[0], resultTypes: ['violations']}).then(r => done(r.violations))",
            _RULES,
        )
        return [f"{each['id']}: {node['html']} {node['failureSummary']}" for each in found for node in each["nodes"]]

    def look_at(self, address: str, *texts: str) -> None:
        """Open a page narrow and wide: it has these texts, fits, and is accessible, dark and light."""
        for size, themes in ((PHONE, ("dark", "light")), (DESKTOP, ("light", "dark"))):
            self.show(size, themes[0])
            self.open(address)
            for text in texts:
                self.wait_for(text, "main")
            assert not self.is_too_wide()
            assert size != DESKTOP or self.every(".table[data-more]") == [], "a column is cut"
            for theme in themes:
                self.show(size, theme)
                assert self.violations() == [], theme

    def is_too_wide(self) -> bool:
        """Whether the page as a whole scrolls sideways."""
        return bool(
            self.driver.execute_script(
                "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
            )
        )
