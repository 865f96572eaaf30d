"""Commands of `barnabas lake`, run in this process, and what they print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.command_line import Done, invoke

SECRET = "not-for-everyone"
"""A setting of the node of barnabas in the lake of the tests."""


def run(*arguments: object, group: str | None = "lake") -> Done:
    return invoke(*([group] if group else []), *arguments)


def rows(lake: Path | str, *arguments: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = invoke("lake", *arguments, "--lake", lake, "-o", "json", code=0).json
    return found
