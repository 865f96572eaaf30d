"""The text format of Java's .properties files, as java.util.Properties reads it.

Keys and values are text. Kafka reads server.properties as Latin-1; `dumps` writes ASCII with escapes, which is the same
in every encoding. One difference from Java: a single backslash at the end of the file is not a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from barnabas.config.values import ConfigError

_BLANKS = " \t\f"
_LINE_END = r"\r\n|\r|\n"
_CONTINUED = r"(?:^|[^\\])(?:\\\\)*\\\Z"
_LINE = r"(?s)((?:\\.|[^\\=: \t\f])*+)[ \t\f]*+[=:]?+[ \t\f]*+(.*)"
_ESCAPE = r"(?s)\\(u[0-9a-fA-F]{4}|.)"
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"} | {char: f"\\{char}" for char in "=:#!"}


def loads(text: str) -> dict[str, str]:
    """Parse keys and values, in the order of their first occurrence. The last value of a repeated key wins."""
    return {key: value for _, key, value in entries(text)}


def entries(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number of the line, the key and the value of each entry, also of repeated keys."""
    for number, line in _logical_lines(text):
        # A key ends before an unescaped blank, `=` or `:`.
        match = re.fullmatch(_LINE, line)
        assert match is not None
        yield number, _unescape(match[1]), _unescape(match[2])


def dumps(items: Mapping[str, str] | Iterable[tuple[str, str]], comment: str | None = None) -> str:
    """Format the items in their order, preceded by a comment if there is one."""
    lines = [] if comment is None else [f"#{line}" for line in re.split(_LINE_END, comment)]
    for key, value in items.items() if isinstance(items, Mapping) else items:
        # A blank would end a key, and at the start of a value it would belong to the separator.
        lines.append(_escape(key).replace(" ", "\\ ") + ("=\\" if value[:1] == " " else "=") + _escape(value))
    return "".join(line + "\n" for line in lines)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines: joined at trailing backslashes, without leading blanks, comments and empty lines.

    Each has the number of its first line.
    """
    joined, first = "", 0
    for number, natural in enumerate(re.split(_LINE_END, text), 1):
        line = natural.lstrip(_BLANKS)
        if not joined and (not line or line[0] in "#!"):
            continue
        first = first if joined else number
        if re.search(_CONTINUED, line):
            joined += line[:-1]
        else:
            yield first, joined + line
            joined = ""
    if joined:
        yield first, joined


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text

    def plain(match: re.Match[str]) -> str:
        escape = match[1]
        if escape == "u":
            raise ConfigError("", "Malformed \\uxxxx encoding.")
        return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPED.get(escape, escape)

    # A character outside the basic plane is written as two escapes, but is one character here.
    units = re.sub(_ESCAPE, plain, text).encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "surrogatepass")


def _escape(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    chars = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(
        _WRITTEN.get(chr(char)) or (chr(char) if 0x20 <= char < 0x7F else f"\\u{char:04X}") for char in chars
    )
