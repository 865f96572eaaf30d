"""One line of the audit log: who asked for what, and what came of it. Pure.

Its one rule: a line has names and never values: of settings, credentials and tokens only what they are called. Texts and
lists that a client decides are cut, so that a line has a limit. `metadata` has the offsets of the records that the request
appended to the metadata log, with the leader epoch: both together identify a record, so that a change can be attributed
without guessing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple

MAX_ROWS: Final = 64
"""Resources, and denied permissions, that one line names."""

MAX_TEXT: Final = 256
"""Characters of a name in a line. Names of topics are shorter; those of groups and clients may be longer."""


class Outcome(StrEnum):
    """What came of a request.

    `partial` means that a part of it took effect, and the rest failed or was denied; `unanswered`, that the client left
    before the answer, while the request may have taken effect.
    """

    DONE = "done"
    PARTIAL = "partial"
    FAILED = "failed"
    DENIED = "denied"
    UNANSWERED = "unanswered"


class AuditedResource(NamedTuple):
    """A resource that a request changes. `settings` are the names of the settings that it sets or deletes."""

    type: str
    name: str
    settings: tuple[str, ...] = ()


class Denial(NamedTuple):
    """A permission that the caller lacked."""

    operation: str
    type: str
    name: str


class MetadataRecords(NamedTuple):
    """Records in the metadata log: those from offset `first` to `last`, appended in the leader's `epoch`."""

    epoch: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A request. `listener` is the name of the listener, `address` the host of the client. `errors` counts error codes.

    A message of a login may have no header. `more_failed_logins` counts those before this one that have no line.
    """

    time_ms: int
    cluster: str
    node: int
    principal: str
    address: str
    listener: str
    api: str
    version: int | None
    client_id: str | None
    correlation_id: int | None
    outcome: Outcome
    resources: Sequence[AuditedResource] = ()
    more_resources: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    denied: Sequence[Denial] = ()
    more_denied: int = 0
    metadata: Sequence[MetadataRecords] = ()
    more_failed_logins: int = 0

    def text(self) -> bytes:
        """Return the line with its end. Fields that say nothing are left out."""
        shown: dict[str, Any] = {
            "time": time_text(self.time_ms),
            "cluster": self.cluster,
            "node": self.node,
            "principal": cut(self.principal),
            "address": self.address,
            "listener": self.listener,
            "api": self.api,
            "version": self.version,
            "client_id": None if self.client_id is None else cut(self.client_id),
            "correlation_id": self.correlation_id,
            "outcome": self.outcome,
        }
        shown |= _present(
            "resources", "more_resources", [_resource(each) for each in self.resources], self.more_resources
        )
        if self.errors:
            shown["errors"] = dict(self.errors)
        denied = [each._replace(name=cut(each.name))._asdict() for each in self.denied]
        shown |= _present("denied", "more_denied", denied, self.more_denied)
        if self.metadata:
            shown["metadata"] = [each._asdict() for each in self.metadata]
        if self.more_failed_logins:
            shown["more_failed_logins"] = self.more_failed_logins
        return _dumped(shown)


def gap_text(time_ms: int, cluster: str, node: int, dropped: int) -> bytes:
    """Return the line that says how many lines were lost before it."""
    return _dumped({"time": time_text(time_ms), "cluster": cluster, "node": node, "dropped": dropped})


def cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(text)} characters)"


def time_text(time_ms: int) -> str:
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def merged(records: Iterable[MetadataRecords]) -> list[MetadataRecords]:
    """Join ranges that follow each other."""
    found: list[MetadataRecords] = []
    for each in records:
        if found and found[-1].epoch == each.epoch and found[-1].last + 1 == each.first:
            found[-1] = found[-1]._replace(last=each.last)
        else:
            found.append(each)
    return found


def _present(name: str, more_name: str, rows: list[Any], more: int) -> dict[str, Any]:
    shown: dict[str, Any] = {name: rows} if rows else {}
    return {**shown, more_name: more} if more else shown


def _resource(resource: AuditedResource) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": resource.type, "name": cut(resource.name)}
    if resource.settings:
        shown["settings"] = [cut(each) for each in islice(resource.settings, MAX_ROWS)]
    return shown


def _dumped(shown: Mapping[str, Any]) -> bytes:
    # ASCII, because a client may send names with characters that end lines elsewhere.
    return json.dumps(shown, separators=(",", ":")).encode() + b"\n"
