"""Share groups in memory: a node that leads both topics, and members that send what Kafka's share consumer sends."""

from __future__ import annotations

from typing import Any

from barnabas.batches import decode_records, iterate_batches
from barnabas.groups.share.group import ShareGroup
from barnabas.metadata.image import Provenance
from barnabas.metadata.replay import replay
from barnabas.replicated.decision import KeyValue
from barnabas.replicated.machines import decode_key_value
from barnabas.steps import at_once
from barnabas.wire import Message
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from barnabas.wire.records.metadata import FeatureLevelRecord
from tests.groups.harness import Clients, topic, topic_id_of

Request = ShareGroupHeartbeatRequest
ENABLED: list[Message] = [FeatureLevelRecord(name="share.version", feature_level=1)]
STATE_TOPIC = topic("__share_group_state", 1)
TOPICS = [*ENABLED, *STATE_TOPIC, *topic("apples", 2), *topic("pears", 3)]
AT_ONCE = {"group.share.assignment.interval.ms": "0"}
NAMES = {topic_id_of(name): name for name in ("apples", "pears")}


class Member:
    """One member of the group g. It keeps the epoch and the assignment of its last responses."""

    def __init__(self, clients: Clients, member_id: str, *topics: str, **peer: Any) -> None:
        self.member_id, self.epoch = member_id, 0
        self.topics = list(topics) or ["apples"]
        self.assigned: dict[str, list[int]] | None = None
        self._clients = clients
        self._peer = peer

    async def ask(self, **fields: Any) -> ShareGroupHeartbeatResponse:
        given = {"group_id": "g", "member_id": self.member_id, "member_epoch": self.epoch, **fields}
        response: ShareGroupHeartbeatResponse = await self._clients.ask(Request(**given), 1, **self._peer)
        if not response.error_code:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                rows = response.assignment.topic_partitions
                self.assigned = {NAMES.get(row.topic_id, str(row.topic_id)): row.partitions for row in rows}
        return response

    async def join(self, **fields: Any) -> ShareGroupHeartbeatResponse:
        return await self.ask(**{"member_epoch": 0, "subscribed_topic_names": self.topics, **fields})

    async def beat(self) -> ShareGroupHeartbeatResponse:
        return await self.ask()

    async def leave(self) -> ShareGroupHeartbeatResponse:
        return await self.ask(member_epoch=-1)


def change(clients: Clients, *records: Message) -> None:
    """Change the metadata of the cluster."""
    loop = clients.node.controller.loop
    old = loop.image
    loop.image = replay(old, records, Provenance(old.offset + len(records), 1, 0))
    at_once(clients.groups.image_changed(old, loop.image))


def group_of(clients: Clients, group_id: str = "g") -> ShareGroup:
    found = clients.groups.committed_group(group_id)
    assert isinstance(found, ShareGroup)
    return found


def records_of(clients: Clients, first: int = 0) -> list[KeyValue]:
    """The records of `__consumer_offsets`, from a batch on."""
    found = []
    for data in clients.log.batches[first:]:
        for position, header in iterate_batches(data):
            found += [decode_key_value(record, "group") for record in decode_records(data, position, header)]
    return [record for record in found if record is not None]
