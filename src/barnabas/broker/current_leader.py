"""The current leader in the answer for a partition that another broker leads (KIP-951), so that clients need no Metadata."""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.context import Context
from barnabas.wire import ErrorCode

LED_ELSEWHERE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def tell_leader(
    context: Context, topic: str, index: int, row: Any, response: Any, *, with_address: bool = True
) -> None:
    """Add the leader of a partition to its row, and the leader's address to the response."""
    known = context.image.topics.get(topic)
    if known is None or not 0 <= index < len(known.partitions):
        return
    partition = known.partitions[index]
    kind = type(response)
    row.current_leader = kind.LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
    broker = context.image.brokers.get(partition.leader)
    endpoint = None if broker is None or broker.fenced else broker.listeners.get(context.listener.name)
    if not with_address or broker is None or endpoint is None:
        return
    if all(each.node_id != broker.broker_id for each in response.node_endpoints):
        node = kind.NodeEndpoint(node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
        response.node_endpoints.append(node)
