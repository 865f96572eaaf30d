"""Logins with OAUTHBEARER on a real node: keys from a file and from a service, lifetimes, and attacks through sockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker import login
from barnabas.client import Admin, AuthenticationError
from barnabas.client.jaas import MODULES
from barnabas.client.oauth import PACKAGE
from barnabas.client.oauth_urls import ALLOWED_URLS
from barnabas.config.values import ConfigError
from barnabas.testing import AsyncBroker, BrokerError, Security
from barnabas.wire import ErrorCode
from barnabas.wire.messages.metadata import MetadataRequest
from tests.broker.test_logins import AT_ONCE, Raw
from tests.security.oauth_service import CLIENT_ID, CLIENT_SECRET, OAuthService
from tests.security.tokens import Keys, claims, unsecured

KEYS = Keys()
SECURITY = Security("SASL_PLAINTEXT", ("OAUTHBEARER",), {"alice": ""})
OWN = "listener.name.sasl_plaintext.oauthbearer.sasl"
SIGNED: dict[str, str | int] = {
    **AT_ONCE,
    f"{OWN}.server.callback.handler.class": PACKAGE + "OAuthBearerValidatorCallbackHandler",
    f"{OWN}.oauthbearer.expected.audience": "kafka",
    f"{OWN}.oauthbearer.expected.issuer": "https://issuer",
}
INVALID = b'{"status":"invalid_token"}'


def first(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


@contextlib.asynccontextmanager
async def connected(broker: AsyncBroker) -> AsyncIterator[Raw]:
    client = await Raw.open(broker)
    try:
        yield client
    finally:
        await client.close()


async def logged_in(broker: AsyncBroker, token: str) -> Any:
    """The last answer of a login."""
    async with connected(broker) as client:
        await client.handshake("OAUTHBEARER")
        answer = await client.authenticate(first(token))
        if bytes(answer.auth_bytes) == INVALID:
            answer = await client.authenticate(b"\x01")
            assert await client.is_closed()
        elif not answer.error_code:
            assert (await client.ask(MetadataRequest(topics=[]), 12)).brokers
        return answer


@pytest.fixture
def jwks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "jwks.json"
    file.write_text(KEYS.jwks())
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}=file://{file}")
    return file


def test_signed_tokens_log_in_and_others_do_not(jwks: Path, caplog: pytest.LogCaptureFixture) -> None:
    now_s = int(time.time())
    refused = {
        "no signature": unsecured(),
        "another key": Keys().sign(claims()),
        "expired": KEYS.sign(claims(exp=now_s - 60)),
        "not yet": KEYS.sign(claims(nbf=now_s + 60)),
        "another audience": KEYS.sign(claims(aud="x")),
        "another issuer": KEYS.sign(claims(iss="x")),
    }

    async def run() -> None:
        config = {**SIGNED, f"{OWN}.oauthbearer.jwks.endpoint.url": f"file://{jwks}"}
        async with AsyncBroker(security=SECURITY, config=config) as broker:
            answer = await logged_in(broker, KEYS.sign(claims()))
            assert (answer.error_code, 0 < answer.session_lifetime_ms <= 3_600_000) == (0, True)
            for name, token in refused.items():
                answer = await logged_in(broker, token)
                assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED, name
                assert answer.error_message == INVALID.decode()

    with caplog.at_level(logging.INFO, "barnabas.broker.connection"):
        asyncio.run(run())
    lines = [each.getMessage() for each in caplog.records if "failed authentication" in each.getMessage()]
    assert len(lines) == len(refused)
    assert all(
        line.startswith("closing the connection from 127.0.0.1 on SASL_PLAINTEXT: failed auth") for line in lines
    )
    assert "the signature is invalid" in lines[1]
    assert not any(part in caplog.text for token in refused.values() for part in token.split(".")[1:] if part)


def test_keys_in_a_file_are_replaced(jwks: Path, caplog: pytest.LogCaptureFixture) -> None:
    newer = Keys()

    async def run() -> None:
        config = {**SIGNED, f"{OWN}.oauthbearer.jwks.endpoint.url": f"file://{jwks}"}
        async with AsyncBroker(security=SECURITY, config=config) as broker:
            assert (await logged_in(broker, newer.sign(claims()))).error_code
            await asyncio.to_thread(jwks.write_text, newer.jwks())
            assert not (await logged_in(broker, newer.sign(claims()))).error_code
            assert (await logged_in(broker, KEYS.sign(claims()))).error_code
            await asyncio.to_thread(jwks.write_text, "nonsense")
            assert not (await logged_in(broker, newer.sign(claims()))).error_code
            await asyncio.to_thread(jwks.unlink)
            assert not (await logged_in(broker, newer.sign(claims()))).error_code

    asyncio.run(run())
    assert "cannot be read, and those that are known stay" in caplog.text


def test_keys_of_a_service_are_asked_for_when_one_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(service: OAuthService) -> None:
        config = {
            **SIGNED,
            f"{OWN}.oauthbearer.jwks.endpoint.url": f"{service.url}/jwks",
            f"{OWN}.oauthbearer.jwks.endpoint.retry.backoff.ms": 1,
        }
        async with AsyncBroker(security=SECURITY, config=config) as broker:
            assert [path for path, _ in service.asked] == ["/jwks"]
            assert not (await logged_in(broker, service.keys.sign(claims()))).error_code
            newer = Keys()
            rows = newer.rows()
            rows[0]["kid"] = "new"
            monkeypatch.setattr(newer, "rows", lambda: rows)
            service.keys, service.fail = newer, 2
            for _ in range(100):  # the first one asks for the keys, which come a moment later
                if not (await logged_in(broker, newer.sign(claims(), "new"))).error_code:
                    break
                await asyncio.sleep(0.05)
            else:
                pytest.fail("the new key was not found")
            asked = len(service.asked)
            assert asked == 4  # once at the start, and three times because two attempts fail
            for _ in range(5):
                assert (await logged_in(broker, newer.sign(claims(), "unheard of"))).error_code
            await asyncio.sleep(0.2)
            assert len(service.asked) == asked + 1

    with OAuthService() as service:
        monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={service.url}/jwks")
        asyncio.run(run(service))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "to be configured so that JWT signatures can be"),
        ({f"{OWN}.oauthbearer.jwks.endpoint.url": "http://127.0.0.1:1/none"}, "cannot be accessed due to restrictions"),
        ({f"{OWN}.oauthbearer.jwks.endpoint.url": "file:///no/such/file"}, "doesn't exist"),
        ({f"{OWN}.oauthbearer.jwks.endpoint.url": "http://127.0.0.1:1/jwks"}, "Could not refresh JWKS"),
    ],
)
def test_a_node_that_cannot_check_tokens_does_not_start(
    settings: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}=file:///no/such/file,http://127.0.0.1:1/jwks")

    async def run() -> None:
        async with AsyncBroker(security=SECURITY, config={**SIGNED, **settings}):
            pass

    with pytest.raises((BrokerError, ConfigError), match=reason):
        asyncio.run(run())


def test_our_client_logs_in_with_a_token_of_a_service_and_renews_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(service: OAuthService) -> None:
        config = {**SIGNED, f"{OWN}.oauthbearer.jwks.endpoint.url": f"{service.url}/jwks"}
        async with AsyncBroker(
            security=SECURITY, config=config | {f"{OWN}.oauthbearer.clock.skew.seconds": 0}
        ) as broker:
            given = {
                "bootstrap.servers": broker.bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.login.callback.handler.class": PACKAGE + "OAuthBearerLoginCallbackHandler",
                "sasl.oauthbearer.token.endpoint.url": f"{service.url}/token",
                "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
                "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
            }
            service.lifetime_s = 3
            async with Admin(given) as admin:
                for _ in range(12):
                    await admin.describe_cluster()
                    await asyncio.sleep(0.4)
            assert 2 <= sum(path == "/token" for path, _ in service.asked) <= 20
            with pytest.raises(AuthenticationError, match="invalid_client"):
                async with Admin(given | {"sasl.oauthbearer.client.credentials.client.secret": "no"}) as admin:
                    await admin.describe_cluster()

    with OAuthService() as service:
        monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={service.url}/jwks,{service.url}/token")
        asyncio.run(run(service))


# --- sessions and attacks


def test_a_session_ends_with_its_token_unless_it_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "MIN_REAUTH_INTERVAL_MS", 0)

    async def run() -> None:
        async with (
            AsyncBroker(security=SECURITY, config=AT_ONCE) as broker,
            connected(broker) as late,
            connected(broker) as renewing,
            connected(broker) as other,
        ):
            short = unsecured(exp=time.time() + 0.5)
            for client in (late, renewing, other):
                await client.handshake("OAUTHBEARER")
                answer = await client.authenticate(first(short))
                assert (answer.error_code, 0 < answer.session_lifetime_ms <= 500) == (0, True)
            await asyncio.sleep(0.7)
            await renewing.handshake("OAUTHBEARER")
            assert (await renewing.authenticate(first(unsecured()))).session_lifetime_ms > 3_000_000
            assert (await renewing.ask(MetadataRequest(topics=[]), 12)).brokers
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await late.ask(MetadataRequest(topics=[]), 12)
            await other.handshake("OAUTHBEARER")
            changed = await other.authenticate(first(unsecured(sub="bob")))
            text = "Cannot change principals during re-authentication from User.alice: User.bob"
            assert (changed.error_code, changed.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, text)
            assert await other.is_closed()

    asyncio.run(run())


def test_the_shorter_of_two_lifetimes_counts() -> None:
    async def run() -> None:
        config = AT_ONCE | {"connections.max.reauth.ms": 60_000}
        async with AsyncBroker(security=SECURITY, config=config) as broker:
            assert (await logged_in(broker, unsecured())).session_lifetime_ms == 60_000
            soon = unsecured(exp=time.time() + 30)
            assert 0 < (await logged_in(broker, soon)).session_lifetime_ms <= 30_000

    asyncio.run(run())


def test_a_client_has_one_token_per_connection() -> None:
    async def run() -> None:
        async with AsyncBroker(security=SECURITY, config=AT_ONCE) as broker, connected(broker) as client:
            await client.handshake("OAUTHBEARER")
            assert bytes((await client.authenticate(first("a.b.c"))).auth_bytes) == INVALID
            again = await client.authenticate(first(unsecured()))
            assert again.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert await client.is_closed()

    asyncio.run(run())


def test_large_and_strange_tokens_are_refused_and_the_node_goes_on() -> None:
    async def run() -> None:
        async with AsyncBroker(security=SECURITY, config=AT_ONCE) as broker:
            for text in ("A" * 500_000, "." * 100_000, "a.b.c", f"{'Wyd' * 100_000}.e30."):
                answer = await logged_in(broker, text)
                assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            async with connected(broker) as client:
                await client.handshake("OAUTHBEARER")
                answer = await client.authenticate(b"n,,\x01" + b"a=b\x01" * 100_000)
                assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert not (await logged_in(broker, unsecured())).error_code

    asyncio.run(run())


def test_a_node_logs_in_to_its_controller_with_a_token() -> None:
    controller = "listener.name.controller"
    config: dict[str, str | int] = {
        **AT_ONCE,
        f"{controller}.sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        f"{controller}.oauthbearer.sasl.jaas.config": f"{MODULES['OAUTHBEARER']} required "
        'unsecuredLoginStringClaim_sub="node";',
        f"{controller}.oauthbearer.sasl.server.callback.handler.class": PACKAGE
        + "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
    }

    async def run(changes: dict[str, str]) -> None:
        async with AsyncBroker(["t"], security=SECURITY, config={**config, **changes}) as broker:
            assert not (await logged_in(broker, unsecured())).error_code

    asyncio.run(run({}))
    strict = f"{MODULES['OAUTHBEARER']} required unsecuredLoginStringClaim_sub=node unsecuredValidatorRequiredScope=x;"
    with pytest.raises(BrokerError, match="insufficient_scope"):
        asyncio.run(run({f"{controller}.oauthbearer.sasl.jaas.config": strict}))
