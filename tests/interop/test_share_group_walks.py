"""Share groups beside Apache Kafka: random members, whose answers and records barnabas repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from barnabas.wire.records.group import ShareGroupStatePartitionMetadataKey
from tests.groups.walks import SHARE_SETTINGS, records_of
from tests.interop.group_walks import GROUPS, MEMBERS, Recorder, Step, walk

pytestmark = pytest.mark.interop


class ShareRecorder(Recorder):
    topics: ClassVar = {"apples": 2, "pears": 3, "plums": 5}

    def choices(self) -> Sequence[Step]:
        weighted: list[Step] = [self._join] * 5 + [self._beat] * 12 + [self._leave] * 3 + [self._describe] * 2
        weighted += [self._wrong, self._alter, self._delete_offsets, self._delete_group, self._list]
        return [*weighted, self.change_topics]

    async def settled(self) -> None:
        await self.until(self._is_settled)

    async def _is_settled(self) -> bool:
        """Whether no group waits for the share coordinator."""
        states: dict[str, Any] = {
            record.key.group_id: record.value
            for record in records_of(self.log())
            if isinstance(record.key, ShareGroupStatePartitionMetadataKey)
        }
        return not any(
            topic.partitions for value in states.values() if value is not None for topic in value.initializing_topics
        )

    async def _heartbeat(self, group: str, member: str, epoch: int, names: list[str] | None) -> None:
        rack = self._random.choice([None, None, None, "r1"])
        response = await self.ask(
            "ShareGroupHeartbeat",
            1,
            {
                "groupId": group,
                "memberId": member,
                "memberEpoch": epoch,
                "rackId": rack,
                "subscribedTopicNames": names,
            },
        )
        if not response.error_code:
            self._epochs[group, member] = response.member_epoch
            if response.member_epoch < 0:
                del self._epochs[group, member]

    def _names(self) -> list[str]:
        some = [*self.topics, *self.topics, "nowhere"]
        return self._random.choice([list(self.topics), self._random.sample(some, self._random.randint(1, 3))])

    async def _join(self) -> None:
        await self._heartbeat(self._random.choice(GROUPS), self._random.choice(MEMBERS), 0, self._names())

    async def _beat(self) -> None:
        if self._epochs:
            (group, member), epoch = self._random.choice(sorted(self._epochs.items()))
            names = self._names() if self._random.random() < 0.2 else None
            await self._heartbeat(group, member, epoch, names)

    async def _wrong(self) -> None:
        epoch = self._random.choice([-2, -1, 1, 2, 3, 50])
        await self._heartbeat(
            self._random.choice([*GROUPS, "", "none"]), self._random.choice([*MEMBERS, ""]), epoch, None
        )

    async def _leave(self) -> None:
        if self._epochs:
            group, member = self._random.choice(sorted(self._epochs))
            await self._heartbeat(group, member, -1, None)

    async def _describe(self) -> None:
        await self.ask(
            "ShareGroupDescribe", 1, {"groupIds": [self._random.choice(GROUPS)], "includeAuthorizedOperations": False}
        )

    async def _list(self) -> None:
        await self.ask("ListGroups", 5, {"statesFilter": [], "typesFilter": ["share"]})

    async def _alter(self) -> None:
        partitions = [{"partitionIndex": index, "startOffset": index} for index in self._random.sample(range(7), 2)]
        fields = {
            "groupId": self._random.choice(GROUPS),
            "topics": [{"topicName": self._random.choice([*self.topics, "nowhere"]), "partitions": partitions}],
        }
        await self.ask("AlterShareGroupOffsets", 0, fields)

    async def _delete_offsets(self) -> None:
        names = self._random.sample([*self.topics, "nowhere"], 2)
        fields = {"groupId": self._random.choice(GROUPS), "topics": [{"topicName": name} for name in names]}
        await self.ask("DeleteShareGroupOffsets", 0, fields)

    async def _delete_group(self) -> None:
        await self.ask("DeleteGroups", 2, {"groupsNames": [self._random.choice([*GROUPS, "none"])]})


def test_random_members_get_the_same_answers_and_records_as_from_apache_kafka() -> None:
    walk(ShareRecorder, SHARE_SETTINGS, 400)
