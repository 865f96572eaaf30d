"""The features of new clusters are those of Kafka, and a directory keeps the levels that it has."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.broker.node import Node
from barnabas.config import server
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from tests.broker.clients import ask
from tests.command_line import invoke

FORMAT = ("format", "--standalone", "-t", "AAAAAAAAAAAAAAAAAAAAAQ")
BEFORE = ("--feature", "share.version=0", "--feature", "streams.version=0")  # of older versions of barnabas


def properties(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:9093\n"
        f"listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\nlog.dirs={tmp_path}/data\n"
    )
    return path


def shown_features(path: Path) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """The supported and the finalized levels in ApiVersions of a node with these settings."""

    config = server.load(path.read_text())

    async def run() -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
        node = Node(config)
        await node.start()
        try:
            request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
            response = await ask(node.addresses["PLAINTEXT"], request, 4)
        finally:
            await node.stop()
        supported = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
        return supported, {each.name: each.max_version_level for each in response.finalized_features}

    return asyncio.run(run())


@pytest.mark.parametrize("command", [None, "storage", "kafka-storage"])
def test_new_clusters_have_the_features_of_kafka(tmp_path: Path, command: str | None) -> None:
    path = properties(tmp_path)
    if command is not None:
        done = invoke(command, *FORMAT, "-c", path, code=0)
        assert "group.version" in done.stdout and "share.version" in done.stdout
    supported, finalized = shown_features(path)
    assert supported["share.version"] == supported["streams.version"] == (0, 1)
    assert finalized == {
        "metadata.version": 30,
        "kraft.version": 1,
        "transaction.version": 2,
        "group.version": 1,
        "eligible.leader.replicas.version": 1,
        "share.version": 1,
        "streams.version": 1,
    }


def test_a_directory_keeps_the_levels_that_it_has(tmp_path: Path) -> None:
    path = properties(tmp_path)
    invoke("storage", *FORMAT, *BEFORE, "-c", path, code=0)
    for _ in range(2):
        _, finalized = shown_features(path)
        assert finalized.keys().isdisjoint({"share.version", "streams.version"})
