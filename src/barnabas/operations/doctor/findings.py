"""Findings of the doctor, the checks that yield them, and the choice among checks. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from barnabas.similar_names import did_you_mean

S = TypeVar("S")


class Severity(Enum):
    """How bad a finding is, worst first.

    An error stops a node, a client or a write, or has lost data. A warning may do so later. A note is worth knowing.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        return _ORDER.index(self)


_ORDER = list(Severity)


class Fault(NamedTuple):
    """What a check has found: about what, and what to do."""

    severity: Severity
    subject: str
    message: str
    remedy: str


class Finding(NamedTuple):
    """A fault and the name of the check that found it."""

    severity: Severity
    check: str
    subject: str
    message: str
    remedy: str


def error(subject: object, message: str, remedy: str) -> Fault:
    return Fault(Severity.ERROR, str(subject), message, remedy)


def warning(subject: object, message: str, remedy: str) -> Fault:
    return Fault(Severity.WARNING, str(subject), message, remedy)


def note(subject: object, message: str, remedy: str) -> Fault:
    return Fault(Severity.NOTE, str(subject), message, remedy)


@dataclass(frozen=True, slots=True)
class Check(Generic[S]):
    """A check of subjects of one kind: its name, what it finds, and how."""

    name: str
    about: str
    find: Callable[[S], Iterator[Fault]]


def findings(checks: Iterable[Check[S]], subject: S) -> Iterator[Finding]:
    """Run the checks, and yield what they find."""
    for check in checks:
        for severity, *rest in check.find(subject):
            yield Finding(severity, check.name, *rest)


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    return sorted(found, key=lambda each: each.severity.rank)


def advised(error: Exception) -> tuple[str, str]:
    """Split the text of an error of a start into what is wrong and what to do. Such texts end with their advice.

    >>> advised(ValueError("a has no b; delete it")), advised(ValueError("a is b: set c")), advised(ValueError("a"))
    (('a has no b', 'delete it'), ('a is b', 'set c'), ('a', ''))
    """
    text = str(error)
    found = _ADVICE.search(text)
    return (text, "") if found is None else (text[: found.start()], text[found.start(1) :])


_ADVICE = re.compile(
    r"[;:.] ((?:add|allow|choose|compare|delete|empty|format|give|if|leave|move|remove|replace|restore|set|so|stop|to|use)\b)",
    re.IGNORECASE,
)


def limited(subject: str, faults: Sequence[Fault], max_count: int, remedy: str) -> Iterator[Fault]:
    """Yield the worst faults, and one that counts the others."""
    order = sorted(faults, key=lambda each: each.severity.rank)
    yield from order[:max_count]
    if more := order[max_count:]:
        yield Fault(more[0].severity, subject, f"{len(more):,} more of this kind", remedy)


class UnknownCheckError(ValueError):
    """A name that no check has."""


def choose(checks: Iterable[Check[S]], only: Collection[str], skip: Collection[str]) -> list[Check[S]]:
    """Return the checks that are chosen by name; without `only`, all but those to skip."""
    return [each for each in checks if (not only or each.name in only) and each.name not in skip]


def require_known(names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownCheckError(f"there is no check {name!r}{did_you_mean(name, known)}")
