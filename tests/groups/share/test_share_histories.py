"""Random histories of a share group: members and topics come and go, time passes, and the coordinator dies.

Epochs never go down, replay of the records gives the same group, and when nothing changes any more, every partition of a
subscribed topic is initialized and has a member.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.groups.share.group import ShareGroup
from barnabas.wire import ErrorCode, Uuid
from barnabas.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.wire.records.metadata import PartitionRecord, RemoveTopicRecord
from tests.groups.harness import Clients, topic
from tests.groups.share.harness import ENABLED, STATE_TOPIC, change

NAMES = ("apples", "pears", "plums")
MEMBERS = ("m1", "m2", "m3", "m4", "m5")
GONE = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
ROUNDS, ROUND_MS = 8, 11_000  # longer than the interval after which initialization is tried again

members, names = st.sampled_from(MEMBERS), st.sampled_from(NAMES)
actions = st.one_of(
    st.tuples(st.just("join"), members, st.lists(names, min_size=1, max_size=3, unique=True)),
    st.tuples(st.just("beat"), members),
    st.tuples(st.just("leave"), members),
    st.tuples(st.just("create"), names),
    st.tuples(st.just("grow"), names),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("alter"), names, st.integers(-1, 3)),
    st.tuples(st.just("delete_offsets"), names),
    st.tuples(st.just("delete_group")),
    st.tuples(st.just("wait"), st.sampled_from([0, 1, 500, 5_000, 31_000, 46_000])),
    st.tuples(st.just("restart")),
)


class History:
    """One group and its topics, with the epochs that its members know."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._epochs: dict[str, int] = {}
        self._assigned: dict[str, dict[Uuid, set[int]]] = {}
        self._ids = 0
        self._last: ShareGroup | None = None

    @property
    def group(self) -> ShareGroup | None:
        group = self._clients.groups.committed_group("g")
        assert group is None or isinstance(group, ShareGroup)
        return group

    def check(self) -> None:
        group, last = self.group, self._last
        if group is not None and last is not None:
            assert group.group_epoch >= last.group_epoch
            assert group.assignment_epoch >= last.assignment_epoch
            for member_id in set(group.members).intersection(last.members):
                assert group.members[member_id].member_epoch >= last.members[member_id].member_epoch
        if group is not None:
            assert group.assignment_epoch <= group.group_epoch
            assert all(member.member_epoch <= group.group_epoch for member in group.members.values())
            assert set(group.target_assignment) <= set(group.members)
        self._last = group

    # --- members

    async def _ask(self, member_id: str, epoch: int, names: list[str] | None = None) -> None:
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=epoch, subscribed_topic_names=names
        )
        response = await self._clients.ask(request, 1)
        if response.error_code:
            assert response.error_code in (*GONE, ErrorCode.GROUP_MAX_SIZE_REACHED), response
            self._epochs.pop(member_id, None)
        elif response.member_epoch < 0:
            del self._epochs[member_id]
        else:
            self._epochs[member_id] = response.member_epoch
            if response.assignment is not None:
                rows = response.assignment.topic_partitions
                self._assigned[member_id] = {row.topic_id: set(row.partitions) for row in rows}

    async def join(self, member_id: str, names: list[str]) -> None:
        await self._ask(member_id, 0, names)

    async def beat(self, member_id: str) -> None:
        if member_id in self._epochs:
            await self._ask(member_id, self._epochs[member_id])

    async def leave(self, member_id: str) -> None:
        if member_id in self._epochs:
            await self._ask(member_id, -1)

    # --- topics

    async def create(self, name: str) -> None:
        if name not in self._topics.ids:
            self._ids += 1
            change(self._clients, *topic(name, 1 + self._ids % 3, self._ids))

    async def grow(self, name: str) -> None:
        known = self._topics.get(name)
        if known is not None:
            where: dict[str, Any] = {"replicas": [1], "isr": [1], "leader": 1, "leader_epoch": 0}
            row = PartitionRecord(partition_id=len(known.partitions), topic_id=known.topic_id, **where)
            change(self._clients, row)

    async def delete(self, name: str) -> None:
        if name in self._topics.ids:
            change(self._clients, RemoveTopicRecord(topic_id=self._topics.ids[name]))

    @property
    def _topics(self) -> Any:
        return self._clients.node.controller.loop.image.topics

    # --- offsets, and everything else

    async def alter(self, name: str, index: int) -> None:
        kind = AlterShareGroupOffsetsRequest
        row = kind.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=1)
        topics = [kind.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=[row])]
        await self._clients.ask(kind(group_id="g", topics=topics), 0)

    async def delete_offsets(self, name: str) -> None:
        kind = DeleteShareGroupOffsetsRequest
        topics = [kind.DeleteShareGroupOffsetsRequestTopic(topic_name=name)]
        await self._clients.ask(kind(group_id="g", topics=topics), 0)

    async def delete_group(self) -> None:
        response = await self._clients.ask(DeleteGroupsRequest(groups_names=["g"]), 2)
        if not response.results[0].error_code:
            self._last = None

    async def wait(self, by_ms: int) -> None:
        await self._clients.pass_time(by_ms)

    async def restart(self) -> None:
        before = self.group
        await self._clients.restart()
        assert self.group == before

    # --- the end

    async def come_to_rest(self) -> None:
        for _ in range(ROUNDS):
            await self._clients.pass_time(ROUND_MS)
            for member_id in list(self._epochs):
                await self.beat(member_id)
            self.check()

    def check_assigned(self) -> None:
        group, topics = self.group, self._topics
        known = {} if group is None else group.members
        assert set(self._epochs) == set(known)
        if group is None or not known:
            return
        assert not group.is_initializing
        for name in group.subscriptions:
            if name not in topics.ids:
                continue
            topic_id, partitions = topics.ids[name], set(range(len(topics.get(name).partitions)))
            assert set(group.initialized[topic_id].partitions) >= partitions
            subscribers = [each for each in known if name in known[each].subscribed_topic_names]
            assigned = [self._assigned[each].get(topic_id, set()) for each in subscribers]
            assert set().union(*assigned) == partitions


async def play(history: list[tuple[Any, ...]]) -> None:
    given_settings = {"group.share.max.size": "4"}
    async with Clients(given_settings, [*ENABLED, *STATE_TOPIC, *topic("apples", 2, 200)]) as clients:
        played = History(clients)
        for action, *arguments in history:
            await getattr(played, action)(*arguments)
            played.check()
        await played.come_to_rest()
        played.check_assigned()
        await played.restart()


@settings(max_examples=40, deadline=None)
@given(st.lists(actions, max_size=40))
def test_every_partition_has_a_member_and_replay_gives_the_same_group(history: list[tuple[Any, ...]]) -> None:
    asyncio.run(play(history))
