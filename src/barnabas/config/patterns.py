"""Regular expressions that clients send or store: compiled by RE2, whose time is linear in the length of the text.

Its one rule: no such pattern reaches Python's `re`, in which `(a+)+b` takes twice as long for each letter.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

_CACHED_PATTERNS: Final = 64  # RE2 limits each to 8 MiB


class InvalidPatternError(ValueError):
    """A pattern that RE2 rejects. The message has the reason, in RE2's words."""


@lru_cache(_CACHED_PATTERNS)
def compiled(pattern: str) -> Any:
    """Return the compiled pattern, with the methods of Python's. Raises InvalidPatternError."""
    # Imported on first use: patterns are few, and it is the largest library of the broker.
    import re2  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0]
        raise InvalidPatternError(text.decode() if isinstance(text, bytes) else str(text)) from None
