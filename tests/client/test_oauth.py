"""Where a client's bearer token comes from: its own options, a file, or a service."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.errors import AuthenticationError
from barnabas.client.jaas import MODULES
from barnabas.client.oauth import PACKAGE, Refreshing
from barnabas.client.oauth_urls import ALLOWED_URLS
from barnabas.client.settings import load
from barnabas.config.values import ConfigError
from barnabas.security.oauth.claims import BearerToken
from tests.security.oauth_service import CLIENT_ID, CLIENT_SECRET, OAuthService
from tests.security.tokens import Keys, claims, unsecured

BASE = {
    "bootstrap.servers": "localhost:9092",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
}
FROM_ENDPOINT = {"sasl.login.callback.handler.class": PACKAGE + "OAuthBearerLoginCallbackHandler"}
URL = "sasl.oauthbearer.token.endpoint.url"
BY_SECRET = {
    "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
    "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
    "sasl.login.retry.backoff.ms": 1,
    "sasl.login.retry.backoff.max.ms": 2000,
}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[OAuthService]:
    with OAuthService() as running:
        monkeypatch.setenv("KAFKA_OPTS", f"-Xmx1G -D{ALLOWED_URLS}={running.url}/token,http://other")
        yield running


def jaas(options: str) -> dict[str, str]:
    return {"sasl.jaas.config": f"{MODULES['OAUTHBEARER']} required {options};"}


def first_messages(given: dict[str, Any], count: int = 1) -> list[bytes]:
    """The first messages of some logins."""

    async def run() -> list[bytes]:
        login = load(BASE | given).connect_options().login
        assert login is not None
        return [(await login()).first() for _ in range(count)]

    return asyncio.run(run())


def test_by_default_the_client_makes_a_token_of_its_options() -> None:
    (message,) = first_messages(jaas('unsecuredLoginStringClaim_sub="alice" unsecuredLoginExtension_traceId="7"'))
    assert message.startswith(b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.") and message.endswith(
        b".\x01traceId=7\x01\x01"
    )


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({}, "sasl.jaas.config"),
        (jaas(""), "sasl.jaas.config"),
        (jaas('unsecuredLoginStringClaim_sub="a" unsecuredLoginExtension_auth="x"'), "sasl.jaas.config"),
        (jaas("") | {"sasl.login.class": "com.example.Login"}, "sasl.login.class"),
        (jaas("") | {"sasl.login.callback.handler.class": "com.example.X"}, "sasl.login.callback.handler.class"),
        (FROM_ENDPOINT, URL),
        (FROM_ENDPOINT | {URL: "ftp://x"}, URL),
        (FROM_ENDPOINT | {URL: "http://not.allowed"}, URL),
        (FROM_ENDPOINT | {URL: "http://other"}, "sasl.oauthbearer.client.credentials.client.id"),
        (
            FROM_ENDPOINT | {URL: "http://other"} | jaas('clientId="x"'),
            "sasl.oauthbearer.client.credentials.client.secret",
        ),
        (
            FROM_ENDPOINT | {"sasl.oauthbearer.jwt.retriever.class": "com.example.X"},
            "sasl.oauthbearer.jwt.retriever.class",
        ),
        (FROM_ENDPOINT | {"sasl.oauthbearer.assertion.file": "x"}, "sasl.oauthbearer.assertion.file"),
    ],
)
def test_settings_that_cannot_work_are_named(given: dict[str, Any], key: str, service: OAuthService) -> None:
    with pytest.raises(ConfigError) as refused:
        first_messages(given)
    assert refused.value.key == key


def test_a_url_must_be_allowed_outside_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_OPTS", raising=False)
    with pytest.raises(ConfigError, match=r"cannot be accessed due to restrictions.*allowed\.urls"):
        first_messages(FROM_ENDPOINT | BY_SECRET | {URL: "http://127.0.0.1:1/token"})


def test_a_token_comes_from_a_file_that_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, file = Keys(), tmp_path / "token"
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}=file://{file}")
    given = FROM_ENDPOINT | {URL: f"file://{file}"}
    with pytest.raises(ConfigError, match="doesn't exist"):
        first_messages(given)
    token = keys.sign(claims())
    file.write_text(token + "\n")
    assert first_messages(given | jaas('extension_a="b"')) == [f"n,,\x01auth=Bearer {token}\x01a=b\x01\x01".encode()]
    for wrong in ("nonsense", "a.b.c", unsecured(), keys.sign(claims(exp=None))):
        file.write_text(wrong)
        with pytest.raises(AuthenticationError, match="there is no token to log in with") as refused:
            first_messages(given)
        assert wrong not in "".join(traceback.format_exception(refused.value))


def test_a_service_gives_a_token_for_id_and_secret_and_it_is_kept(service: OAuthService) -> None:
    given = FROM_ENDPOINT | BY_SECRET | {URL: f"{service.url}/token", "sasl.oauthbearer.scope": "kafka"}
    one, two = first_messages(given, 2)
    assert one == two and one.startswith(b"n,,\x01auth=Bearer ey")
    assert service.asked == [("/token", b"grant_type=client_credentials&scope=kafka")]
    options = jaas(f'clientId="{CLIENT_ID}" clientSecret="{CLIENT_SECRET}" scope="old"')
    first_messages(FROM_ENDPOINT | {URL: f"{service.url}/token"} | options)
    assert service.asked[1] == ("/token", b"grant_type=client_credentials&scope=old")


def test_an_old_token_is_replaced(service: OAuthService) -> None:
    service.lifetime_s = 1  # the token is older than most of its life
    first_messages(FROM_ENDPOINT | BY_SECRET | {URL: f"{service.url}/token"}, 3)
    assert len(service.asked) == 3


def test_a_service_that_is_away_for_a_moment_is_asked_again(service: OAuthService) -> None:
    service.fail = 3
    first_messages(FROM_ENDPOINT | BY_SECRET | {URL: f"{service.url}/token"})
    assert len(service.asked) == 4


def test_a_wrong_secret_is_told_at_once_and_not_shown(service: OAuthService) -> None:
    wrong = {"sasl.oauthbearer.client.credentials.client.secret": "planted-wrong-secret"}
    with pytest.raises(AuthenticationError, match=r"status 401 \(invalid_client\)") as refused:
        first_messages(FROM_ENDPOINT | BY_SECRET | wrong | {URL: f"{service.url}/token"})
    assert len(service.asked) == 1
    shown = "".join(traceback.format_exception(refused.value))
    assert "planted" not in shown and "Basic" not in shown


@pytest.mark.parametrize("answer", [b"", b"{}", b"[]", b'{"access_token": 7}', b"x" * 600_000])
def test_an_answer_without_a_token_is_an_error(service: OAuthService, answer: bytes) -> None:
    service.answer = answer
    with pytest.raises(AuthenticationError, match="there is no token to log in with"):
        first_messages(FROM_ENDPOINT | BY_SECRET | {URL: f"{service.url}/token"})
    assert len(service.asked) == 1


def test_a_token_is_replaced_when_most_of_its_life_is_over() -> None:
    hour_ms = 3_600_000
    token = BearerToken("alice", hour_ms, issued_at_ms=0)
    assert Refreshing().due_ms(token, 0, 0) == 0.8 * hour_ms
    assert Refreshing().due_ms(token, 0, 1) == 0.85 * hour_ms
    assert Refreshing(window_factor=1.0).due_ms(token, 0, 0) == hour_ms - 300_000
    assert Refreshing().due_ms(token, hour_ms // 2 + hour_ms // 3, 0) == hour_ms // 2 + hour_ms // 3 + 60_000
    assert Refreshing().due_ms(BearerToken("alice", 10_000, issued_at_ms=0), 0, 0) == 8000
