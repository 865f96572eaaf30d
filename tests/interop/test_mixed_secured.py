"""Nodes of Apache Kafka and of barnabas that trust nobody without a login or a certificate, each other included.

Controllers and brokers of both kinds log in to each other and replicate, and requests that a broker of one kind forwards to a
controller of the other stay those of the client: its permissions count. Users and delegation tokens made through one broker log
in to the other.
"""

from __future__ import annotations

import asyncio
import base64
from functools import partial
from pathlib import Path

import pytest

from barnabas.client import AuthenticationError, NewTopic, TopicPartition, sync
from barnabas.client.admin.users import ScramMechanism, ScramUpsertion
from barnabas.client.cluster import Cluster
from barnabas.client.routing import node as at_node
from barnabas.client.settings import load
from barnabas.operations.security.node_settings import jaas_line
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from tests.broker.test_secured_cluster import AUTHORIZED, PROTECTIONS
from tests.crash.clients import wait_until
from tests.interop.mixed import Mix
from tests.interop.test_mixed_life import all_in_sync
from tests.interop.test_mixed_operations import quorum_of

pytestmark = pytest.mark.interop

MAY_CREATE = AclEntry(
    *(ResourceType.TOPIC, "of-bob-", PatternType.PREFIXED, "User:bob", "127.0.0.1"),
    *(AclOperation.CREATE, AclPermissionType.ALLOW),
)
MAY_WRITE = MAY_CREATE._replace(operation=AclOperation.WRITE)
TOKENS = {"delegation.token.secret.key": "of all nodes"}


class Secured(Mix):
    """The users of `security` may connect."""

    def __init__(self, directory: Path, nodes: dict[int, str], protection: str) -> None:
        self.security, settings = PROTECTIONS[protection]
        super().__init__(directory, nodes, {**AUTHORIZED, **TOKENS, **settings}, security=self.security)

    def config(self, user: str, node_id: int | None = None) -> dict[str, str]:
        """The settings of a client, which begins with one broker or with all."""
        address = self.bootstrap if node_id is None else self.at(node_id)
        return {"bootstrap.servers": address, "default.api.timeout.ms": "90000", **self.security.client_config(user)}


def produce_and_consume(mix: Secured, partitions: int, value: bytes) -> None:
    """Produce to each partition, whose leaders are different brokers, and read it again."""
    with sync.Producer({**mix.config("alice"), "acks": "all"}) as producer:
        for partition in range(partitions):
            producer.send("t", value, partition=partition).result(60)
    with sync.Consumer({**mix.config("alice"), "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition("t", partition) for partition in range(partitions)])
        found = 0

        def is_read() -> bool:
            nonlocal found
            found += sum(record.value == value for record in consumer.poll(500))
            return found == partitions

        wait_until(is_read, "all records are read", 60)


def check_permissions(mix: Secured, admin: sync.Admin, prefix: str) -> None:
    for entry in (MAY_CREATE, MAY_WRITE):
        assert admin.create_acls([entry]) == {entry: None}
    for node_id in mix.broker_ids:
        with sync.Admin(mix.config("bob", node_id)) as bob:
            ours, others = f"of-bob-{prefix}{node_id}", f"of-others-{prefix}{node_id}"

            def is_made(bob: sync.Admin = bob, ours: str = ours) -> bool:
                made = bob.create_topics([NewTopic(ours, 1, 1)])[ours]
                return not isinstance(made, KafkaError) or made.code is ErrorCode.TOPIC_ALREADY_EXISTS

            wait_until(is_made, f"node {node_id} lets bob create topics", 60)
            refused = bob.create_topics([NewTopic(others, 1, 1)])[others]
            assert isinstance(refused, KafkaError) and refused.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED, refused

            def is_listed(bob: sync.Admin = bob, ours: str = ours) -> bool:
                return ours in [each.name for each in bob.list_topics()]

            wait_until(is_listed, f"node {node_id} lists the topic of bob", 60)


def check_users_and_tokens(mix: Secured, admin: sync.Admin) -> None:
    """A user and a delegation token that were made through one broker log in to each."""
    mechanism = mix.security.mechanisms[0]
    upsertion = ScramUpsertion("carol", ScramMechanism.SCRAM_SHA_512, "carols secret")
    assert set(admin.alter_user_scram_credentials([upsertion]).values()) == {None}
    logins: list[tuple[dict[str, str], bool]] = []
    for node_id in mix.broker_ids:
        carol = {**mix.config("bob", node_id), "sasl.username": "carol", "sasl.password": "carols secret"}
        logins += [(carol, True), ({**carol, "sasl.password": "another"}, False)]
    for node_id in mix.broker_ids:
        token = asyncio.run(new_token(mix.config("bob", node_id), node_id))
        password = base64.b64encode(bytes(token.hmac)).decode()
        line = jaas_line(mechanism, (token.token_id, password), {}).replace(";", ' tokenauth="true";')
        for other in mix.broker_ids:
            settings = mix.config("bob", other) | {"sasl.jaas.config": line}
            logins.append(({k: v for k, v in settings.items() if k not in ("sasl.username", "sasl.password")}, True))
    for settings, is_good in logins:
        if is_good:  # as soon as the broker knows it
            wait_until(partial(may_log_in, settings), "the user or token may log in", 60)
        else:
            assert not may_log_in(settings)


async def new_token(settings: dict[str, str], node_id: int) -> CreateDelegationTokenResponse:
    request = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name=None, max_lifetime_ms=-1)
    async with Cluster(load(settings)) as cluster:
        token: CreateDelegationTokenResponse = await cluster.call(request, at_node(node_id), repeat=False)
    return token


def may_log_in(settings: dict[str, str]) -> bool:
    try:
        with sync.Admin(settings) as admin:
            admin.describe_cluster()
            return True
    except AuthenticationError:
        return False


@pytest.mark.parametrize("controller", ["apache", "barnabas"])
@pytest.mark.parametrize("protection", PROTECTIONS)
def test_brokers_of_both_kinds_with_a_controller_of_either(tmp_path: Path, protection: str, controller: str) -> None:
    nodes = {101: f"{controller} controller", 1: "barnabas broker", 2: "apache broker"}
    with Secured(tmp_path, nodes, protection) as mix, sync.Admin(mix.config("alice")) as admin:
        created = admin.create_topics(
            [NewTopic("t", assignments=[[1, 2], [2, 1]], configs={"min.insync.replicas": "2"})]
        )
        assert not isinstance(created["t"], KafkaError), created
        wait_until(lambda: all_in_sync(admin, ["t"]), "both brokers are in sync", 120)
        produce_and_consume(mix, 2, b"one")
        check_permissions(mix, admin, "")
        if mix.security.mechanisms[0].startswith("SCRAM") and mix.security.has_sasl:
            check_users_and_tokens(mix, admin)
        assert mix.complaints() == []
        mix.stop()
        mix.assert_replicas_equal({"t-0": (1, 2), "t-1": (1, 2)})
        mix.assert_metadata_equal()


@pytest.mark.parametrize("protection", list(PROTECTIONS)[:2])
def test_controllers_of_both_kinds_elect_each_other(tmp_path: Path, protection: str) -> None:
    nodes = {1: "barnabas broker,controller", 2: "apache broker,controller", 3: "barnabas broker,controller"}
    with Secured(tmp_path, nodes, protection) as mix, sync.Admin(mix.config("alice")) as admin:
        assignments = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
        created = admin.create_topics([NewTopic("t", assignments=assignments)])
        assert not isinstance(created["t"], KafkaError), created
        wait_until(lambda: all_in_sync(admin, ["t"]), "all brokers are in sync", 120)
        produce_and_consume(mix, 3, b"before")
        check_permissions(mix, admin, "before-")
        old = quorum_of(admin).leader_id
        mix.kill(old)
        wait_until(lambda: quorum_of(admin).leader_id not in (old, -1), f"another leader than {old}", 120)
        mix.start(old)
        wait_until(lambda: all_in_sync(admin, ["t"]), "all brokers are in sync again", 120)
        produce_and_consume(mix, 3, b"after")
        check_permissions(mix, admin, "after-")
        mix.stop()
        mix.assert_metadata_equal()
