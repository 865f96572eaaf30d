"""A node of barnabas that believes in more brokers: they have registered through the protocol, and that is all of them.

So partitions can be given to them, and a reassignment that adds one never ends by itself. What is sent to them, the node
answers, as a broker that has no replicas of its own would; those that are `refusing` cannot be reached at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence

from barnabas.client.cluster import Cluster
from barnabas.testing import Broker
from barnabas.wire import Uuid
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest

PATIENT = {"broker.session.timeout.ms": "600000"}
_FEATURES = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "metadata.version": (7, 30),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}


@contextlib.contextmanager
def with_absent_brokers(
    racks: Mapping[int, str | None], config: Mapping[str, str] | None = None, *, refusing: Collection[int] = ()
) -> Iterator[Broker]:
    """Broker 1, which runs, and those that do not, with their racks; the rack of broker 1 is taken from there as well."""
    rack = racks.get(1)
    own = {"broker.rack": rack} if rack else {}
    absent = {each: rack for each, rack in racks.items() if each != 1}
    with Broker(config={**PATIENT, **own, **(config or {})}) as broker, contextlib.ExitStack() as stack:
        ports = [_refusing_port(stack) if each in refusing else _forwarding_port(stack, broker) for each in absent]
        asyncio.run(_register(broker, absent, ports))
        yield broker


def _refusing_port(stack: contextlib.ExitStack) -> int:
    bound = stack.enter_context(socket.socket())
    bound.bind(("127.0.0.1", 0))
    port: int = bound.getsockname()[1]
    return port


def _forwarding_port(stack: contextlib.ExitStack, broker: Broker) -> int:
    """A port behind which is the node itself."""
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    stack.callback(server.shutdown, socket.SHUT_RDWR)

    def accept() -> None:
        with contextlib.suppress(OSError):  # it is over
            while True:
                taken, _ = server.accept()
                onward = socket.create_connection((broker.host, broker.port))
                for pair in ((taken, onward), (onward, taken)):
                    threading.Thread(target=_pump, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    port: int = server.getsockname()[1]
    return port


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError), source:
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


async def _register(broker: Broker, racks: Mapping[int, str | None], ports: Sequence[int]) -> None:
    async with Cluster({"bootstrap.controllers": broker.listeners["CONTROLLER"]}) as controllers:
        for (broker_id, rack), port in zip(racks.items(), ports, strict=True):
            epoch = await _register_one(controllers, broker, broker_id, rack, port)
            assert not await _beat(controllers, broker_id, epoch, want_fence=False)


async def _register_one(controllers: Cluster, broker: Broker, broker_id: int, rack: str | None, port: int) -> int:
    """Register a broker, again if it is registered already, and return its epoch."""
    of = BrokerRegistrationRequest
    registered = await controllers.call(
        of(
            broker_id=broker_id,
            cluster_id=broker.cluster_id,
            incarnation_id=Uuid(bytes([broker_id, 7]) * 8),
            listeners=[of.Listener(name="PLAINTEXT", host="127.0.0.1", port=port)],
            features=[
                of.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in _FEATURES.items()
            ],
            rack=rack,
            log_dirs=[Uuid(bytes([broker_id, 9]) * 8)],
        )
    )
    assert registered.error_code == 0, registered
    return int(registered.broker_epoch)


async def _beat(controllers: Cluster, broker_id: int, epoch: int, *, want_fence: bool) -> bool:
    """Send a heartbeat, and return whether the broker is fenced then."""
    answer = await controllers.call(
        BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=2**40, want_fence=want_fence
        )
    )
    assert answer.error_code == 0, answer
    return bool(answer.is_fenced)


def take_out_of_sync(broker: Broker, broker_id: int, topics: Collection[str]) -> None:
    """Fence an absent broker and unfence it: it leaves the ISR of its partitions, and does not come back by itself."""

    async def take_out() -> None:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        controllers = {"bootstrap.controllers": broker.listeners["CONTROLLER"]}
        async with Cluster(servers) as cluster, Cluster(controllers) as quorum:
            node = (await cluster.metadata(None)).nodes[broker_id]
            epoch = await _register_one(quorum, broker, broker_id, node.rack, node.port)
            assert await _beat(quorum, broker_id, epoch, want_fence=True)
            assert not await _beat(quorum, broker_id, epoch, want_fence=False)
            while True:
                state = await cluster.metadata(None)
                found = [each for name in topics for each in state.topics[name].partitions.values()]
                if broker_id in state.nodes and all(broker_id not in each.isr for each in found):
                    return
                await asyncio.sleep(0.01)

    asyncio.run(take_out())


def create_topic(broker: Broker, name: str, *assignments: Sequence[int]) -> None:
    """A topic with these replicas for its partitions."""

    async def create() -> None:
        of = CreateTopicsRequest
        rows = [
            of.CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
            for index, ids in enumerate(assignments)
        ]
        topic = of.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=rows)
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            response = await cluster.call(of(topics=[topic], timeout_ms=5000))
            assert response.topics[0].error_code == 0, response.topics[0].error_message
            while name not in (await cluster.metadata([name])).topics:
                await asyncio.sleep(0.01)

    asyncio.run(create())
