"""Who made a change of the metadata, from the audit log of a node.

Its one rule: a record is attributed to the request that appended it, by its offset and leader epoch, never by its time. Records
that the controller wrote by itself belong to nobody. Lines that cannot be read are counted and skipped.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.config import properties
from barnabas.operations.errors import OperationError

AUDIT_LOG_PATH = "barnabas.audit.log.path"
_SERVER_PROPERTIES = "server.properties"


class Who(NamedTuple):
    """The request that made a change."""

    principal: str
    address: str
    api: str
    client_id: str | None


class _Range(NamedTuple):
    first: int
    epoch: int
    last: int
    who: Who


class AuditTrail:
    """The requests of a cluster's audit logs that appended records to its metadata log."""

    def __init__(self, lines: Iterable[str], cluster_id: str | None = None) -> None:
        """With a `cluster_id`, only its lines are used."""
        self.unreadable = 0
        ranges: set[_Range] = set()
        for line in lines:
            try:
                ranges.update(_ranges(json.loads(line), cluster_id))
            except (ValueError, TypeError, KeyError, AttributeError):
                self.unreadable += 1
        self._ranges = sorted(ranges)
        self._starts = [each.first for each in self._ranges]

    def __len__(self) -> int:
        return len(self._ranges)

    def who(self, offset: int, epoch: int) -> Who | None:
        """Return the request that appended the record at this offset in this epoch, or None."""
        # Ranges of one epoch do not overlap. Those of others, whose records were lost, may lie between.
        for at in range(bisect_right(self._starts, offset) - 1, -1, -1):
            found = self._ranges[at]
            if found.epoch == epoch:
                return found.who if offset <= found.last else None
        return None


def _ranges(line: Any, cluster_id: str | None) -> Iterator[_Range]:
    if cluster_id is not None and line["cluster"] != cluster_id:
        return
    for each in line.get("metadata", ()):
        who = Who(line["principal"], line["address"], line["api"], line["client_id"])
        yield _Range(int(each["first"]), int(each["epoch"]), int(each["last"]), who)


def audit_files(path: Path) -> list[Path]:
    """Return the files of an audit log, oldest first: those that were rotated, and the current one."""
    numbered = []
    for each in path.parent.glob(f"{path.name}.*"):
        number = each.name.removeprefix(f"{path.name}.")
        if number.isdecimal():
            numbered.append((int(number), each))
    rotated = [each for _, each in sorted(numbered, reverse=True)]
    return [*rotated, path] if path.is_file() else rotated


def read_trail(path: Path, cluster_id: str | None = None) -> AuditTrail:
    """Read an audit log with its rotated files. Raises OperationError if there is none, or it cannot be read."""
    files = audit_files(path)
    if not files:
        raise OperationError("there is no audit log", resource=str(path))

    def lines() -> Iterator[str]:
        for each in files:
            with each.open(encoding="utf-8", errors="replace") as file:
                yield from file

    try:
        return AuditTrail(lines(), cluster_id)
    except OSError as error:
        raise OperationError(error.strerror or str(error), resource=str(path)) from error


def find_audit_log(log_dir: Path) -> Path | None:
    """Return the audit log that the settings of a node name, or None.

    The settings are looked for in the log dir and in the folder above, which also fits `__cluster_metadata-0`.
    """
    for folder in (log_dir, *list(log_dir.absolute().parents)[:2]):
        settings = folder / _SERVER_PROPERTIES
        try:
            given = properties.loads(settings.read_text(encoding="utf-8")) if settings.is_file() else {}
        except (OSError, ValueError):
            continue
        text = given.get(AUDIT_LOG_PATH, "").strip()
        if text and audit_files(Path(text)):
            return Path(text)
    return None
