"""Rows as tables, JSON, YAML and TSV; colour; what a terminal must not see."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from barnabas.cli.terminal.output import Column, Format, Output, columns, to_yaml, utc_time, wants_color
from barnabas.wire.json_text import JsonText

ROWS: list[dict[str, Any]] = [
    {"topic": "orders", "partitions": 12, "isr": [1, 2], "note": None, "more": {"a": True}},
    {"topic": "a\tb\\c\nd", "partitions": 3, "isr": [], "note": "x y", "more": {}},
]
SHOWN = columns("topic", "partitions", "isr", "note")


def written(format: Format, rows: list[dict[str, Any]], color: bool = False, shown: Any = SHOWN) -> str:
    file = io.StringIO()
    Output(format, file, color).rows(shown, rows)
    return file.getvalue()


def test_a_table_is_aligned_with_numbers_on_the_right() -> None:
    assert written(Format.TABLE, [ROWS[0], {**ROWS[1], "topic": "x"}]).splitlines() == [
        "TOPIC   PARTITIONS  ISR  NOTE",
        "orders          12  1,2  -",
        "x                3  -    x y",
    ]


def test_a_table_without_rows_is_its_heading() -> None:
    assert written(Format.TABLE, []) == "TOPIC  PARTITIONS  ISR  NOTE\n"


def test_headings_are_made_of_kafkas_names() -> None:
    assert [column.heading for column in columns("baseOffset", Column("x", "TITLE"))] == ["BASE-OFFSET", "TITLE"]


def test_json_is_one_array_with_a_row_to_a_line_and_all_fields() -> None:
    text = written(Format.JSON, ROWS)
    assert json.loads(text) == ROWS
    assert len(text.splitlines()) == len(ROWS)
    assert written(Format.JSON, []) == "[]\n"


def test_jsonl_is_a_document_to_a_line() -> None:
    assert [json.loads(line) for line in written(Format.JSONL, ROWS).splitlines()] == ROWS


def test_tsv_has_no_header_and_keeps_a_row_on_its_line() -> None:
    assert written(Format.TSV, ROWS) == "orders\t12\t1,2\t\na\\tb\\\\c\\nd\t3\t\tx y\n"


def test_json_that_is_text_already_is_put_in_as_it_is() -> None:
    rows = [{"offset": 1, "value": JsonText('{"a":[1,2]}')}]
    assert written(Format.JSONL, rows) == '{"offset":1,"value":{"a":[1,2]}}\n'
    assert written(Format.YAML, rows) == "- offset: 1\n  value:\n    a:\n      - 1\n      - 2\n"
    assert written(Format.TABLE, rows, shown=columns("offset", "value")).splitlines()[1] == '     1  {"a":[1,2]}'


def test_yaml_quotes_what_would_be_read_as_something_else() -> None:
    document = {
        "no": "no",
        "number": "12",
        "time": "12:30",
        "empty": "",
        "plain": "a b",
        "list": [],
        "nested": [[1], {}],
    }
    assert to_yaml(document).splitlines() == [
        '"no": "no"',
        'number: "12"',
        'time: "12:30"',
        'empty: ""',
        "plain: a b",
        "list: []",
        "nested:",
        "  - - 1",
        "  - {}",
    ]


def test_what_a_terminal_takes_for_a_command_is_escaped() -> None:
    rows = [{"topic": "\x1b[31mred\x9b"}]
    assert "\\u001b[31mred\\u009b" in written(Format.TABLE, rows)
    text = written(Format.JSON, rows)
    assert "\x1b" not in text
    assert json.loads(text) == rows


def test_rows_go_out_before_the_last_one_comes() -> None:
    file = io.StringIO()
    table = Output(Format.TABLE, file, False).table(columns("n"))
    for n in range(2000):
        table.add({"n": n})
    assert len(file.getvalue().splitlines()) > 1000


def test_colour_is_for_terminals_unless_somebody_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert not wants_color(io.StringIO())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert wants_color(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color(io.StringIO())


def test_a_style_colours_a_cell_and_leaves_it_in_its_place() -> None:
    shown = columns("n", Column("status", style=lambda value: "red" if value == "bad" else None), "last")
    text = written(Format.TABLE, [{"n": 1, "status": "bad", "last": "x"}], color=True, shown=shown)
    assert text.splitlines()[1] == "1  \x1b[31mbad   \x1b[0m  x"


def test_text_that_the_output_cannot_hold_is_escaped() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    Output(Format.TABLE, file, False).listing("name", [{"name": "größe"}])
    assert raw.getvalue() == b"gr\\xf6\\xdfe\n"


def test_one_thing_is_a_line_to_a_field_or_an_object() -> None:
    file = io.StringIO()
    Output(Format.TABLE, file, False).one({"id": 1, "racks": ["a", "b"]})
    assert file.getvalue() == "id:    1\nracks: a,b\n"
    file = io.StringIO()
    Output(Format.JSON, file, False).one({"id": 1})
    assert json.loads(file.getvalue()) == {"id": 1}


def test_times_are_shown_in_utc() -> None:
    assert utc_time(1700000000123) == "2023-11-14T22:13:20.123Z"
    assert utc_time(-1) == "-"
    assert utc_time(2**62) == str(2**62)
