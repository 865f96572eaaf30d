"""The share consumer with a node of barnabas: what the interop tests see with Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from tests.client import share_scenes
from tests.client.share_scenes import BROKER_CONFIGS, SCENES, Scene


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=BROKER_CONFIGS) as broker:
        yield broker


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_scene(broker: Broker, scene: Scene) -> None:
    asyncio.run(scene(broker.bootstrap_servers, "ours"))


def test_the_code_of_the_guide_runs(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    share_scenes.run_guide(broker.bootstrap_servers)
    share_scenes.check_guide(capsys.readouterr().out)
