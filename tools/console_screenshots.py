"""Take the pictures of docs/console.md: `make screenshots`. Needs Chromium and its driver.

Starts a broker with example data and a console, and writes PNG files to docs/images, light and dark, wide and narrow.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

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
    "console-phone": ("/topics", NARROW, "light"),
    "console-phone-dark": ("", NARROW, "dark"),
}


def main() -> None:
    """Take all pictures, or those whose names are given."""
    sys.path.insert(0, str(ROOT))
    from tests.console.browser import Browser
    from tests.console.running_console import entry
    from tests.console.shop import AUTHORIZED, fill

    from barnabas.testing import Broker

    OUT.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or list(PICTURES)
    browser = Browser()
    topics = {"orders": 3, "payments": 1, "customers": 2, "shipments": 6, "invoices": 3}
    with Broker(topics=topics, config=AUTHORIZED) as broker, browser.consoles:
        fill(broker, with_hostile=False)
        console = browser.start(entry(broker, "shop"), allow_changes=True)
        for name in wanted:
            path, size, theme = PICTURES[name]
            browser.show(size, theme)
            browser.open(f"{console.url}/c/shop{path}")
            browser.wait_for("live", "#live-state")
            time.sleep(0.5)
            browser.driver.save_screenshot(str(OUT / f"{name}.png"))
            print(OUT / f"{name}.png")
        browser.open("about:blank")
    browser.close()


if __name__ == "__main__":
    main()
