"""Writes the table of APIs into docs/compatibility.md: `python tools/compatibility.py [--check]`.

The table is generated from the served APIs, so that it stays correct; the rest of the page is written by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from barnabas.broker.served import served_apis, served_versions  # noqa: E402
from barnabas.wire import APIS  # noqa: E402

PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- begin: generated table -->", "<!-- end: generated table -->"


def table() -> str:
    broker, controller = served_apis("broker"), served_apis("controller")
    lines = ["| key | API | broker | controller | Apache Kafka 4.3 |", "|---|---|---|---|---|"]
    for key, api in sorted(APIS.items()):
        here = [str(served_versions(key)) if key in kind else "-" for kind in (broker, controller)]
        lines.append(
            f"| {key} | {api.name} | {here[0]} | {here[1]} | {api.kafka} on {', '.join(api.listeners) or '-'} |"
        )
    return "\n".join(lines)


def rendered() -> str:
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> int:
    text = rendered()
    if "--check" in sys.argv:
        if text != PAGE.read_text():
            print("docs/compatibility.md is out of date; run `make generate`", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
