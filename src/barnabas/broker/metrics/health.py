"""Whether a node is alive and ready, and why not."""

from __future__ import annotations

from enum import IntEnum

from barnabas.broker.metrics.observed import Observed


class BrokerState(IntEnum):
    """The states of a broker, with Kafka's names and numbers."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6


def broker_state(node: Observed) -> BrokerState:
    if node.failed.done():
        return BrokerState.NOT_RUNNING
    if node.is_stopping:
        return BrokerState.PENDING_CONTROLLED_SHUTDOWN
    if why_not_registered(node) is not None:
        return BrokerState.STARTING
    return BrokerState.RECOVERY if why_not_recovered(node) is not None else BrokerState.RUNNING


def why_not_alive(node: Observed) -> str | None:
    """Return why the node should be restarted, or None. That it is asked at all shows that its event loop turns."""
    if not node.failed.done() or node.failed.cancelled():
        return None
    return f"the node has failed: {node.failed.exception()}"


def why_not_ready(node: Observed) -> str | None:
    """Return why clients should not be sent to the node now, or None."""
    if node.is_stopping:
        return "the node is stopping"
    return why_not_alive(node) or why_not_registered(node) or why_not_recovered(node)


def why_not_registered(node: Observed) -> str | None:
    config, quorum = node.services.config, node.quorum
    if quorum is None or not quorum.driver.is_started:
        return "the metadata log is being opened"
    if quorum.driver.leader_id is None:
        return "no controller is known: the metadata quorum has no leader"
    if not config.is_broker:
        return None
    lifecycle = node.lifecycle
    if lifecycle is None or lifecycle.epoch < 0:
        return "the broker is not registered with the controller yet"
    broker = quorum.image.brokers.get(config.node_id)
    if broker is None or broker.fenced:
        return "the broker is fenced: the controller has not seen its heartbeats"
    return None


def why_not_recovered(node: Observed) -> str | None:
    unopened = None if node.replicas is None else node.replicas.unopened
    if unopened is None or not unopened.recovering:
        return None
    done = unopened.to_recover - unopened.recovering
    return f"logs are being recovered after an unclean shutdown: {done} of {unopened.to_recover} are done"
