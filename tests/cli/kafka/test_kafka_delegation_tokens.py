"""`kafka-delegation-tokens` against a node that has none; tests/interop compares it with Kafka's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.kafka.kafka_delegation_tokens import _decoded
from barnabas.testing import Broker
from tests.command_line import Done, invoke

REFUSED = "org.apache.kafka.common.errors.UnsupportedByAuthenticationException: "


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


def tool(broker: Broker, directory: Path, *arguments: str, code: int = 1) -> Done:
    settings = directory / "client.properties"
    settings.write_text("client.id=tokens\n")
    where = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", settings)
    return invoke("kafka-delegation-tokens", *where, *arguments, code=code)


def test_a_client_that_is_not_authenticated_gets_no_token(broker: Broker, tmp_path: Path) -> None:
    done = tool(broker, tmp_path, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    assert done.stdout == "Calling create token operation with renewers :[User:bob] , max-life-time-period :-1\n"
    assert done.stderr.startswith(REFUSED)
    for action in ("renew", "expire"):
        period = "--renew-time-period" if action == "renew" else "--expiry-time-period"
        done = tool(broker, tmp_path, f"--{action}", "--hmac", "AAAA", period, "-1")
        assert done.stdout == f"Calling {action} token operation with hmac :AAAA , {action}-time-period :-1\n"
        assert done.stderr.startswith(REFUSED)
    assert tool(broker, tmp_path, "--describe").stderr.startswith(REFUSED)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "Command must include exactly one action: --create, --renew, --expire or --describe"),
        ("--create --renew", "Command must include exactly one action: --create, --renew, --expire or --describe"),
        ("--create", 'Missing required argument "[max-life-time-period]"'),
        ("--renew", 'Missing required argument "[hmac]"'),
        ("--expire --hmac AAAA", 'Missing required argument "[expiry-time-period]"'),
        ("--describe --hmac AAAA", 'Option "[describe]" can\'t be used with option "[hmac]"'),
        ("--create --max-life-time-period x", "Cannot parse argument 'x' of option max-life-time-period"),
        (
            "--create --max-life-time-period 1 --renewer-principal bob",
            "expected a string in format principalType:principalName but got bob",
        ),
        ("--renew --hmac !! --renew-time-period 1", "Illegal base64 character 21"),
    ],
)
def test_wrong_usage(broker: Broker, tmp_path: Path, arguments: str, message: str) -> None:
    assert tool(broker, tmp_path, *arguments.split()).stderr.splitlines()[0] == message


def test_a_login_is_required() -> None:
    where = ("--bootstrap-server", "a:1")
    missing = invoke("kafka-delegation-tokens", *where, "--describe", code=1)
    assert missing.stderr.startswith('Missing required argument "[command-config]"\n')
    no_file = invoke("kafka-delegation-tokens", *where, "--command-config", "/nowhere/x", "--describe", code=1)
    assert no_file.stderr == "/nowhere/x\n"


def test_base64_may_lack_its_padding() -> None:
    assert _decoded("AAE=") == _decoded("AAE") == b"\x00\x01"
    with pytest.raises(ValueError, match="wrong 4-byte ending unit"):
        _decoded("AAAAA")
