"""The events of the shop in order: setup, half a day of trading, a restart in between, and more trading.

Its one rule: it needs an empty cluster; `found` checks that. Hours pass in seconds, and their records and changes have
the matching times if the clock of the node can be moved.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import Enum
from math import ceil, floor
from random import Random
from typing import Any, Final, Protocol

from barnabas.client import Admin, Consumer, Producer
from barnabas.client.admin.acls import only
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.admin.part import checked
from barnabas.client.admin.users import ScramDeletion, ScramMechanism, ScramUpsertion
from barnabas.client.records import TopicPartition
from barnabas.demo import records, shop
from barnabas.demo.clock import SetBackClock
from barnabas.demo.records import Order, Written

HOURS: Final = 12
ORDERS_AN_HOUR: Final = 400
CLICKS_AN_HOUR: Final = 2000
AUDITED_AN_HOUR: Final = 60
MINUTE_MS: Final = 60_000
_SEED: Final = 2011
_RESTART_AFTER: Final = 9
_DOWN_MS: Final = 4 * MINUTE_MS
_STOPPED_AFTER: Final = 6
_LEDGER_MEMBERS: Final = 4
_SESSION_MS: Final = 1_800_000  # the maximum that a broker allows
_TIMEOUT_S: Final = 120.0
_READING: Final = {"auto_offset_reset": "earliest", "enable_auto_commit": "false"}

Say = Callable[[str], None]
Span = tuple[int, int]


class Restarted(Protocol):
    """The node, which is stopped and started again in the same directory."""

    async def stop(self) -> Any: ...

    async def start(self) -> Any: ...


class Found(Enum):
    """The content of a cluster before the demo."""

    NOTHING = "nothing"
    SHOP = "the shop"
    PART_OF_SHOP = "an incomplete shop: the demo was interrupted"
    OTHERS = "something else"


async def found(admin: Admin) -> Found:
    names = {topic.name for topic in await admin.list_topics(include_internal=True)}
    if not names and not await admin.describe_acls():
        return Found.NOTHING
    if not names.issuperset(topic.name for topic in shop.TOPICS):
        return Found.OTHERS
    return Found.PART_OF_SHOP if shop.RETURNS in names else Found.SHOP


def begin_ms(now_ms: int) -> int:
    """Return when the shop starts: a little before the first of the hours that end now."""
    return records.hours(now_ms, HOURS)[0][0] - 5 * MINUTE_MS


@dataclass
class _Trade:
    """State that is carried from hour to hour: client settings, random numbers, and the orders so far."""

    settings: Mapping[str, object]
    random: Random = field(default_factory=lambda: Random(_SEED))
    placed: list[Order] = field(default_factory=list)
    records: int = 0
    done: dict[tuple[str, TopicPartition], tuple[int, int]] = field(default_factory=dict)
    """By group and partition: the committed offset, and the end offset at that time."""

    def of(self, client_id: str, **more: object) -> dict[str, object]:
        named = {name.replace("_", "."): value for name, value in more.items()}
        return {**self.settings, "client.id": client_id, **named}


async def run(bootstrap_servers: str, node: Restarted, say: Say, clock: SetBackClock) -> None:
    """Run the whole workload. The node is at `bootstrap_servers`, before and after its restart."""
    trade = _Trade({"bootstrap.servers": bootstrap_servers})
    spans = list(enumerate(records.hours(clock.true_ms(), HOURS)))
    before, after = spans[: _RESTART_AFTER + 1], spans[_RESTART_AFTER + 1 :]
    async with asyncio.timeout(_TIMEOUT_S):
        async with Admin(trade.of("shop-setup")) as admin:
            await _move_in(admin)
        say(f"{len(shop.TOPICS) + 1} topics, {len(shop.ACLS) + 1} ACLs, quotas and users")
        await _hours(trade, before, clock)
        say(f"{len(before)} hours of trading: orders, clicks, payments in transactions; groups read")
        say("settings changed and changed back, partitions added, records deleted, a topic deleted")
        await node.stop()
        clock.move_to(before[-1][1][1] + _DOWN_MS)
        await node.start()
        say("the node stopped and started again")
        await _hours(trade, after, clock)
        await _ledger(trade)
        say(
            f"the rest of {HOURS} hours: {trade.records:,} records; one group keeps up, one falls behind, one has stopped"
        )


# --- setup


async def _move_in(admin: Admin) -> None:
    checked(await admin.create_topics([*shop.TOPICS, shop.SHORT_LIVED]))
    checked(await admin.create_acls([*shop.ACLS, shop.FOR_A_WHILE]))
    checked(await admin.alter_client_quotas(shop.QUOTAS))
    mechanism = ScramMechanism.SCRAM_SHA_256
    passwords = [ScramUpsertion(user, mechanism, secrets.token_urlsafe()) for user in (shop.USER, shop.FORMER_USER)]
    checked(await admin.alter_user_scram_credentials(passwords))


# --- hours


async def _hours(trade: _Trade, spans: list[tuple[int, Span]], clock: SetBackClock) -> None:
    """Run hour by hour. Payments are written in a transaction, together with the offsets of the orders read."""
    billing_group = trade.of("billing", **_READING, group_id=shop.BILLING)
    async with (
        Admin(trade.of("shop-admin")) as admin,
        Producer(trade.of("checkout", compression_type="lz4")) as checkout,
        Producer(trade.of("clicks-collector")) as collector,
        Producer(trade.of("billing", transactional_id="billing-1")) as billing,
        Consumer(billing_group, topics=[shop.ORDERS]) as reader,
        AsyncExitStack() as stack,
    ):
        await billing.init_transactions()
        readers: list[Reader] = []
        for number, span in spans:
            clock.move_to(span[1])
            placed = await _trade(trade, number, span, checkout, collector)
            await _bill(trade, billing, reader, placed)
            if not readers:
                readers = await _join(trade, stack, number)
            await _progress(trade, readers, number)
            await _change(admin, number)
        await _pay_twice(trade, billing)


async def _trade(trade: _Trade, number: int, span: Span, checkout: Producer, collector: Producer) -> list[Order]:
    chance = trade.random
    sold = records.orders(chance, span, records.how_many(span, ORDERS_AN_HOUR), len(trade.placed) + 1)
    placed = [order for order, _ in sold]
    trade.placed += placed
    shown = records.clicks(chance, span, records.how_many(span, CLICKS_AN_HOUR))
    audited = records.audit(chance, span, records.how_many(span, AUDITED_AN_HOUR))
    trade.records += await _send(collector, shown)
    for some in ((written for _, written in sold), records.shipments(chance, placed), audited):
        trade.records += await _send(checkout, some)
    trade.records += await _send(checkout, records.customers(chance, placed))
    if number < 2:
        of = shop.EXPORTS if number else shop.RETURNS
        trade.records += await _send(checkout, (each._replace(topic=of) for each in records.payments(chance, placed)))
    return placed


async def _send(producer: Producer, written: Iterable[Written]) -> int:
    count = 0
    for each in written:
        await producer.send(each.topic, each.value, each.key, timestamp_ms=each.timestamp_ms)
        count += 1
    await producer.flush()
    return count


async def _bill(trade: _Trade, billing: Producer, reader: Consumer, placed: list[Order]) -> None:
    count = len(placed)
    while count > 0:
        count -= sum(map(len, (await reader.getmany(timeout_ms=1000)).values()))
    billing.begin_transaction()
    trade.records += await _send(billing, records.payments(trade.random, placed))
    offsets: dict[tuple[str, int], int] = {place: await reader.position(place) for place in reader.assignment()}
    await billing.send_offsets_to_transaction(offsets, reader.group_metadata())
    await billing.commit_transaction()


async def _pay_twice(trade: _Trade, billing: Producer) -> None:
    """Abort a transaction with duplicate payments."""
    billing.begin_transaction()
    await _send(billing, records.payments(trade.random, trade.placed[-3:]))
    await billing.abort_transaction()


async def _change(admin: Admin, number: int) -> None:
    """Make typical changes of a day on which a disk fills up."""
    orders, payments, clicks = map(ConfigResource.topic, (shop.ORDERS, shop.PAYMENTS, shop.CLICKS))
    shipments = ConfigResource.topic(shop.SHIPMENTS[1])
    set_to, unset = AlterConfigOpType.SET, AlterConfigOpType.DELETE
    changes = {
        3: {orders: [AlterConfigOp("retention.ms", set_to, str(2 * shop.DAY_MS))]},
        4: {ConfigResource.all_brokers(): [AlterConfigOp("message.max.bytes", set_to, "2097152")]},
        5: {orders: [AlterConfigOp("retention.ms", set_to, str(shop.WEEK_MS))]},
        6: {payments: [AlterConfigOp("max.message.bytes", set_to, "65536")]},
        8: {payments: [AlterConfigOp("max.message.bytes", unset)]},
        10: {clicks: [AlterConfigOp("compression.type", set_to, "zstd")]},
        12: {shipments: [AlterConfigOp("retention.ms", set_to, str(14 * shop.DAY_MS))]},
    }
    if number in changes:
        checked(await admin.incremental_alter_configs(changes[number]))
    if number == 2:
        checked(await admin.delete_acls([only(shop.FOR_A_WHILE)]))
        gone = ScramDeletion(shop.FORMER_USER, ScramMechanism.SCRAM_SHA_256)
        checked(await admin.alter_user_scram_credentials([gone]))
    if number == 4:
        checked(await admin.create_partitions({shop.CLICKS: shop.CLICKS_PARTITIONS}))
    if number == 7:
        checked(await admin.delete_records({TopicPartition(shop.AUDIT, 0): shop.AUDIT_DELETED}))
    if number == 8:
        checked(await admin.delete_topics([shop.RETURNS]))


# --- groups

Reader = tuple[Consumer, Callable[[int], float]]
"""A member of a group, and the share of new records that it processes per hour."""


async def _join(trade: _Trade, stack: AsyncExitStack, number: int) -> list[Reader]:
    """Start one group that falls behind, one that catches up, and, until it stops, a third one."""
    groups = [
        (shop.DISPATCH, shop.ORDERS, "classic", lambda hour: 0.7),
        (shop.SEARCH, shop.CUSTOMERS, "classic", lambda hour: 0.5 if hour < 6 else 1.1),
    ]
    if number <= _STOPPED_AFTER:
        groups.append((shop.RECOMMENDATIONS, shop.CLICKS, "consumer", lambda hour: 0.9))
    found = []
    for group, topic, protocol, share in groups:
        settings = trade.of(group, **_READING, group_id=group, group_protocol=protocol)
        consumer = await stack.enter_async_context(Consumer(settings, topics=[topic]))
        while not await consumer.getmany(timeout_ms=1000, max_records=1):
            pass
        found.append((consumer, share))
    return found


async def _progress(trade: _Trade, readers: list[Reader], number: int) -> None:
    for consumer, rate in readers:
        if consumer.subscription() == (shop.CLICKS,) and number > _STOPPED_AFTER:
            continue
        ends = await consumer.end_offsets(consumer.assignment())
        for place, end in ends.items():
            name = consumer.group_metadata().group_id, place
            done, seen = trade.done.get(name, (0, 0))
            much = rate(number) * (end - seen)
            trade.done[name] = min(end, done + max(1, floor(much) if rate(number) < 1 else ceil(much))), end
            await consumer.commit({place: trade.done[name][0]})


async def _ledger(trade: _Trade) -> None:
    """Run static members, one more than there are partitions. They do not leave the group when they stop."""
    ids = [f"{shop.LEDGER}-{number}" for number in range(1, _LEDGER_MEMBERS + 1)]
    more = {**_READING, "group_id": shop.LEDGER, "session_timeout_ms": _SESSION_MS, "heartbeat_interval_ms": 200}
    async with AsyncExitStack() as stack:
        members = [
            await stack.enter_async_context(Consumer(trade.of(each, **more, group_instance_id=each))) for each in ids
        ]
        await asyncio.gather(*(member.subscribe([shop.PAYMENTS]) for member in members))
        while not _is_settled(members):
            await asyncio.gather(*(member.getmany(timeout_ms=50, max_records=1) for member in members))
        for member in members:
            await member.commit(await member.end_offsets(member.assignment()))


def _is_settled(members: list[Consumer]) -> bool:
    """Whether all have joined, in the same generation, and all but one have a partition."""
    shares = sorted(len(member.assignment()) for member in members)
    generations = {member.group_metadata().generation_id for member in members}
    return len(generations) == 1 and shares == [0, *[1] * (len(members) - 1)]
