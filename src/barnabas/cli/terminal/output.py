"""Output of commands: tables for people; JSON, YAML and TSV as a stable interface for programs.

Its one rule: rows are written as they arrive. A table is aligned by its first rows. JSON is an array with one row per line;
`jsonl` is the same without the brackets. YAML is a list. TSV has one line per row, without a header, in the order of the
table's columns. Notes, progress and errors go to standard error, so that standard output has only data.

Field names are those of Kafka's JSON. A row may have more fields than the table has columns; JSON and YAML show all of them.
No table library is used: importing one would take longer than most commands run.
"""

from __future__ import annotations

import functools
import io
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, Final, Self, TextIO

from barnabas.wire.json_text import JsonText

Row = Mapping[str, Any]
Style = Callable[[Any], str | None]

ALIGNED_ROWS: Final = 256
"""Number of rows from which the column widths of a table are computed."""
SAMPLE_TIMESTAMP: Final = "sampleTimestamp"
"""Field of every row of --watch: when the sample was taken."""
_ALIGNED_S = 0.5
_CHUNK_LINES = 512
_MAX_ALIGNED_WIDTH = 60
_COLORS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "bold": "1", "dim": "2"}


class Format(Enum):
    """Formats of --output."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    TSV = "tsv"


@dataclass(frozen=True, slots=True)
class Column:
    """A field of the rows, as a column of tables and TSV. Numbers are right-aligned.

    In tables only, `style` returns the colour of a value, and `show` the text of a value that is not None.
    """

    key: str
    title: str = ""
    style: Style | None = None
    show: Callable[[Any], str] | None = None

    @property
    def heading(self) -> str:
        return self.title or re.sub("(?<=[a-z])(?=[A-Z])|_", "-", self.key).upper()


def columns(*keys: str | Column) -> tuple[Column, ...]:
    """Make columns of field names; a `Column` is kept as it is."""
    return tuple(Column(key) if isinstance(key, str) else key for key in keys)


# --- values as text --------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Convert a value to types that JSON has; other types become their text."""
    if type(value) is JsonText:
        return value.value()
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(member) for member in value]
    return str(value)


_quote = json.encoder.encode_basestring
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=plain).encode


def to_json(value: Any) -> str:
    """Format a value as JSON in one line, with control characters escaped."""
    if not isinstance(value, dict):
        return _for_terminals(value if type(value) is JsonText else _encode(value))
    fields = []
    for key, member in value.items():
        # Fast path for the types in rows of records: a call of the encoder takes ten times as long.
        kind = type(member)
        if kind is str:
            text = _quote(member)
        elif kind is int:
            text = str(member)
        else:
            text = member if kind is JsonText else _encode(member)
        fields.append(f"{_quote(key)}:{text}")
    return _for_terminals(f"{{{','.join(fields)}}}")


def cell(value: Any, absent: str = "-") -> str:
    """Format a value for a table: lists with commas, mappings as JSON."""
    kind = type(value)
    if kind is str or kind is JsonText:
        return value if value.isprintable() else _for_terminals(value)
    if kind is int:
        return str(value)
    if value is None:
        return absent
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple) and not any(isinstance(member, Mapping | list | tuple) for member in value):
        return ",".join(cell(member) for member in value) or absent
    return to_json(value) if isinstance(value, Mapping | list | tuple) else _for_terminals(str(value))


_COMMANDS_OF_TERMINALS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _for_terminals(text: str) -> str:
    if text.isprintable():
        return text
    return _COMMANDS_OF_TERMINALS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def to_yaml(value: Any, indent: str = "") -> str:
    """Format a value as YAML in block style; strings that YAML would parse as another type are quoted as in JSON."""
    return "\n".join(_yaml_lines(plain(value), indent)) + "\n"


def _yaml_lines(value: Any, indent: str) -> list[str]:
    lines: list[str] = []
    if isinstance(value, dict) and value:
        for key, member in value.items():
            if isinstance(member, dict | list) and member:
                lines.append(f"{indent}{_yaml_scalar(key)}:")
                lines += _yaml_lines(member, indent + "  ")
            else:
                lines.append(f"{indent}{_yaml_scalar(key)}: {_yaml_scalar(member)}")
    elif isinstance(value, list) and value:
        for member in value:
            inner = _yaml_lines(member, indent + "  ")
            inner[0] = f"{indent}- {inner[0][len(indent) + 2 :]}"
            lines += inner
    else:
        lines.append(indent + _yaml_scalar(value))
    return lines


_YAML_PLAIN = re.compile(r"[A-Za-z_/][\w./()-]*(?: [\w./()-]+)*")
_YAML_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))


def _yaml_scalar(value: Any) -> str:
    if isinstance(value, str) and _YAML_PLAIN.fullmatch(value) and value.isascii() and value.lower() not in _YAML_WORDS:
        return value
    return to_json(value)


_TSV_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


# --- rows ------------------------------------------------------------------------------------------------------------


class Rows:
    """A list of rows that is being written; a context manager that closes it."""

    def __init__(self, output: Output, shown: Iterable[Column]) -> None:
        self.columns = tuple(shown)
        self.count = 0
        self._write = output.write
        self._flush = output.flush
        self._stamped = output.stamped

    def add(self, row: Row) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        """Write the rows added so far, for rows that arrive slowly."""
        self._flush()

    def close(self) -> None:
        """End the list after the last row."""
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, Exception):
            self.close()  # rows found before an error are shown too


class _Table(Rows):
    def __init__(self, output: Output, shown: Iterable[Column]) -> None:
        super().__init__(output, shown)
        self._color = output.color
        self._waiting: list[Row] | None = []
        self._since = time.monotonic()
        self._widths: list[int] = []
        self._right: list[bool] = []
        self._keys = [(column.key, column.show) for column in self.columns]
        self._is_styled = self._color and any(column.style for column in self.columns)
        self._shown: Callable[[Row], str] = self._styled_line

    def add(self, row: Row) -> None:
        self.count += 1
        if self._waiting is None:
            self._write(self._shown(row))
            return
        self._waiting.append(row)
        if len(self._waiting) >= ALIGNED_ROWS or time.monotonic() - self._since > _ALIGNED_S:
            self._begin()

    def flush(self) -> None:
        if self._waiting is not None:
            self._begin()
        super().flush()

    def _begin(self) -> None:
        rows, self._waiting = self._waiting or [], None
        headings = [column.heading for column in self.columns]
        lines = [self._cells(row) for row in rows]
        self._right = [
            column.show is None and _are_numbers(row.get(column.key) for row in rows) for column in self.columns
        ]
        for index, heading in enumerate(headings):
            widest = max((len(line[index]) for line in lines if len(line[index]) <= _MAX_ALIGNED_WIDTH), default=0)
            self._widths.append(max(len(heading), widest))
        if self._right and not self._right[-1]:
            self._widths[-1] = 0  # nothing follows the last column
        formats = [
            f"{'>' if right else '<'}{width or ''}" for right, width in zip(self._right, self._widths, strict=True)
        ]
        heading = "  ".join(map(format, headings, formats)).rstrip()
        self._write(_paint(heading, "bold") if self._color else heading)
        self._shown = self._styled_line if self._is_styled else _line_writer(self._keys, formats)
        for row in rows:
            self._write(self._shown(row))

    def _cells(self, row: Row) -> list[str]:
        return ["-" if (value := row.get(key)) is None else (show or cell)(value) for key, show in self._keys]

    def _styled_line(self, row: Row) -> str:
        padded = [
            f"{text:{'>' if right else '<'}{width or ''}}"
            for text, right, width in zip(self._cells(row), self._right, self._widths, strict=True)
        ]
        for index, column in enumerate(self.columns):
            color = column.style(row.get(column.key)) if column.style is not None else None
            padded[index] = _paint(padded[index], color) if color else padded[index]
        return "  ".join(padded).rstrip()


def _line_writer(keys: list[tuple[str, Callable[[Any], str] | None]], formats: list[str]) -> Callable[[Row], str]:
    """Compile `line(row)` for these columns. It takes most of the time of a long table, so strings and ints need no call."""
    names: dict[str, Any] = {"cell": cell, "JsonText": JsonText}
    lines = ["def line(row):", "    get = row.get"]
    for at, (key, show) in enumerate(keys):
        lines.append(f"    v = get({key!r})")
        if show is None:
            lines.append("    kind = type(v)")
            lines.append("    if kind is int: pass")
            lines.append("    elif (kind is str or kind is JsonText) and v.isprintable(): pass")
            lines.append("    else: v = '-' if v is None else cell(v)")
            lines.append(f"    c{at} = v")
        else:
            names[f"show{at}"] = show
            lines.append(f"    c{at} = '-' if v is None else show{at}(v)")
    pieces = [f"{{c{at}:{form}}}" for at, form in enumerate(formats)]
    lines.append(f"    return f'{'  '.join(pieces)}'.rstrip()")
    exec(compile("\n".join(lines), "<line of a table>", "exec"), names)  # the source contains only our own column keys
    writer: Callable[[Row], str] = names["line"]
    return writer


class _JsonLines(Rows):
    def add(self, row: Row) -> None:
        self.count += 1
        self._write(to_json(self._stamped(row)))


class _JsonArray(Rows):
    def __init__(self, output: Output, shown: Iterable[Column]) -> None:
        super().__init__(output, shown)
        self._before = "["

    def add(self, row: Row) -> None:
        self.count += 1
        self._write(self._before + to_json(self._stamped(row)), end="")
        self._before = ",\n "

    def close(self) -> None:
        self._write("[]" if self._before == "[" else "]")
        super().close()


class _Yaml(Rows):
    def add(self, row: Row) -> None:
        self.count += 1
        self._write(to_yaml([self._stamped(row)]), end="")

    def close(self) -> None:
        if not self.count:
            self._write("[]")
        super().close()


class _Tsv(Rows):
    def add(self, row: Row) -> None:
        self.count += 1
        cells = (row.get(column.key) for column in self.columns)
        self._write("\t".join(_tsv_cell(value) for value in cells))


def _tsv_cell(value: Any) -> str:
    if type(value) is str:
        return value.translate(_TSV_ESCAPES).encode("utf-8", "replace").decode()
    return cell(value, absent="").translate(_TSV_ESCAPES) if not isinstance(value, Mapping) else to_json(value)


def _are_numbers(values: Iterable[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in present)


_WRITERS: dict[Format, type[Rows]] = {
    Format.TABLE: _Table,
    Format.JSON: _JsonArray,
    Format.JSONL: _JsonLines,
    Format.YAML: _Yaml,
    Format.TSV: _Tsv,
}


# --- the output ------------------------------------------------------------------------------------------------------


class Output:
    """The output of a command: format, file (standard output by default) and colours."""

    def __init__(self, format: Format = Format.TABLE, file: TextIO | None = None, color: bool | None = None) -> None:
        self.format = format
        self._file = sys.stdout if file is None else file
        self.color = wants_color(self._file) if color is None else color
        self.sample_timestamp: int | None = None
        """With --watch, the time of the sample that is being shown, in ms since 1970. JSON and YAML have it in every row."""
        self._pieces: list[str] = []
        self._has_written = False

    @property
    def is_for_people(self) -> bool:
        return self.format is Format.TABLE

    def stamped(self, row: Row) -> Row:
        """Return the row, with --watch after the time of its sample."""
        return row if self.sample_timestamp is None else {SAMPLE_TIMESTAMP: self.sample_timestamp, **row}

    def rows(self, shown: Iterable[Column], rows: Iterable[Row]) -> int:
        """Write a list of rows and return their number."""
        with self.table(shown) as table:
            for row in rows:
                table.add(row)
        return table.count

    def table(self, shown: Iterable[Column]) -> Rows:
        """Return a list to which rows are added one by one, for example from an asynchronous iterator."""
        return _WRITERS[self.format](self, shown)

    def listing(self, key: str, rows: Iterable[Row]) -> int:
        """Write a list and return the number of rows. As a table, it has only the field `key`, without a header."""
        if not self.is_for_people:
            return self.rows(columns(key), rows)
        count = 0
        for row in rows:
            count += 1
            self.write(cell(row[key]))
        self.flush()
        return count

    def one(self, row: Row) -> None:
        """Write one row: one line per field as a table, an object as JSON or YAML, one line of all fields as TSV."""
        if self.format is Format.TABLE:
            width = max(map(len, row), default=0)
            for key, value in row.items():
                name = f"{key + ':':{width + 2}}"
                self.write(f"{_paint(name, 'bold') if self.color else name}{cell(value)}".rstrip())
        elif self.format is Format.YAML:
            self.write(to_yaml(self.stamped(row)), end="")
        elif self.format is Format.JSON:
            text = json.dumps(self.stamped(row), indent=2, ensure_ascii=False, default=plain)
            self.write("\n".join(map(_for_terminals, text.split("\n"))))
        else:
            with self.table(columns(*row)) as table:
                table.add(row)
        self.flush()

    def title(self, text: str) -> None:
        """Write a line above a table; nothing in the other formats."""
        if self.is_for_people:
            self.write(("\n" if self._has_written else "") + (_paint(text, "cyan") if self.color else text))

    def painted(self, text: str, color: str) -> str:
        """Return the text in a colour, if colours are used."""
        return _paint(text, color) if self.color else text

    def write(self, text: str, end: str = "\n") -> None:
        """Write text unchanged; it is buffered until `flush` or until there are enough lines."""
        self._pieces.append(text + end)
        if len(self._pieces) >= _CHUNK_LINES:
            self._drain()

    def flush(self) -> None:
        self._drain()
        self._file.flush()

    @contextmanager
    def captured(self) -> Iterator[io.StringIO]:
        """Capture what is written inside the context."""
        text, file = io.StringIO(), self._file
        self._drain()
        self._file = text
        try:
            yield text
        finally:
            self._drain()
            self._file = file

    def _drain(self) -> None:
        text, self._pieces = "".join(self._pieces), []
        self._has_written = self._has_written or bool(text)
        try:
            self._file.write(text)
        except UnicodeEncodeError:  # the terminal is not UTF-8, or the text has undecodable bytes
            encoding = self._file.encoding or "ascii"
            self._file.write(text.encode(encoding, "backslashreplace").decode(encoding))


def note(text: str) -> None:
    """Print a message for people to standard error."""
    print(text, file=sys.stderr, flush=True)


class Progress:
    """A progress line on standard error, if that is a terminal.

    Nothing is shown in the first second. `update` is cheap and may be called often.
    """

    _EVERY_S = 0.2

    def __init__(self, what: str, total: int | None = None, unit: str = "", *, is_shown: bool = True) -> None:
        self._what, self._total, self._unit = what, total, unit
        self._is_shown = is_shown and sys.stderr.isatty()
        self._started = time.monotonic()
        self._next = self._started + 1
        self._width = 0

    def update(self, done: int, details: str = "", *, total: int | None = None) -> None:
        """Show the progress, with `details` at the end. A `total` replaces the one known so far."""
        if total is not None:
            self._total = total
        if not self._is_shown or (now := time.monotonic()) < self._next:
            return
        self._next = now + self._EVERY_S
        self._show(self._line(done, now - self._started) + (f", {details}" if details else ""))

    def _line(self, done: int, elapsed_s: float) -> str:
        if not self._total:
            return f"{self._what}: {done:,} {self._unit}".rstrip()
        left_s = elapsed_s / max(done, 1) * max(self._total - done, 0)
        filled = min(20, 20 * done // self._total)
        bar = "#" * filled + "." * (20 - filled)
        return f"{self._what} [{bar}] {100 * done // self._total}%, {duration(left_s)} left"

    def _show(self, line: str) -> None:
        line = line[: terminal_width()]
        sys.stderr.write(f"\r{line:<{self._width}}")
        sys.stderr.flush()
        self._width = len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove the line, before something else is printed."""
        if self._width:
            sys.stderr.write(f"\r{'':<{self._width}}\r")
            sys.stderr.flush()
            self._width = 0


def terminal_width() -> int | None:
    """Return the width of a line on standard error that does not wrap; None if it is unknown."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return None
    return width - 1 if width > 1 else None


@functools.lru_cache(maxsize=4096)  # the records of a batch often have the same timestamp
def utc_time(timestamp_ms: int) -> str:
    """Format a timestamp as ISO 8601 in UTC; -1 (no timestamp) as a dash."""
    seconds, rest = divmod(timestamp_ms, 1000)
    text = _SECONDS.get(seconds)
    if text is None:
        if timestamp_ms == -1:
            return "-"
        if not 0 <= seconds < _YEAR_10000_S:
            return str(timestamp_ms)
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        if len(_SECONDS) > 10_000:
            _SECONDS.clear()
        _SECONDS[seconds] = text
    return f"{text}.{rest:03d}Z"


_SECONDS: dict[int, str] = {}
_YEAR_10000_S = 253_402_300_800


def duration(seconds: float) -> str:
    """Format a duration in its largest units: 40 s, 5 min, 2 h 3 min."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 5400 else f"{whole // 3600} h {whole % 3600 // 60} min"


def wants_color(file: TextIO) -> bool:
    """Return whether to use colours: on terminals unless NO_COLOR is set, elsewhere only if FORCE_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and file.isatty()


def _paint(text: str, color: str) -> str:
    return f"\x1b[{_COLORS[color]}m{text}\x1b[0m"
