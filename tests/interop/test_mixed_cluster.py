"""One cluster of Apache Kafka and barnabas: a broker of one, and a controller of the other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest
from tools.apache_kafka import HOST, ApacheKafka, free_ports, new_cluster_id

from barnabas.broker.node import Node
from barnabas.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.config import server
from barnabas.operations.local_cluster.formatting import format_joining
from barnabas.wire import KafkaError
from tests.interop.test_quorum_with_apache import controller

pytestmark = pytest.mark.interop
MAP = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"


async def use(bootstrap: str, broker_id: int, controller_id: int) -> None:
    """Create, alter and delete through the broker, which forwards to the other kind of controller."""
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        (created,) = (await admin.create_topics([NewTopic("t", 2, 1)])).values()
        assert not isinstance(created, KafkaError), created
        (refused,) = (await admin.create_topics([NewTopic("t", 2, 1)])).values()
        assert isinstance(refused, KafkaError) and refused.code.name == "TOPIC_ALREADY_EXISTS"
        quorum = await admin.describe_quorum()
        assert quorum.leader_id == controller_id
        assert [each.replica_id for each in quorum.observers] == [broker_id]
        described = await admin.describe_cluster()
        assert [(node.id, node.is_fenced) for node in described.nodes] == [(broker_id, False)]
        (deleted,) = (await admin.delete_topics(["t"])).values()
        assert deleted is None


def test_a_broker_of_barnabas_registers_with_a_controller_of_apache_kafka_and_forwards_to_it(tmp_path: Path) -> None:
    async def test() -> None:
        (port,) = free_ports(1)
        cluster_id = new_cluster_id()
        apache = controller(1, port, cluster_id, {"controller.quorum.bootstrap.servers": f"{HOST}:{port}"})
        try:
            await asyncio.to_thread(apache.start)
            format_joining(cluster_id, 2, tmp_path / "data", lambda: 0, Random())
            settings = {
                "process.roles": "broker",
                "node.id": "2",
                "listeners": f"PLAINTEXT://{HOST}:0",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": MAP,
                "controller.quorum.bootstrap.servers": f"{HOST}:{port}",
                "log.dirs": str(tmp_path / "data"),
            }
            broker = Node(server.load(settings))
            await broker.start()
            try:
                host, client_port = broker.addresses["PLAINTEXT"]
                await use(f"{host}:{client_port}", 2, 1)
            finally:
                await broker.stop()
        finally:
            apache.close()

    asyncio.run(test())


def test_a_broker_of_apache_kafka_registers_with_a_controller_of_barnabas_and_forwards_to_it(tmp_path: Path) -> None:
    async def test() -> None:
        settings = {
            "process.roles": "controller",
            "node.id": "1",
            "listeners": f"CONTROLLER://{HOST}:0",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(tmp_path / "data"),
        }
        node = Node(server.load(None, settings))
        await node.start()
        try:
            _, port = node.addresses["CONTROLLER"]
            apache = ApacheKafka(
                {
                    "process.roles": "broker",
                    "node.id": "2",
                    "listener.security.protocol.map": MAP,
                    "controller.quorum.bootstrap.servers": f"{HOST}:{port}",
                },
                cluster_id=node.cluster_id,
                format_args=[],
            )
            try:
                await asyncio.to_thread(apache.start)
                await use(apache.bootstrap, 2, 1)
            finally:
                await asyncio.to_thread(apache.stop)
                apache.close()
            async with asyncio.timeout(20):
                while not node.image.brokers[2].fenced:
                    await asyncio.sleep(0.05)
        finally:
            await node.stop()

    asyncio.run(test())
