"""The commands in pages of docs work as they stand there."""

from __future__ import annotations

import asyncio
import re
import shlex
import ssl
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tools.apache_kafka import free_ports

from barnabas.client.sync import Admin as SyncAdmin
from barnabas.config import properties
from barnabas.operations.local_cluster import processes
from barnabas.operations.local_cluster.directory import read
from barnabas.testing import Broker, Security
from tests.command_line import Process, invoke, spawn
from tests.documents import ROOT, Example, a_shop, examples, run
from tests.security.oauth_service import CLIENT_ID, CLIENT_SECRET, OAuthService

COMING_FROM = (ROOT / "docs" / "coming-from.md").read_text()
ASKS = (ROOT / "docs" / "asks.md").read_text()
TROUBLESHOOTING = (ROOT / "docs" / "troubleshooting.md").read_text()
SECURITY = (ROOT / "docs" / "security.md").read_text()
_FENCED = re.findall(r"^```(\w*)\n(.+?)^```$", SECURITY, re.MULTILINE | re.DOTALL)
SECURITY_BLOCKS = [text for language, text in _FENCED if not language]
SECURITY_CODE = [text for language, text in _FENCED if language == "python"]
CLUSTER = (ROOT / "docs" / "cluster.md").read_text()


def test_what_barnabas_types_instead_of_other_tools_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examples(COMING_FROM, "barnabas")
    assert len(found) > 40
    with a_shop(tmp_path, monkeypatch) as node:
        for example in found:
            run(example, node)


def test_what_kafkas_scripts_type_works_with_the_drop_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examples(COMING_FROM, "kafka-")
    assert len(found) > 35
    with a_shop(tmp_path, monkeypatch) as node:
        (tmp_path / "delete.json").write_text(
            '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "offset": 0}]}'
        )
        (tmp_path / "server.properties").write_text(
            "process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
            "controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=127.0.0.1:9093\n"
            f"log.dirs={tmp_path / 'other'}\n"
        )
        for example in found:
            run(example, node)


MESSAGES = re.findall(r"^### (.+)\n<!-- (?:printed by: (.+)|(in the source)) -->$", TROUBLESHOOTING, re.MULTILINE)


def pieces(heading: str) -> list[str]:
    """The parts of a message between names and numbers, which `...` stands for."""
    return [piece.strip() for piece in heading.strip("`").split("...") if piece.strip()]


def test_every_heading_of_troubleshooting_says_where_its_message_comes_from() -> None:
    assert len(MESSAGES) == TROUBLESHOOTING.count("\n### ") > 30
    assert all(heading.startswith("`") and heading.endswith("`") and pieces(heading) for heading, *_ in MESSAGES)


def test_messages_of_troubleshooting_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_shop(tmp_path, monkeypatch) as node:
        (tmp_path / "delete.json").write_text("{}")
        for heading, line, _ in MESSAGES:
            if line:
                printed = re.sub(r"  +", "  ", run(Example(line, None), node))
                for piece in pieces(heading):
                    assert piece in printed, f"{heading}: {line} printed\n{printed}"


def test_messages_of_troubleshooting_that_are_rare_are_in_the_source() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    missing = [
        heading for heading, line, _ in MESSAGES if not line and any(each not in source for each in pieces(heading))
    ]
    assert missing == []


def test_what_troubleshooting_says_to_type_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cluster.yaml").write_text("topics: {orders: {}}\n")
    skipped = ("barnabas serve", "barnabas lake run")
    with a_shop(tmp_path, monkeypatch) as node:
        for example in examples(re.sub(r"^### .*$", "", TROUBLESHOOTING, flags=re.MULTILINE), "barnabas"):
            if example.line not in skipped and not example.line.startswith("barnabas apply"):
                run(example, node)
        run(Example("barnabas apply -f cluster.yaml --yes"), node)


def test_every_answer_to_an_ask_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examples(ASKS, "barnabas")
    assert len(found) > 45
    with a_shop(tmp_path, monkeypatch) as node:
        for example in found:
            run(example, node)


def test_every_ask_has_an_answer() -> None:
    rows = re.findall(r"^\| (?!ask|---)(.+?) \| (.+) \|$", ASKS, re.MULTILINE)
    assert len(rows) > 25
    unanswered = [ask for ask, answer in rows if "`barnabas " not in answer and "`printf" not in answer]
    assert unanswered == [
        "A broker inside a Python test, for any client",
        "Chosen ports, several listeners, no port clashes",
        "Faults on purpose: an error on the third call, a delay, a moved leader",
    ]


def test_the_python_of_the_asks_runs() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", ASKS, re.MULTILINE | re.DOTALL)
    exec(compile(block, "asks.md", "exec"), {})


@pytest.mark.skipif(
    find_spec("barnabas.replicas.following") is None, reason="brokers do not follow the leaders of partitions yet"
)
def test_the_steps_of_the_cluster_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```\n(.+?)^```$", CLUSTER, re.MULTILINE | re.DOTALL)
    env: dict[str, str] = {}
    printed: dict[str, str] = {}
    try:
        for line in (line for block in blocks for line in block.splitlines()):
            if line.startswith("export "):
                local = read(tmp_path / "cluster")
                assert local is not None
                env = {line.removeprefix("export ").partition("=")[0]: local.bootstrap_servers}
                continue
            said, _, command = line.rpartition(" | ")
            stdin = shlex.split(said)[1].replace(r"\n", "\n").encode() if said else b""
            done = spawn(*shlex.split(command)[1:], stdin=stdin, env=env)
            assert done.exit_code == 0, f"{line}\n{done.output}"
            printed[line] = done.stdout
    finally:
        local = read(tmp_path / "cluster")
        if local is not None:
            processes.stop(local, local.nodes)
    assert all(word in printed["barnabas records consume orders"] for word in ("one", "two", "three", "four"))


def test_the_python_of_the_cluster_page_runs() -> None:
    (code,) = re.findall(r"^```python\n(.+?)^```$", CLUSTER, re.MULTILINE | re.DOTALL)
    values: dict[str, Any] = {}
    exec(code, values)
    assert values["first"] != values["second"]


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")  # of kafka-python, while it is imported
def test_the_steps_of_the_security_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second, *others = (block.splitlines() for block in SECURITY_BLOCKS)
    tokens, acls, who = (
        next(each for each in others if each[0].startswith(start))
        for start in ("barnabas kafka-delegation-tokens ", "barnabas acls ", "barnabas configs ")
    )
    create, serve = (shlex.split(line)[1:] for line in first)
    export, *commands = second
    (port,) = free_ports(1)
    assert invoke(*create, "--port", port).exit_code == 0
    (doctor,) = re.findall(r"`barnabas (doctor \S+)`", SECURITY)
    findings = invoke(*doctor.split(), "-o", "json").json
    of_this_test = {"advertised-listeners", "log-dirs"}  # that of a node on localhost, in a folder for tests
    assert {each["check"] for each in findings} <= of_this_test, findings
    name, _, value = export.removeprefix("export ").partition("=")
    printed = []
    with Process(*serve, merged=True) as node:
        node.until("reach it with")
        for line in (*commands, *acls, *(each for each in who if " lake " not in each)):
            said, _, command = line.rpartition(" | ")
            stdin = f"{shlex.split(said)[1]}\n" if said else ""
            done = invoke(*shlex.split(command)[1:], stdin=stdin, env={name: value})
            assert done.exit_code == 0, f"{line}\n{done.output}"
            printed.append(done.stdout)
        of_other_clients, _ = SECURITY_CODE
        values: dict[str, Any] = {}
        exec(of_other_clients, values)
        values["producer"].produce("orders", b"of librdkafka")
        assert values["producer"].flush(30) == 0
        assert values["other_producer"].send("orders", b"of kafka-python").get(30).offset >= 0
        values["other_producer"].close()
        asyncio.run(values["send"]())
        made = [
            invoke(*shlex.split(line.replace("localhost:9092", f"localhost:{port}"))[1:], code=0).stdout
            for line in tokens
        ]
    assert "orders" not in printed[1] and "orders" in printed[len(commands) - 1]
    found = printed[-1]
    assert re.search(r"retention.ms +- +3600000 +User:admin +127.0.0.1 +IncrementalAlterConfigs", found), found
    token_id, hmac = made[0].splitlines()[-1].split()[:2]
    assert "Total number of tokens : 1" in made[1] and token_id in made[1] and hmac in made[1]


def test_the_settings_of_oauth_on_the_security_page_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a service on the loopback address for the issuer."""
    server, client = (block for block in SECURITY_BLOCKS if "issuer.example" in block)
    with OAuthService() as service:
        changes = {
            "https://issuer.example/keys": f"{service.url}/jwks",
            "https://issuer.example/token": f"{service.url}/token",
            "https://issuer.example": "https://issuer",
            "the id": CLIENT_ID,
            "the secret": CLIENT_SECRET,
        }
        (export,) = re.findall(r"^  `export (KAFKA_OPTS=.+?)`", SECURITY, re.MULTILINE)
        for text, real in changes.items():
            server, client, export = (each.replace(text, real) for each in (server, client, export))
        monkeypatch.setenv(*export.split("=", 1))
        security = Security("SASL_SSL", ("OAUTHBEARER",))
        with Broker(["t"], security=security, config=properties.loads(server)) as broker:
            stores = {name: text for name, text in broker.client_config().items() if name.startswith("ssl.")}
            settings = {**properties.loads(client), **stores, "bootstrap.servers": broker.bootstrap_servers}
            with SyncAdmin(settings) as admin:
                assert [each.name for each in admin.list_topics()] == ["t"]


def test_the_code_of_the_security_page_works() -> None:
    _, code = SECURITY_CODE
    values: dict[str, Any] = {}
    exec(code, values)
    assert values["java_names"]["sasl.username"] == "alice" and "ssl.ca.pem" in values["of_librdkafka"]
    assert isinstance(values["tls"], ssl.SSLContext)
