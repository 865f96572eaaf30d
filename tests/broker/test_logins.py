"""Logins on SASL listeners through sockets: both framings, what is refused before a login, and re-authentication."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import resource
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from barnabas import wire
from barnabas.broker import login
from barnabas.client import Admin, AuthenticationError
from barnabas.security.sasl.scram import ScramClient
from barnabas.testing import AsyncBroker, Security
from barnabas.wire import APIS, ApiKey, ErrorCode, Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.clients import RawClient

USERS = {"alice": "wonderland", "bob": "builder"}
SECURITY = Security("SASL_PLAINTEXT", ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), USERS)
AT_ONCE = {"connection.failed.authentication.delay.ms": 0}
ALICE = b"\0alice\0wonderland"

Client = Callable[[], Awaitable["Raw"]]


class Raw(RawClient):
    """Sends requests with headers and reads their answers."""

    @classmethod
    async def open(cls, broker: AsyncBroker) -> Raw:
        return cls(*await asyncio.open_connection(broker.host, broker.port))

    async def ask(self, request: Message, version: int) -> Any:
        key = request.schema().key or 0
        api = APIS[key]
        header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=7, client_id="test")
        answer = await self.call(
            wire.encode(header, api.request_header_version(version)) + wire.encode(request, version)
        )
        return wire.decode(api.response, version, answer[4 + api.response_header_version(version) :])

    async def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return await self.ask(SaslHandshakeRequest(mechanism=mechanism), version)

    async def authenticate(self, token: bytes, version: int = 2) -> Any:
        return await self.ask(SaslAuthenticateRequest(auth_bytes=token), version)

    async def log_in(self, token: bytes = ALICE) -> Any:
        assert (await self.handshake()).error_code == 0
        return await self.authenticate(token)


@contextlib.asynccontextmanager
async def secured(**config: str | int) -> AsyncIterator[Client]:
    settings = AT_ONCE | {name.replace("_", "."): value for name, value in config.items()}
    async with AsyncBroker(security=SECURITY, config=settings) as broker:
        clients: list[Raw] = []

        async def connect() -> Raw:
            clients.append(await Raw.open(broker))
            return clients[-1]

        try:
            yield connect
        finally:
            for client in clients:
                await client.close()


def test_a_login_opens_the_listener() -> None:
    async def run() -> None:
        async with secured() as connect:
            client = await connect()
            versions = await client.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
            assert versions.error_code == 0 and len(versions.api_keys) > 50
            shaken = await client.handshake()
            assert (shaken.error_code, shaken.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"])
            done = await client.authenticate(ALICE)
            assert (done.error_code, bytes(done.auth_bytes), done.session_lifetime_ms) == (0, b"", 0)
            assert (await client.ask(MetadataRequest(topics=[]), 12)).brokers

    asyncio.run(run())


def test_after_handshake_version_0_tokens_have_no_header() -> None:
    async def run() -> None:
        async with secured() as connect:
            client = await connect()
            assert (await client.handshake(version=0)).error_code == 0
            assert await client.call(ALICE) == b""
            assert (await client.ask(MetadataRequest(topics=[]), 12)).brokers
            other, scram = await connect(), ScramClient("SCRAM-SHA-512", "bob", "builder", nonce="abc")
            assert (await other.handshake("SCRAM-SHA-512", version=0)).error_code == 0
            final = scram.answer(await other.call(scram.first()))
            assert final is not None
            assert scram.answer(await other.call(final)) is None and scram.is_complete
            wrong = await connect()
            await wrong.handshake(version=0)
            wrong.send(struct.pack(">i", 11) + b"\0alice\0none")
            assert await wrong.is_closed()

    asyncio.run(run())


def test_every_other_request_before_a_login_closes_the_connection() -> None:
    async def run() -> None:
        async with secured() as connect:
            for key in ApiKey:
                if key in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE):
                    continue
                client = await connect()
                client.send(struct.pack(">ihhih", 10, key, APIS[key].versions.last, 1, -1))
                assert await client.is_closed(), key.name
            unknown = await connect()
            unknown.send(struct.pack(">ihhih", 10, 9999, 0, 1, -1))
            assert await unknown.is_closed()

    asyncio.run(run())


def test_another_request_between_handshake_and_token_is_answered_and_closes_the_connection() -> None:
    async def run() -> None:
        async with secured() as connect:
            client = await connect()
            await client.handshake()
            answer = await client.ask(DescribeClusterRequest(), 1)
            assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
            text = "Unexpected Kafka request of type DESCRIBE_CLUSTER during SASL authentication."
            assert answer.error_message == text
            assert await client.is_closed()
            second = await connect()
            await second.handshake()
            assert (await second.handshake()).error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert await second.is_closed()

    asyncio.run(run())


def test_versions_are_answered_once_before_a_login() -> None:
    async def run() -> None:
        async with secured() as connect:
            client = await connect()
            request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
            assert (await client.ask(request, 3)).error_code == 0
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await client.ask(request, 3)

    asyncio.run(run())


def test_wrong_credentials_are_answered_with_kafkas_texts_and_one_log_line(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with secured() as connect:
            client = await connect()
            answer = await client.log_in(b"\0alice\0Tr0ub4dor")
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert answer.error_message == "Authentication failed: Invalid username or password"
            assert await client.is_closed()
            refused = await connect()
            handshake = await refused.handshake("GSSAPI")
            assert handshake.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
            assert handshake.mechanisms == ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]
            assert await refused.is_closed()

    with caplog.at_level(logging.INFO, "barnabas.broker.connection"):
        asyncio.run(run())
    lines = [each.getMessage() for each in caplog.records if each.name == "barnabas.broker.connection"]
    start = "closing the connection from 127.0.0.1 on SASL_PLAINTEXT: failed authentication: "
    assert lines == [
        start + "Authentication failed: Invalid username or password",
        start + "Unsupported SASL mechanism GSSAPI",
    ]
    assert "Tr0ub4dor" not in caplog.text


def test_after_a_failed_login_nothing_else_is_read() -> None:
    async def run() -> None:
        async with secured(connection_failed_authentication_delay_ms=50) as connect:
            client = await connect()
            await client.handshake()
            header = struct.pack(">hhih", 36, 0, 1, -1)

            def authenticate(token: bytes) -> bytes:
                body = header + struct.pack(">i", len(token)) + token
                return struct.pack(">i", len(body)) + body

            client.send(authenticate(b"\0alice\0wrong") + authenticate(ALICE) * 3)
            answer = wire.decode("SaslAuthenticateResponse", 0, (await client.frame())[4:])
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert await client.is_closed()

    asyncio.run(run())


def test_an_oversized_token_closes_the_connection_before_it_is_received() -> None:
    async def run() -> None:
        async with secured(sasl_server_max_receive_size=1000) as connect:
            client = await connect()
            client.send(struct.pack(">i", 1001))
            assert await client.is_closed()
            after = await connect()
            await after.log_in()
            request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t" * 200) for _ in range(20)])
            assert (await after.ask(request, 12)).brokers  # the limit is that of logins

    asyncio.run(run())


def test_a_login_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.broker.connection.LOGIN_TIMEOUT_S", 0.2)

    async def run() -> None:
        async with secured() as connect:
            silent, slow, done = await connect(), await connect(), await connect()
            slow.send(b"\0\0")
            await done.log_in()
            assert await silent.is_closed() and await slow.is_closed()
            assert (await done.ask(MetadataRequest(topics=[]), 12)).brokers

    asyncio.run(run())


def test_a_client_that_is_logged_in_may_not_begin_another_login() -> None:
    async def run() -> None:
        async with secured() as connect:
            client = await connect()
            await client.log_in()
            assert (await client.handshake()).error_code == ErrorCode.ILLEGAL_SASL_STATE
            again = await client.authenticate(b"\0bob\0builder")
            assert again.error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert again.error_message == "SaslAuthenticate request received after successful authentication"
            assert (await client.ask(MetadataRequest(topics=[]), 12)).brokers

    asyncio.run(run())


# --- re-authentication


def test_a_session_is_renewed_and_keeps_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "MIN_REAUTH_INTERVAL_MS", 0)

    async def run() -> None:
        async with secured(connections_max_reauth_ms=60_000) as connect:
            client = await connect()
            assert (await client.log_in()).session_lifetime_ms == 60_000
            assert (await client.log_in()).session_lifetime_ms == 60_000
            assert (await client.ask(MetadataRequest(topics=[]), 12)).brokers
            other = await client.log_in(b"\0bob\0builder")
            assert other.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert other.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
            assert await client.is_closed()
            changed = await connect()
            await changed.log_in()
            await changed.handshake("SCRAM-SHA-256")
            assert (
                "not supported for re-authentication" in (await changed.authenticate(b"n,,n=alice,r=x")).error_message
            )
            assert await changed.is_closed()

    asyncio.run(run())


def test_a_session_is_not_renewed_more_than_once_a_second() -> None:
    async def run() -> None:
        async with secured(connections_max_reauth_ms=60_000) as connect:
            client = await connect()
            await client.log_in()
            await client.log_in()
            assert (await client.handshake()).error_code == ErrorCode.ILLEGAL_SASL_STATE

    asyncio.run(run())


def test_an_expired_session_is_closed_at_the_next_request_unless_it_is_a_login() -> None:
    async def run() -> None:
        config = {"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": 100, **AT_ONCE}
        async with AsyncBroker(security=SECURITY, config=config) as broker:
            late, renewing = [await Raw.open(broker) for _ in range(2)]
            for client in (late, renewing):
                assert (await client.log_in()).session_lifetime_ms == 100
            await asyncio.sleep(0.2)
            assert (await renewing.log_in()).error_code == 0
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await late.ask(MetadataRequest(topics=[]), 12)
            for client in (late, renewing):
                await client.close()

    asyncio.run(run())


def test_our_client_renews_its_login() -> None:
    async def run() -> None:
        config = {"connections.max.reauth.ms": 1500, **AT_ONCE}
        async with AsyncBroker(security=SECURITY, config=config) as broker, Admin(broker.client_config()) as admin:
            for _ in range(8):
                await admin.describe_cluster()
                await asyncio.sleep(0.3)

    asyncio.run(run())


def test_our_client_is_told_that_the_password_is_wrong() -> None:
    async def run() -> None:
        async with AsyncBroker(security=SECURITY, config=AT_ONCE) as broker:
            for mechanism in SECURITY.mechanisms:
                wrong = broker.client_config() | {"sasl.mechanism": mechanism, "sasl.password": "none"}
                with pytest.raises(AuthenticationError, match="Authentication failed"):
                    async with Admin(wrong) as admin:
                        await admin.describe_cluster()

    asyncio.run(run())


# --- attacks


def test_messages_of_a_login_that_was_overheard_are_worthless() -> None:
    """SCRAM replayed: the same first and last message, on another connection and on the same one."""

    async def run() -> None:
        async with secured() as connect:
            client, scram = await connect(), ScramClient("SCRAM-SHA-256", "alice", "wonderland", nonce="overheard")
            await client.handshake("SCRAM-SHA-256")
            answer = await client.authenticate(scram.first())
            final = scram.answer(bytes(answer.auth_bytes))
            assert final is not None
            assert (await client.authenticate(final)).error_code == 0
            thief = await connect()
            await thief.handshake("SCRAM-SHA-256")
            other = await thief.authenticate(scram.first())
            assert bytes(other.auth_bytes) != bytes(answer.auth_bytes)
            replayed = await thief.authenticate(final)
            assert replayed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert await thief.is_closed()
            at_once = await connect()
            await at_once.handshake("SCRAM-SHA-256")
            assert (await at_once.authenticate(final)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED

    asyncio.run(run())


def test_a_mechanism_cannot_be_talked_down_to_a_weaker_one() -> None:
    """A listener with SCRAM-SHA-512 alone takes neither PLAIN nor SCRAM-SHA-256, whatever the framing."""

    async def run() -> None:
        strong = Security("SASL_PLAINTEXT", ("SCRAM-SHA-512",), USERS)
        async with AsyncBroker(security=strong, config=AT_ONCE) as broker:
            for mechanism in ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "plain", "ANONYMOUS", "EXTERNAL", ""):
                for version in (0, 1):
                    client = await Raw.open(broker)
                    answer = await client.handshake(mechanism, version)
                    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
                    assert answer.mechanisms == ["SCRAM-SHA-512"]
                    assert await client.is_closed()
                    await client.close()

    asyncio.run(run())


def test_thousands_of_half_open_logins_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stops at another point. They are few bytes each, others log in meanwhile, and they are given up in the end."""
    monkeypatch.setattr("barnabas.broker.connection.LOGIN_TIMEOUT_S", 5)
    count = 1500

    async def run() -> None:
        async with AsyncBroker(security=SECURITY, config=AT_ONCE) as broker:
            half_open = []
            for number in range(count):
                client = await Raw.open(broker)
                half_open.append(client)
                if number % 3 == 1:
                    client.send(struct.pack(">i", 100_000) + b"x" * 100)
                elif number % 3 == 2:
                    await client.handshake("SCRAM-SHA-256")
                if number % 250 == 0:
                    honest = await Raw.open(broker)
                    assert (await honest.log_in()).error_code == 0
                    assert (await honest.ask(MetadataRequest(topics=[]), 12)).brokers
                    await honest.close()
            running = broker._running()
            for _ in range(300):
                if not any(each.endpoint.listener.name == "SASL_PLAINTEXT" for each in running._server.connections):
                    break
                await asyncio.sleep(0.05)
            else:
                pytest.fail("half-open logins were not given up")
            for client in half_open:
                await client.close()
            honest = await Raw.open(broker)
            assert (await honest.log_in()).error_code == 0
            await honest.close()

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft < 2 * count + 200:
        pytest.skip("too few file descriptors are allowed")
    asyncio.run(run())


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_an_unknown_user_costs_what_a_known_one_costs(monkeypatch: pytest.MonkeyPatch, mechanism: str) -> None:
    """The time of a login is that of its hashes, so these are counted."""
    counted: list[str] = []
    real_digest, real_new = hmac.digest, hashlib.new

    def digest(*args: Any) -> bytes:
        counted.append("hmac")
        return real_digest(*args)

    def new(*args: Any) -> Any:
        counted.append("hash")
        return real_new(*args)

    async def cost(connect: Client, user: str) -> list[str]:
        client, scram = await connect(), ScramClient(mechanism, user, "wrong", nonce="abc")
        await client.handshake(mechanism)
        with monkeypatch.context() as patch:
            patch.setattr(hmac, "digest", digest)
            patch.setattr(hashlib, "new", new)
            counted.clear()
            answer = await client.authenticate(scram.first())
            at_first = len(counted)
            final = scram.answer(bytes(answer.auth_bytes))
            assert final is not None
            del counted[at_first:]
            refused = await client.authenticate(final)
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        return [*counted[:at_first], "|", *counted[at_first:]]

    async def run() -> None:
        async with secured() as connect:
            known, unknown = await cost(connect, "alice"), await cost(connect, "nobody")
            assert known == unknown and "hmac" in known

    asyncio.run(run())


def test_no_node_gives_an_unknown_user_away_by_another_salt() -> None:
    """As that of a known user, it is the same after a restart and on other nodes, which have this key in common."""

    async def salt() -> bytes:
        async with secured(delegation_token_secret_key="of all nodes") as connect:
            client, scram = await connect(), ScramClient("SCRAM-SHA-256", "nobody", "wrong", nonce="abc")
            await client.handshake("SCRAM-SHA-256")
            answer = bytes((await client.authenticate(scram.first())).auth_bytes)
            return next(each for each in answer.split(b",") if each.startswith(b"s="))

    assert asyncio.run(salt()) == asyncio.run(salt())
