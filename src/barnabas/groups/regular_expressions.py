"""Regular expressions in subscriptions: RE2 syntax, matched against whole topic names.

Its one rule: only RE2 evaluates patterns of clients, because its time is linear in the length of the name. The
coordinator decides which topics a member may see, and when names are matched again. Kafka uses RE2/J; the compatibility
notes list the differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from barnabas.config.patterns import InvalidPatternError, compiled
from barnabas.wire import ErrorCode, KafkaError


class ResolvedRegularExpression(NamedTuple):
    """The topics that matched, the offset of the metadata, and the time of the match."""

    topics: frozenset[str] = frozenset()
    version: int = -1
    timestamp_ms: int = -1


UNRESOLVED: Final = ResolvedRegularExpression()

# Error messages of RE2 -> those of RE2/J.
_DESCRIPTIONS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "regexp/syntax: internal error",
    "invalid character class": "invalid character class range",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


def check(pattern: str) -> None:
    """Check a pattern. Raises INVALID_REGULAR_EXPRESSION."""
    try:
        compiled(pattern)
    except InvalidPatternError as error:
        message = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {_described(str(error))}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None


def matching(patterns: Iterable[str], names: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the names that each pattern matches.

    An invalid pattern, which only an old record can have, matches none.
    """
    return {pattern: frozenset(_matches(pattern, names)) for pattern in patterns}


def _matches(pattern: str, names: Sequence[str]) -> list[str]:
    try:
        fullmatch = compiled(pattern).fullmatch
    except InvalidPatternError:
        return []
    return [name for name in names if fullmatch(name) is not None]


def _described(text: str) -> str:
    problem, _, place = text.partition(": ")
    if problem == "invalid perl operator" and place.startswith("(?<"):
        return "invalid named capture"
    return _DESCRIPTIONS.get(problem, problem)
