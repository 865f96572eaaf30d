"""What Apache Kafka 4.3.1 answered to requests about settings and features, and nodes in the state it was in.

`cluster()` are exchanges with a cluster of four brokers, `node()` with one fresh node that is broker and controller.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from barnabas import wire
from barnabas.controller import features
from barnabas.metadata.loader import MetadataLoader
from barnabas.metadata.versions import KRAFT_VERSION
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.wire import APIS, Message, Uuid
from barnabas.wire.records.metadata import ConfigRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord
from tests.broker.harness import MemoryNode, register_broker
from tests.metadata import golden

_DATA = Path(__file__).parent / "data"
_SECRET = "not in the answers"

# The server.properties of node 1 of the cluster.
NODE_1 = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://127.0.0.1:19091,SASL://127.0.0.1:19101,CONTROLLER://127.0.0.1:19111",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:19091,SASL://127.0.0.1:19101,CONTROLLER://127.0.0.1:19111",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.quorum.bootstrap.servers": "127.0.0.1:19111,127.0.0.1:19112,127.0.0.1:19113",
    "controller.quorum.election.timeout.ms": "2500",
    "controller.quorum.fetch.timeout.ms": "6000",
    "log.dirs": "/var/lib/kafka-gold/node1/d0,/var/lib/kafka-gold/node1/d1",
    "broker.rack": "a",
    "broker.session.timeout.ms": "9000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl.plain.sasl.jaas.config": _SECRET,
    "listener.name.sasl.scram-sha-256.sasl.jaas.config": _SECRET,
    "listener.name.sasl.scram-sha-512.sasl.jaas.config": _SECRET,
    "delegation.token.secret.key": _SECRET,
    "num.partitions": "2",
    "default.replication.factor": "2",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.leader.rebalance.enable": "false",
    "replica.lag.time.max.ms": "8000",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.replica.fetchers": "1",
    "num.recovery.threads.per.data.dir": "1",
    "background.threads": "2",
    "log.index.size.max.bytes": "4096",
    "log.index.interval.bytes": "512",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.cleaner.io.buffer.size": "131072",
    "log.cleaner.backoff.ms": "2000",
    "metadata.log.max.record.bytes.between.snapshots": "120000",
    "internal.metadata.log.segment.bytes": "98304",
}
_AUTHORIZER = AuthorizerSettings(enabled=True, super_users=frozenset({"User:ANONYMOUS", "User:admin"}))


@cache
def _read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((_DATA / name).read_bytes()).splitlines()]


def cluster(api: str, *phases: str) -> list[dict[str, Any]]:
    """The exchanges of an API with the cluster, in the order of time."""
    return [each for each in _read("cluster_configs.jsonl.gz") if each["api"] == api and each["phase"] in phases]


def node(api: str) -> list[dict[str, Any]]:
    """The exchanges of an API with the one node."""
    return [each for each in _read("node_configs.jsonl.gz") if each["api"] == api]


def topics(*names: str) -> list[Message]:
    """The records of topics with one partition each."""
    records: list[Message] = []
    for name in names:
        topic_id = Uuid(name.encode().ljust(16, b"."))
        records.append(TopicRecord(name=name, topic_id=topic_id))
        records.append(
            PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0)
        )
    return records


def brokers(*broker_ids: int) -> list[Message]:
    """Brokers that support what this program does, and say so."""
    records: list[Message] = []
    for broker_id in broker_ids:
        record = register_broker(broker_id)
        record.features = [
            RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in features.SUPPORTED.items()
        ]
        records.append(record)
    return records


def node_1(node_id: int = 1) -> MemoryNode:
    """A node of the cluster when settings were about to be changed."""
    properties = {
        **NODE_1,
        "node.id": f"{node_id}",
        "log.dirs": NODE_1["log.dirs"].replace("node1", f"node{node_id}"),
    }
    return MemoryNode(properties, brokers=4, records=topics("cfg-a", "cfg-b", "cfg-alter"), authorizer=_AUTHORIZER)


def final_node_1() -> MemoryNode:
    """Node 1 of the cluster in its last state, as the metadata log tells it."""
    loader = MetadataLoader()
    end = golden.expected()["metadata_offset_before"]
    published = loader.load(batch for batch in golden.log() if batch.last_offset < end)
    return MemoryNode(NODE_1, image=published[-1].image, authorizer=_AUTHORIZER)


def one_node() -> MemoryNode:
    """The fresh node."""
    levels = {name: high for name, (_, high) in features.SUPPORTED.items() if name != KRAFT_VERSION}
    elr = ConfigRecord(resource_type=4, name="min.insync.replicas", value="1")
    return MemoryNode(
        {"num.io.threads": "4", "log.cleaner.threads": "2"},
        brokers=0,
        features=levels,
        records=[*brokers(1), *topics("t", "u"), elr],
        kraft_version=1,
    )


def answer(memory: MemoryNode, capture: dict[str, Any]) -> str:
    """The node's answer to the request of a capture, in hex."""
    principal = KafkaPrincipal("User", "alice") if capture["listener"] == "sasl" else ANONYMOUS
    frame = memory.answer(bytes.fromhex(capture["request_hex"]), listener=capture["listener"], principal=principal)
    assert frame is not None
    return frame.hex()


def check(memory: MemoryNode, captures: Iterable[dict[str, Any]], differences: Collection[str] = ()) -> None:
    """Every request is answered with Kafka's bytes; but for the cases that are known to differ, and they do."""
    differing = set()
    for capture in captures:
        got = answer(memory, capture)
        if got == capture["response_hex"]:
            continue
        differing.add(capture["case"])
        if capture["case"] not in differences:
            assert decode(capture, got) == decode(capture, capture["response_hex"]), capture["case"]
    assert differing == set(differences)


def decode(capture: dict[str, Any], response_hex: str) -> Any:
    """A response to the request of a capture."""
    frame, version = bytes.fromhex(response_hex), capture["version"]
    api = next(each for each in APIS.values() if each.name == capture["api"])
    return wire.decode(api.response, version, frame[4 + api.response_header_version(version) :])
