"""Conditions of --where."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.operations.records.conditions import ConditionError, holds, parse_condition

VALUE = {
    "n": 3,
    "big": 9007199254740993,
    "name": "alice",
    "a.b": {"c": [10, {"d": None}]},
    "first name": "x",
    "sign": "=3",
    "text": "7",
    "flag": True,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n=3", True),
        ("n = 3", True),
        (" n >= 3 ", True),
        ("n>3", False),
        ("n>2.5", True),
        ("n<1e1", True),
        ("n>-1", True),
        ("n!=3", False),
        ("big>9007199254740992", True),  # not as floats
        ("big<=9007199254740992", False),
        ("text>=7", True),
        ("name>3", False),
        ("flag>0", False),
        ("flag=true", True),
        ("name=alice", True),
        ('name="alice"', True),
        ("name~^al", True),
        ("name~l.c", True),
        ("name~^b", False),
        ("first name=x", True),
        ('sign="=3"', True),
        ("sign~[=]", True),
        ('["a.b"].c[0]=10', True),
        ('$["a.b"].c[1].d=null', True),
        ("$.n=3", True),
        ("name=", False),
        ("name!=", True),
        ("name[0]=a", False),  # a string is not an array
        ("nothing=1", False),
        ("nothing!=1", True),
        ('["a.b"].c[9]!=1', True),
    ],
)
def test_a_condition_holds(text: str, expected: bool) -> None:
    assert holds(parse_condition(text), VALUE) is expected


@pytest.mark.parametrize(
    ("text", "at", "problem"),
    [
        ("", 0, "the name of a field is missing"),
        ("n", 1, "an operator"),
        ("n>>3", 2, "'>' cannot follow '>'; a number is needed"),
        ("n==3", 2, "'=' cannot follow '='; text with that character is \"=3\""),
        ("n=>3", 2, "'>' cannot follow '='"),
        ("n <> 3", 3, "'>' cannot follow '<'"),
        ("n=~x", 2, "'~' cannot follow '='"),
        ("n~=x", 2, "'=' cannot follow '~'; a regular expression for that character is [=]"),
        ("n!3", 1, "'!' is not an operator"),
        ("n>", 2, "a number is missing"),
        ("n>3x", 3, "'3x' is not a number"),
        ("n>nan", 2, "'nan' is not a number"),
        ("n>1e999", 7, "'1e999' is not a number"),
        ("n>1_000", 3, "'1_000' is not a number"),
        ("n>2026-01-31", 6, "is not a number"),
        ("n~", 2, "a regular expression is missing"),
        ("n~(", 2, "is not a regular expression"),
        ("n~ab(", 4, "is not a regular expression"),
        ("a..b=1", 2, "the name of a field is missing"),
        (".a=1", 0, "the name of a field is missing"),
        ("a.=1", 2, "the name of a field is missing"),
        ("=1", 0, "the name of a field is missing"),
        ("a[=1", 2, "brackets need an index"),
        ("a[x]=1", 2, "brackets need an index"),
        ("a[-1]=1", 2, "brackets need an index"),
        ("a]=1", 1, "']' is not an operator"),
        ("a[0]b=1", 4, "'b' is not an operator"),
        ('a="x', 2, "the closing quotation mark is missing"),
        ('a="x" y', 5, "nothing may follow"),
        ('a="\\q"', 2, "this is not a JSON string"),
    ],
)
def test_a_text_that_is_not_a_condition_is_rejected_with_the_place(text: str, at: int, problem: str) -> None:
    with pytest.raises(ConditionError) as raised:
        parse_condition(text)
    first, shown, pointer = str(raised.value).split("\n")
    assert problem in first
    assert (shown, pointer) == (f"  {text}", f"  {' ' * at}^")


def test_steps_are_names_and_indexes() -> None:
    path: tuple[Any, ...] = ("order", "items", 0, "a.b", "count")
    assert parse_condition('order.items[0]["a.b"].count>=2').path == path
