"""The share consumer against Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from inspect import signature

import pytest
from tools.apache_kafka import VERSION, ApacheKafka

from barnabas.client import ShareConsumer, TopicPartition, sync
from tests.client import share_scenes
from tests.client.share_scenes import BROKER_CONFIGS, SCENES, Scene, numbers, prepare, read, write
from tests.interop.conftest import jars

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def kafka() -> Iterator[ApacheKafka]:
    jars(VERSION)
    with ApacheKafka(BROKER_CONFIGS) as node:
        yield node


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_scene_with_apache_kafka(kafka: ApacheKafka, scene: Scene) -> None:
    asyncio.run(scene(kafka.bootstrap, "apache"))


def test_a_broker_that_restarts_is_found_again(kafka: ApacheKafka) -> None:
    async def main() -> None:
        topic, settings = await prepare(kafka.bootstrap, "restarted", 10)
        async with ShareConsumer(settings, topics=[topic]) as consumer:
            assert len(await read(consumer, 10)) == 10
            await asyncio.to_thread(kafka.kill)
            results = await consumer.commit(timeout_ms=5_000)
            assert [type(each) for each in results.values()] != [type(None)]
            await asyncio.to_thread(kafka.start)
            await write(kafka.bootstrap, topic, range(10, 20))
            # What could not be accepted is delivered once more.
            found = await read(consumer, 20)
            assert sorted(numbers(found)) == list(range(20))
            assert set((await consumer.commit()).values()) <= {None}
            assert await consumer.poll(1_000) == []

    asyncio.run(main())


def test_every_scene_is_played() -> None:
    found = {each for name, each in vars(share_scenes).items() if asyncio.iscoroutinefunction(each)}
    assert {each for each in found if [*signature(each).parameters] == ["bootstrap", "prefix"]} == set(SCENES)


def test_the_code_of_the_guide_runs(kafka: ApacheKafka, capsys: pytest.CaptureFixture[str]) -> None:
    share_scenes.run_guide(kafka.bootstrap)
    share_scenes.check_guide(capsys.readouterr().out)


def test_the_blocking_consumer_is_the_same(kafka: ApacheKafka) -> None:
    topic, settings = asyncio.run(prepare(kafka.bootstrap, "blocking", 4))
    calls: list[object] = []
    with sync.ShareConsumer(settings, topics=[topic]) as consumer:
        consumer.set_acknowledgement_commit_callback(lambda offsets, error: calls.append((consumer.member_id(), error)))
        for record in consumer:
            if record.offset == 1:
                break
        assert consumer.commit() == {TopicPartition(topic, 0): None}
        assert calls
        with pytest.raises(ZeroDivisionError), consumer:
            assert next(consumer).offset == 2
            raise ZeroDivisionError
    with sync.ShareConsumer(settings, topics=[topic]) as consumer:
        record = next(consumer)
        assert (record.offset, record.delivery_count) == (2, 2)
