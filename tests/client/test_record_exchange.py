"""Producers and consumers of ours beside those of others, on a node of barnabas."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.testing import Broker
from tests.client import record_scenes as scenes


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"group.initial.rebalance.delay.ms": 0}) as started:
        yield started


@pytest.mark.parametrize(
    "scene",
    [
        scenes.every_codec_comes_back,
        scenes.keys_go_where_other_clients_send_them,
        scenes.records_are_exchanged_with_other_clients,
        scenes.a_group_is_shared_with_aiokafka,
        scenes.patterns_are_matched_by_the_broker,
        scenes.fetch_sessions_list_only_changes_and_are_closed,
    ],
    ids=lambda scene: scene.__name__,
)
def test_scene(broker: Broker, scene: Any) -> None:
    asyncio.run(asyncio.wait_for(scene(broker.bootstrap_servers, scene.__name__), 60))
