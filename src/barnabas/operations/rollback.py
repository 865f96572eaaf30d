"""What has to be set and unset to restore earlier settings. Pure; for `configs rollback` and for `lake rollback-plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def restored(then: Mapping[str, T], now: Mapping[str, T | None]) -> dict[str, T | None]:
    """Return the settings that differ, with their earlier values; None: to be unset.

    >>> restored({"a": 1, "b": 2}, {"b": 3, "c": 4})
    {'a': 1, 'b': 2, 'c': None}
    """
    names = sorted({*then, *now})
    return {name: then.get(name) for name in names if name not in then or name not in now or then[name] != now[name]}
