"""Planted bugs: each changes the product in the process of one run, to show that the simulation finds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Mutation(NamedTuple):
    what: str
    plant: Callable[[], None]
    nodes: int


MUTATIONS: dict[str, Mutation] = {}
