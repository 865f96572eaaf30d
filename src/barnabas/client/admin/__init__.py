"""Administration of a cluster: a typed method for each of Kafka's administrative APIs.

    async with Admin({"bootstrap.servers": "localhost:9092"}) as admin:
        checked(await admin.create_topics([NewTopic("orders", partitions=12)]))

`Admin` combines parts, one file for each subject. `barnabas.client.sync` has the same for code without an event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

__all__ = ["Admin"]

if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> Any:
        if name == "Admin":
            from barnabas.client.admin.admin import Admin  # noqa: PLC0415  (brings every message of administration)

            return Admin
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
