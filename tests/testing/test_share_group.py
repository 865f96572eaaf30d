"""What a share group has in flight, as tests of applications see it."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client import KafkaError, ShareConsumer, ShareRecord, sync
from barnabas.testing import Broker
from tests.client.share_scenes import explicit, prepare, read_explicitly


def test_a_broker_shows_who_holds_which_records_and_how_often_they_were_delivered() -> None:
    with Broker() as broker:
        topic, settings = asyncio.run(prepare(broker.bootstrap_servers, "looked-at", 4))
        group = broker.share_group("looked-at")
        assert group.in_flight(topic) == []
        with sync.ShareConsumer(explicit(settings), topics=[topic]) as consumer:
            records: list[ShareRecord] = []
            while not records:
                records = consumer.poll(500)
            me = consumer.member_id()
            assert group.acquired(topic) == [(0, 3, "acquired", me, 1)]
            for record, decide in zip(
                records, (consumer.acknowledge, consumer.release, consumer.reject, consumer.acknowledge), strict=True
            ):
                decide(record)
            consumer.commit()
            assert [(each.first_offset, each.state, each.delivery_count) for each in group.in_flight(topic)] == [
                (1, "available", 1),
                (2, "archived", 1),
                (3, "acknowledged", 1),
            ]
            again: list[ShareRecord] = []
            while not again:
                again = consumer.poll(500)
            assert group.acquired(topic) == [(1, 1, "acquired", me, 2)]
            consumer.acknowledge(again[0])
            consumer.commit()
            assert group.in_flight(topic) == []
        with pytest.raises(KafkaError, match="There is no partition 0 of topic 'nowhere'"):
            group.acquired("nowhere")


def test_an_asynchronous_broker_shows_the_same() -> None:
    async def main() -> None:
        async with Broker() as broker:
            topic, settings = await prepare(broker.bootstrap_servers, "looked-at", 2)
            async with ShareConsumer(explicit(settings), topics=[topic]) as consumer:
                for record in await read_explicitly(consumer, 2):
                    consumer.acknowledge(record)
                (held,) = broker.share_group("looked-at").acquired(topic)
                assert (held.first_offset, held.last_offset, held.member_id) == (0, 1, consumer.member_id())

    asyncio.run(main())
