"""The clients and the checker of the simulation on processes of Apache Kafka, and of both programs, while nodes are killed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from tools.apache_kafka import VERSION

from tests.crash.clients import wait_until
from tests.interop.conftest import jars
from tests.interop.mixed import Mix
from tests.interop.test_mixed_life import administered, all_in_sync
from tests.simulation.clients import TOPICS
from tests.simulation.recorded import Recorder, judge, work

pytestmark = pytest.mark.interop

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
NODES = {
    "one of Apache Kafka": {1: "apache broker,controller"},
    "two of Apache Kafka and one of barnabas": {
        1: "apache broker,controller",
        2: "barnabas broker,controller",
        3: "apache broker,controller",
    },
}
WORK_S = 4.0


@pytest.mark.parametrize("nodes", NODES.values(), ids=[each.replace(" ", "-") for each in NODES])
def test_nothing_is_violated(tmp_path: Path, nodes: Mapping[int, str]) -> None:
    jars(VERSION)
    path = tmp_path / "history.jsonl"
    with Mix(tmp_path, nodes, SETTINGS) as mix, path.open("w") as file:

        async def kill_each() -> None:
            for node_id in nodes:
                await asyncio.sleep(WORK_S)
                mix.kill(node_id)
                await asyncio.sleep(1)
                await asyncio.to_thread(mix.start, node_id)
                await asyncio.to_thread(wait_in_sync, mix)
            await asyncio.sleep(WORK_S)

        history = Recorder(file.write)
        wrong = asyncio.run(work(mix.bootstrap, history, kill_each(), replicas=len(nodes)))
        file.flush()
        assert wrong == []
        assert min(history.counts[name] for name in ("acknowledged", "read", "committed", "set")) > 0
        print(dict(history.counts))
    with path.open() as lines:
        assert judge(lines)[1] == []


def wait_in_sync(mix: Mix) -> None:
    with administered(mix) as admin:
        wait_until(lambda: all_in_sync(admin, list(TOPICS)), "all in sync", 120)
