"""Names that resemble a misspelt one, for hints such as `did you mean orders?`. Pure.

Its one rule: upper and lower case, dashes, underscores and spaces do not count. It imports nothing until a name is misspelt.
"""

from __future__ import annotations

from collections.abc import Iterable

_MIN_SIMILARITY = 0.7


def similar_names(name: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Return the known names that resemble `name` most, best first, at most `count`.

    >>> similar_names("CreatTopics", ["CreateTopics", "DeleteTopics", "Fetch"]), similar_names("x", ["orders"])
    (['CreateTopics'], [])
    """
    from difflib import get_close_matches  # noqa: PLC0415, slow to import

    folded = {_fold(each): each for each in known}
    return [folded[each] for each in get_close_matches(_fold(name), folded, count, _MIN_SIMILARITY)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint to append to a message, or an empty string.

    >>> did_you_mean("raed", ["READ", "WRITE"]), did_you_mean("nothing", ["READ"])
    ('; did you mean READ?', '')
    """
    close = similar_names(name, known)
    return f"; did you mean {close[0]}?" if close else ""


def _fold(name: str) -> str:
    return name.strip().replace("_", "").replace("-", "").replace(" ", "").lower()
