"""docs/compatibility.md shows what is served."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_apis_is_what_is_served() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "compatibility.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
