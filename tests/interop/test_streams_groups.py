"""Streams groups beside Apache Kafka's: internal topics that cannot be created, and that are created once they can."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.interop.test_share_groups import Fields, Side, answers
from tests.interop.test_streams_group_walks import NO_TASKS, part, topic

pytestmark = pytest.mark.interop

SOON_S = 1.0  # creations and coordinators' metadata


class Thread:
    """A member of the group z."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._epoch = 0

    async def ask(self, what: str, **fields: Any) -> None:
        given: Fields = {
            **{"groupId": "z", "memberId": "t", "endpointInformationEpoch": 0, "instanceId": None, "rackId": None},
            **{"processId": "p", "userEndpoint": None, "clientTags": [], "shutdownApplication": False},
            **{"rebalanceTimeoutMs": -1, "taskOffsets": None, "taskEndOffsets": None, "topology": None},
        }
        asked = {**given, **NO_TASKS, "memberEpoch": self._epoch, **fields}
        response = await self._side.ask(what, "StreamsGroupHeartbeat", 0, asked)
        if not response.error_code:
            self._epoch = response.member_epoch

    async def join(self, what: str, *subtopologies: Fields) -> None:
        self._epoch = 0
        await self.ask(what, topology={"epoch": 0, "subtopologies": list(subtopologies)}, rebalanceTimeoutMs=60_000)

    async def stay(self, what: str) -> None:
        for number in range(3):
            await asyncio.sleep(SOON_S)
            await self.ask(f"{what}, heartbeat {number}")

    async def leave(self, what: str) -> None:
        await self.ask(what, memberEpoch=-1)
        await self._side.delete(f"{what}: delete", "z")


async def creations(side: Side) -> None:
    """Settings that no topic can have, and too many replicas; then the topics are created by somebody else."""
    await side.topic("apples", 2)
    thread = Thread(side)
    small = topic("z-small-changelog", segment_bytes="1000")
    await thread.join("wrong config", part(0, "apples", stateChangelogTopics=[small, topic("z-fine-changelog")]))
    await thread.stay("wrong config")
    await side.topic("z-small-changelog", 2)
    await thread.stay("created by somebody")
    await thread.leave("leaves")
    large = {**topic("z-large-changelog"), "replicationFactor": 3}  # of several, Kafka shows the errors in any order
    await thread.join("too many replicas", part(0, "apples", stateChangelogTopics=[large]))
    await thread.stay("too many replicas")
    await thread.leave("leaves again")
    await thread.join("unknown config", part(0, "apples", stateChangelogTopics=[topic("z-odd", no_such="1")]))
    await thread.stay("unknown config")


def test_internal_topics_are_created_or_not_as_by_apache_kafka() -> None:
    (theirs, _), (ours, _) = answers(creations)
    different = [(what, mine, other) for (what, mine), (_, other) in zip(ours, theirs, strict=True) if mine != other]
    assert not different, "\n".join(f"{what}\n  ours   {mine}\n  theirs {other}" for what, mine, other in different)
