"""The client for code without an event loop: scripts, notebooks, the interactive prompt.

>>> from barnabas.client import sync
>>> from barnabas.testing import Broker
>>> with Broker({"orders": 3}) as broker, sync.Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
...     admin.describe_cluster().cluster_id == broker.cluster_id
True

`Admin`, `Producer`, `Consumer` and `ShareConsumer` have the methods of the asynchronous classes, with the same arguments and
results. Each call blocks until it is done; asynchronous iterators become iterators. Only `Producer.send` does not wait: it
returns a future. Its one rule: nothing is decided here. The event loop runs in a separate thread, so that this also works
inside another event loop, as in a notebook. Use an `Admin` or a consumer from one thread at a time; many threads may share a
`Producer`.

`admin`, `consumer` and `share_consumer` are generated from the asynchronous classes by tools/sync_client.py. Names are imported
on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.sync.admin import Admin
    from barnabas.client.sync.consumer import Consumer
    from barnabas.client.sync.producer import Producer
    from barnabas.client.sync.share_consumer import ShareConsumer

__all__ = ["Admin", "Consumer", "Producer", "ShareConsumer"]

_MODULES = {"Admin": "admin", "Consumer": "consumer", "Producer": "producer", "ShareConsumer": "share_consumer"}

if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
