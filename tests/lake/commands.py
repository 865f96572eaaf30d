"""Commands of `barnabas lake`, run in this process, and what they print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from barnabas.cli.main import main

SECRET = "not-for-everyone"
"""A setting of the node of barnabas in the lake of the tests."""


def run(*arguments: object, group: str | None = "lake") -> Result:
    return CliRunner().invoke(main, [*([group] if group else []), *map(str, arguments)])


def rows(lake: Path, *arguments: object) -> list[dict[str, Any]]:
    result = run(*arguments, "--lake", lake, "-o", "json")
    assert result.exit_code == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found
