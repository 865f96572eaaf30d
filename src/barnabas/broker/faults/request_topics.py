"""The names of the topics that a request is about, for any API. Pure.

A list whose name has `topic` in it has names, or items with a name or an id. Such lists are also looked for in the items
of other lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from barnabas.wire import Message, Struct, Uuid

NameOf = Callable[[Uuid], str | None]

_NAMES: Final = ("topic", "topic_name", "name")


def request_topics(request: Message, name_of: NameOf) -> set[str]:
    """Return the names. `name_of` finds the name for the id of a topic."""
    return set(_topics(request, name_of))


def _topics(struct: Struct, name_of: NameOf) -> Iterator[str]:
    for field in type(struct).__slots__:
        value = getattr(struct, field)
        if not isinstance(value, list):
            continue
        for item in value:
            if isinstance(item, str) and "topic" in field:
                yield item
            elif isinstance(item, Struct):
                yield from _named(item, name_of) if "topic" in field else _topics(item, name_of)


def _named(item: Struct, name_of: NameOf) -> Iterator[str]:
    for field in _NAMES:
        if isinstance(name := getattr(item, field, None), str) and name:
            yield name
    if isinstance(topic_id := getattr(item, "topic_id", None), Uuid) and (found := name_of(topic_id)) is not None:
        yield found
