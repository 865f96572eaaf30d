"""A broker inside your tests: real protocol, real log, free ports, no Docker.

with Broker(topics={"orders": 3}) as broker:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

`Cluster(nodes=3)` is several of them. `async with Broker() as broker` runs it in the caller's event loop. Names are imported
on first use, because pytest loads `pytest_plugin` from here in every test run of everyone who has barnabas installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.testing.broker import AsyncBroker, Broker, BrokerError, Record, Security
    from barnabas.testing.cluster import AsyncCluster, Cluster
    from barnabas.testing.faults import FaultRule, Faults, RuleError

__all__ = [
    "AsyncBroker",
    "AsyncCluster",
    "Broker",
    "BrokerError",
    "Cluster",
    "FaultRule",
    "Faults",
    "Record",
    "RuleError",
    "Security",
]

if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        of_faults = ("FaultRule", "Faults", "RuleError")
        module = "cluster" if name.endswith("Cluster") else "faults" if name in of_faults else "broker"
        return getattr(import_module(f"barnabas.testing.{module}"), name)
