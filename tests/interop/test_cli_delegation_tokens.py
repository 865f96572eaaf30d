"""kafka-delegation-tokens beside Kafka's own, on nodes of Apache Kafka and of barnabas that authenticate their clients."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.apache_kafka import HOST, VERSION, ApacheKafka, Barnabas, free_ports

from tests.command_line import invoke
from tests.interop.conftest import jars
from tests.interop.tool_process import ToolProcess

pytestmark = pytest.mark.interop

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(scope="module", params=[ApacheKafka, Barnabas])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a listener that authenticates."""
    jars(VERSION)
    plain, controller, sasl = free_ports(3)
    listener = "listener.name.sasl_plaintext"
    settings = {
        "listeners": f"PLAINTEXT://{HOST}:{plain},CONTROLLER://{HOST}:{controller},SASL_PLAINTEXT://{HOST}:{sasl}",
        "controller.quorum.bootstrap.servers": f"{HOST}:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        f"{listener}.plain.sasl.jaas.config": f'{PLAIN} required user_alice="secret" user_bob="secret";',
        f"{listener}.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
        "delegation.token.secret.key": "a secret",
    }
    node: ApacheKafka | Barnabas = request.param(settings)
    node.address, node.controller = (HOST, plain), f"{HOST}:{controller}"
    with node:
        yield f"{HOST}:{sasl}"


@pytest.fixture(scope="module")
def tools() -> Iterator[ToolProcess]:
    with ToolProcess() as process:
        yield process


@pytest.fixture
def login(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN} required username="alice" password="secret";\n'
    )
    return path


def common(text: str) -> str:
    """Without what differs between two tokens."""
    text = re.sub(r"[A-Za-z0-9+/]{86}==", "HMAC", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", "DATE", text)
    return re.sub(r"(tokenId : |^)[\w-]{22}(?=\s)", r"\1ID", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "line",
    [
        "{s} {l} --create --max-life-time-period -1 --renewer-principal User:bob",
        "{s} {l} --create --max-life-time-period -1 --renewer-principal User:bob --renewer-principal User:eve",
        "{s} {l} --create --max-life-time-period 1000000",
        "{s} {l} --create --max-life-time-period -1 --owner-principal User:carl",
        "{s} {l} --create --max-life-time-period -1 --renewer-principal bob",
        "{s} {l} --create",
        "{s} {l} --create --max-life-time-period -1 --hmac a",
        "{s} {l} --create --describe",
        "{s} {l} --describe",
        "{s} {l} --describe --owner-principal User:nobody --owner-principal User:x",
        "{s} {l} --describe --hmac a",
        "{s} {l} --describe --nonsense",
        "{s} {l} --renew --hmac AAAA --renew-time-period -1",
        "{s} {l} --renew --hmac !! --renew-time-period -1",
        "{s} {l} --renew --hmac AAAA",
        "{s} {l} --expire --hmac AAAA --expiry-time-period -1",
        "{s} {l} --expire --hmac AAAA",
        "{s} {l}",
        "{s} --create --max-life-time-period -1",
        "{s} --command-config /nowhere/x --describe",
        "--describe",
    ],
)
def test_it_prints_what_kafkas_script_prints(server: str, tools: ToolProcess, login: Path, line: str) -> None:
    filled = line.replace("{s}", f"--bootstrap-server {server}").replace("{l}", f"--command-config {login}")
    words = ["kafka-delegation-tokens", *shlex.split(filled)]
    theirs, ours = tools.run(*words), invoke(*words)
    first_errors = [text.partition("\n")[0] for text in (ours.stderr, theirs.err)]
    assert (ours.exit_code, common(ours.stdout), first_errors[0]) == (theirs.code, common(theirs.out), first_errors[1])


def test_a_token_is_shown_renewed_used_to_log_in_and_expired(server: str, tools: ToolProcess, login: Path) -> None:
    tool = ("kafka-delegation-tokens", "--bootstrap-server", server, "--command-config", str(login))
    created = invoke(*tool, "--create", "--max-life-time-period", "-1", code=0).stdout
    token_id, hmac = created.splitlines()[-1].split()[:2]

    for _ in range(50):  # a broker of Kafka hears of a token a moment after its creation
        described = tools.run(*tool, "--describe", "--owner-principal", "User:alice")
        if token_id in described.out:
            break
    shown = invoke(*tool, "--describe", "--owner-principal", "User:alice", code=0).stdout
    assert (sorted(shown.splitlines()), token_id in shown) == (sorted(described.out.splitlines()), True)

    words = (*tool, "--renew", f"--hmac={hmac}", "--renew-time-period", "3600000")
    renewed = [re.sub(r"\d\d:\d\d$", "", text) for text in (tools.run(*words).out, invoke(*words, code=0).stdout)]
    assert renewed[0] == renewed[1]

    with_password = login.read_text()
    jaas = f'{SCRAM} required username="{token_id}" password="{hmac}" tokenauth="true";'
    login.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={jaas}\n")
    invoke("topics", "list", "-b", server, "--command-config", login, code=0)
    login.write_text(with_password)

    expired = invoke(*tool, "--expire", f"--hmac={hmac}", "--expiry-time-period", "-1", code=0).stdout
    assert "Completed expire operation. New expiry date : " in expired
    deadline_s = time.monotonic() + 30
    while token_id in invoke(*tool, "--describe", "--owner-principal", "User:alice", code=0).stdout:
        assert time.monotonic() < deadline_s, "the token does not expire"
