"""Changes of quotas as sentences. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def quota_sentence(entity: str, key: str, value: float | None, before: Mapping[str, float]) -> str:
    """Return what a change of a quota does, and the present value."""
    now = f"; currently {quota_text(before[key])}" if key in before else "; currently not set"
    return (
        f"{f'set {key} of {entity} to {quota_text(value)}' if value is not None else f'remove {key} of {entity}'}{now}"
    )


def quota_text(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)
