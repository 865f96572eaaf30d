"""ShareFetch and ShareAcknowledge beside Apache Kafka's: the same answers to the same raw requests in one run."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tools.apache_kafka import ApacheKafka, Barnabas, Node

from barnabas.batches.reader import iterate_batches
from barnabas.wire import ErrorCode, Uuid
from tests.broker import sharing
from tests.broker.sharing import ACCEPT, GAP, REJECT, RELEASE, RENEW, Member

pytestmark = pytest.mark.interop

SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.share.min.record.lock.duration.ms": "1000",
}
FAILS_IN_KAFKA = {"no such topic", "deleted"}
"""A session with a topic that does not exist: Kafka's broker fails, and answers UNKNOWN_SERVER_ERROR for the whole request."""
NOBODYS_ID = Uuid(b"\x7f" * 16)


def shown(response: Any) -> Any:
    """A response without what differs by chance: topic ids, and the order of its rows."""
    topics = []
    for topic in response.responses:
        rows = []
        for row in topic.partitions:
            shown_row = {name: getattr(row, name) for name in type(row).__slots__ if name != "records"}
            shown_row = {name: repr(value) for name, value in shown_row.items()}
            if hasattr(row, "records"):
                batches = iterate_batches(row.records or b"")
                shown_row["records"] = repr([(each.base_offset, each.last_offset) for _, each in batches])
            rows.append(shown_row)
        topics.append((topic.topic_id == NOBODYS_ID, sorted(rows, key=lambda each: int(each["partition_index"]))))
    top = {name: getattr(response, name) for name in type(response).__slots__ if name != "responses"}
    return {**{name: repr(value) for name, value in top.items()}, "topics": sorted(topics, key=repr)}


class Side:
    """The answers of one node."""

    def __init__(self, node: Node) -> None:
        self.address = node.address
        self.found: list[tuple[str, Any]] = []
        self._members: list[Member] = []

    def member(self, topic_id: Uuid, member_id: str = "a", group: str = "g") -> Member:
        self._members.append(Member(self.address, topic_id, member_id, group))
        return self._members[-1]

    async def leave(self) -> None:
        for member in self._members:
            await member.leave()

    async def topic(self, name: str, partitions: int = 1, group: str = "g", start: int = 0) -> Uuid:
        topic_id = await sharing.create_topic(self.address, name, partitions)
        await sharing.initialize(self.address, topic_id, partitions, group=group, start=start)
        return topic_id

    def note(self, what: str, response: Any) -> Any:
        self.found.append((what, shown(response)))
        return response

    async def fetched(self, what: str, member: Member, **fields: Any) -> Any:
        """The first answer with records or an error: Kafka answers without them while it loads."""
        deadline = time.monotonic() + 30
        while True:
            response = await member.fetch(**fields)
            rows = [row for topic in response.responses for row in topic.partitions]
            has_any = any(row.acquired_records or row.error_code for row in rows)
            if response.error_code or has_any or time.monotonic() > deadline:
                return self.note(what, response)


async def acknowledging(side: Side) -> None:
    """Accept, release, reject, gap; in batches and by record; with a member that may not."""
    topic = await side.topic("acknowledging")
    await sharing.produce(side.address, topic, 10, batches=3)
    a, b = side.member(topic), side.member(topic, "b")
    await side.fetched("first", a, max_records=5)
    await side.fetched("next of the other", b, max_records=12)
    side.note("of the other", await b.acknowledge([(0, 9, [ACCEPT])]))
    side.note("whole", await b.acknowledge([(10, 19, [ACCEPT])]))
    side.note("again", await b.acknowledge([(10, 19, [ACCEPT])]))
    side.note("by record", await a.acknowledge([(0, 4, [ACCEPT, RELEASE, REJECT, GAP, ACCEPT]), (5, 9, [RELEASE])]))
    side.note("beyond", await b.acknowledge([(20, 40, [ACCEPT])]))
    side.note("far beyond", await b.acknowledge([(400, 401, [ACCEPT])]))
    side.note("nothing", await b.acknowledge([]))
    await side.fetched("released", a)
    side.note("on the way", await a.fetch(said={0: [(1, 1, [ACCEPT])]}, max_wait_ms=0))
    side.note("on the way, wrong", await a.fetch(said={0: [(1, 1, [ACCEPT])]}, max_wait_ms=0))
    side.note("close", await b.close())
    await side.fetched("what was closed", a)
    wrong_ones: list[list[tuple[int, int, list[int]]]] = [
        [(5, 4, [ACCEPT])],
        [(5, 6, [ACCEPT]), (5, 5, [ACCEPT])],
        [(6, 7, [ACCEPT]), (5, 5, [ACCEPT])],
        [(5, 5, [])],
        [(5, 6, [ACCEPT, ACCEPT, ACCEPT])],
        [(5, 5, [7])],
        [(5, 5, [-1])],
        [(5, 5, [RENEW])],
    ]
    for wrong in wrong_ones:
        side.note(f"wrong {wrong}", await a.acknowledge(wrong))
    side.note("version 1, renew", await a.acknowledge([(5, 5, [RENEW])], version=1))
    side.note("renew", await a.acknowledge([(5, 5, [RENEW])], is_renew_ack=True))
    side.note("renew and accept", await a.acknowledge([(5, 6, [RENEW, ACCEPT])], is_renew_ack=True))
    side.note("renewing fetch, wrong", await a.fetch(said={0: [(5, 5, [RENEW])]}, is_renew_ack=True))
    nothing: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0, "is_renew_ack": True}
    side.note("renewing fetch", await a.fetch(said={0: [(5, 5, [RENEW])]}, **nothing))
    side.note("no partition", await a.acknowledge([(0, 0, [ACCEPT])], partition=7))
    side.note("no topic", await a.acknowledge([(0, 0, [ACCEPT])], topic_id=NOBODYS_ID))


async def sessions(side: Side) -> None:
    """Epochs, members and groups that are not possible; partitions that come and go."""
    topic = await side.topic("sessions", 3)
    for index in range(3):
        await sharing.produce(side.address, topic, 2, partition=index)
    a = side.member(topic)
    a.epoch = 1
    side.note("no session", await a.fetch())
    side.note("no session to acknowledge", await a.acknowledge([(0, 0, [ACCEPT])]))
    a.epoch = -1
    side.note("no session to end", await a.fetch())
    side.note("no session to end with an acknowledgement", await a.acknowledge([(0, 0, [ACCEPT])]))
    a.epoch = 0
    side.note("acknowledgement at first", await a.fetch(said={0: [(0, 0, [ACCEPT])]}))
    side.note("acknowledgement in epoch 0", await a.acknowledge([(0, 0, [ACCEPT])]))
    side.note("no group", await a.fetch(group_id=None))
    side.note("no member", await a.fetch(member_id=None))
    side.note("empty member", await a.fetch(member_id=""))
    side.note("long member", await a.fetch(member_id="m" * 37))
    side.note("no group to acknowledge", await a.acknowledge([(0, 0, [ACCEPT])], group_id=None))
    side.note("long member to acknowledge", await a.acknowledge([(0, 0, [ACCEPT])], member_id="m" * 37))
    await side.fetched("first", a, max_records=10)
    side.note("nothing new", await a.fetch(max_wait_ms=0))
    right = a.epoch
    a.epoch = right + 1
    side.note("wrong epoch", await a.fetch())
    side.note("wrong epoch to acknowledge", await a.acknowledge([(0, 0, [ACCEPT])]))
    a.epoch = right
    await side.fetched("one more partition", a, said={1: []})
    side.note("forgotten", await a.fetch(forgotten=[0], max_wait_ms=0))
    side.note("still acknowledged", await a.acknowledge([(0, 1, [ACCEPT])]))
    side.note("no such partition", await a.fetch(said={9: []}, max_wait_ms=0))
    side.note("still there", await a.fetch(max_wait_ms=0))
    right = a.epoch
    side.note("no such topic", await a.fetch(said={0: []}, topic_id=NOBODYS_ID, max_wait_ms=0))
    a.epoch = right + 1
    side.note("end", await a.close())
    side.note("ended", await a.fetch())
    stranger = side.member(topic, group="nobody")
    await side.fetched("not initialized", stranger, max_wait_ms=300)


async def limits(side: Side) -> None:
    """How much is acquired: acquire modes, batch sizes, small limits of bytes, and the limit of deliveries."""
    topic = await side.topic("limits")
    await sharing.produce(side.address, topic, 10, batches=4)
    a = side.member(topic)
    await side.fetched("three of a batch", a, max_records=3, share_acquire_mode=1)
    await side.fetched("fifteen, whole batches", a, max_records=15, batch_size=5)
    await side.fetched("few bytes", a, max_bytes=1)
    await side.fetched("the rest", a)
    side.note("nothing is left", await a.fetch(max_wait_ms=100))
    side.note("no records", await a.fetch(max_records=0))
    side.note("no bytes", await a.fetch(max_bytes=0))
    for number in range(2, 7):
        side.note("released", await a.acknowledge([(20, 29, [RELEASE])]))
        response = side.note(f"delivery {number}", await a.fetch(max_wait_ms=300))
        while sharing.acquired(response):
            response = side.note(f"more of delivery {number}", await a.fetch(max_wait_ms=300))
    other = side.member(topic, "b")
    response = side.note("unknown mode", await other.fetch(share_acquire_mode=9))
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def of_the_group(side: Side) -> None:
    """Settings of a group: records in flight, deliveries, renewals; in requests of version 1, too."""
    topic = await side.topic("of-the-group")
    await sharing.configure_group(
        side.address,
        share_partition_max_record_locks="100",
        share_delivery_count_limit="3",
        share_renew_acknowledge_enable="false",
    )
    await sharing.produce(side.address, topic, 10, batches=15)
    a, b = side.member(topic), side.member(topic, "b")
    await side.fetched("as many as may be in flight", a, version=1)
    side.note("no more for the other", await b.fetch(max_wait_ms=300))
    side.note("not the first", await a.acknowledge([(20, 29, [ACCEPT])], version=1))
    side.note("still no more", await b.fetch(max_wait_ms=300))
    side.note("the first", await a.acknowledge([(0, 9, [ACCEPT])], version=1))
    await side.fetched("some more", b, version=1)
    side.note("on the way", await a.fetch(said={0: [(10, 19, [ACCEPT] * 5 + [REJECT] * 5)]}, max_wait_ms=0, version=1))
    await side.fetched("more again", b, max_records=1, share_acquire_mode=1)
    side.note("no renewals", await a.acknowledge([(30, 39, [RENEW])], is_renew_ack=True))
    nothing: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0, "is_renew_ack": True}
    side.note("no renewals by a fetch", await a.fetch(said={0: [(30, 39, [RENEW])]}, **nothing))
    for number in range(4):
        side.note(f"release {number}", await a.acknowledge([(30, 39, [RELEASE])]))
        await side.fetched(f"delivery {number + 2}", a, max_records=10, max_wait_ms=300)
    await sharing.configure_group(side.address, share_delivery_count_limit="2")
    side.note("a lower limit", await a.acknowledge([(40, 49, [RELEASE])]))
    side.note("at most two now", await a.fetch(max_records=10, max_wait_ms=300))
    side.note("end", await a.close())


async def moving(side: Side) -> None:
    """Locks that expire, connections that are lost, log start offsets that advance, topics that are deleted."""
    topic = await side.topic("moving")
    await sharing.configure_group(side.address, share_record_lock_duration_ms="1000")
    await sharing.produce(side.address, topic, 10, batches=3)
    a, b = side.member(topic), side.member(topic, "b")
    await side.fetched("first", a, max_records=10)
    await side.fetched("rest", b)
    await asyncio.sleep(1.5)  # all locks have ended, on a busy machine too
    await side.fetched("expired", a, max_records=10)
    side.note("in time", await a.acknowledge([(0, 9, [ACCEPT])]))
    side.note("too late", await b.acknowledge([(10, 29, [ACCEPT])]))
    await side.fetched("expired again", b, max_wait_ms=10_000)
    await b.leave()
    await side.fetched("of the lost connection", a, max_wait_ms=900)
    await sharing.delete_records(side.address, "moving", 15)
    side.note("acknowledged below the start", await a.acknowledge([(0, 19, [RELEASE])]))
    c = side.member(topic, "c")
    await side.fetched("from the start", c, max_wait_ms=10_000)
    await sharing.delete_topic(side.address, topic)
    right = a.epoch
    side.note("deleted", await a.fetch(max_wait_ms=0))
    a.epoch = right + 1
    side.note("deleted, acknowledged", await a.acknowledge([(20, 20, [ACCEPT])]))


async def beginnings(side: Side) -> None:
    """Where a group begins that has consumed nothing."""
    for number, reset in enumerate(("latest", "earliest", "by_duration:PT1H", "by_duration:PT1000000H")):
        topic, group = await side.topic(f"beginning-{number}", group=f"g{number}", start=-1), f"g{number}"
        await sharing.configure_group(side.address, group, share_auto_offset_reset=reset)
        await sharing.produce(side.address, topic, 5, age_ms=2 * 3_600_000)
        member = side.member(topic, group=group)
        for _ in range(3):
            side.note(f"{reset}: nothing yet", await member.fetch(max_wait_ms=1000))
        await sharing.produce(side.address, topic, 5)
        for _ in range(2):
            side.note(f"{reset}: more", await member.fetch(max_wait_ms=1000))


async def isolation(side: Side) -> None:
    """Records of aborted transactions are for groups that read uncommitted ones."""
    for level in ("read_committed", "read_uncommitted"):
        topic = await side.topic(level, group=level)
        await sharing.configure_group(side.address, level, share_isolation_level=level)
        member = side.member(topic, group=level)
        side.note(f"{level}: nothing yet", await member.fetch(max_wait_ms=1000))
        await sharing.produce(side.address, topic, 2)
        await sharing.transaction(side.address, level, topic, 3, commits=False)
        await sharing.stable(side.address, level, 6)  # its marker is before what follows
        await sharing.produce(side.address, topic, 2)
        await sharing.transaction(side.address, level, topic, 3, commits=True)
        await sharing.stable(side.address, level, 12)
        for _ in range(3):
            side.note(f"{level}: records", await member.fetch(max_wait_ms=500))


@pytest.mark.parametrize("story", [acknowledging, sessions, limits, of_the_group, moving, beginnings, isolation])
def test_members_get_the_answers_of_apache_kafka(story: Any) -> None:
    async def run(node: Node) -> list[tuple[str, Any]]:
        side = Side(node)
        try:
            await story(side)
        finally:
            await side.leave()
        return side.found

    with ApacheKafka(overrides=SETTINGS) as kafka:
        expected = asyncio.run(run(kafka))
    with Barnabas(overrides=SETTINGS) as barnabas:
        found = asyncio.run(run(barnabas))
    for (what, ours), (_, theirs) in zip(found, expected, strict=True):
        if what in FAILS_IN_KAFKA:
            assert theirs["error_code"] == str(int(ErrorCode.UNKNOWN_SERVER_ERROR)), what
            assert str(int(ErrorCode.UNKNOWN_TOPIC_ID)) in repr(ours["topics"]), what
        else:
            assert ours == theirs, what
