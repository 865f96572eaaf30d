"""Quotas of entities, as an image has them."""

from __future__ import annotations

from barnabas.metadata.pmap import PMap
from barnabas.metadata.quotas import QuotaEntity, Quotas, quota_entity
from barnabas.quotas.bounds import Bounds, QuotaBounds
from barnabas.steps import at_once

Parts = dict[str, str | None]

LEVELS: list[Parts] = [
    {"user": "u", "client-id": "c"},
    {"user": "u", "client-id": None},
    {"user": "u"},
    {"user": None, "client-id": "c"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
]
"""The entities whose quota may apply to user u with client id c. The first one that has a quota wins."""


def quotas(*values: tuple[Parts, float], key: str) -> Quotas:
    found: dict[QuotaEntity, PMap[str, float]] = {quota_entity(p): PMap({key: value}) for p, value in values}
    return PMap(found)


def bounds(*values: tuple[Parts, float], key: str) -> Bounds:
    found = QuotaBounds()
    at_once(found.follow(quotas(*values, key=key)))
    return found[key]
