"""Fields of forms that a browser has sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import parse_qsl

from starlette.requests import Request

from barnabas.console.errors import RefusedError
from barnabas.console.security.sessions import Session

MAX_FIELDS = 500


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


def whole_number(form: Mapping[str, str], name: str) -> int | None:
    """Return the number of a field, None if it is empty. Raises RefusedError."""
    text = form.get(name, "").strip()
    if text and not (text.isascii() and text.isdecimal()):
        raise RefusedError(400, f"{name.replace('_', ' ')} must be a number")
    return int(text) if text else None
