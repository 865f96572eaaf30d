"""Conditions of `records consume --where`: PATH, an operator, and a value. Pure.

Its one rule: the whole text is parsed before the first record is read. A text that is not a condition is an error that points
at the place.

    order.items[0].count>=2     names, and indexes of arrays; ["a.b"] for names with dots or brackets
    name=alice  name!="a b"     equal or not, as text; a value in double quotes is a JSON string
    name~^al                    a regular expression that matches somewhere
    n>3  n<3  n>=3  n<=3        numbers
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

_OPERATORS = ("!=", ">=", "<=", "=", "~", ">", "<")
_OPERATOR_CHARACTERS = frozenset("=!~<>")
_NAME = re.compile(r"[^.\[\]=!~<>\"]+")
_INDEX = re.compile(r"\[([0-9]+)\]")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')

Step = str | int


class Condition(NamedTuple):
    """A condition. `value` is a number for `>`, `<`, `>=` and `<=`, a pattern for `~`, and text for `=` and `!=`."""

    path: tuple[Step, ...]
    operator: str
    value: Any


class ConditionError(ValueError):
    """A text that is not a condition, with the place of the error."""

    def __init__(self, text: str, at: int, problem: str) -> None:
        shown = text.replace("\t", " ").replace("\n", " ")
        super().__init__(f"{text!r} is not a condition: {problem}\n  {shown}\n  {' ' * at}^")


def parse_condition(text: str) -> Condition:
    """Parse a condition. Raises ConditionError.

    >>> parse_condition("order.items[0].count>=2")
    Condition(path=('order', 'items', 0, 'count'), operator='>=', value=2)
    """
    path, at = _parse_path(text)
    operator = next((each for each in _OPERATORS if text.startswith(each, at)), None)
    if operator is None:
        if at == len(text):
            raise ConditionError(text, at, f"an operator ({' '.join(_OPERATORS)}) and a value are missing")
        raise ConditionError(text, at, f"{text[at]!r} is not an operator; the operators are {' '.join(_OPERATORS)}")
    start = at + len(operator)
    while start < len(text) and text[start].isspace():
        start += 1
    if start < len(text) and text[start] in _OPERATOR_CHARACTERS:
        raise ConditionError(
            text, start, f"{text[start]!r} cannot follow {operator!r}; {_instead(operator, text[start:])}"
        )
    return Condition(path, operator, _VALUES[operator](text, start))


def _instead(operator: str, rest: str) -> str:
    if operator == "~":
        return f"a regular expression for that character is [{rest[0]}]"
    return f'text with that character is "{rest.strip()}"' if operator in ("=", "!=") else "a number is needed"


def _parse_path(text: str) -> tuple[tuple[Step, ...], int]:
    """Return the steps, and the place of the operator."""
    at = len(text) - len(text.lstrip())
    if text.startswith("$", at) and text[at + 1 : at + 2] in (".", "["):
        at += 1 + (text[at + 1] == ".")
    steps: list[Step] = []
    while True:
        if text.startswith("[", at):
            step, at = _parse_bracket(text, at)
            steps.append(step)
        else:
            found = _NAME.match(text, at)
            if found is None or not found[0].strip():
                raise ConditionError(text, at, "the name of a field is missing")
            steps.append(found[0].strip())
            at = found.end()
        if text.startswith(".", at):
            at += 1
        elif not text.startswith("[", at):
            break
    while at < len(text) and text[at].isspace():
        at += 1
    return tuple(steps), at


def _parse_bracket(text: str, at: int) -> tuple[Step, int]:
    index = _INDEX.match(text, at)
    if index is not None:
        return int(index[1]), index.end()
    quoted = _QUOTED.match(text, at + 1)
    if quoted is not None and text.startswith("]", quoted.end()):
        return _json_string(text, at + 1, quoted[0]), quoted.end() + 1
    raise ConditionError(text, at + 1, 'brackets need an index such as [0], or a name such as ["a.b"]')


def _json_string(text: str, at: int, quoted: str) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError as error:
        raise ConditionError(text, at, f"this is not a JSON string ({error})") from None


def _text_value(text: str, at: int) -> str:
    value = text[at:].strip()
    if not value.startswith('"'):
        return value
    quoted = _QUOTED.match(text, at)
    if quoted is None:
        raise ConditionError(text, at, "the closing quotation mark is missing")
    if text[quoted.end() :].strip():
        raise ConditionError(text, quoted.end(), "nothing may follow a value in quotation marks")
    return _json_string(text, at, quoted[0])


def _pattern_value(text: str, at: int) -> re.Pattern[str]:
    value = text[at:].strip()
    if not value:
        raise ConditionError(text, at, "a regular expression is missing")
    try:
        return re.compile(value)
    except re.error as error:
        raise ConditionError(
            text, at + (error.pos or 0), f"{value!r} is not a regular expression: {error.msg}"
        ) from None


def _number_value(text: str, at: int) -> int | float:
    value = text[at:].strip()
    if not value:
        raise ConditionError(text, at, "a number is missing")
    found = number(value)
    if found is None:
        match = _NUMBER.match(value)
        raise ConditionError(text, at + (match.end() if match else 0), f"{value!r} is not a number")
    return found


_VALUES: dict[str, Callable[[str, int], Any]] = {
    "=": _text_value,
    "!=": _text_value,
    "~": _pattern_value,
    **dict.fromkeys((">", "<", ">=", "<="), _number_value),
}


def number(text: str) -> int | float | None:
    """Parse a decimal number; None if the text is not one, or not finite. Whole numbers stay exact."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return int(text)
    except ValueError:
        found = float(text)
        return found if math.isfinite(found) else None


def holds(condition: Condition, value: Any) -> bool:
    """Return whether a JSON value fulfils the condition. A field that is absent fulfils only `!=`."""
    for step in condition.path:
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return condition.operator == "!="
        elif not isinstance(value, list) or step >= len(value):
            return condition.operator == "!="
        value = value[step]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    match condition.operator:
        case "=":
            return bool(text == condition.value)
        case "!=":
            return bool(text != condition.value)
        case "~":
            return condition.value.search(text) is not None
    left, right = number(text), condition.value
    if left is None:
        return False
    return bool({">": left > right, "<": left < right, ">=": left >= right, "<=": left <= right}[condition.operator])
