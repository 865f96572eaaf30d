"""Take the pictures of docs/console.md: `make screenshots`. Needs Chromium and its driver.

Starts a broker with example data and a console, and writes PNG files to docs/images, light and dark, wide and narrow.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.console.browser import Browser

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "images"
WIDE, NARROW = (1440, 900), (390, 844)
PICTURES = {
    "console-overview": ("", WIDE, "light"),
    "console-topics": ("/topics", WIDE, "dark"),
    "console-topic": ("/topics/orders", WIDE, "light"),
    "console-records": ("/topics/orders/records?count=12", WIDE, "light"),
    "console-group": ("/group?id=billing", WIDE, "dark"),
    "console-explain": ("/access/explain?principal=alice&operation=READ&resource=topic:orders", WIDE, "light"),
    "console-history": ("/history", WIDE, "light"),
    "console-phone": ("/topics/orders/records?count=3", NARROW, "light"),
    "console-phone-dark": ("", NARROW, "dark"),
}


IN_RACKS = {"console-rehearsal": ("/rehearsal?do=kill:2&do=kill-rack:c", WIDE, "dark")}
"""Of three nodes in racks."""


def main() -> None:
    """Take all pictures, or those whose names are given."""
    sys.path.insert(0, str(ROOT))
    from tests.console.browser import Browser

    OUT.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or [*PICTURES, *IN_RACKS]
    browser = Browser()
    if shown := [each for each in wanted if each in PICTURES]:
        _of_a_shop(browser, shown)
    if shown := [each for each in wanted if each in IN_RACKS]:
        _of_racks(browser, shown)
    browser.close()


def _of_a_shop(browser: Browser, wanted: list[str]) -> None:
    from tests.console.running_console import entry
    from tests.console.shop import AUTHORIZED, fill

    from barnabas.testing import Broker

    topics = {"orders": 3, "payments": 1, "customers": 2, "shipments": 6, "invoices": 3}
    with (
        TemporaryDirectory() as folder,
        Broker(topics=topics, config={**AUTHORIZED, "barnabas.audit.log.path": f"{folder}/audit.log"}) as broker,
        browser.consoles,
    ):
        fill(broker, with_hostile=False)
        shop = replace(entry(broker, "shop"), audit_logs=(Path(folder) / "audit.log",))
        console = browser.start(shop, allow_changes=True)
        for name in wanted:
            _take(browser, f"{console.url}/c/shop", name, *PICTURES[name])
        browser.open("about:blank")


def _of_racks(browser: Browser, wanted: list[str]) -> None:
    from barnabas.client.admin.topics import NewTopic
    from barnabas.client.sync import Admin
    from barnabas.console.settings import ClusterEntry
    from barnabas.testing import Cluster

    with Cluster(nodes=3, racks=("a", "b", "c")) as cluster, browser.consoles:
        servers = cluster.bootstrap_servers
        with Admin({"bootstrap.servers": servers}) as admin:
            admin.create_topics([NewTopic("orders", 3, 3), NewTopic("payments", 2, 2), NewTopic("exports", 1, 1)])
        console = browser.start(ClusterEntry("shop", {"bootstrap.servers": servers}, ("--profile", "shop")))
        for name in wanted:
            _take(browser, f"{console.url}/c/shop", name, *IN_RACKS[name])
        browser.open("about:blank")


def _take(browser: Browser, base: str, name: str, path: str, size: tuple[int, int], theme: str) -> None:
    browser.show(size, theme)
    browser.open(f"{base}{path}")
    browser.wait_for("live", "#live-state")
    time.sleep(0.5)
    browser.driver.save_screenshot(str(OUT / f"{name}.png"))
    print(OUT / f"{name}.png")


if __name__ == "__main__":
    main()
