"""A .properties text is read as Java reads it, and what is written is read back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.config import properties
from barnabas.config.definitions import ConfigError
from tests.config.kafka_answers import read


@pytest.mark.parametrize(("text", "expected"), [row for row in read("properties.json") if row[1] is not None])
def test_a_text_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert properties.loads(text) == expected


@pytest.mark.parametrize("text", [row[0] for row in read("properties.json") if row[1] is None])
def test_an_escape_that_java_refuses_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="Malformed"):
        properties.loads(text)


def test_keys_keep_the_order_of_their_first_appearance() -> None:
    assert list(properties.loads("b=1\na=2\nb=3").items()) == [("b", "3"), ("a", "2")]


def test_a_file_is_written_in_the_given_order_under_its_comment() -> None:
    items = {"version": "1", "cluster.id": "Z29sZC1jbHVzdGVyLTAwMQ", "a key": " é:#\n"}
    assert properties.dumps(items, "by barnabas") == (
        "#by barnabas\nversion=1\ncluster.id=Z29sZC1jbHVzdGVyLTAwMQ\na\\ key=\\ \\u00E9\\:\\#\\n\n"
    )


def test_a_comment_of_several_lines_stays_a_comment() -> None:
    assert properties.loads(properties.dumps([("a", "1")], "x=1\r\ny=2\rz=3")) == {"a": "1"}


@settings(deadline=None)
@given(st.dictionaries(st.text(), st.text()))
def test_what_is_written_is_read_back(items: dict[str, str]) -> None:
    text = properties.dumps(items)
    assert properties.loads(text) == items
    assert text.isascii()


@settings(deadline=None)
@given(st.text(alphabet="ab=: \t\f\n\r\\#!u0041"))
def test_any_text_is_read_or_refused_for_its_escape(text: str) -> None:
    try:
        found = properties.loads(text)
    except ConfigError:
        assert "\\u" in text
    else:
        assert properties.loads(properties.dumps(found)) == found
