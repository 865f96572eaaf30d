"""Settings of the broker that apply to all classic groups."""

from __future__ import annotations

from typing import NamedTuple


class ClassicSettings(NamedTuple):
    """Limits and delays of classic groups."""

    initial_rebalance_delay_ms: int = 3000
    max_size: int = 2**31 - 1
    new_member_join_timeout_ms: int = 300_000
