"""Long lists, a page at a time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
ROWS = 100


class ListPage(NamedTuple, Generic[T]):
    """The rows of one page. Numbers of pages and rows begin at 1. `name` is that of the page's number in addresses."""

    rows: Sequence[T]
    number: int
    pages: int
    first: int
    last: int
    total: int
    name: str


def page_of(rows: Sequence[T], number: int, name: str = "page", size: int = ROWS) -> ListPage[T]:
    """Return a page of a list; the last one if there are not so many.

    >>> page_of(range(250), 3).rows, page_of([], 7)
    (range(200, 250), ListPage(rows=[], number=1, pages=1, first=0, last=0, total=0, name='page'))
    """
    pages = max(-(-len(rows) // size), 1)
    number = max(1, min(number, pages))
    begin = (number - 1) * size
    shown = rows[begin : begin + size]
    return ListPage(shown, number, pages, begin + 1 if shown else 0, begin + len(shown), len(rows), name)
