"""A change that was checked and not made yet, so that a front end can show it, ask, and only then carry it out.

Its one rule: making a proposal changes nothing. `carry_out` does, once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Proposal(Generic[K, R]):
    """What would happen (`steps`, a line each), what it would lead to (`expected`, by item), and how to do it.

    `question` is what a person has to confirm first, with `warning` as the reason; None if nothing is lost by doing it.
    Without steps there is nothing to do, and `expected` is the result.
    """

    expected: Mapping[K, R]
    steps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warning: str | None = None
    question: str | None = None
    carry_out: Callable[[], Awaitable[Mapping[K, R]]] | None = None
    done_notes: tuple[str, ...] = field(default=())
    """What to tell after it was carried out."""
