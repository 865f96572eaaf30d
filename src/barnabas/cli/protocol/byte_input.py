"""Parsing of bytes from user input: hex as tools print it, base64, or raw bytes."""

from __future__ import annotations

import base64
import binascii
import re

FORMATS = ("auto", "hex", "base64", "raw")

_BETWEEN = re.compile(r"0[xX](?=[0-9a-fA-F])|\\x|[\s:,;_-]")


class InputError(ValueError):
    """The input is not in the expected format."""


def parse_hex(text: str) -> bytes:
    """Parse hex digits. Between bytes there may be spaces, colons, commas, dashes, 0x or \\x. Raises InputError."""
    digits = _BETWEEN.sub("", text)
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong:
        raise InputError(f"{wrong[0]!r} is not a hex digit")
    if len(digits) % 2:
        raise InputError(f"{len(digits)} hex digits are not a whole number of bytes")
    return bytes.fromhex(digits)


def parse_base64(text: str) -> bytes:
    """Parse base64 in either alphabet, padded or not. Raises InputError."""
    joined = re.sub(r"\s", "", text).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(joined + "=" * (-len(joined) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"the input is not base64: {error}") from error


def parse(content: bytes, form: str) -> bytes:
    """Return the bytes that the content of a file encodes. In the format `auto`, content that can be hex is hex."""
    if form == "raw":
        return content
    try:
        text = content.decode("ascii")
        return parse_base64(text) if form == "base64" else parse_hex(text)
    except UnicodeDecodeError as error:
        if form == "auto":
            return content
        raise InputError(f"the input is not {form}: byte {error.start} is not ASCII") from error
    except InputError:
        if form == "auto":
            return content
        raise
