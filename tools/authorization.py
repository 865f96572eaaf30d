"""Writes the table of permissions into docs/authorization.md: `python tools/authorization.py [--check]`.

The table is generated from `security.required_operations`; a test compares that with what the handlers ask for. The rest of
the page is written by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from barnabas.broker.served import served_keys  # noqa: E402
from barnabas.security.required_operations import REQUIRED, Listeners, Required  # noqa: E402
from barnabas.wire import APIS  # noqa: E402

PAGE = ROOT / "docs" / "authorization.md"
BEGIN, END = "<!-- begin: generated table -->", "<!-- end: generated table -->"


def table() -> str:
    lines = ["| key | API | resource | operation | without it |", "|---|---|---|---|---|"]
    for key in sorted(served_keys()):
        name = APIS[key].name
        required = REQUIRED[name]
        if not required:
            lines.append(f"| {key} | {name} | - | none | |")
        lines += [f"| {key} | {name} | {cells} |" for cells in map(_cells, required)]
    return "\n".join(lines)


def _cells(each: Required) -> str:
    listener = "" if each.on is Listeners.ANY else f", on a {each.on}"
    without = "the permission above is needed" if each.is_instead else each.without
    resource = each.resource_type.name.lower().replace("_", " ")
    instead = "or " if each.is_instead else ""
    return f"{instead}{resource}{listener} | {each.operation.name} | {without}"


def _page(text: str) -> Iterator[str]:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    yield from (before, BEGIN, "\n", table(), "\n", END, after)


def main() -> int:
    page = PAGE.read_text()
    text = "".join(_page(page))
    if "--check" in sys.argv:
        if text != page:
            print("docs/authorization.md is out of date; run `make generate`", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
