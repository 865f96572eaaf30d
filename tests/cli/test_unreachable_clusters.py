"""Every command against a cluster that is not there, one that never answers, and ports of other programs."""

from __future__ import annotations

import contextlib
import json
import shlex
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_tree import leaves, names_of
from tests.command_line import Done, invoke

IMPATIENT = {"BARNABAS_BOOTSTRAP_TIMEOUT_MS": "300"}

LINES = {
    "topics alter": "orders --partitions 3 --yes",
    "topics copy": "orders other --yes",
    "topics copy-settings": "orders other",
    "topics create": "orders",
    "topics delete": "orders --yes",
    "topics plan-partitions": "--throughput 1MB --producer-throughput 1MB --topic orders",
    "records consume": "orders",
    "records delete": "orders --all --yes",
    "records produce": "orders",
    "offsets find": "orders 1h",
    "configs append": "orders cleanup.policy=compact",
    "configs describe": "orders",
    "configs diff": "orders",
    "configs rollback": "orders --to 5",
    "configs set": "orders retention.ms=1",
    "configs subtract": "orders cleanup.policy=compact",
    "configs unset": "orders retention.ms",
    "acls create": "--allow alice --operation read --resource topic:orders",
    "acls delete": "--principal alice --yes",
    "acls explain": "alice read topic:orders",
    "acls test": "-f {cases}",
    "users delete": "alice --yes",
    "users describe": "alice",
    "users set": "alice --password-stdin",
    "quotas set": "--user alice producer_byte_rate=1",
    "quotas unset": "--user alice --all",
    "quotas describe": "--user alice",
    "groups copy": "app other --yes",
    "groups delete": "app --yes",
    "groups delete-offsets": "app --topic orders --yes",
    "groups describe": "app",
    "groups members": "app",
    "groups remove-members": "app --all --yes",
    "groups reset": "app --topic orders --to-earliest --yes",
    "groups state": "app",
    "transactions abort": "--transactional-id pay --yes",
    "transactions describe": "pay",
    "producers list": "orders",
    "cluster downgrade": "group.version=0 --yes",
    "cluster safe-to-stop": "1",
    "cluster unregister": "1 --yes",
    "cluster upgrade": "group.version=1 --yes",
    "quorum add": "4 --directory-id JEXY6aqzQY-32P5TStzaFg --endpoint CONTROLLER://four:9093",
    "quorum remove": "4 --yes",
    "quorum update": "4 --directory-id JEXY6aqzQY-32P5TStzaFg --endpoint CONTROLLER://four:9093",
    "log-dirs move": "orders:0 --broker 1 --to /data",
    "reassign cancel": "--all --yes",
    "reassign plan": "--rebalance",
    "reassign run": "{reassignment} --yes",
    "reassign throttle": "--clear",
    "elect-leaders": "--all --yes",
    "plan": "-f {declared}",
    "apply": "-f {declared} --yes",
    "raw": "ListGroups",
    "metadata cat": "topics",
    "metadata diff": "--from 1",
    "metadata mirror": "{mirror}",
    "rehearse": "--kill 1",
}
"""Arguments of commands that do not run without any."""

WITHOUT_FIRST_CONTACT = {
    "lake rebuild": "it reads a lake",
    "lake run": "it needs Spark; tests/lake runs it",
}

CONNECTING = [name for name, command in leaves().items() if "bootstrap_server" in names_of(command)]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    contents = {
        "cases": "cases: [{principal: 'User:a', resource: 'topic:x', may: READ}]",
        "declared": "topics: {fresh: {partitions: 1}}",
        "reassignment": json.dumps(
            {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]}
        ),
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in (*contents, "mirror")}


@contextlib.contextmanager
def dead() -> Iterator[str]:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{unused.getsockname()[1]}"


@contextlib.contextmanager
def answering(answer: bytes | None) -> Iterator[str]:
    """The address of a server that accepts, and then answers with these bytes, or never."""
    server = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = server.accept()
                taken.append(peer)
                if answer is not None:
                    peer.recv(1)
                    peer.sendall(answer)
                    peer.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(5)
        for peer in taken:
            peer.close()


def failed(address: str, name: str, files: dict[str, Path]) -> Done:
    """Run a command, and check that it ends with one line of an error, one of advice, and exit code 1."""
    arguments = shlex.split(LINES.get(name, "").format(**files))
    done = invoke(*name.split(), *arguments, "-b", address, stdin="one\n", env=IMPATIENT, code=1)
    lines = done.stderr.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["Error", "Try"], done.output
    assert address in lines[0]
    assert done.stdout == ""
    return done


@pytest.mark.parametrize("name", [name for name in CONNECTING if name not in WITHOUT_FIRST_CONTACT])
def test_a_broker_that_is_not_there_ends_every_command_with_one_line_and_what_to_do(
    name: str, files: dict[str, Path]
) -> None:
    with dead() as address:
        done = failed(address, name, files)
    assert "cannot be reached: Connection refused" in done.stderr
    assert "Try: start the broker, or check host and port" in done.stderr


SOME = ("topics list", "topics delete", "quorum status", "cluster safe-to-stop", "plan", "raw", "records produce")


@pytest.mark.parametrize("name", SOME)
def test_a_broker_that_never_answers_is_given_up(name: str, files: dict[str, Path]) -> None:
    with answering(None) as address:
        done = failed(address, name, files)
    assert f"no broker could be reached within 300 ms: {address} did not answer" in done.stderr
    assert "-X bootstrap.timeout.ms=30000 waits longer" in done.stderr


@pytest.mark.parametrize(
    ("answer", "message", "advice"),
    [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "does not speak Kafka's protocol but HTTP",
            "another program listens there",
        ),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS; set security.protocol to SSL or SASL_SSL", "security.protocol"),
        (b"SSH-2.0-OpenSSH\r\n", "SSH", "another program listens there"),
        (b"", "closed the connection instead of answering", "may require TLS or SASL: set security.protocol"),
    ],
)
@pytest.mark.parametrize("name", SOME)
def test_a_port_of_another_program_is_called_so(
    name: str, answer: bytes, message: str, advice: str, files: dict[str, Path]
) -> None:
    with answering(answer) as address:
        done = failed(address, name, files)
    error, hint = done.stderr.splitlines()
    assert message in error
    assert advice in hint


@pytest.mark.parametrize("option", ["-b", "--bootstrap-controller"])
@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("localhost", "should be in the form"),
        ("localhost:99999", "port out of range"),
        (":9092", "expected HOST:PORT"),
        ("nowhere.invalid:9092", "the name cannot be resolved"),
    ],
)
def test_an_address_that_is_none_names_the_option(option: str, address: str, message: str) -> None:
    done = invoke("cluster", "describe", option, address, env=IMPATIENT, code=1)
    assert message in done.stderr
    assert {"-b": "--bootstrap-server", **dict.fromkeys(["--bootstrap-controller"], option)}[option] in done.stderr


def test_without_an_address_the_advice_is_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from barnabas.cli.connection import profiles

    with dead() as address:
        monkeypatch.setattr(profiles, "DEFAULT_BOOTSTRAP_SERVERS", address)
        done = invoke("topics", "list", env=IMPATIENT, code=1)
    assert f"Error: {address} (by default): " in done.stderr
    assert "Try: -b HOST:PORT; no address was given." in done.stderr
