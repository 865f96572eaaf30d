"""The tests in a browser are collected only when asked for: BARNABAS_BROWSER=1, with Chromium on the machine."""

from __future__ import annotations

import os
from pathlib import Path


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    wanted = os.environ.get("BARNABAS_BROWSER") == "1" or collection_path.name != "test_browser.py"
    return None if wanted else True
