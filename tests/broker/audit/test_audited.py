"""Lines of a running node: which requests have one, and what it says."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from barnabas import wire
from barnabas.broker.audit.audited import BY_RECORDS, CHANGES, DATA, MAX_FAILED_LOGINS_PER_S
from barnabas.broker.context import Listener, Peer
from barnabas.broker.dispatch import dispatch
from barnabas.broker.node import Node
from barnabas.broker.read_only_node import ReadOnlyNode, find_directories, read_only_config
from barnabas.broker.served import WRITING_KEYS, served_keys
from barnabas.client import (
    Admin,
    AlterConfigOp,
    AlterConfigOpType,
    AuthenticationError,
    ConfigResource,
    NewTopic,
    sync,
)
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.principal import ANONYMOUS
from barnabas.testing import AsyncBroker, Broker, BrokerError, Security
from barnabas.wire import APIS, ApiKey
from barnabas.wire.messages.header import RequestHeader
from tests.broker.authorization_cases import built
from tests.broker.clients import RawClient

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
USERS = {"alice": "a", "root": "r"}
NODES = (
    "ControllerRegistration",
    "BrokerRegistration",
    "BrokerHeartbeat",
    "AllocateProducerIds",
    "AssignReplicasToDirs",
)


def settings(path: Path, **more: str) -> dict[str, str]:
    return {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:node;User:root",
        "barnabas.audit.log.path": str(path),
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def secured(path: Path, **more: str) -> Broker:
    return Broker(["orders"], security=Security("SASL_PLAINTEXT", ("PLAIN",), USERS), config=settings(path, **more))


def node_of(broker: Broker) -> Node:
    node = broker._broker._node
    assert node is not None
    return node


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines of clients."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in found if line["api"] not in NODES and line["principal"] != "User:node"]


def test_every_api_that_writes_has_its_place() -> None:
    placed = [*CHANGES, *DATA, *BY_RECORDS]
    assert len(placed) == len(set(placed))
    assert set(placed) >= WRITING_KEYS - {ApiKey.HEARTBEAT}  # which changes nothing that is stored
    assert set(placed) <= served_keys()


def test_a_denied_request_has_a_line_with_the_permissions_that_it_lacked(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with secured(path) as broker:
        with sync.Admin(broker.client_config("alice")) as admin:
            admin.create_topics([NewTopic("x"), NewTopic("y")])
            admin.delete_topics(["orders"])
            assert not admin.list_topics()  # a list that is only shorter is no refusal
        cluster_id = broker.cluster_id
    created, deleted = lines_of(path)
    assert created.pop("time").endswith("Z")
    assert created.pop("correlation_id") >= 0
    assert created == {
        "cluster": cluster_id,
        "node": 1,
        "principal": "User:alice",
        "address": "127.0.0.1",
        "listener": "SASL_PLAINTEXT",
        "api": "CreateTopics",
        "version": 7,
        "client_id": "barnabas",
        "outcome": "denied",
        "resources": [{"type": "TOPIC", "name": "x"}, {"type": "TOPIC", "name": "y"}],
        "errors": {"TOPIC_AUTHORIZATION_FAILED": 2},
        "denied": [
            {"operation": "CREATE", "type": "TOPIC", "name": "x"},
            {"operation": "CREATE", "type": "TOPIC", "name": "y"},
        ],
    }
    assert deleted["denied"] == [{"operation": "DESCRIBE", "type": "TOPIC", "name": "orders"}]


def test_a_named_topic_in_metadata_is_denied_and_a_list_of_all_is_not(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with secured(path) as broker, sync.Admin(broker.client_config("alice")) as admin:
        admin.describe_topics(["orders"])
    denied = [line for line in lines_of(path) if line["outcome"] == "denied"]
    assert denied
    assert {each["name"] for line in denied for each in line["denied"]} == {"orders"}


def test_a_change_has_the_offsets_of_its_records(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with secured(path) as broker:
        with sync.Admin(broker.client_config("root")) as admin:
            admin.create_topics([NewTopic("x", 3)])
            op = AlterConfigOp("retention.ms", AlterConfigOpType.SET, "1234567")
            admin.incremental_alter_configs({ConfigResource.topic("x"): [op]})
            admin.delete_topics(["x", "none"])
        epoch = node_of(broker).quorum.driver.core.epoch
    created, altered, deleted = lines_of(path)
    assert [line["outcome"] for line in (created, altered, deleted)] == ["done", "done", "partial"]
    first = created["metadata"][0]["first"]
    assert created["metadata"] == [{"epoch": epoch, "first": first, "last": first + 3}]
    assert altered["metadata"] == [{"epoch": epoch, "first": first + 4, "last": first + 4}]
    assert altered["resources"] == [{"type": "TOPIC", "name": "x", "settings": ["retention.ms"]}]
    assert "1234567" not in path.read_text()  # names, and no values
    assert deleted["metadata"] == [{"epoch": epoch, "first": first + 5, "last": first + 5}]
    assert deleted["errors"] == {"UNKNOWN_TOPIC_OR_PARTITION": 1}


def test_a_topic_that_a_request_creates_by_naming_it_is_attributed(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with secured(path, auto_create_topics_enable="true") as broker:
        with sync.Producer(broker.client_config("root")) as producer:
            producer.send("made", b"x").result()
        offset = node_of(broker).image.offset
    (line,) = [each for each in lines_of(path) if each.get("resources") == [{"type": "TOPIC", "name": "made"}]]
    assert (line["api"], line["principal"], line["outcome"]) == ("Metadata", "User:root", "done")
    assert 0 < line["metadata"][0]["first"] < line["metadata"][0]["last"] <= offset


def test_requests_of_producers_and_consumers_have_lines_if_that_is_set(tmp_path: Path) -> None:
    for name, wanted in (("off", False), ("on", True)):
        path = tmp_path / name
        broker = secured(path, barnabas_audit_log_data=str(wanted).lower())
        with broker, sync.Producer(broker.client_config("root")) as producer:
            producer.send("orders", b"x").result()
        assert any(line["api"] == "Produce" for line in lines_of(path)) is wanted


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_client_that_leaves_before_the_answer_is_still_named(tmp_path: Path, turns: int) -> None:
    path = tmp_path / "audit.log"
    topics = [{"name": f"t{n}", "num_partitions": 100, "replication_factor": 1} for n in range(20)]
    request = built("CreateTopicsRequest", {"topics": topics, "timeout_ms": 5000})
    header = RequestHeader(request_api_key=19, request_api_version=7, correlation_id=3, client_id="gone")
    frame = wire.encode(header, APIS[19].request_header_version(7)) + wire.encode(request, 7)

    async def run() -> None:
        async with AsyncBroker(config={"barnabas.audit.log.path": str(path)}) as broker:
            node = broker._running()
            before = node.image.offset
            answer = dispatch(frame, node, Peer("127.0.0.1", ANONYMOUS, Listener("PLAINTEXT", False)))
            assert inspect.isawaitable(answer)
            task = asyncio.ensure_future(answer)
            for _ in range(turns + 1):
                await asyncio.sleep(0)
            task.cancel()
            while node.image.topics.get("t19") is None:
                await asyncio.sleep(0.01)
            covered = range(before + 1, before + 1 + 20 * 101)
            assert covered.stop - 1 == node.image.offset
            offsets.extend(covered)

    offsets: list[int] = []
    asyncio.run(run())
    lines = [line for line in lines_of(path) if line["client_id"] == "gone"]
    assert {line["outcome"] for line in lines} == {"unanswered"}
    assert lines[0]["resources"][0] == {"type": "TOPIC", "name": "t0"}
    found = [n for line in lines for each in line.get("metadata", ()) for n in range(each["first"], each["last"] + 1)]
    assert found == offsets


def test_a_path_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    broker = Broker(config={"barnabas.audit.log.path": str(tmp_path / "missing" / "audit.log")})
    with pytest.raises(BrokerError, match=r"cannot write the audit log .*missing.*: No such file"), broker:
        pass


def test_long_lists_and_names_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"

    async def run() -> None:
        broker = AsyncBroker(config={"barnabas.audit.log.path": str(path)})
        async with broker, Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            await admin.delete_topics([f"none-{n}" for n in range(100)])
            await admin.delete_groups(["g" * 2000])

    asyncio.run(run())
    topics, group = (each for each in lines_of(path) if each["api"].startswith("Delete"))
    assert (len(topics["resources"]), topics["more_resources"]) == (64, 36)
    assert topics["errors"] == {"UNKNOWN_TOPIC_OR_PARTITION": 100}
    assert group["resources"][0]["name"].endswith("... (2000 characters)")


def test_acls_quotas_and_users_are_named_in_words(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    entry = AclEntry(
        *(ResourceType.TOPIC, "orders", PatternType.PREFIXED, "User:bob", "*"),
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    with secured(path) as broker, sync.Admin(broker.client_config("root")) as admin:
        admin.create_acls([entry])
    (line,) = lines_of(path)
    assert line["resources"] == [{"type": "ACL", "name": "ALLOW User:bob from * to READ on TOPIC PREFIXED orders"}]


def test_metrics_count_lines(tmp_path: Path) -> None:
    with Broker(["t"], config={"barnabas.audit.log.path": str(tmp_path / "audit.log")}, metrics=True) as broker:
        values: Mapping[str, str] = {}
        while not int(values.get("barnabas_audit_lines_written_total", 0)):  # lines are written in the background
            text = urlopen(broker.metrics_url).read().decode()
            values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("barnabas_audit"))
    assert int(values["barnabas_audit_lines_dropped_total"]) == 0


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    data = tmp_path / "data"
    with Broker(["orders"], data_dir=data):
        pass
    yield data


def test_a_read_only_node_shows_attempts_in_its_own_file_alone(directory: Path, tmp_path: Path) -> None:
    original, own = tmp_path / "original.log", tmp_path / "own.log"
    (directory / "server.properties").write_text(f"barnabas.audit.log.path={original}\n")

    async def run() -> None:
        found = find_directories([directory])
        config = read_only_config(found, {"listeners": "PLAINTEXT://127.0.0.1:0", "barnabas.audit.log.path": str(own)})
        node = ReadOnlyNode(found, config)
        await node.start()
        try:
            host, port = node.addresses["PLAINTEXT"]
            async with Admin({"bootstrap.servers": f"{host}:{port}"}) as admin:
                await admin.delete_topics(["orders"])
        finally:
            await node.stop()

    asyncio.run(run())
    (line,) = lines_of(own)
    assert (line["api"], line["outcome"], line["errors"]) == ("DeleteTopics", "failed", {"POLICY_VIOLATION": 1})
    assert not original.exists()


def test_a_failed_login_has_a_line_with_the_user_that_was_claimed(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with secured(path) as broker:
        wrong = {"sasl.username": "alice", "sasl.password": "a-wrong-word"}
        with pytest.raises(AuthenticationError), sync.Admin(broker.client_config("alice") | wrong) as admin:
            admin.list_topics()
    (line,) = lines_of(path)
    assert line["principal"] == "User:ANONYMOUS" and line["outcome"] == "denied"
    assert line["api"] == "SaslAuthenticate" and line["client_id"] == "barnabas"
    assert line["resources"] == [{"type": "USER", "name": "alice"}]
    assert line["errors"] == {"SASL_AUTHENTICATION_FAILED": 1}
    assert "a-wrong-word" not in path.read_text()


def test_many_failed_logins_have_few_lines_and_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"

    async def fail(broker: Broker, count: int) -> None:
        for _ in range(count):
            client = RawClient(*await asyncio.open_connection(broker.host, broker.port))
            client.send(b"\0\0\0\x0f\0\3\0\1\0\0\0\1\0\1x\0\0\0\0")  # Metadata before a login
            assert await client.is_closed()
            await client.close()

    with secured(path, connection_failed_authentication_delay_ms="0") as broker:
        audit = node_of(broker).audit
        assert audit is not None
        now_ms = 5000
        audit._monotonic_ms = lambda: now_ms
        asyncio.run(fail(broker, MAX_FAILED_LOGINS_PER_S + 7))
        now_ms = 6000
        asyncio.run(fail(broker, 1))
    found = lines_of(path)
    assert len(found) == MAX_FAILED_LOGINS_PER_S + 1
    assert [line.get("more_failed_logins") for line in found] == [None] * MAX_FAILED_LOGINS_PER_S + [7]
    assert {(line["api"], *line["errors"]) for line in found} == {("Metadata", "ILLEGAL_SASL_STATE")}
