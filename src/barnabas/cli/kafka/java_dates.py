"""Patterns of Java's `SimpleDateFormat`, as far as they are numbers, names of days and months, and time zones. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

_PIECE = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z']+)")


def _number(value: Callable[[datetime], int]) -> Callable[[datetime, int], str]:
    return lambda moment, width: f"{value(moment):0{width}d}"


def _year(moment: datetime, width: int) -> str:
    return f"{moment.year % 100:02d}" if width == 2 else f"{moment.year:0{width}d}"


def _month(moment: datetime, width: int) -> str:
    return f"{moment.month:0{width}d}" if width < 3 else moment.strftime("%b" if width == 3 else "%B")


_LETTERS: dict[str, Callable[[datetime, int], str]] = {
    "y": _year,
    "M": _month,
    "d": _number(lambda moment: moment.day),
    "D": _number(lambda moment: moment.timetuple().tm_yday),
    "H": _number(lambda moment: moment.hour),
    "k": _number(lambda moment: moment.hour or 24),
    "K": _number(lambda moment: moment.hour % 12),
    "h": _number(lambda moment: moment.hour % 12 or 12),
    "m": _number(lambda moment: moment.minute),
    "s": _number(lambda moment: moment.second),
    "S": _number(lambda moment: moment.microsecond // 1000),
    "a": lambda moment, width: "AM" if moment.hour < 12 else "PM",
    "E": lambda moment, width: moment.strftime("%A" if width > 3 else "%a"),
    "z": lambda moment, width: moment.strftime("%Z"),
    "Z": lambda moment, width: moment.strftime("%z"),
}


def _field(show: Callable[[datetime, int], str], width: int) -> Callable[[datetime], str]:
    return lambda moment: show(moment, width)


def _constant(text: str) -> Callable[[datetime], str]:
    return lambda moment: text


def date_format(pattern: str) -> Callable[[datetime], str]:
    """Compile a pattern. Raises ValueError with Java's message if a letter is unknown.

    >>> date_format("yyyy-MM-dd HH:mm:ss:SSS")(datetime(2026, 1, 31, 9, 5, 7, 42000))
    '2026-01-31 09:05:07:042'
    >>> date_format("h 'o''clock' a")(datetime(2026, 1, 31, 21))
    "9 o'clock PM"
    """
    pieces: list[Callable[[datetime], str]] = []
    at = 0
    while at < len(pattern):
        found = _PIECE.match(pattern, at)
        if found is None:
            raise ValueError("Unterminated quote")
        at = found.end()
        quoted, run, letter, other = found.groups()
        if letter is not None:
            if letter not in _LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            pieces.append(_field(_LETTERS[letter], len(run)))
        else:
            pieces.append(_constant(other if quoted is None else quoted.replace("''", "'") or "'"))
    return lambda moment: "".join(piece(moment) for piece in pieces)
