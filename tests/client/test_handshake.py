"""What is said before a connection is used: versions in every generation of brokers, and logins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.client import handshake
from barnabas.client.connection import Connection
from barnabas.client.errors import AuthenticationError, ConnectionLostError, NotConnectedError, UnsupportedByNodeError
from barnabas.client.handshake import Options
from barnabas.config.endpoints import Address
from barnabas.security.sasl.plain import PlainClient
from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeResponse
from tests.client.peers import Asked, answering, framed, peer, ranges, read_request

SASL = {"SaslHandshake": (0, 1), "SaslAuthenticate": (0, 2), "ListGroups": (0, 5)}


async def login() -> PlainClient:
    return PlainClient("alice", "secret")


def connected(
    answers: Callable[[Asked], bytes | None],
    scenario: Callable[[Connection], Coroutine[Any, Any, None]] | None = None,
    **options: Any,
) -> None:
    async def main() -> None:
        async with peer(answering(answers)) as port:
            connection = await handshake.connect(Address("127.0.0.1", port), Options("test", **options))
            try:
                if scenario is not None:
                    await scenario(connection)
            finally:
                connection.close()
                await connection.wait_closed()

    asyncio.run(main())


def test_a_node_that_knows_our_version_is_asked_once() -> None:
    asked_in = []

    def answers(asked: Asked) -> bytes:
        asked_in.append(asked.version)
        assert asked.request.client_software_name == "barnabas"
        return asked.answer(ranges(Metadata=(0, 99), Fetch=(3, 4)))

    async def scenario(connection: Connection) -> None:
        assert connection.versions is not None
        assert connection.versions.best("Metadata") == 13
        assert connection.versions.best("Produce") is None

    connected(answers, scenario)
    assert asked_in == [4]


@pytest.mark.parametrize(
    ("refusal", "then"),
    [(ranges(), 3), (ApiVersionsResponse(), 0)],
    ids=["it names its range", "it names nothing"],
)
def test_a_node_that_does_not_know_our_version_answers_in_version_0_and_is_asked_again(
    refusal: ApiVersionsResponse, then: int
) -> None:
    asked_in = []
    refusal.error_code = ErrorCode.UNSUPPORTED_VERSION
    for row in refusal.api_keys:
        row.max_version = 3

    def answers(asked: Asked) -> bytes:
        asked_in.append(asked.version)
        return asked.answer(refusal, version=0) if asked.version == 4 else asked.answer(ranges(Fetch=(0, 1)))

    connected(answers)
    assert asked_in == [4, then]


def test_a_node_that_refuses_every_version_is_not_asked_for_ever() -> None:
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    with pytest.raises(NotConnectedError, match="UNSUPPORTED_VERSION"):
        connected(lambda asked: asked.answer(refusal, version=0))


def test_a_peer_that_takes_connections_and_says_nothing_is_given_up() -> None:
    with pytest.raises(NotConnectedError, match="did not answer within 50 ms"):
        connected(lambda asked: b"", timeout_ms=50)


def sasl_node(replies: dict[str, list[Message]], log: list[str] | None = None) -> Callable[[Asked], bytes | None]:
    """Answers ApiVersions, and each other API with its replies in turn."""

    def answers(asked: Asked) -> bytes | None:
        if log is not None:
            log.append(asked.name)
        if asked.name == "ApiVersions":
            return asked.answer(ranges(**SASL))
        return asked.answer(replies[asked.name].pop(0))

    return answers


def test_a_login_goes_before_everything_else() -> None:
    log: list[str] = []
    replies: dict[str, list[Message]] = {
        "SaslHandshake": [SaslHandshakeResponse(mechanisms=["PLAIN"])],
        "SaslAuthenticate": [SaslAuthenticateResponse()],
        "ListGroups": [ListGroupsResponse()],
    }

    async def scenario(connection: Connection) -> None:
        await connection.call(ListGroupsRequest())

    connected(sasl_node(replies, log), scenario, login=login)
    assert log == ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "ListGroups"]


@pytest.mark.parametrize(
    ("replies", "code", "says"),
    [
        (
            {"SaslHandshake": [SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-256", "OAUTHBEARER"])]},
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            "does not support PLAIN; it supports SCRAM-SHA-256, OAUTHBEARER",
        ),
        (
            {
                "SaslHandshake": [SaslHandshakeResponse()],
                "SaslAuthenticate": [SaslAuthenticateResponse(error_code=58, error_message="wrong password, alice")],
            },
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            "wrong password, alice",
        ),
        (
            {
                "SaslHandshake": [SaslHandshakeResponse()],
                "SaslAuthenticate": [SaslAuthenticateResponse(auth_bytes=b"go on")],
            },
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            "PLAIN's only one",
        ),
        (
            {"SaslHandshake": [SaslHandshakeResponse(error_code=34)]},
            ErrorCode.ILLEGAL_SASL_STATE,
            "does not support SASL on this listener",
        ),
    ],
)
def test_a_login_that_fails_says_why(replies: dict[str, list[Message]], code: ErrorCode, says: str) -> None:
    with pytest.raises(AuthenticationError, match=says) as failed:
        connected(sasl_node(replies), login=login)
    assert failed.value.code is code


def test_a_node_that_only_knows_the_bare_handshake_is_too_old_to_log_in() -> None:
    with pytest.raises(AuthenticationError, match="needs version 1"):
        connected(lambda asked: asked.answer(ranges(SaslHandshake=(0, 0))), login=login)


def test_a_login_is_renewed_before_its_end_and_others_wait_meanwhile() -> None:
    log: list[str] = []
    replies: dict[str, list[Message]] = {
        "SaslHandshake": [SaslHandshakeResponse(), SaslHandshakeResponse()],
        "SaslAuthenticate": [SaslAuthenticateResponse(session_lifetime_ms=800), SaslAuthenticateResponse()],
        "ListGroups": [ListGroupsResponse() for _ in range(12)],
    }

    async def scenario(connection: Connection) -> None:
        await connection.call(ListGroupsRequest())
        await asyncio.sleep(0.7)
        await asyncio.gather(*(connection.call(ListGroupsRequest()) for _ in range(10)))
        await connection.call(ListGroupsRequest())

    connected(sasl_node(replies, log), scenario, login=login)
    first = ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "ListGroups"]
    assert log == [*first, "SaslHandshake", "SaslAuthenticate", *["ListGroups"] * 11]


def test_a_renewal_goes_on_when_who_began_it_gives_up() -> None:
    released = asyncio.Event()
    log: list[str] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked = await read_request(reader)
            log.append(asked.name)
            if log.count("SaslHandshake") == 2 and asked.name == "SaslHandshake":
                await released.wait()
            lifetime_ms = 50 if log.count("SaslAuthenticate") == 1 else 0
            response: Message = {
                "ApiVersions": ranges(**SASL),
                "SaslHandshake": SaslHandshakeResponse(),
                "SaslAuthenticate": SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms),
                "ListGroups": ListGroupsResponse(),
            }[asked.name]
            writer.write(asked.answer(response))

    async def main() -> None:
        async with peer(script) as port:
            connection = await handshake.connect(Address("127.0.0.1", port), Options("test", login=login))
            await asyncio.sleep(0.06)
            with pytest.raises(TimeoutError):
                await connection.call(ListGroupsRequest(), timeout_ms=30)
            released.set()
            await connection.call(ListGroupsRequest())
            connection.close()
            await connection.wait_closed()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert log[3:] == ["SaslHandshake", "SaslAuthenticate", "ListGroups"]


def test_a_renewal_that_is_refused_ends_the_connection() -> None:
    replies: dict[str, list[Message]] = {
        "SaslHandshake": [SaslHandshakeResponse(), SaslHandshakeResponse()],
        "SaslAuthenticate": [
            SaslAuthenticateResponse(session_lifetime_ms=20),
            SaslAuthenticateResponse(error_code=58, error_message="no more"),
        ],
    }

    async def scenario(connection: Connection) -> None:
        await asyncio.sleep(0.03)
        with pytest.raises(AuthenticationError, match="no more"):
            await connection.call(ListGroupsRequest())
        assert not connection.is_open

    connected(sasl_node(replies), scenario, login=login)


def test_what_a_node_does_not_serve_is_said_before_it_is_sent() -> None:
    async def scenario(connection: Connection) -> None:
        with pytest.raises(UnsupportedByNodeError, match=r"ListGroups is not served by 127\.0\.0\.1"):
            await connection.call(ListGroupsRequest())
        assert connection.is_open

    connected(lambda asked: asked.answer(ranges()), scenario)


def test_an_answer_cut_short_by_the_end_of_the_connection_is_an_error() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(framed(bytes(100))[:50])
        await writer.drain()

    async def main() -> None:
        async with peer(script) as port:
            with pytest.raises(ConnectionLostError, match="instead of answering ApiVersions"):
                await handshake.connect(Address("127.0.0.1", port), Options("test"))

    asyncio.run(main())
