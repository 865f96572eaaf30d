"""ACLs through the client: a node with an authorizer, one without, a client that may not, and brokers that are old or late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from barnabas.client.admin.acls import Acls, only
from barnabas.client.admin.part import TimedOutError, checked
from barnabas.client.cluster import Cluster
from barnabas.client.errors import UnsupportedByNodeError
from barnabas.security.acl import AclEntry, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.create_acls import CreateAclsResponse
from barnabas.wire.messages.delete_acls import DeleteAclsResponse
from barnabas.wire.messages.describe_acls import DescribeAclsResponse
from tests.client.admin.guarded import guarded_broker
from tests.client.peers import Asked, answering, one_broker, peer, ranges

T = TypeVar("T")
WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=WITH_ACLS) as running:
        yield running


def ask(broker: Broker, question: Callable[[Acls], Awaitable[T]]) -> T:
    async def main() -> T:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            return await question(Acls(cluster))

    return asyncio.run(main())


def entry(name: str, **others: Any) -> AclEntry:
    made = AclEntry(
        ResourceType.TOPIC, name, PatternType.LITERAL, "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW
    )
    return made._replace(**others)


def test_entries_are_made_found_and_removed(broker: Broker) -> None:
    made = [entry("made"), entry("made-", pattern_type=PatternType.PREFIXED, permission=AclPermissionType.DENY)]
    assert ask(broker, lambda acls: acls.create_acls(made)) == dict.fromkeys(made)
    assert ask(broker, lambda acls: acls.describe_acls(only(made[0]))) == [made[0]]
    covering = AclFilter(ResourceType.TOPIC, "made-of", PatternType.MATCH)
    assert ask(broker, lambda acls: acls.describe_acls(covering)) == [made[1]]
    nothing = AclFilter(principal="User:nobody")
    filters = [AclFilter(resource_name="made"), AclFilter(resource_name="made-"), nothing]
    deleted = checked(ask(broker, lambda acls: acls.delete_acls(filters)))
    assert list(deleted.values()) == [[made[0]], [made[1]], []]
    assert not set(made) & set(ask(broker, lambda acls: acls.describe_acls()))


def test_an_entry_that_is_there_already_is_no_error(broker: Broker) -> None:
    for _ in range(2):
        assert ask(broker, lambda acls: acls.create_acls([entry("twice")] * 2)) == {entry("twice"): None}
    assert len(ask(broker, lambda acls: acls.describe_acls(AclFilter(resource_name="twice")))) == 1


def test_what_is_wrong_with_one_entry_is_its_own_error(broker: Broker) -> None:
    wrong = entry("wrong", principal="nobody")
    results = ask(broker, lambda acls: acls.create_acls([entry("right"), wrong]))
    assert results[entry("right")] is None
    refused = results[wrong]
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.INVALID_REQUEST


def test_more_entries_than_fit_into_a_request_are_made(broker: Broker) -> None:
    many = [entry(f"many-{number}", principal="User:many") for number in range(1100)]
    assert not any(ask(broker, lambda acls: acls.create_acls(many)).values())
    of_many = AclFilter(principal="User:many")
    assert len(ask(broker, lambda acls: acls.describe_acls(of_many))) == 1100
    assert len(checked(ask(broker, lambda acls: acls.delete_acls([of_many])))[of_many]) == 1100


def test_without_an_authorizer_it_is_security_disabled() -> None:
    with Broker() as broker:
        with pytest.raises(KafkaError) as refused:
            ask(broker, lambda acls: acls.describe_acls())
        assert refused.value.code is ErrorCode.SECURITY_DISABLED
        results = ask(broker, lambda acls: acls.create_acls([entry("a")]))
        deleted = ask(broker, lambda acls: acls.delete_acls([only(entry("a"))]))
    for result in (*results.values(), *deleted.values()):
        assert isinstance(result, KafkaError)
        assert result.code is ErrorCode.SECURITY_DISABLED


def test_whoever_may_not_is_told_so() -> None:
    with guarded_broker() as broker:
        with pytest.raises(KafkaError) as refused:
            ask(broker, lambda acls: acls.describe_acls())
        assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        result = ask(broker, lambda acls: acls.create_acls([entry("a")]))[entry("a")]
    assert isinstance(result, KafkaError)
    assert result.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# --- brokers that are old or late


def scripted(
    answers: Callable[[Asked], Message | None], question: Callable[[Acls], Awaitable[T]], **versions: tuple[int, int]
) -> T:
    ports: list[int] = []

    def answer(asked: Asked) -> bytes | None:
        if asked.name == "ApiVersions":
            return asked.answer(ranges(Metadata=(1, 12), **versions))
        if asked.name == "Metadata":
            return asked.answer(one_broker(ports[0]))
        response = answers(asked)
        return None if response is None else asked.answer(response)

    async def main() -> T:
        async with peer(answering(answer)) as port:
            ports.append(port)
            async with Cluster({"bootstrap.servers": f"127.0.0.1:{port}"}) as cluster:
                return await question(Acls(cluster))

    return asyncio.run(main())


def described(*names: str) -> DescribeAclsResponse:
    acl = DescribeAclsResponse.AclDescription(principal="User:alice", host="*", operation=3, permission_type=3)
    resource = DescribeAclsResponse.DescribeAclsResource
    return DescribeAclsResponse(
        resources=[resource(resource_type=2, resource_name=name, pattern_type=3, acls=[acl]) for name in names]
    )


def test_an_old_broker_is_asked_for_literal_patterns_which_are_all_it_has() -> None:
    found = scripted(lambda asked: described("old"), lambda acls: acls.describe_acls(), DescribeAcls=(0, 0))
    assert found == [entry("old")]


def test_an_old_broker_says_that_it_has_no_prefixes() -> None:
    prefixed = entry("a", pattern_type=PatternType.PREFIXED)
    with pytest.raises(UnsupportedByNodeError, match="a prefixed ACL needs version 1"):
        scripted(lambda asked: None, lambda acls: acls.create_acls([prefixed]), CreateAcls=(0, 0))


def test_after_a_timeout_it_is_looked_whether_it_happened() -> None:
    late = CreateAclsResponse.AclCreationResult(error_code=int(ErrorCode.REQUEST_TIMED_OUT))

    def answers(asked: Asked) -> Message:
        return described("there") if asked.name == "DescribeAcls" else CreateAclsResponse(results=[late, late])

    entries = [entry("there"), entry("not-there")]
    versions = {"CreateAcls": (1, 3), "DescribeAcls": (1, 3)}
    results = scripted(answers, lambda acls: acls.create_acls(entries), **versions)
    happened = [result.happened for result in results.values() if isinstance(result, TimedOutError)]
    assert happened == [True, False]


def test_a_deletion_whose_answer_was_lost_is_looked_after() -> None:
    def answers(asked: Asked) -> Message | None:
        return described() if asked.name == "DescribeAcls" else None

    versions = {"DeleteAcls": (1, 3), "DescribeAcls": (1, 3)}
    (result,) = scripted(answers, lambda acls: acls.delete_acls([only(entry("a"))]), **versions).values()
    assert isinstance(result, TimedOutError)
    assert result.happened
    assert "User:alice to READ on TOPIC LITERAL a" in str(result.message)


def test_an_entry_that_could_not_be_removed_is_named() -> None:
    match = DeleteAclsResponse.DeleteAclsMatchingAcl(
        error_code=int(ErrorCode.UNKNOWN_SERVER_ERROR),
        error_message="no",
        resource_type=2,
        resource_name="a",
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    row = DeleteAclsResponse.DeleteAclsFilterResult(error_message=None, matching_acls=[match])
    response = DeleteAclsResponse(filter_results=[row])
    question = [only(entry("a"))]
    (result,) = scripted(lambda asked: response, lambda acls: acls.delete_acls(question), DeleteAcls=(1, 3)).values()
    assert isinstance(result, KafkaError)
    assert result.message == "ALLOW User:alice from * to READ on TOPIC LITERAL 'a': no"
