"""A change that was checked and not made yet. A front end can show it, ask for confirmation, and then carry it out.

Its one rule: a proposal changes nothing until `carry_out` is called, once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Proposal(Generic[K, R]):
    """The steps of a change (one line each), the expected result by item, and a function that makes the change.

    If data or order could be lost, `question` is the confirmation to ask for, and `warning` the reason; otherwise None.
    Without steps there is nothing to do, and `expected` is the result.
    """

    expected: Mapping[K, R]
    steps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warning: str | None = None
    question: str | None = None
    carry_out: Callable[[], Awaitable[Mapping[K, R]]] | None = None
    done_notes: tuple[str, ...] = field(default=())
    """Notes to show after the change was carried out."""
