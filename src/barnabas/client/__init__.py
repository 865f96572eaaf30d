"""An asynchronous Kafka client, for barnabas and for Apache Kafka.

    async with Cluster({"bootstrap.servers": "localhost:9092"}) as cluster:
        response = await cluster.call(DescribeClusterRequest(), to=any_broker())

`Admin`, `Producer` and `Consumer` are built on `Cluster`; `barnabas.client.sync` has them for code without an event loop.
`Cluster` in short:

    Cluster(config: ClientSettings | Mapping[str, object])      settings by the names of Kafka's clients
        state -> ClusterState                                   the cluster as known now: a value
        await start(timeout_ms=None), await close()             or `async with`
        await call(request, to=None, *, version=None, least_version=0, feature="", timeout_ms=None,
                   request_timeout_ms=None, repeat=None, give_up_on=(), lane="") -> Any
                                                                the response; retried where that is safe
        await send(request, to=None, *, version=None, least_version=0, feature="", timeout_ms=None, lane="",
                   on_sent=None) -> Any
                                                                one attempt; error codes are left to the caller
        await post(request, to, *, version=None, lane="")       for requests without a response
        await refresh(topics=(), *, timeout_ms=None) -> ClusterState
        await metadata(topics | None, *, authorized_operations=False, allow_auto_topic_creation=False,
                       timeout_ms=None) -> ClusterState         topics by name or id, None: all; not kept in `state`
        await coordinators(keys, type=GROUP, *, timeout_ms=None) -> dict[str, int | KafkaError]
        forget_coordinator(key, type=GROUP)                     for callers of `send` that got NOT_COORDINATOR
        await versions(to=None) -> NodeVersions                 .serves("DescribeTopicPartitions"), .best("Fetch")
        follow(topics), follow_all()                            topics to keep in `state`
        subscribe(callback(old, new)) -> unsubscribe
        learn_leaders([(topic, partition, leader_id, leader_epoch)], nodes=())

    to:  any_broker(), controller(), leader(topic, partition), coordinator(key, CoordinatorType.GROUP), node(id)
    lane:  requests of one lane share a connection to each node and are answered in order; use a separate lane for
           Fetch and other requests that wait at the broker

    load_settings(mapping, definitions), load_settings_file(path, overrides, definitions) -> ClientSettings

Errors: `KafkaError` with the broker's code; `UnsupportedByNodeError`, a `wire.UnsupportedVersionError`, if a node is too old;
`CallTimeoutError` after the timeout, with `last_error`; `ConnectionLostError` and `NoAnswerError` only for requests that are
not retried, where `maybe_done(error)` tells whether they may have been carried out; `AuthenticationError`, `TlsError` and
`NotKafkaError` at once; `ClosedError` after `close`; `ConfigError` with the name of a wrong setting.

Names are imported on first use, because the broker needs only `client.connection`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.cluster import Cluster
    from barnabas.client.consumer import Consumer
    from barnabas.client.errors import (
        AuthenticationError,
        CallTimeoutError,
        ClosedError,
        ConnectionLostError,
        NoAnswerError,
        NoNodesError,
        NotConnectedError,
        NotKafkaError,
        TlsError,
        UnknownHostError,
        UnsupportedByNodeError,
    )
    from barnabas.client.producer import Producer
    from barnabas.client.retry import maybe_done
    from barnabas.client.routing import (
        CoordinatorType,
        Destination,
        any_broker,
        controller,
        coordinator,
        leader,
        node,
    )
    from barnabas.client.settings import ClientSettings
    from barnabas.client.settings import load as load_settings
    from barnabas.client.settings import load_file as load_settings_file
    from barnabas.client.state import ClusterState, Node, Partition, Topic
    from barnabas.client.versions import NodeVersions

__all__ = [
    "Admin",
    "AuthenticationError",
    "CallTimeoutError",
    "ClientSettings",
    "ClosedError",
    "Cluster",
    "ClusterState",
    "ConnectionLostError",
    "Consumer",
    "CoordinatorType",
    "Destination",
    "NoAnswerError",
    "NoNodesError",
    "Node",
    "NodeVersions",
    "NotConnectedError",
    "NotKafkaError",
    "Partition",
    "Producer",
    "TlsError",
    "Topic",
    "UnknownHostError",
    "UnsupportedByNodeError",
    "any_broker",
    "controller",
    "coordinator",
    "leader",
    "load_settings",
    "load_settings_file",
    "maybe_done",
    "node",
]

_MODULES = ("cluster", "routing", "errors", "settings", "state", "retry", "versions")
_LARGE = {
    "Admin": "barnabas.client.admin.admin",
    "Producer": "barnabas.client.producer",
    "Consumer": "barnabas.client.consumer",
}
_RENAMED = {"load_settings": "load", "load_settings_file": "load_file"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _LARGE:
        return getattr(import_module(_LARGE[name]), name)
    if name in _RENAMED:
        return getattr(import_module("barnabas.client.settings"), _RENAMED[name])
    modules = (import_module(f"barnabas.client.{module}") for module in _MODULES)
    return next(getattr(module, name) for module in modules if hasattr(module, name))
