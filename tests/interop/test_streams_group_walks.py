"""Streams groups beside Apache Kafka: random members, whose answers and records barnabas repeats.

Members behave like those of Kafka Streams most of the time: they report the tasks that they were given, now or later. Their
topologies need repartition and changelog topics, join topics with the same and with different numbers of partitions, read
topics that do not exist, or cannot work. Internal topics are created by Kafka, and may be deleted again. In walks with
endpoints for interactive queries, no topics change and all topologies work: otherwise Kafka's heartbeats fail with
NoSuchElementException.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from barnabas.groups.streams.internal_topics import Status
from tests.groups.walks import STREAMS_SETTINGS
from tests.interop.group_walks import GROUPS, MEMBERS, Recorder, Step, walk

pytestmark = pytest.mark.interop

JSON = dict[str, Any]
NO_TASKS: JSON = {"activeTasks": [], "standbyTasks": [], "warmupTasks": []}


def topic(name: str, partitions: int = 0, **configs: str) -> JSON:
    rows = [{"key": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "partitions": partitions, "replicationFactor": 0, "topicConfigs": rows}


def part(number: int, *sources: str, **fields: Any) -> JSON:
    """A subtopology."""
    empty = ("sourceTopicRegex", "stateChangelogTopics", "repartitionSinkTopics", "repartitionSourceTopics")
    return {
        **{name: [] for name in (*empty, "copartitionGroups")},
        "subtopologyId": str(number),
        "sourceTopics": list(sources),
        **fields,
    }


def joined(*sources: int, repartitioned: Sequence[int] = ()) -> list[JSON]:
    return [{"sourceTopics": list(sources), "sourceTopicRegex": [], "repartitionSourceTopics": list(repartitioned)}]


def topologies(group: str) -> list[list[JSON]]:
    """The topologies to choose from. They share names of internal topics, so one may find those of another."""
    again = f"{group}-again-repartition"
    first, other = topic(f"{group}-first-changelog"), topic(f"{group}-other-changelog", retention_ms="-1")
    store = topic(f"{group}-store-changelog", cleanup_policy="compact", segment_bytes="2000000")
    joining = joined(0, repartitioned=[0])
    return [
        [part(0, "apples")],
        [part(0, "apples", stateChangelogTopics=[first])],
        [
            part(0, "apples", "pears", repartitionSinkTopics=[again]),
            part(1, repartitionSourceTopics=[topic(again)], stateChangelogTopics=[store]),
        ],
        [
            part(1, "pears", repartitionSinkTopics=[again], stateChangelogTopics=[other]),
            part(
                0,
                "plums",
                repartitionSourceTopics=[topic(again)],
                copartitionGroups=joining,
                stateChangelogTopics=[store, topic(f"{group}-more-changelog")],
            ),
            part(2, "apples"),
        ],
        [part(0, "pears", "plums", copartitionGroups=joined(0, 1), stateChangelogTopics=[store])],
        [part(0, "plums", stateChangelogTopics=[first])],
        [part(0, "apples", "plums", copartitionGroups=joined(0, 1))],
        [part(0, "apples", "nowhere"), part(1, "pears")],
        [
            part(0, "apples", repartitionSinkTopics=[again]),
            part(1, "pears", repartitionSourceTopics=[topic(again, 4)], copartitionGroups=joining),
        ],
        [
            part(0, "apples", repartitionSinkTopics=[again]),
            part(1, repartitionSourceTopics=[topic(again, 4)], stateChangelogTopics=[store]),
        ],
        [part(0, repartitionSourceTopics=[topic(again)], repartitionSinkTopics=[again])],
        [part(0, "apples", repartitionSourceTopics=[topic(again)])],
        [part(0)],
    ]


class StreamsRecorder(Recorder):
    topics: ClassVar = {"apples": 2, "pears": 3, "plums": 3}
    working: ClassVar = 5  # of the topologies, the first ones
    has_endpoints: ClassVar = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._tasks: dict[tuple[str, str], JSON] = {}  # what members were told to have
        self._owned: dict[tuple[str, str], JSON] = {}  # what they have said last
        self._chosen: dict[str, list[JSON]] = {}  # the topologies of groups

    def choices(self) -> Sequence[Step]:
        weighted: list[Step] = [self._join] * 6 + [self._beat] * 22 + [self._leave] * 3 + [self._describe] * 3
        weighted += [self._wrong, self._commit, self._commit, self._fetch_offsets, self._delete_offsets, self._others]
        weighted += [self._delete_group, self._list, self._configure]
        return weighted if self.has_endpoints else [*weighted, self.change_topics]

    # --- members

    async def _heartbeat(self, group: str, member: str, epoch: int, fields: Mapping[str, Any]) -> None:
        given = {"groupId": group, "memberId": member, "memberEpoch": epoch, "endpointInformationEpoch": 0, **fields}
        given = {"rackId": None, "instanceId": None, "shutdownApplication": False, **given}
        given = {"rebalanceTimeoutMs": -1, "processId": None, "clientTags": None, **given}
        response = await self.ask("StreamsGroupHeartbeat", 0, given)
        key = group, member
        if response.error_code:
            return
        if response.member_epoch < 0:
            for table in (self._epochs, self._tasks, self._owned):
                table.pop(key, None)
            return
        self._epochs[key] = response.member_epoch
        if response.active_tasks is not None:
            told = (response.active_tasks, response.standby_tasks, response.warmup_tasks)
            self._tasks[key] = {
                name: [{"subtopologyId": row.subtopology_id, "partitions": row.partitions} for row in rows]
                for name, rows in zip(NO_TASKS, told, strict=True)
            }
        missing = [status for status in response.status or () if status.status_code == Status.MISSING_INTERNAL_TOPICS]
        if missing:
            names = missing[0].status_detail.partition(": ")[2].split(" and ")[0]
            await self.exist(names.split(", "))

    def _topology(self, group: str) -> JSON:
        """Usually the one of the group; sometimes another one, or another epoch."""
        choices = topologies(group)
        if self.has_endpoints:
            del choices[self.working :]
        usual = choices[: self.working] * 4 + choices
        if group not in self._chosen or self._random.random() < 0.05:
            self._chosen[group] = self._random.choice(usual)
        epoch = self._random.choice([0] * 15 + [1, -1])
        rows = self._chosen[group] if self._random.random() < 0.95 else self._random.choice(choices)
        return {"epoch": epoch, "subtopologies": rows}

    async def _join(self) -> None:
        group, member = self._random.choice(GROUPS), self._random.choice(MEMBERS)
        self._owned.pop((group, member), None)
        tags = [{"key": key, "value": f"{key}{member[-1]}"} for key in ("zone", "cluster", "rack")]
        host = {"host": f"host-{member[-1]}", "port": 8080}
        fields = {
            "topology": self._topology(group),
            "rebalanceTimeoutMs": 3_600_000,
            "processId": f"process-{int(member[-1]) % 3}",
            "clientTags": self._random.sample(tags, self._random.choice([0, 0, 1, 3])),
            "userEndpoint": self._random.choice([None, host]) if self.has_endpoints else None,
            "rackId": self._random.choice([None, None, "r1"]),
            **NO_TASKS,
        }
        await self._heartbeat(group, member, 0, fields)

    async def _beat(self) -> None:
        """Say what the member has: what it was told, what it had before, or nothing new."""
        if not self._epochs:
            return
        key, epoch = self._random.choice(sorted(self._epochs.items()))
        fields: JSON = {"endpointInformationEpoch": self._random.choice([0, 0, 1, 2])}
        chance = self._random.random()
        if chance < 0.6:
            self._owned[key] = self._tasks.get(key, NO_TASKS)
        if chance < 0.8:
            fields.update(self._owned.get(key, NO_TASKS))
        elif chance < 0.83:
            fields.update(self._random.choice([*self._tasks.values(), NO_TASKS]))
        fields["shutdownApplication"] = self._random.random() < 0.01
        epoch -= self._random.random() < 0.06
        await self._heartbeat(*key, epoch, fields)

    async def _leave(self) -> None:
        if self._epochs:
            key = self._random.choice(sorted(self._epochs))
            await self._heartbeat(*key, -1, {"shutdownApplication": self._random.random() < 0.1})

    async def _wrong(self) -> None:
        """A request that is not allowed, of a member that may exist."""
        one = [{"subtopologyId": "0", "partitions": [self._random.randint(0, 9)]}]
        offset = [{"subtopologyId": "0", "partition": 0, "offset": 5}]
        strange = part(0, "apples", sourceTopicRegex=["a.*"])
        outside = part(0, "apples", copartitionGroups=joined(7))
        internal, bad = part(0, "__consumer_offsets"), part(0, "apples", repartitionSinkTopics=["a b"])
        with_partitions = part(0, "apples", stateChangelogTopics=[topic("log", 3)])
        joining = {"rebalanceTimeoutMs": 1000, **NO_TASKS}
        fields: list[JSON] = [
            {},
            {"instanceId": "i"},
            {"taskOffsets": offset},
            {"taskEndOffsets": offset},
            {"rackId": " "},
            {**NO_TASKS, "warmupTasks": one},
            {"activeTasks": one},
            {**NO_TASKS, "activeTasks": one},
            {**NO_TASKS, "activeTasks": [{"subtopologyId": "none", "partitions": [0]}]},
            {"topology": {"epoch": 0, "subtopologies": []}},
            *(
                {**joining, "topology": {"epoch": 0, "subtopologies": [each]}}
                for each in (strange, outside, internal, bad, with_partitions)
            ),
            {**joining, "topology": {"epoch": 0, "subtopologies": []}},
        ]
        group = self._random.choice([*GROUPS, *GROUPS, "", "none"])
        member = self._random.choice([*MEMBERS, ""])
        epoch = self._random.choice([0, 0, -3, -2, -1, 1, 2, 3, 50, self._epochs.get((group, member), 0)])
        await self._heartbeat(group, member, epoch, self._random.choice(fields))

    # --- requests about groups

    async def _describe(self) -> None:
        group = self._random.choice([*GROUPS, *GROUPS, "none"])
        await self.ask("StreamsGroupDescribe", 0, {"groupIds": [group], "includeAuthorizedOperations": False})

    async def _list(self) -> None:
        kinds = self._random.choice([["streams"], []])
        states = self._random.choice([[], ["Stable"], ["not_ready", "Reconciling", "Assigning"]])
        await self.ask("ListGroups", 5, {"statesFilter": states, "typesFilter": kinds})

    async def _commit(self) -> None:
        known = sorted(self._epochs.items()) or [(("g0", "member-0"), 0)]
        (group, member), epoch = self._random.choice(known)
        epoch = self._random.choice([epoch, epoch, epoch, epoch - 1, epoch + 1, -1])
        partition = {"partitionIndex": self._random.randint(0, 2), "committedOffset": 5, "committedMetadata": "m"}
        fields = {
            "groupId": group,
            "generationIdOrMemberEpoch": epoch,
            "memberId": self._random.choice([member, member, member, "nobody", ""]),
            "groupInstanceId": None,
            "topics": [
                {
                    "name": self._random.choice(sorted(self.topics)),
                    "partitions": [{**partition, "committedLeaderEpoch": 0}],
                }
            ],
        }
        await self.ask("OffsetCommit", 9, fields)

    async def _fetch_offsets(self) -> None:
        known = sorted(self._epochs.items()) or [(("g0", "member-0"), 0)]
        (group, member), epoch = self._random.choice(known)
        asked: list[JSON] = [
            {"memberId": member, "memberEpoch": epoch},
            {"memberId": member, "memberEpoch": epoch - 1},
            {"memberId": "nobody", "memberEpoch": epoch},
            {"memberId": None, "memberEpoch": -1},
        ]
        fields = {
            "groupId": group,
            **self._random.choice(asked),
            "topics": [{"name": name, "partitionIndexes": [0, 1]} for name in self.topics],
        }
        await self.ask("OffsetFetch", 9, {"groups": [fields], "requireStable": False})

    async def _delete_offsets(self) -> None:
        topics = [{"name": name, "partitions": [{"partitionIndex": 0}]} for name in sorted(self.topics)]
        await self.ask("OffsetDelete", 0, {"groupId": self._random.choice(GROUPS), "topics": topics})

    async def _delete_group(self) -> None:
        group = self._random.choice([*GROUPS, "none"])
        response = await self.ask("DeleteGroups", 2, {"groupsNames": [group]})
        if not response.results[0].error_code:
            self._chosen.pop(group, None)

    async def _others(self) -> None:
        """Requests of other types of members, and descriptions of other types."""
        group, member = self._random.choice(GROUPS), self._random.choice(MEMBERS)
        described = {"groupIds": [group], "includeAuthorizedOperations": False}
        choices: list[tuple[str, int, JSON]] = [
            ("ConsumerGroupDescribe", 1, described),
            ("ShareGroupDescribe", 1, described),
            ("DescribeGroups", 6, {"groups": [group], "includeAuthorizedOperations": False}),
            ("Heartbeat", 4, {"groupId": group, "generationId": 1, "memberId": member, "groupInstanceId": None}),
        ]
        await self.ask(*self._random.choice(choices))

    async def _configure(self) -> None:
        count = self._random.choice(["0", "1", "2"])
        await self.set_config(self._random.choice(GROUPS), "streams.num.standby.replicas", count)


class EndpointsRecorder(StreamsRecorder):
    has_endpoints: ClassVar = True


@pytest.mark.parametrize("kind", [StreamsRecorder, EndpointsRecorder])
def test_random_members_get_the_same_answers_and_records_as_from_apache_kafka(kind: type[Recorder]) -> None:
    walk(kind, STREAMS_SETTINGS, 1200)
