"""The lines that a node logs: one for each message, whatever a client has sent.

Its one rule: text of a client, such as the name of a group or of a user, can neither begin a line of its own nor command a
terminal nor fill the disk. Only tracebacks have more than one line, and these are indented.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import Final

MAX_CHARS: Final = 4000
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_CONTROL_IN_TRACEBACKS: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class LogLines(logging.Formatter):
    """Formats records.

    >>> record = logging.LogRecord("barnabas", logging.INFO, "", 0, "no user %s", ("x\\n2026 ERROR the disk is full",), None)
    >>> LogLines("%(levelname)s %(message)s").format(record)
    'INFO no user x\\\\u000a2026 ERROR the disk is full'
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is that of the standard library
        message = record.message
        if len(message) > MAX_CHARS:
            message = f"{message[:MAX_CHARS]}... and {len(message) - MAX_CHARS} more characters"
        record.message = _CONTROL.sub(_escaped, message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802
        text = super().formatException(ei)  # type: ignore[arg-type]
        return _CONTROL_IN_TRACEBACKS.sub(_escaped, text).replace("\n", "\n  ")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def begin_logging(level: str) -> None:
    """Log to the standard error from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
