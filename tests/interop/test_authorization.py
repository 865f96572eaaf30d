"""Every API with every choice of its permissions withheld and granted: the answers are Apache Kafka's in the same run.

So are they where everyone is allowed what no entry is about, and where everyone is allowed everything and the choice is denied.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest
from tools.apache_kafka import HOST, ApacheKafka, free_ports

from barnabas import wire
from barnabas.operations.security.node_settings import jaas_line
from barnabas.security.acl import CLUSTER_NAME, AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.authorizer import SUPPORTED_OPERATIONS
from barnabas.security.required_operations import Required
from barnabas.testing import Broker, Security
from barnabas.wire import APIS, ZERO_UUID, ErrorCode, Message, Uuid
from barnabas.wire.messages.header import RequestHeader
from tests.broker.authorization_cases import (
    CASES,
    CONTROLLER,
    NOBODYS_ID,
    RECORDS,
    SASL,
    Case,
    Cast,
    built,
    cast,
    entry,
    token,
)

pytestmark = pytest.mark.interop

ADMIN, PASSWORD = "admin", "x"
AT_ONCE = 100
ATTEMPTS = 1200  # a tenth of a second apart
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SETTINGS = {
    "authorizer.class.name": AUTHORIZER,
    "super.users": f"User:{ADMIN};User:node",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "auto.create.topics.enable": "true",
    "num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "delegation.token.secret.key": "a secret of both",
    "max.connections.per.ip": "5000",
    # A busy machine may take minutes to prepare everything.
    "group.consumer.max.session.timeout.ms": "3600000",
    "group.consumer.session.timeout.ms": "3600000",
}
FAILS_IN_KAFKA = {("DescribeUserScramCredentials", CONTROLLER), ("DescribeDelegationToken", CONTROLLER)}
"""Kafka has these APIs on the listener of a controller, but its controllers do not implement them."""
HAS_GROUPS = {"OffsetFetch", "OffsetDelete", "DescribeGroups", "DeleteGroups", "ListGroups"}
HAS_RECORDS = {"Fetch", "ListOffsets", "DeleteRecords"}
HAS_TRANSACTIONS = {"DescribeTransactions", "ListTransactions"}


class World(NamedTuple):
    """What the nodes allow besides, and what the chosen permissions are: allowed or denied."""

    name: str
    settings: Mapping[str, str] = {}
    permission: AclPermissionType = AclPermissionType.ALLOW
    entries: tuple[AclEntry, ...] = ()

    @property
    def allows_more(self) -> bool:
        return self.name != "granted"


def _for_everyone(kind: ResourceType) -> AclEntry:
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else "*"
    return AclEntry(kind, name, PatternType.LITERAL, "User:*", "*", AclOperation.ALL, AclPermissionType.ALLOW)


WORLDS = (
    World("granted"),
    World("granted, and allowed without any entry", {"allow.everyone.if.no.acl.found": "true"}),
    World("denied", {}, AclPermissionType.DENY, tuple(map(_for_everyone, SUPPORTED_OPERATIONS))),
)


class Attempt(NamedTuple):
    """One request of one principal."""

    case: Case
    version: int
    granted: tuple[Required, ...]
    names: Cast

    def __str__(self) -> str:
        given = " and ".join(f"{each.operation.name} on {each.resource_type.name}" for each in self.granted)
        return f"{self.case} v{self.version} with {given or 'nothing'}"


def attempts() -> list[Attempt]:
    found: list[Attempt] = []
    for case in CASES:
        if case.key not in SASL:
            for version in case.all_versions:
                for granted in case.subsets:
                    found.append(Attempt(case, version, granted, cast(f"c{len(found):04}")))
    return found


class Client:
    """A connection after a login."""

    def __init__(self, address: tuple[str, int], user: str) -> None:
        self._sock = socket.create_connection(address, 30)
        self.send(built("SaslHandshakeRequest", {"mechanism": "PLAIN"}), 1)
        token = f"\0{user}\0{PASSWORD}".encode()
        done = self.send(built("SaslAuthenticateRequest", {"auth_bytes": token}), 2)
        assert done["errorCode"] == 0, done

    def send(self, request: Message, version: int) -> dict[str, Any]:
        """The response as JSON; `closed` if the node has closed the connection."""
        key = request.schema().key or 0
        api = APIS[key]
        header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=9, client_id="c")
        frame = wire.encode(header, api.request_header_version(version)) + wire.encode(request, version)
        self._sock.sendall(struct.pack(">i", len(frame)) + frame)
        data = b""
        while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
            more = self._sock.recv(1 << 16)
            if not more:
                return {"closed": True}
            data += more
        body = data[8 + api.response_header_version(version) :]
        response: Message = wire.decode(api.response, version, body)
        return response.to_json(version)

    def close(self) -> None:
        self._sock.close()


class Side:
    """One of the two nodes."""

    def __init__(self, broker: tuple[str, int], controller: tuple[str, int]) -> None:
        self._addresses = {"broker": broker, "controller": controller}
        self.topic_ids: dict[str, Uuid] = {}

    def ask(self, listener: str, user: str, request: Message, version: int) -> dict[str, Any]:
        client = Client(self._addresses[listener], user)
        try:
            return client.send(request, version)
        finally:
            client.close()

    def prepare(self, wanted: Sequence[Attempt], world: World) -> None:
        """Create the topics, ACLs, offsets, records and transactions that the requests are about."""
        admin = Client(self._addresses["broker"], ADMIN)
        for at in range(0, len(wanted), AT_ONCE):
            some = wanted[at : at + AT_ONCE]
            topics = [{"name": each.names.topic, "num_partitions": 1, "replication_factor": 1} for each in some]
            made = admin.send(built("CreateTopicsRequest", {"topics": topics, "timeout_ms": 60_000}), 7)
            for row in made["topics"]:
                assert row["errorCode"] == 0, row
                self.topic_ids[row["name"]] = Uuid.parse(row["topicId"])
        chosen = [entry(given, each.names) for each in wanted for given in each.granted]
        entries = [*world.entries, *(each._replace(permission=world.permission) for each in chosen)]
        for at in range(0, len(entries), AT_ONCE):
            rows = [_creation(each) for each in entries[at : at + AT_ONCE]]
            done = admin.send(built("CreateAclsRequest", {"creations": rows}), 3)
            assert not any(row["errorCode"] for row in done["results"]), done
        self._coordinators(admin)
        for each in wanted:
            self._prepare(admin, each)
        admin.close()

    def _coordinators(self, admin: Client) -> None:
        for kind, key in ((0, "any"), (1, "any"), (2, f"g:{NOBODYS_ID}:0")):
            for _ in range(ATTEMPTS):
                find = built("FindCoordinatorRequest", {"key_type": kind, "coordinator_keys": [key]})
                found = admin.send(find, 6)
                if found["coordinators"][0]["errorCode"] == 0:
                    break
                time.sleep(0.1)
            else:
                pytest.fail(f"no coordinator: {found}")

    def _prepare(self, admin: Client, attempt: Attempt) -> None:
        names, api = attempt.names, attempt.case.api
        if api in HAS_GROUPS:
            partition = {"partition_index": 0, "committed_offset": 5}
            topics = [{"name": names.topic, "partitions": [partition]}]
            commit = {"group_id": names.group, "generation_id_or_member_epoch": -1, "topics": topics}
            _until(
                admin, built("OffsetCommitRequest", commit), 9, lambda r: r["topics"][0]["partitions"][0]["errorCode"]
            )
        if api in HAS_RECORDS:
            data = {"name": names.topic, "partition_data": [{"index": 0, "records": RECORDS}]}
            produce = built("ProduceRequest", {"acks": -1, "timeout_ms": 5000, "topic_data": [data]})
            _until(admin, produce, 12, lambda r: r["responses"][0]["partitionResponses"][0]["errorCode"])
        if api in HAS_TRANSACTIONS:
            init = {"transactional_id": names.transactional_id, "transaction_timeout_ms": 600_000}
            begun = _until(admin, built("InitProducerIdRequest", init), 4, lambda r: r["errorCode"])
            add = {
                "v3_and_below_transactional_id": names.transactional_id,
                "v3_and_below_producer_id": begun["producerId"],
                "v3_and_below_producer_epoch": begun["producerEpoch"],
                "v3_and_below_topics": [{"name": names.topic, "partitions": [0]}],
            }
            first = lambda r: r["resultsByTopicV3AndBelow"][0]["resultsByPartition"][0]["partitionErrorCode"]  # noqa: E731
            _until(admin, built("AddPartitionsToTxnRequest", add), 3, first)
        if api == "DescribeDelegationToken":
            _until(admin, built("CreateDelegationTokenRequest", token(names, 3)), 3, lambda r: r["errorCode"])
            _until(
                admin, attempt.case.build(names, 3), 3, lambda r: not r["tokens"]
            )  # the broker follows the controller
        if api == "ConsumerGroupDescribe":
            member = {
                "group_id": names.consumer_group,
                "member_id": "a-member",
                "rebalance_timeout_ms": 600_000,
                "subscribed_topic_names": [names.topic],
                "topic_partitions": [],
            }
            _until(admin, built("ConsumerGroupHeartbeatRequest", member), 1, lambda r: r["errorCode"])


def _until(client: Client, request: Message, version: int, code: Any) -> dict[str, Any]:
    """Send a request until it succeeds: a coordinator may still load, a leader may not be known yet."""
    for _ in range(ATTEMPTS):
        found = client.send(request, version)
        if code(found) == 0:
            return found
        time.sleep(0.1)
    raise AssertionError(found)


def _creation(each: AclEntry) -> dict[str, Any]:
    return {
        "resource_type": int(each.resource_type),
        "resource_name": each.resource_name,
        "resource_pattern_type": int(each.pattern_type),
        "principal": each.principal,
        "host": each.host,
        "operation": int(each.operation),
        "permission_type": int(each.permission),
    }


class Sides(NamedTuple):
    kafka: Side
    barnabas: Side
    world: World


@pytest.fixture(scope="module", params=WORLDS, ids=lambda world: world.name)
def sides(request: pytest.FixtureRequest) -> Iterator[Sides]:
    world: World = request.param
    wanted = attempts()
    users = dict.fromkeys((ADMIN, *(each.names.principal for each in wanted)), PASSWORD)
    security = Security("SASL_PLAINTEXT", ("PLAIN",), users)
    ports = free_ports(2)
    own = security.server_settings((), is_authorizing=True)
    everyone = {"listener.name.controller.plain.sasl.jaas.config": jaas_line("PLAIN", ("node", PASSWORD), users)}
    of_listener = {"listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas_line("PLAIN", ("node", PASSWORD), users)}
    settings = {**own, **of_listener, **everyone, **SETTINGS, **world.settings}
    at = {
        "listeners": f"SASL_PLAINTEXT://{HOST}:{ports[0]},CONTROLLER://{HOST}:{ports[1]}",
        "controller.quorum.bootstrap.servers": f"{HOST}:{ports[1]}",
    }
    apache = ApacheKafka({**settings, **at})
    apache.address = (HOST, ports[0])
    with ExitStack() as stack:
        stack.enter_context(apache)
        broker = stack.enter_context(Broker(security=security, config={**settings, **of_listener, **everyone}))
        host, _, port = broker.listeners[CONTROLLER.upper()].rpartition(":")
        found = Sides(
            Side(apache.address, (HOST, ports[1])), Side((broker.host, broker.port), (host, int(port))), world
        )
        for side in (found.kafka, found.barnabas):
            side.prepare(wanted, world)
        yield found


VOLATILE = {
    *(
        "throttleTimeMs",
        "host",
        "port",
        "clusterId",
        "controllerId",
        "producerId",
        "producerEpoch",
        "logDir",
        "brokerEpoch",
    ),
    *(
        "logAppendTimeMs",
        "totalBytes",
        "usableBytes",
        "transactionStartTimeMs",
        "lastCaughtUpTimestamp",
        "highWatermark",
    ),
    *("lastFetchTimestamp", "logEndOffset", "replicaDirectoryId", "clientInstanceId", "subscriptionId", "memberId"),
    *("finalizedFeaturesEpoch", "sessionId", "partitionSize", "apiKeys", "supportedFeatures", "tokenId", "hmac"),
    *("issueTimestamp", "expiryTimestamp", "maxTimestamp", "issueTimestampMs", "expiryTimestampMs", "maxTimestampMs"),
}
CLUSTER_ID = re.compile(r'cluster id "[\w-]{22}"')
REFUSAL = re.compile(r"^.* needs (\w+) permission\.$", re.DOTALL)


def comparable(value: Any, names: Mapping[str, str], field: str = "") -> Any:
    """A response without what differs between any two clusters."""
    if isinstance(value, dict):
        return {key: comparable(each, names, key) for key, each in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        rows = [comparable(each, names, field) for each in value]
        return sorted(rows, key=repr)
    if isinstance(value, str):
        if field == "errorMessage":
            return CLUSTER_ID.sub(r"cluster id ...", REFUSAL.sub(r"... needs \1 permission.", value))
        if field == "topicId" and value != str(ZERO_UUID):
            return names.get(value, "of a new topic")
        return names.get(value, value)
    return value


@pytest.mark.parametrize("case", [case for case in CASES if case.key not in SASL], ids=str)
def test_the_answers_with_each_choice_of_permissions_are_kafkas(sides: Sides, case: Case) -> None:
    differing = []
    for attempt in attempts():
        if str(attempt.case) != str(case):
            continue
        answers = []
        for side in (sides.kafka, sides.barnabas):
            names = attempt.names._replace(topic_id=side.topic_ids[attempt.names.topic])
            request = case.build(names, attempt.version)
            answer = side.ask(case.listener, names.principal, request, attempt.version)
            for _ in range(ATTEMPTS if case.api == "ShareFetch" else 0):
                if "'errorCode': -1" not in str(answer):
                    break
                time.sleep(0.1)  # a busy Kafka does not get the state of a new share partition in time
                answer = side.ask(case.listener, names.principal, request, attempt.version)
            answers.append(comparable(answer, {str(topic_id): name for name, topic_id in side.topic_ids.items()}))
        if (case.api, case.listener) in FAILS_IN_KAFKA:
            assert answers[0]["errorCode"] == ErrorCode.UNKNOWN_SERVER_ERROR, attempt
            is_allowed = attempt.granted or sides.world.allows_more
            assert is_allowed or answers[1]["errorCode"] or answers[1]["tokens"] == [], attempt
        elif answers[0] != answers[1]:
            differing.append(f"{attempt}\n    Kafka:    {answers[0]}\n    barnabas: {answers[1]}")
    if differing:
        pytest.fail("\n".join(differing), pytrace=False)
