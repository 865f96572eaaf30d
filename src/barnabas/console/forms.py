"""Fields of forms that a browser has sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import parse_qsl

from starlette.requests import Request

from barnabas.console.errors import RefusedError
from barnabas.console.security.sessions import Session

MAX_FIELDS = 500
MAX_INT16, MAX_INT32, MAX_INT64 = 2**15 - 1, 2**31 - 1, 2**63 - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}")


async def read_form(request: Request, session: Session) -> dict[str, str]:
    """Return the fields of a form. Raises RefusedError if it does not have the session's token."""
    fields = await form_fields(request)
    if not session.accepts(fields.pop("form_token", "")):
        raise RefusedError(403, "this form is not of your session: reload its page, and send it again")
    return fields


async def form_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form; those with the same name as lines of one text."""
    body = (await request.body()).decode("utf-8", "replace")
    try:
        pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise RefusedError(400, f"a form has at most {MAX_FIELDS} fields") from None
    fields: dict[str, str] = {}
    for name, value in pairs:
        fields[name] = f"{fields[name]}\n{value}" if name in fields else value
    return fields


@contextmanager
def checked() -> Iterator[None]:
    """Refuse a form with a field that cannot be read: a ValueError becomes the page of its text."""
    try:
        yield
    except ValueError as error:
        raise RefusedError(400, str(error)) from None


def whole_number(form: Mapping[str, str], name: str, *, most: int = MAX_INT32) -> int | None:
    """Return the number of a field, None if it is empty. Raises RefusedError, also if the protocol has no room for it."""
    text = form.get(name, "").strip()
    if not text:
        return None
    with checked():
        number = parse_number(text, name.replace("_", " "))
    if not 0 <= number <= most:
        raise RefusedError(400, f"{name.replace('_', ' ')} must be a number from 0 to {most:,}")
    return number


def parse_number(text: str, name: str) -> int:
    """Parse a whole number, which may have a sign. Raises ValueError with the name of its field.

    >>> parse_number("-12", "the shift")
    -12
    """
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError(f"{name} must be a number" + (f", not {text.strip()!r}" if text.strip() else ""))
    return int(text)
