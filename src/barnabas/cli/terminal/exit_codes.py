"""The exit codes of every command except the drop-ins, which use those of Kafka's scripts (also 0 and 1)."""

from __future__ import annotations

from typing import Final

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
"""Something was rejected, not found, not reachable or damaged."""
EXIT_NO: Final = 2
"""Wrong usage; or, from a `JudgingCommand`, a negative result: drift, unhealthy, different."""
EXIT_TERMINATED: Final = 143
"""SIGTERM ended a command that first finished what it had begun: 128 and the number of the signal, as shells report it."""
