"""The principal of a client certificate: its subject as Java prints it, changed by `ssl.principal.mapping.rules`. Pure.

Java's form is that of RFC 2253: the last name first, with the short names of that document. Any other attribute is its
number with the bytes of its value in hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ENCODINGS: Final = {
    12: "utf-8",
    19: "ascii",
    22: "ascii",
    20: "latin-1",
    30: "utf-16-be",
    28: "utf-32-be",
    27: "ascii",
}
_SEQUENCE, _SET, _OID = 0x30, 0x31, 0x06
_EXPLICIT_VERSION: Final = 0xA0
_ESCAPED: Final = ',=+<>;"\\'
_RULE: Final = r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)"


class CertificateError(ValueError):
    """Bytes that are not a certificate."""


class Rule(NamedTuple):
    """One rule; DEFAULT has no pattern."""

    pattern: str | None = None
    replacement: str = ""
    case: str = ""


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Parse the rules. Raises ValueError.

    >>> parse_rules("RULE:^CN=(.*?),.*$/$1/L, DEFAULT")[0].case
    'L'
    """
    rules, position = [], 0
    while position < len(text.rstrip()):
        match = re.compile(_RULE).match(text, position)
        if match is None:
            raise ValueError(f"Invalid rule: `{text[position:]}`; a rule is DEFAULT or RULE:pattern/replacement/[LU]")
        default, pattern, replacement, case = match.groups()
        if not default:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"Invalid rule: `{pattern}` is not a regular expression: {error}") from None
        rules.append(Rule() if default else Rule(pattern, replacement, case))
        position = match.end()
    return tuple(rules) or (Rule(),)


def map_name(name: str, rules: Sequence[Rule]) -> str | None:
    """Return the result of the first rule that applies, or None if none does.

    >>> map_name("CN=Alice,OU=a", parse_rules("RULE:^CN=(.*?),.*$/$1/L"))
    'alice'
    """
    for pattern, replacement, case in rules:
        if pattern is None:
            return name
        match = re.fullmatch(pattern, name)
        if match is not None:
            found = re.sub(r"\\(.)|\$(\d)", partial(_part, match), replacement)
            return found.lower() if case == "L" else found.upper() if case == "U" else found
    return None


def _part(match: re.Match[str], part: re.Match[str]) -> str:
    if part[1] is not None:
        return part[1]
    number = int(part[2])
    return (match[number] or "") if number <= match.re.groups else part[0]


def distinguished_name(certificate: bytes) -> str:
    """Return the subject of a certificate in DER. Raises `CertificateError`."""
    try:
        body = _element(_element(certificate, 0).content, 0).content
        fields = list(_elements(body))
        subject = fields[5 if fields[0].tag == _EXPLICIT_VERSION else 4]
        names = ["+".join(map(_attribute, _elements(each.content))) for each in _elements(subject.content)]
    except (IndexError, UnicodeDecodeError) as error:
        raise CertificateError("not a certificate") from error
    return ",".join(reversed(names))


class _Element(NamedTuple):
    tag: int
    content: bytes
    whole: bytes
    end: int


def _element(data: bytes, start: int) -> _Element:
    tag, size, position = data[start], data[start + 1], start + 2
    if size & 0x80:
        count = size & 0x7F
        size, position = int.from_bytes(data[position : position + count], "big"), position + count
    end = position + size
    if end > len(data):
        raise IndexError
    return _Element(tag, data[position:end], data[start:end], end)


def _elements(data: bytes) -> Iterator[_Element]:
    position = 0
    while position < len(data):
        element = _element(data, position)
        yield element
        position = element.end


def _attribute(attribute: _Element) -> str:
    kind, value = list(_elements(attribute.content))[:2]
    number = _dotted(kind.content)
    name = _NAMES.get(number)
    if name is None or value.tag not in _ENCODINGS:
        return f"{name or number}=#{value.whole.hex()}"
    return f"{name}={_escaped(value.content.decode(_ENCODINGS[value.tag]))}"


def _dotted(content: bytes) -> str:
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escaped(text: str) -> str:
    shown = "".join(f"\\{each}" if each in _ESCAPED else "\\00" if each == "\0" else each for each in text)
    blanks_before, blanks_after = len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" "))
    if text.strip(" "):
        shown = "\\ " * blanks_before + shown[blanks_before : len(shown) - blanks_after] + "\\ " * blanks_after
    return f"\\{shown}" if text.startswith("#") else shown
