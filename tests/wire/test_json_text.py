"""JSON as text is the JSON of `to_json`, for every golden record; numbers and escapes are Java's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from barnabas import wire
from barnabas.wire.json_text import java_double, json_text, quote

GOLDEN = Path(__file__).parent.parent / "wire" / "data"


@pytest.mark.parametrize("file", ["messages.jsonl.gz", "records.jsonl.gz"])
def test_it_says_what_to_json_says(file: str) -> None:
    count = 0
    with gzip.open(GOLDEN / file, "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            try:
                message = wire.message_class(case["name"]).from_json(case["json"], case["version"])
                wanted = message.to_json(case["version"])
            except (wire.MalformedError, wire.EncodeError, wire.UnsupportedVersionError, KeyError):
                continue
            assert json.loads(json_text(message, case["version"])) == wanted
            count += 1
    assert count > 100


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (0.001, "0.001"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (99999999.0, "9.9999999E7"),
        (-2.5e-7, "-2.5E-7"),
        (1e21, "1.0E21"),
        (float("nan"), '"NaN"'),
    ],
)
def test_doubles_are_written_as_in_java(number: float, text: str) -> None:
    assert java_double(number) == text


def test_escapes_are_written_as_by_jackson() -> None:
    assert quote('a"\\ü\n\x1f\\u001f') == '"a\\"\\\\ü\\n\\u001F\\\\u001f"'
