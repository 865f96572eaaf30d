"""Records what Apache Kafka says to random members of groups; see tests/groups/walks.py.

BARNABAS_WALKS=DIRECTORY keeps it, for the folders data in tests/groups.
"""

from __future__ import annotations

import asyncio
import os
import random
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from tools.apache_kafka import ApacheKafka

from barnabas import wire
from barnabas.config.resource_type import ConfigResourceType
from barnabas.wire import APIS, ApiKey, Message, message_class
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from tests.broker.clients import ask
from tests.groups.walks import CLIENT_ID, INTERNAL, Cluster, Walk, repeat

GROUPS, MEMBERS = ("g0", "g1", "g2"), tuple(f"member-{number}" for number in range(6))
KEEP = "BARNABAS_WALKS"
TIMEOUT_S = 30.0
SET = 0

Step = Callable[[], Coroutine[Any, Any, None]]


class Recorder:
    """Walks at random on one connection, and keeps frames and answers."""

    topics: ClassVar[Mapping[str, int]]
    """The topics that exist at first, with their partitions. Random ones are deleted, created again and grow."""

    def __init__(self, kafka: ApacheKafka, random: random.Random) -> None:
        self._kafka = kafka
        self._random = random
        self._epochs: dict[tuple[str, str], int] = {}
        self._address = kafka.address
        self._configs: dict[str, dict[str, str]] = {}
        self.steps: list[tuple[bytes, bytes] | Cluster] = []

    @abstractmethod
    def choices(self) -> Sequence[Step]:
        """Return the steps to choose from; those that are to be more likely several times."""

    async def settled(self) -> None:
        """Wait for what Kafka does after an answer."""

    def log(self) -> bytes:
        found = sorted(Path(self._kafka.directory).rglob("__consumer_offsets-0/*.log"))
        return b"".join(path.read_bytes() for path in found)

    async def run(self, steps: int) -> Walk:
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        for name, count in self.topics.items():
            await self._create(name, count)
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g0"])
        state = FindCoordinatorRequest(key_type=2, coordinator_keys=["g0:AAAAAAAAAAAAAAAAAAAAAQ:0"])
        for request in (find, state):
            await self.until(partial(self._has_coordinator, request))
        await self.keep_cluster()
        choices = self.choices()
        for _ in range(steps):
            await self._random.choice(choices)()
            await self.settled()
        self._writer.close()
        return Walk(self.steps, self.log())

    async def _has_coordinator(self, request: Message) -> bool:
        return not (await ask(self._address, request, 6)).coordinators[0].error_code

    async def until(self, is_so: Callable[[], Any]) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not await is_so():
                await asyncio.sleep(0.02)

    async def ask(self, name: str, version: int, fields: dict[str, Any]) -> Any:
        """Ask, and keep request and answer as a step."""
        request = message_class(f"{name}Request").from_json(fields, version)
        key = request.schema().key or 0
        api = APIS[ApiKey(key)]
        header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=5, client_id=CLIENT_ID)
        frame = wire.encode(header, api.request_header_version(version)) + wire.encode(request, version)
        self._writer.write(len(frame).to_bytes(4) + frame)
        answer = await self._reader.readexactly(int.from_bytes(await self._reader.readexactly(4)))
        self.steps.append((frame, answer))
        return wire.decode(api.response, version, answer[4 + api.response_header_version(version) :])

    # --- topics and settings

    async def keep_cluster(self) -> None:
        self.steps.append(Cluster(await self._topics(), {group: dict(each) for group, each in self._configs.items()}))

    async def _topics(self) -> dict[str, tuple[str, int]]:
        response = await ask(self._address, MetadataRequest(topics=None), 12)
        return {
            topic.name: (str(topic.topic_id), len(topic.partitions))
            for topic in response.topics
            if topic.name not in INTERNAL
        }

    async def _create(self, name: str, count: int) -> None:
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        await ask(self._address, CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)

    async def change_topics(self) -> None:
        """Create, delete or extend a topic."""
        known = await self._topics()
        name = self._random.choice(sorted({*self.topics, *known}))
        if name not in known:
            await self._create(name, self._random.randint(1, 5))
        elif self._random.random() < 0.5:
            deletion = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=30_000)
            await ask(self._address, deletion, 6)
        else:
            growth = CreatePartitionsRequest.CreatePartitionsTopic(
                name=name, count=known[name][1] + 1, assignments=None
            )
            await ask(self._address, CreatePartitionsRequest(topics=[growth], timeout_ms=30_000), 3)
        await self.until(lambda: self._differ(known))
        await self.follow()

    async def follow(self) -> None:
        """Wait until the coordinator, which follows metadata after the cache that answers, knows what has changed."""
        await asyncio.sleep(1)
        await self.keep_cluster()

    async def _differ(self, known: Mapping[str, Any]) -> bool:
        return await self._topics() != known

    async def exist(self, names: Sequence[str]) -> None:
        """Wait until topics that Kafka creates exist."""

        async def is_so() -> bool:
            return set(names) <= (await self._topics()).keys()

        await self.until(is_so)
        await self.follow()

    async def set_config(self, group: str, name: str, value: str) -> None:
        kind = IncrementalAlterConfigsRequest
        config = kind.AlterableConfig(name=name, config_operation=SET, value=value)
        resource = kind.AlterConfigsResource(
            resource_type=ConfigResourceType.GROUP, resource_name=group, configs=[config]
        )
        response = await ask(self._address, kind(resources=[resource]), 1)
        assert not response.responses[0].error_code, response
        self._configs.setdefault(group, {})[name] = value
        await self.follow()


def walk(kind: type[Recorder], settings: Mapping[str, str], steps: int) -> None:
    """Record a walk, and repeat it."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with ApacheKafka(overrides=settings) as kafka:
        found = asyncio.run(kind(kafka, random.Random(seed)).run(steps))
    directory = os.environ.get(KEEP)
    if directory:
        found.save(Path(directory) / f"{kind.__name__}-{seed}.jsonl.gz")
    asyncio.run(repeat(found, settings))
