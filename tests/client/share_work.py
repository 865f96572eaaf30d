"""A producer and members of a share group at work while nodes are killed or leaders move."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

from barnabas.client import AcknowledgeType, Admin, KafkaError, Producer, ShareConsumer, TopicPartition
from tests.client.share_scenes import explicit

PATIENCE_S = 90


class Work:
    """What was sent, what was accepted, and what came although it had been accepted before.

    An acknowledgement that fails because a node is lost may have been stored: then the record is done, and does not come again.
    """

    def __init__(self, settings: dict[str, object], topic: str, partitions: int) -> None:
        self.settings = settings
        self.topic = topic
        self.partitions = partitions
        self.sent: set[int] = set()
        self.accepted: Counter[int] = Counter()
        self.perhaps_accepted: set[int] = set()
        self.came_again: list[int] = []
        self._is_sending = True
        self._is_consuming = True
        self._sending: asyncio.Task[None] | None = None
        self._members: list[asyncio.Task[None]] = []

    def start(self, choice: Random, members: int = 2) -> None:
        self._sending = asyncio.create_task(self._send())
        self._members = [asyncio.create_task(self._consume(Random(choice.random()))) for _ in range(members)]

    async def _send(self) -> None:
        number = 0
        while self._is_sending:
            try:
                async with Producer({"bootstrap.servers": self.settings["bootstrap.servers"]}) as producer:
                    while self._is_sending:
                        await producer.send_and_wait(self.topic, b"%d" % number, partition=number % self.partitions)
                        self.sent.add(number)
                        number += 1
            except (KafkaError, OSError):
                number += 1  # it may have been stored; a member that gets it accepts it
                await asyncio.sleep(0.05)

    async def _consume(self, random: Random) -> None:
        settings = explicit(self.settings, share_acquire_mode="record_limit", max_poll_records=20)
        async with ShareConsumer(settings, topics=[self.topic]) as consumer:
            while self._is_consuming:
                records = await consumer.poll(200)
                said: dict[TopicPartition, list[int]] = {}
                for record in records:
                    number = int(record.value or b"-1")
                    if number in self.accepted:
                        self.came_again.append(number)
                    if random.random() < 0.1 and record.delivery_count < 3:
                        consumer.acknowledge(record, AcknowledgeType.RELEASE)
                        continue
                    consumer.acknowledge(record)
                    said.setdefault(TopicPartition(record.topic, record.partition), []).append(number)
                results = await consumer.commit()
                for partition, numbers in said.items():
                    if results.get(partition, KafkaError) is None:
                        self.accepted.update(numbers)
                    else:
                        self.perhaps_accepted.update(numbers)

    async def until(self, count: int) -> None:
        """Wait until so many records more were accepted."""
        wanted = len(self.accepted) + count
        async with asyncio.timeout(PATIENCE_S):
            while len(self.accepted) < wanted and not self._has_ended():
                await asyncio.sleep(0.005)
        for task in self._members:
            if task.done():
                task.result()

    def _has_ended(self) -> bool:
        return any(task.done() for task in self._members)

    async def finish(self) -> None:
        """Stop sending, and wait until the group has nothing left to do and the members know it."""
        self._is_sending = False
        assert self._sending is not None
        await self._sending
        async with asyncio.timeout(PATIENCE_S):
            while not self._has_ended() and await self._lag():
                await asyncio.sleep(0.1)
            self._is_consuming = False  # the answer to the last acknowledgement may still be on its way
            await asyncio.gather(*self._members)

    async def _lag(self) -> int:
        async with Admin({"bootstrap.servers": self.settings["bootstrap.servers"]}) as admin:
            group = str(self.settings["group.id"])
            found = (await admin.list_share_group_offsets([group]))[group]
        assert not isinstance(found, KafkaError), found
        return sum(1 if isinstance(each, KafkaError) or each.lag is None else each.lag for each in found.values())

    async def stop(self) -> None:
        """End all tasks, and raise what a member has raised."""
        tasks = [each for each in (self._sending, *self._members) if each is not None]
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for each in outcomes:
            if isinstance(each, Exception):
                raise each

    def check(self) -> None:
        """Check that each record was accepted, and that none came after that."""
        assert not self.sent - self.accepted.keys() - self.perhaps_accepted
        assert not self.came_again, self.came_again
