"""Delegation tokens on a real node: created, used with SCRAM, renewed, expired, and what a token may not do."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from barnabas.broker import listener_security
from barnabas.client import Admin, AuthenticationError
from barnabas.client.jaas import MODULES
from barnabas.config.unsupported import STANDARD_AUTHORIZER
from barnabas.security.delegation_token import token_hmac
from barnabas.security.sasl.scram import ScramClient, ScramCredential, credential_of_password
from barnabas.testing import AsyncBroker, Security
from barnabas.wire import ErrorCode
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.broker.test_logins import AT_ONCE, Raw

USERS = {"alice": "wonderland", "bob": "builder", "eve": "apple"}
SECURITY = Security("SASL_PLAINTEXT", ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"), USERS)
KEY = "planted-key"
WITH_KEY = AT_ONCE | {"delegation.token.secret.key": KEY}


@contextlib.asynccontextmanager
async def user(broker: AsyncBroker, name: str) -> AsyncIterator[Raw]:
    client = await Raw.open(broker)
    try:
        assert not (await client.log_in(f"\0{name}\0{USERS[name]}".encode())).error_code
        yield client
    finally:
        await client.close()


async def create(client: Raw, renewers: tuple[str, ...] = (), owner: str = "", ms: int = -1) -> Any:
    row = CreateDelegationTokenRequest.CreatableRenewers
    return await client.ask(
        CreateDelegationTokenRequest(
            owner_principal_type="User" if owner else "",
            owner_principal_name=owner,
            renewers=[row(principal_type="User", principal_name=each) for each in renewers],
            max_lifetime_ms=ms,
        ),
        3,
    )


async def described(client: Raw, *owners: str) -> dict[str, bytes]:
    row = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    wanted = [row(principal_type="User", principal_name=each) for each in owners] or None
    answer = await client.ask(DescribeDelegationTokenRequest(owners=wanted), 3)
    assert answer.error_code == 0
    return {each.token_id: bytes(each.hmac) for each in answer.tokens}


def with_token(broker: AsyncBroker, token: Any, mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
    password = base64.b64encode(bytes(token.hmac)).decode()
    options = f'username="{token.token_id}" password="{password}" tokenauth="true"'
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{MODULES[mechanism]} required {options};",
    }


async def enters(settings: dict[str, str]) -> bool:
    try:
        async with Admin(settings) as admin:
            await admin.describe_cluster()
    except AuthenticationError:
        return False
    return True


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_logs_in_until_it_expires(mechanism: str) -> None:
    async def run() -> None:
        async with AsyncBroker(security=SECURITY, config=WITH_KEY) as broker, user(broker, "alice") as alice:
            token = await create(alice, ("bob",))
            assert bytes(token.hmac) == token_hmac(KEY, token.token_id)
            settings = with_token(broker, token, mechanism)
            assert await enters(settings) and await enters(settings)
            token.hmac = bytes(64)
            assert not await enters(with_token(broker, token, mechanism))
            token.hmac, token.token_id = token_hmac(KEY, "none"), "none"
            assert not await enters(with_token(broker, token, mechanism))
            without = settings["sasl.jaas.config"].replace("tokenauth", "ignored")
            assert not await enters(settings | {"sasl.jaas.config": without})
            (hmac,) = (await described(alice)).values()
            await alice.ask(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=-1), 2)
            assert not await described(alice) and not await enters(settings)

    asyncio.run(run())


def test_the_credential_of_a_token_is_made_once_and_not_by_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[threading.Thread] = []

    def counted(*arguments: Any) -> ScramCredential:
        made.append(threading.current_thread())
        return credential_of_password(*arguments)

    async def run() -> None:
        async with AsyncBroker(security=SECURITY, config=WITH_KEY) as broker, user(broker, "alice") as alice:
            monkeypatch.setattr(listener_security, "credential_of_password", counted)
            settings = with_token(broker, await create(alice))
            assert await enters(settings) and await enters(settings)
            assert len(made) == 1 and made[0] is not threading.current_thread()

    asyncio.run(run())


def test_a_session_of_a_token_ends_with_the_token() -> None:
    async def run() -> None:
        async with AsyncBroker(security=SECURITY, config=WITH_KEY) as broker, user(broker, "alice") as alice:
            token = await create(alice, ms=1500)
            client = await Raw.open(broker)
            password = base64.b64encode(bytes(token.hmac)).decode()
            scram = ScramClient("SCRAM-SHA-256", token.token_id, password, nonce="n", extensions={"tokenauth": "true"})
            await client.handshake("SCRAM-SHA-256")
            final = scram.answer(bytes((await client.authenticate(scram.first())).auth_bytes))
            assert final is not None
            assert 0 < (await client.authenticate(final)).session_lifetime_ms <= 1500
            assert (await client.ask(MetadataRequest(topics=[]), 12)).brokers
            await asyncio.sleep(1.7)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await client.ask(MetadataRequest(topics=[]), 12)
            await client.close()

    asyncio.run(run())


def test_a_token_may_not_create_or_change_tokens() -> None:
    async def run() -> None:
        async with AsyncBroker(security=SECURITY, config=WITH_KEY) as broker, user(broker, "alice") as alice:
            token = await create(alice)
            raw = await Raw.open(broker)
            password = base64.b64encode(bytes(token.hmac)).decode()
            await token_login(raw, token.token_id, password)
            assert (await create(raw)).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            for request in (
                RenewDelegationTokenRequest(hmac=token.hmac),
                ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1),
            ):
                answer = await raw.ask(request, 2)
                assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            answer = await raw.ask(DescribeDelegationTokenRequest(owners=None), 3)
            assert (answer.error_code, answer.tokens) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, [])
            await raw.close()
            assert await described(alice)

    asyncio.run(run())


async def token_login(client: Raw, token_id: str, password: str) -> None:
    scram = ScramClient("SCRAM-SHA-512", token_id, password, nonce="n", extensions={"tokenauth": "true"})
    await client.handshake("SCRAM-SHA-512")
    final = scram.answer(bytes((await client.authenticate(scram.first())).auth_bytes))
    assert final is not None
    assert scram.answer(bytes((await client.authenticate(final)).auth_bytes)) is None


def test_expired_tokens_are_removed_and_tokens_survive_a_restart() -> None:
    async def run() -> None:
        config = WITH_KEY | {"delegation.token.expiry.check.interval.ms": 100}
        async with AsyncBroker(security=SECURITY, config=config) as broker:
            async with user(broker, "alice") as alice:
                short, long = await create(alice, ms=1), await create(alice)
                for _ in range(100):
                    if list(await described(alice)) == [long.token_id]:
                        break
                    await asyncio.sleep(0.05)
                else:
                    pytest.fail("the expired token was not removed")
                assert short.token_id != long.token_id
            await broker.restart()
            assert await enters(with_token(broker, long))

    asyncio.run(run())


def test_acls_decide_who_sees_and_makes_tokens_of_others() -> None:
    async def run() -> None:
        config = WITH_KEY | {"authorizer.class.name": STANDARD_AUTHORIZER}
        async with AsyncBroker(security=SECURITY, config=config) as broker, user(broker, "alice") as alice:
            token = await create(alice, ("bob",))
            async with user(broker, "bob") as bob, user(broker, "eve") as eve:
                assert list(await described(bob)) == [token.token_id]
                assert list(await described(bob, "alice")) == [token.token_id]
                assert not await described(eve) and not await described(eve, "alice")
                refused = await create(eve, owner="alice")
                assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
                assert (refused.principal_name, refused.token_requester_principal_name) == ("alice", "eve")
                for hmac in (token.hmac, b"none"):
                    answer = await eve.ask(RenewDelegationTokenRequest(hmac=hmac), 2)
                    expected = {b"none": ErrorCode.DELEGATION_TOKEN_NOT_FOUND}
                    assert answer.error_code == expected.get(hmac, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
                assert (await bob.ask(RenewDelegationTokenRequest(hmac=token.hmac), 2)).error_code == 0

    asyncio.run(run())


def test_without_a_secret_key_there_are_no_tokens() -> None:
    async def run() -> None:
        async with AsyncBroker(security=SECURITY, config=AT_ONCE) as broker, user(broker, "alice") as alice:
            assert (await create(alice)).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
            answer = await alice.ask(DescribeDelegationTokenRequest(owners=None), 3)
            assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED

    asyncio.run(run())
