"""Every kind of node provides all services that handlers use."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

from barnabas.broker.context import Services
from barnabas.broker.node import Node
from barnabas.broker.read_only_node import ReadOnlyNode, find_directories, read_only_config
from barnabas.config import server
from tests.broker.clients import Services as ServerServices
from tests.broker.harness import MemoryNode

LISTENERS = {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"}
METHODS = {name: member for name, member in vars(Services).items() if inspect.isfunction(member) and name[0] != "_"}


def check_services(node: object) -> None:
    assert isinstance(node, Services)
    for name, method in METHODS.items():
        given, expected = inspect.signature(getattr(node, name)), inspect.signature(method)
        assert list(given.parameters) == [each for each in expected.parameters if each != "self"], name
        assert inspect.iscoroutinefunction(getattr(node, name)) == inspect.iscoroutinefunction(method), name


def test_a_node_provides_all_services_and_so_does_a_read_only_one_on_its_directory(tmp_path: Path) -> None:
    async def check(node: Node | ReadOnlyNode) -> None:
        await node.start()
        try:
            check_services(node)
        finally:
            await node.stop()

    async def both() -> None:
        await check(Node(server.load(None, {**LISTENERS, "log.dirs": str(tmp_path / "data")})))
        found = find_directories([tmp_path / "data"])
        await check(ReadOnlyNode(found, read_only_config(found, LISTENERS)))

    asyncio.run(both())


def test_the_nodes_of_tests_provide_all_services(tmp_path: Path) -> None:
    check_services(MemoryNode({"log.dirs": str(tmp_path)}))
    assert issubclass(ServerServices, MemoryNode)
    assert set(METHODS) >= {"monotonic_ms", "ask_quorum"}
