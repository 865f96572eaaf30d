"""The causes of `bench.stalls`, one file for each area. A cause is a generator function with a decorator:

    @cause("60,000 small Produce requests on one connection")
    def small_produce(node: Node) -> Iterator[None]:
        ...           # prepare; not measured
        yield         # from here on, another client measures its longest wait
        ...           # what may keep the node busy

It runs once per round and node, with the same nodes in every round of one cause, so it may skip what is prepared
already. Nodes are new for each cause. To add one, write it into the file of its area, or into a new file: all files of
this folder are imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from tools.apache_kafka import Node

Load = Callable[[Node], Iterator[None]]


class Cause(NamedTuple):
    """Something that one client or one event does to a node."""

    name: str
    area: str
    load: Load
    settings: Mapping[str, str]  # of both nodes
    has_peer: bool  # false if Apache Kafka does nothing like it
    is_secured: bool  # with listeners for TLS and logins, see `bench.secured`


_CAUSES: list[Cause] = []


def cause(
    name: str, settings: Mapping[str, str] | None = None, *, has_peer: bool = True, is_secured: bool = False
) -> Callable[[Load], Load]:
    """Register a cause."""

    def register(load: Load) -> Load:
        area = load.__module__.rpartition(".")[2]
        _CAUSES.append(Cause(name, area, load, settings or {}, has_peer, is_secured))
        return load

    return register


def all_causes() -> list[Cause]:
    """All causes, by area."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return list(_CAUSES)
