"""Topics that clients create by naming them, on nodes with separate roles."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.broker.context import Listener, Peer
from barnabas.broker.dispatch import dispatch
from barnabas.broker.node import Node
from barnabas.testing import AsyncCluster
from barnabas.wire.messages.metadata import MetadataRequest
from tests.broker.api.test_envelope import ALICE, AUTHORIZER, frame


async def name_topic(node: Node, name: str) -> None:
    """Ask for a topic's metadata as alice, and wait until its creation has ended."""
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    answer = dispatch(frame(request, 12), node, Peer("127.0.0.1", ALICE, Listener("PLAINTEXT", False)))
    if inspect.isawaitable(answer):
        await answer
    await node.topic_creation.wait_done()


def test_the_controller_authorizes_the_client_and_names_it_in_the_audit_log(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    config = {**AUTHORIZER, "auto.create.topics.enable": "true", "barnabas.audit.log.path": str(path)}

    async def main() -> None:
        async with AsyncCluster(1, controllers=1, config=config) as cluster:
            broker, controller = cluster.nodes[1], cluster.nodes[101]
            # The broker allows alice everything, and the controller at first nothing.
            allowed = replace(broker.authorizer, super_users=broker.authorizer.super_users | {str(ALICE)})
            broker.authorizer = allowed
            await name_topic(broker, "refused")
            controller.authorizer = allowed
            await name_topic(broker, "made")
            assert list(controller.image.topics.ids) == ["made"]

    asyncio.run(main())
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    found = [
        (line["principal"], line["client_id"], line["outcome"], line["resources"][0]["name"])
        for line in lines
        if line["node"] == 101 and line["api"] == "CreateTopics"
    ]
    assert found == [("User:alice", "c", "denied", "refused"), ("User:alice", "c", "done", "made")]


def test_a_topic_that_another_broker_has_just_created_is_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with AsyncCluster(2, controllers=1) as cluster:
            for each in (1, 2):
                creation = cluster.nodes[each].topic_creation
                creation.begin(["wanted"])
                await creation.wait_done()

    with caplog.at_level(logging.INFO, "barnabas.broker.topic_creation"):
        asyncio.run(main())
    (refused,) = [each for each in caplog.records if "creating the topic wanted failed" in each.getMessage()]
    assert refused.levelno == logging.INFO
