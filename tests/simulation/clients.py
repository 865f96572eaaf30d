"""The clients of a run: they produce, transact, copy, consume, commit and administer until they are told to stop.

They are barnabas' own clients on the simulated loop. Whatever fails is tried again with a new client; what was told goes to
the `History`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from random import Random
from typing import Any, Protocol

from barnabas.client import Admin, Consumer, Producer
from barnabas.client.admin.configs import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.admin.elections import ElectionType
from barnabas.client.admin.quotas import USER, QuotaFilter, quota_entity
from barnabas.client.admin.topics import NewTopic
from barnabas.client.consumer import TopicPartition
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.wire import KafkaError
from tests.simulation.history import Final, History, Outcome, Place, Record
from tests.simulation.loop import Process
from tests.simulation.plan import CLIENT

RETRY_S = 0.5
MAX_PAUSE_S = 1.5
POLL_MS = 1000
SETTLE_S = 180.0
SETTING = "retention.ms"
ONE_DAY_MS = 86_400_000
COUNTER_GROUP = "counter"
GROUPS = ("readers", "classic-readers", COUNTER_GROUP)

PRODUCED, INPUT, OUTPUT = "produced", "input", "output"
TOPICS = {PRODUCED: 3, INPUT: 2, OUTPUT: 2}
INTERNAL = ("__consumer_offsets", "__transaction_state")
LEAST_MOVED = 2  # replicas, as many as have to be in sync


def _acl(topic: str) -> AclEntry:
    allowed = AclOperation.READ, AclPermissionType.ALLOW
    return AclEntry(ResourceType.TOPIC, topic, PatternType.LITERAL, "User:reader", "*", *allowed)


def _quota_of(user: str) -> str:
    return f"the quota of {user}"


class Surrounding(Protocol):
    """What clients need around them: a simulated world, or a real one."""

    @property
    def processes(self) -> Mapping[str, Process]: ...

    def random_for(self, purpose: str) -> Random: ...

    def start(self, machine: str) -> Process: ...

    def spawn(self, process: Process, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]: ...

    def say(self, *event: object) -> None: ...

    def violated(self, what: str) -> None: ...


class Clients:
    """The clients of one run. `servers` are the bootstrap servers, `replicas` the replication factor of topics.

    Topics that come and go have a number of `partitions`.
    """

    def __init__(self, world: Surrounding, history: History, servers: str, replicas: int, partitions: int = 1) -> None:
        self.world = world
        self.history = history
        self.is_over = False
        self._replicas = replicas
        self._partitions = partitions
        self._common = {"bootstrap.servers": servers, "request.timeout.ms": "3000", "default.api.timeout.ms": "10000"}
        self._producing = {
            **self._common,
            "delivery.timeout.ms": "10000",
            "max.block.ms": "10000",
            "retry.backoff.ms": "50",
            "transaction.timeout.ms": "8000",
        }
        self._consuming = {
            **self._common,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "fetch.max.wait.ms": "1000",
        }
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    def start_process(self) -> None:
        self.world.start(CLIENT)

    def start(self) -> None:
        process = self.world.processes[CLIENT]
        works: dict[str, Callable[[str, Random], Coroutine[Any, Any, None]]] = {
            "p1": self._produce,
            "t1": self._transact,
            "z1": self._take_over,
            "y1": self._copy,
            "y2": self._copy,
            "c1": self._consume,
            "c2": self._consume,
            "k1": self._count,
            "a1": self._administer,
            "q1": self._limit,
        }
        if self._replicas > LEAST_MOVED:
            works["m1"] = self._move
        for name, work in works.items():
            random = self.world.random_for(f"client/{name}")
            self._tasks[name] = self.world.spawn(process, self._repeat(name, random, work))

    async def make_topics(self) -> None:
        """Create the topics, however often that has to be tried."""

        async def make(name: str, random: Random) -> None:
            async with Admin(self._common) as admin:
                wanted = [NewTopic(topic, count, self._replicas) for topic, count in TOPICS.items()]
                await admin.create_topics(wanted)
                while not set(TOPICS) <= {topic.name for topic in await admin.list_topics()}:
                    await asyncio.sleep(RETRY_S)

        await self._in_process(self._until_done("maker", make))

    async def stop(self) -> None:
        """Let all clients finish. Raises what made one of them fail unexpectedly."""
        self.is_over = True
        _, pending = await asyncio.wait(self._tasks.values(), timeout=SETTLE_S)
        for name, task in self._tasks.items():
            if task in pending:
                self.world.violated(f"the client {name} does not end: {task.get_stack()}")
            elif task.exception() is not None:
                raise task.exception()  # type: ignore[misc]

    async def look(self) -> Final:
        """Read everything at the end."""
        found: dict[str, Any] = {}
        waits_for = ""

        async def look(name: str, random: Random) -> None:
            nonlocal waits_for
            async with Admin(self._common) as admin:
                while waits_for := await self._under_way(admin):
                    self.world.say(name, "waits for", waits_for)
                    await asyncio.sleep(RETRY_S)
            while waits_for := await self._open_transactions():  # one whose producer is gone ends by its timeout
                await asyncio.sleep(RETRY_S)
            for isolation in ("read_committed", "read_uncommitted"):
                found[isolation] = await self._read_all(isolation)
            async with Admin(self._common) as admin:
                found["topics"] = {topic.name: str(topic.topic_id) for topic in await admin.list_topics()}
                found["settings"] = dict.fromkeys(map(str, await admin.describe_acls()), "")
                for entity in await admin.describe_client_quotas([QuotaFilter.any(USER)]):
                    found["settings"][_quota_of(str(dict(entity)[USER]))] = ""
                there = [ConfigResource.topic(topic) for topic in self.history.created if topic in found["topics"]]
                for resource, config in (await admin.describe_configs(there, keys=[SETTING])).items():
                    if isinstance(config, KafkaError):
                        raise config
                    found["settings"][resource.name] = config[SETTING].value
                found["offsets"] = {}
                for group, offsets in (await admin.list_consumer_group_offsets(GROUPS)).items():
                    if isinstance(offsets, KafkaError):
                        raise offsets
                    for place, committed in offsets.items():
                        if not isinstance(committed, KafkaError):
                            found["offsets"][group, Place(*place)] = committed.offset

        try:
            await self._in_process(self._until_done("looker", look))
        except TimeoutError:
            raise TimeoutError(f"after {SETTLE_S:g} s the cluster waits for: {waits_for or 'an answer'}") from None
        return Final(*(found[name] for name in ("read_committed", "read_uncommitted", "topics", "offsets", "settings")))

    async def _under_way(self, admin: Admin) -> str:
        """Return what has to end by itself: reassignments, and replicas that are not in sync."""
        moving = await admin.list_partition_reassignments()
        described = await admin.describe_topics([*TOPICS, *INTERNAL])
        late = [
            f"{topic}-{each.partition_index} {each.isr} of {each.replicas}"
            for topic, found in described.items()
            if not isinstance(found, KafkaError)
            for each in found.partitions
            if set(each.isr) != set(each.replicas)
        ]
        return ", ".join([*(f"the move of {topic}-{index}" for topic, index in moving), *late])

    async def _open_transactions(self) -> str:
        """Return the partitions in which a transaction is open."""
        stable, ends = await self._ends("read_committed"), await self._ends("read_uncommitted")
        late = [
            f"{each.topic}-{each.partition} at {stable[each]} of {ends[each]}"
            for each in ends
            if stable[each] < ends[each]
        ]
        return f"transactions in {', '.join(late)}" if late else ""

    async def _ends(self, isolation: str) -> dict[TopicPartition, int]:
        async with Consumer({**self._consuming, "isolation.level": isolation}) as consumer:
            return await consumer.end_offsets(
                TopicPartition(topic, each) for topic, count in TOPICS.items() for each in range(count)
            )

    async def _read_all(self, isolation: str) -> dict[Place, list[Record]]:
        found: dict[Place, list[Record]] = {
            Place(topic, each): [] for topic, count in TOPICS.items() for each in range(count)
        }
        async with Consumer({**self._consuming, "isolation.level": isolation}) as consumer:
            consumer.assign(TopicPartition(*place) for place in found)
            ends = await consumer.end_offsets(TopicPartition(*place) for place in found)
            for place in ends:
                while await consumer.position(place) < ends[place]:
                    for record in await consumer.poll(POLL_MS):
                        assert record.value is not None
                        found[Place(record.topic, record.partition)].append(Record(record.offset, bytes(record.value)))
        return found

    # --- the frame

    async def _in_process(self, work: Coroutine[Any, Any, None]) -> None:
        async with asyncio.timeout(SETTLE_S):
            await self.world.spawn(self.world.processes[CLIENT], work)

    async def _until_done(self, name: str, work: Callable[[str, Random], Awaitable[None]]) -> None:
        random = self.world.random_for(f"client/{name}")
        while True:
            try:
                return await work(name, random)
            except (KafkaError, OSError, TimeoutError) as error:
                self.world.say(name, type(error).__name__, str(error)[:200])
                await asyncio.sleep(RETRY_S)

    async def _repeat(self, name: str, random: Random, work: Callable[[str, Random], Awaitable[None]]) -> None:
        attempt = 0
        while not self.is_over:
            try:
                attempt += 1
                await work(f"{name}.{attempt}", random)
            except (KafkaError, OSError, TimeoutError) as error:
                self.world.say(name, type(error).__name__, str(error)[:200])
                self.history.counts["failures"] += 1
                await asyncio.sleep(RETRY_S)

    # --- kinds of clients. Each runs until it fails or everything is over.

    async def _produce(self, name: str, random: Random) -> None:
        history, number = self.history, 0
        async with Producer(self._producing, random=random.random) as producer:
            while not self.is_over:
                waiting = []
                for _ in range(random.randint(1, 6)):
                    number += 1
                    value, topic = b"%s %d" % (name.encode(), number), random.choice((PRODUCED, INPUT))
                    history.sending(value, topic)
                    waiting.append((value, await producer.send(topic, value, key=b"%d" % random.randrange(9))))
                for value, delivery in waiting:
                    told = await delivery
                    history.acknowledged(value, Place(told.topic, told.partition), told.offset)
                await asyncio.sleep(random.uniform(0, MAX_PAUSE_S))

    async def _transact(self, name: str, random: Random) -> None:
        history, number, count = self.history, 0, 0
        settings = {**self._producing, "transactional.id": name.split(".", maxsplit=1)[0]}
        async with Producer(settings, random=random.random) as producer:
            await producer.init_transactions()
            while not self.is_over:
                count += 1
                transaction = f"{name}/{count}"
                producer.begin_transaction()
                waiting = []
                for _ in range(random.randint(1, 6)):
                    number += 1
                    value, topic = b"%s %d" % (name.encode(), number), random.choice((PRODUCED, INPUT))
                    history.sending(value, topic, transaction)
                    waiting.append((value, await producer.send(topic, value, key=b"%d" % random.randrange(9))))
                for value, delivery in waiting:
                    told = await delivery
                    history.acknowledged(value, Place(told.topic, told.partition), told.offset)
                await self._end(producer, transaction, commits=random.random() < 0.7)
                await asyncio.sleep(random.uniform(0, MAX_PAUSE_S))

    async def _take_over(self, name: str, random: Random) -> None:
        """Have a producer go on although another one has taken over its transactional id."""
        history, number, count = self.history, 0, 0
        settings = {**self._producing, "transactional.id": name.split(".", maxsplit=1)[0]}

        async def send(producer: Producer, transaction: str) -> None:
            nonlocal number
            number += 1
            value = b"%s %d" % (name.encode(), number)
            history.sending(value, PRODUCED, transaction)
            told = await (await producer.send(PRODUCED, value, key=b"%d" % random.randrange(9)))
            history.acknowledged(value, Place(told.topic, told.partition), told.offset)

        while not self.is_over:
            count += 1
            old, new = f"{name}/{count} old", f"{name}/{count} new"
            async with (
                Producer(settings, random=random.random) as first,
                Producer(settings, random=random.random) as second,
            ):
                await first.init_transactions()
                first.begin_transaction()
                await send(first, old)
                await second.init_transactions()
                history.ended(old, Outcome.ABORTED)
                second.begin_transaction()
                await send(second, new)
                with contextlib.suppress(KafkaError, OSError, TimeoutError):
                    await first.commit_transaction()
                    history.ended(old, Outcome.COMMITTED)
                await self._end(second, new, commits=random.random() < 0.7)
            await asyncio.sleep(random.uniform(0, MAX_PAUSE_S * 6))

    async def _end(self, producer: Producer, transaction: str, *, commits: bool) -> None:
        self.history.ended(transaction, Outcome.UNKNOWN)
        self.world.say("ending", transaction, commits)
        if commits:
            await producer.commit_transaction()
        else:
            await producer.abort_transaction()
        self.history.ended(transaction, Outcome.COMMITTED if commits else Outcome.ABORTED)
        self.world.say("ended", transaction, commits)

    async def _copy(self, name: str, random: Random) -> None:
        """Copy records of one topic to another exactly once: the copies and the offsets are one transaction."""
        history, number, count = self.history, 0, 0
        consuming = {**self._consuming, "group.id": "copiers", "isolation.level": "read_committed"}
        producing = {**self._producing, "transactional.id": name.split(".", maxsplit=1)[0]}
        async with (
            Consumer({**consuming, "group.protocol": "consumer"}, random=random.random) as consumer,
            Producer(producing, random=random.random) as producer,
        ):
            await producer.init_transactions()
            await consumer.subscribe([INPUT])
            while not self.is_over:
                records = await consumer.poll(POLL_MS, max_records=5)
                if not records:
                    continue
                count += 1
                transaction = f"{name}/{count}"
                producer.begin_transaction()
                offsets: dict[TopicPartition, int] = {}
                waiting = []
                for record in records:
                    assert record.value is not None
                    original = bytes(record.value)
                    place = Place(record.topic, record.partition)
                    history.received(name, place, record.offset, original, committed=True)
                    number += 1
                    value = b"%s %d" % (name.encode(), number)
                    history.copied(value, original)
                    history.sending(value, OUTPUT, transaction)
                    waiting.append((value, await producer.send(OUTPUT, value, key=record.key)))
                    offsets[TopicPartition(*place)] = record.offset + 1
                for value, delivery in waiting:
                    told = await delivery
                    history.acknowledged(value, Place(told.topic, told.partition), told.offset)
                self.world.say("copied", transaction, {str(each): offset for each, offset in offsets.items()})
                await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
                await self._end(producer, transaction, commits=True)

    async def _consume(self, name: str, random: Random) -> None:
        """Read in a group, and commit what was read."""
        history = self.history
        protocol = "classic" if name.startswith("c2") else "consumer"
        # The two protocols do not mix in one group as long as it has members of one kind only.
        group = "readers" if protocol == "consumer" else "classic-readers"
        settings = {**self._consuming, "group.id": group, "group.protocol": protocol}
        if protocol == "classic":
            settings |= {"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}
        async with Consumer({**settings, "isolation.level": "read_committed"}, random=random.random) as consumer:
            await consumer.subscribe([PRODUCED, OUTPUT])
            while not self.is_over:
                offsets: dict[TopicPartition, int] = {}
                for record in await consumer.poll(POLL_MS):
                    assert record.value is not None
                    place = Place(record.topic, record.partition)
                    history.received(name, place, record.offset, bytes(record.value), committed=True)
                    offsets[TopicPartition(*place)] = record.offset + 1
                if offsets and random.random() < 0.5:
                    await consumer.commit(offsets)
                    for each, offset in offsets.items():
                        history.offset_committed(group, Place(*each), offset)

    async def _count(self, name: str, random: Random) -> None:
        """Commit growing offsets of a group without members, and look at them."""
        history, place = self.history, Place(PRODUCED, 0)
        async with Consumer({**self._consuming, "group.id": COUNTER_GROUP}, random=random.random) as consumer:
            consumer.assign([TopicPartition(*place)])
            while not self.is_over:
                least = history.committed_offsets.get((COUNTER_GROUP, place), 0)
                found = (await consumer.committed([TopicPartition(*place)]))[TopicPartition(*place)]
                history.offset_found(COUNTER_GROUP, place, None if found is None else found.offset, least)
                following = max(least, 0 if found is None else found.offset) + 1
                await consumer.commit({TopicPartition(*place): following})
                history.offset_committed(COUNTER_GROUP, place, following)
                await asyncio.sleep(random.uniform(0, MAX_PAUSE_S * 3))

    async def _set(self, admin: Admin, topic: str, value: str) -> None:
        """Set what nobody sets again: a setting of a new topic, and an ACL."""
        resource = ConfigResource.topic(topic)
        alteration = AlterConfigOp(SETTING, AlterConfigOpType.SET, value)
        error = (await admin.incremental_alter_configs({resource: [alteration]}))[resource]
        if error is not None:
            raise error
        self.history.was_set(topic, value, topic)
        entry = _acl(topic)
        error = (await admin.create_acls([entry]))[entry]
        if error is not None:
            raise error
        self.history.was_set(str(entry), "")

    async def _move(self, name: str, random: Random) -> None:
        """Move replicas to other nodes and leaders to the first of them, also of internal topics."""
        async with Admin(self._common) as admin:
            while not self.is_over:
                await asyncio.sleep(random.uniform(0, MAX_PAUSE_S * 4))
                node_ids = sorted(node.id for node in (await admin.describe_cluster()).nodes if not node.is_fenced)
                described = await admin.describe_topics([*TOPICS, *INTERNAL])
                places = [
                    (str(topic), each.partition_index)
                    for topic, found in described.items()
                    if not isinstance(found, KafkaError)
                    for each in found.partitions
                ]
                if len(node_ids) < LEAST_MOVED or not places:
                    continue
                place = random.choice(sorted(places))
                target = random.sample(node_ids, random.randint(LEAST_MOVED, len(node_ids)))
                self.world.say("moving", place, target)
                error = (await admin.alter_partition_reassignments({place: target}))[place]
                if error is not None:
                    raise error
                self.history.counts["moved"] += 1
                if random.random() < 0.5:
                    await asyncio.sleep(random.uniform(0, MAX_PAUSE_S))
                    await admin.elect_leaders(ElectionType.PREFERRED, [place])

    async def _limit(self, name: str, random: Random) -> None:
        """Change the quota of a user who is not there, so that the metadata grows."""
        rate = 1_000_000
        async with Admin(self._common) as admin:
            while not self.is_over:
                rate += 1
                entity = quota_entity(user=name)
                error = (await admin.alter_client_quotas({entity: {"producer_byte_rate": float(rate)}}))[entity]
                if error is not None:
                    raise error
                self.history.was_set(_quota_of(name), "")
                await asyncio.sleep(random.uniform(0, MAX_PAUSE_S / 2))

    async def _administer(self, name: str, random: Random) -> None:
        """Create topics with a setting and an ACL, and delete some of the topics."""
        history, number = self.history, 0
        async with Admin(self._common) as admin:
            while not self.is_over:
                number += 1
                topic = f"{name}-{number}"
                created = (await admin.create_topics([NewTopic(topic, self._partitions, self._replicas)]))[topic]
                if isinstance(created, KafkaError):
                    raise created
                history.topic_created(topic, str(created.topic_id))
                await self._set(admin, topic, str(ONE_DAY_MS + number))
                if random.random() < 0.3:
                    history.topic_deleting(topic)
                    error = (await admin.delete_topics([topic]))[topic]
                    if error is not None:
                        raise error
                    history.topic_deleted(topic)
                await asyncio.sleep(random.uniform(0, MAX_PAUSE_S * 6))
