"""SCRAM credentials through the client."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest

from barnabas.client.admin.part import TimedOutError, checked
from barnabas.client.admin.users import (
    ScramCredentialInfo,
    ScramCredentialKey,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    Users,
    salted_password,
)
from barnabas.client.cluster import Cluster
from barnabas.metadata.scram import ScramUser
from barnabas.offline.metadata import load
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsResponse
from tests.client.admin.guarded import guarded_broker
from tests.client.peers import Asked, answering, one_broker, peer, ranges

T = TypeVar("T")
SHA_256, SHA_512 = ScramMechanism


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def ask(address: str, question: Callable[[Users], Awaitable[T]], **settings: object) -> T:
    async def main() -> T:
        async with Cluster({"bootstrap.servers": address} | settings) as cluster:
            return await question(Users(cluster))

    return asyncio.run(main())


def alter(broker: Broker, *alterations: ScramUpsertion | ScramDeletion) -> dict[ScramCredentialKey, KafkaError | None]:
    return ask(broker.bootstrap_servers, lambda users: users.alter_user_scram_credentials(alterations))


def described(broker: Broker, *names: str) -> dict[str, tuple[ScramCredentialInfo, ...] | KafkaError]:
    return ask(broker.bootstrap_servers, lambda users: users.describe_user_scram_credentials(names or None))


def test_a_user_gets_both_mechanisms_and_loses_one(broker: Broker) -> None:
    checked(
        alter(broker, ScramUpsertion("ann", SHA_256, "one"), ScramUpsertion("ann", SHA_512, "two", iterations=8192))
    )
    found = described(broker, "ann")["ann"]
    assert not isinstance(found, KafkaError)
    assert set(found) == {(SHA_256, 4096), (SHA_512, 8192)}
    checked(alter(broker, ScramDeletion("ann", SHA_256)))
    assert described(broker)["ann"] == ((SHA_512, 8192),)


def test_what_the_cluster_keeps_proves_the_password(broker: Broker) -> None:
    checked(alter(broker, ScramUpsertion("proof", SHA_256, "pässword", iterations=4097, salt=b"some salt")))
    kept = load(broker.data_dir / "__cluster_metadata-0").image.scram[ScramUser(SHA_256, "proof")]
    salted = hashlib.pbkdf2_hmac("sha256", "pässword".encode(), b"some salt", 4097)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    assert (kept.salt, kept.iterations) == (b"some salt", 4097)
    assert kept.stored_key == hashlib.sha256(client_key).digest()
    assert salted_password(SHA_256, b"p\xc3\xa4ssword", b"some salt", 4097) == salted


def test_two_upsertions_have_two_salts(broker: Broker) -> None:
    checked(alter(broker, ScramUpsertion("salted-1", SHA_256, "same"), ScramUpsertion("salted-2", SHA_256, "same")))
    image = load(broker.data_dir / "__cluster_metadata-0").image
    salts = {image.scram[ScramUser(SHA_256, name)].salt for name in ("salted-1", "salted-2")}
    assert len(salts) == 2
    assert all(len(salt) >= 16 for salt in salts)


def test_a_password_shows_in_no_text() -> None:
    upsertion = ScramUpsertion("ann", SHA_256, "hunter2", salt=b"pepper")
    assert "hunter2" not in f"{upsertion} {upsertion!r}"
    assert "pepper" not in repr(upsertion)


@pytest.mark.parametrize(
    ("alteration", "code"),
    [
        (ScramUpsertion("", SHA_256, "x"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramUpsertion("bad", SHA_256, ""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramUpsertion("bad", SHA_256, "x", iterations=100), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramUpsertion("bad", SHA_256, "x", iterations=10**9), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramDeletion("nobody", SHA_256), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_what_is_wrong_fails_alone(broker: Broker, alteration: ScramUpsertion | ScramDeletion, code: ErrorCode) -> None:
    results = alter(broker, alteration, ScramUpsertion("fine", SHA_512, "x"))
    refused = results[ScramCredentialKey(alteration.user, alteration.mechanism)]
    assert refused is not None
    assert refused.code is code
    assert results[ScramCredentialKey("fine", SHA_512)] is None


def test_a_credential_that_is_given_twice_is_not_sent(broker: Broker) -> None:
    results = alter(broker, ScramUpsertion("twice", SHA_256, "x"), ScramDeletion("twice", SHA_256))
    (refused,) = results.values()
    assert refused is not None
    assert refused.code is ErrorCode.DUPLICATE_RESOURCE


def test_a_user_without_credentials_is_not_found(broker: Broker) -> None:
    found = described(broker, "nobody")["nobody"]
    assert isinstance(found, KafkaError)
    assert found.code is ErrorCode.RESOURCE_NOT_FOUND
    assert ask(broker.bootstrap_servers, lambda users: users.describe_user_scram_credentials([])) == {}


def test_without_permission_users_are_neither_seen_nor_changed() -> None:
    with guarded_broker() as guarded:
        with pytest.raises(KafkaError) as refused:
            described(guarded)
        assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        (result,) = alter(guarded, ScramUpsertion("u", SHA_256, "x")).values()
        assert result is not None
        assert result.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_after_no_answer_it_is_said_what_can_be_known() -> None:
    row = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    info = DescribeUserScramCredentialsResponse.CredentialInfo(mechanism=1, iterations=4096)
    port = [0]

    def silent(asked: Asked) -> bytes | None:
        if asked.name == "ApiVersions":
            served = ("DescribeUserScramCredentials", "AlterUserScramCredentials")
            return asked.answer(ranges(Metadata=(0, 12), **dict.fromkeys(served, (0, 0))))
        if asked.name == "Metadata":
            return asked.answer(one_broker(port[0]))
        if asked.name == "DescribeUserScramCredentials":
            rows = [row(user="there", credential_infos=[info]), row(user="gone", error_code=91)]
            return asked.answer(DescribeUserScramCredentialsResponse(results=rows))
        return b""

    async def main() -> dict[ScramCredentialKey, KafkaError | None]:
        async with peer(answering(silent)) as port[0]:
            settings = {
                "bootstrap.servers": f"127.0.0.1:{port[0]}",
                "default.api.timeout.ms": 500,
                "request.timeout.ms": 200,
            }
            async with Cluster(settings) as cluster:
                upsertion, deletion = ScramUpsertion("there", SHA_256, "x"), ScramDeletion("gone", SHA_256)
                return await Users(cluster).alter_user_scram_credentials([upsertion, deletion])

    results = asyncio.run(main())
    happened = {key.user: late.happened for key, late in results.items() if isinstance(late, TimedOutError)}
    assert happened == {"there": None, "gone": True}
