"""Every API as a principal without permissions; and what handlers ask for, compared with the declared table."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from barnabas import wire
from barnabas.broker.context import Context, Listener, Peer
from barnabas.broker.counters import count_errors
from barnabas.broker.dispatch import Refused, dispatch
from barnabas.broker.node import Node
from barnabas.broker.served import served_apis, served_keys, served_versions
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.security.principal import KafkaPrincipal
from barnabas.security.required_operations import REQUIRED, Listeners
from barnabas.testing import AsyncBroker
from barnabas.wire import APIS, EncodeError, Message, Uuid
from barnabas.wire.messages.header import RequestHeader
from tests.broker.authorization_cases import BROKER, CASES, CONTROLLER, SASL, Case, Cast, built, token

ROOT = Path(__file__).parents[2]
ROOT_USER = KafkaPrincipal("User", "root")
STRANGER = KafkaPrincipal("User", "stranger")
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root;User:ANONYMOUS",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "delegation.token.secret.key": "a secret",
}
LISTENERS = {BROKER: Listener("PLAINTEXT", False), CONTROLLER: Listener("CONTROLLER", True)}
NOT_ASKED = {
    ("InitProducerId", AclOperation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID),  # its version is not served
}
"""Permissions that no request of the served versions needs."""
FOR_ONESELF = {("CreateDelegationToken", 1), ("CreateDelegationToken", 2)}
"""Requests that need no permission and change something: a token for the caller, who has to be authenticated only."""
ASKED_LATER = {
    ("StreamsGroupHeartbeat", AclOperation.CREATE, ResourceType.TOPIC),
    ("StreamsGroupHeartbeat", AclOperation.CREATE, ResourceType.CLUSTER),
    ("StreamsGroupDescribe", AclOperation.DESCRIBE, ResourceType.TOPIC),
    ("ShareGroupDescribe", AclOperation.DESCRIBE, ResourceType.TOPIC),
    ("ShareAcknowledge", AclOperation.READ, ResourceType.TOPIC),
}
"""Permissions that need a streams group with a topology, a share group with members, or a share session. tests/groups and
tests/broker/api/test_share_fetch.py have them.
"""
SOFT_STATE = {"GetTelemetrySubscriptions", "PushTelemetry"}
HIDDEN = Cast("hidden-user", "hidden-topic", "hidden-group", "hidden-transact")
ABSENT = Cast("absent-user", "absent-topic", "absent-group", "absent-transact")
ABSENT_ID = Uuid(b"\x55" * 16)


async def ask(node: Node, principal: KafkaPrincipal, listener: str, request: Message, version: int) -> bytes | None:
    """The body of the answer; None if the connection would be closed."""
    key = request.schema().key or 0
    api = APIS[key]
    header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=1, client_id="c")
    frame = wire.encode(header, api.request_header_version(version)) + wire.encode(request, version)
    try:
        answer = dispatch(frame, node, Peer("127.0.0.1", principal, LISTENERS[listener]))
        pieces = await answer if inspect.isawaitable(answer) else answer
    except Refused:
        return None
    return b"".join(map(bytes, pieces or ()))[8 + api.response_header_version(version) :]


# --- what handlers ask for is what is declared


def test_every_served_api_is_declared() -> None:
    assert {APIS[key].name for key in served_keys()} <= REQUIRED.keys() <= {api.name for api in APIS.values()}
    tried = {(case.api, case.listener) for case in CASES}
    assert tried == {(api.name, kind) for kind in LISTENERS for api in served_apis(kind).values()}


def test_handlers_ask_for_what_is_declared_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[tuple[str, str], set[tuple[AclOperation, ResourceType]]] = defaultdict(set)
    granted: set[tuple[AclOperation, ResourceType]] = set()

    def is_allowed(context: Context, operation: AclOperation, kind: ResourceType, name: str = "*") -> bool:
        if context.peer.principal == STRANGER:
            asked[context.api, context.listener.kind].add((operation, kind))
            return (operation, kind) in granted
        return True

    monkeypatch.setattr(Context, "is_allowed", is_allowed)
    monkeypatch.setattr(Context, "may_any", is_allowed)

    async def run() -> None:
        async with AsyncBroker(config=SETTINGS) as broker:
            node = broker._running()
            await prepare(node, HIDDEN)
            for case in sorted(CASES, key=lambda each: each.api == "DeleteTopics"):
                for subset in [] if case.key in SASL else case.subsets:
                    granted.clear()
                    granted.update((each.operation, each.resource_type) for each in subset)
                    for version in case.all_versions:
                        if HIDDEN.topic not in node.image.topics.ids:  # deleted by the request before
                            await create(node, HIDDEN)
                        names = HIDDEN._replace(topic_id=node.image.topics.ids[HIDDEN.topic])
                        await ask(node, STRANGER, case.listener, case.build(names, version), version)

    asyncio.run(run())
    declared = {
        (api, kind): {(each.operation, each.resource_type) for each in required if each.on in (Listeners.ANY, kind)}
        for api, required in REQUIRED.items()
        for kind in LISTENERS
        if any(each.name == api for each in served_apis(kind).values())
    }
    for (api, kind), permissions in declared.items():
        found = asked[api, kind]
        assert found <= permissions, (api, kind, found - permissions)
        missing = {each for each in permissions - found if (api, *each) not in NOT_ASKED | ASKED_LATER}
        assert not missing, (api, kind, missing)


def test_the_page_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "authorization.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# --- a principal without permissions


async def prepare(node: Node, names: Cast) -> None:
    """Create a topic with a record, a group, a transaction, an ACL entry, a user with a token, a quota and client metrics."""
    await create(node, names)
    for kind in (0, 1):
        await done(node, "FindCoordinator", {"key_type": kind, "coordinator_keys": ["x"]}, 4)
    partition = {"partition_index": 0, "committed_offset": 5}
    commit = {"group_id": names.group, "topics": [{"name": names.topic, "partitions": [partition]}]}
    await done(node, "OffsetCommit", {**commit, "generation_id_or_member_epoch": -1}, 9)
    init = {"transactional_id": names.transactional_id, "transaction_timeout_ms": 60_000}
    begun = await done(node, "InitProducerId", init, 4)
    add = {
        "v3_and_below_transactional_id": names.transactional_id,
        "v3_and_below_producer_id": begun.producer_id,
        "v3_and_below_producer_epoch": begun.producer_epoch,
        "v3_and_below_topics": [{"name": names.topic, "partitions": [0]}],
    }
    await done(node, "AddPartitionsToTxn", add, 3)
    creation = {
        "resource_type": 2,
        "resource_name": names.topic,
        "resource_pattern_type": 3,
        "principal": f"User:{names.principal}",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    await done(node, "CreateAcls", {"creations": [creation]}, 3)
    scram = {"name": names.principal, "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p"}
    await done(node, "AlterUserScramCredentials", {"deletions": [], "upsertions": [scram]}, 0)
    entity = [{"entity_type": "user", "entity_name": names.principal}]
    ops = [{"key": "producer_byte_rate", "value": 1e6, "remove": False}]
    await done(node, "AlterClientQuotas", {"entries": [{"entity": entity, "ops": ops}]}, 1)
    metrics = {"resource_type": 16, "resource_name": names.topic, "configs": [{"name": "interval.ms", "value": "1000"}]}
    await done(node, "AlterConfigs", {"resources": [metrics]}, 2)
    member = {
        "group_id": names.consumer_group,
        "member_id": "a-member",
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": [names.topic],
        "topic_partitions": [],
    }
    await done(node, "ConsumerGroupHeartbeat", member, 1)
    await done(node, "CreateDelegationToken", token(names, 3), 3)


async def create(node: Node, names: Cast) -> None:
    topic = {"name": names.topic, "num_partitions": 1, "replication_factor": 1}
    await done(node, "CreateTopics", {"topics": [topic], "timeout_ms": 5000}, 7)


async def done(node: Node, api: str, fields: dict[str, Any], version: int) -> Any:
    """The response to a request of the super user, once it has succeeded."""
    for _ in range(200):
        body = await ask(node, ROOT_USER, BROKER, built(f"{api}Request", fields), version)
        response = wire.decode(f"{api}Response", version, body or b"")
        errors: Counter[int] = Counter()
        count_errors(response, errors)
        if not errors:
            return response
        await asyncio.sleep(0.02)
    raise AssertionError(f"{api}: {response}")


def state(node: Node) -> dict[str, Any]:
    """What requests can change: the metadata log, and the end of every log."""
    ends = {(each.topic, each.partition_id): each.log.log_end_offset for each in node.replicas}
    starts = {(each.topic, each.partition_id): each.log.log_start_offset for each in node.replicas}
    return {"metadata": node.quorum.driver.end_offset, "ends": ends, "starts": starts}


def versions_of(case: Case, names: Cast) -> list[tuple[int, Message]]:
    """The request in every served version that can carry it."""
    found = []
    for version in range(served_versions(case.key).first, served_versions(case.key).last + 1):
        try:
            request = case.build(names, version)
            wire.encode(request, version)
        except EncodeError:
            assert version not in case.all_versions
            continue
        found.append((version, request))
    return found


@pytest.mark.parametrize("everyone", [False, True], ids=["without ACLs", "ACLs of others and a denial"])
def test_a_principal_without_permissions_changes_nothing_and_learns_nothing(everyone: bool) -> None:
    """With every API in every version, on both listeners: the answer is the same whether the resource exists or not."""

    async def run() -> None:
        async with AsyncBroker(config=SETTINGS) as broker:
            node = broker._running()
            await prepare(node, HIDDEN)
            if everyone:  # everything is allowed to everyone by a wildcard, and denied to this principal
                for permission, principal in ((3, "User:*"), (2, str(STRANGER))):
                    creations = [
                        {
                            "resource_type": kind,
                            "resource_name": "kafka-cluster" if kind == 4 else "*",
                            "resource_pattern_type": 3,
                            "principal": principal,
                            "host": "*",
                            "operation": 2,
                            "permission_type": permission,
                        }
                        for kind in range(2, 8)
                    ]
                    await done(node, "CreateAcls", {"creations": creations}, 3)
            hidden = HIDDEN._replace(topic_id=node.image.topics.ids[HIDDEN.topic])
            absent = ABSENT._replace(topic_id=ABSENT_ID)
            tried = 0
            for case in CASES:
                if case.key in SASL:
                    continue
                for (version, request), (_, other) in zip(
                    versions_of(case, hidden), versions_of(case, absent), strict=True
                ):
                    if (case.api, version) in FOR_ONESELF:
                        continue
                    before = state(node)
                    body = await ask(node, STRANGER, case.listener, request, version)
                    unknown = await ask(node, STRANGER, case.listener, other, version)
                    tried += 1
                    assert state(node) == before, (str(case), version)
                    check(case, version, request, body, unknown, hidden)
            assert tried > 250

    asyncio.run(run())


BY_ID = {
    "Produce": 13,
    "Fetch": 13,
    "OffsetCommit": 10,
    "OffsetFetch": 10,
    "Metadata-broker-by id": 0,
    "DeleteTopics-broker-by id": 0,
    "DeleteTopics-controller-by id": 0,
}
"""Requests with ids, from these versions on: as in Kafka, an unknown id has another error code."""


def check(case: Case, version: int, request: Message, body: bytes | None, unknown: bytes | None, hidden: Cast) -> None:
    if body is None or unknown is None:
        assert body is unknown, (str(case), version)
        return
    sent = wire.encode(request, version)
    for name in (hidden.topic, hidden.group, hidden.transactional_id, hidden.principal):
        if name.encode() not in sent:
            assert name.encode() not in body, (str(case), version, name)
    first_with_ids = BY_ID.get(str(case), BY_ID.get(case.api, 99))
    if version < first_with_ids and case.api not in SOFT_STATE:
        renamed = unknown.replace(b"absent", b"hidden").replace(bytes(ABSENT_ID), bytes(hidden.topic_id))
        assert body == renamed, (str(case), version)
