"""Secured listeners beside Apache Kafka: its tools and clients here, ours there, one directory in both, the same answers."""

from __future__ import annotations

import asyncio
import shlex
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tools.apache_kafka import HOST, SMALL_JVM, VERSION, ApacheKafka, Node, free_ports, java_command, run_tool

from barnabas import client, wire
from barnabas.broker.login import Login
from barnabas.client import tls
from barnabas.client.settings import load_file
from barnabas.config import properties
from barnabas.config.values import ConfigError
from barnabas.operations.security.node_settings import jaas_line, quoted
from barnabas.testing import Broker, Security
from barnabas.wire import APIS, Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.command_line import invoke

pytestmark = pytest.mark.interop

USERS = {"alice": "wonderland", "bob": "builder"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class SecuredNode(Node):
    """A node whose listener does not answer without TLS: it is ready when it says so."""

    def start(self, timeout_s: float = 300) -> None:
        super().start(timeout_s)

    def _wait_answer(self, deadline: float) -> None:
        while True:
            try:
                socket.create_connection(self.address, 2).close()
                return
            except OSError:
                self._check_alive(deadline)
                time.sleep(0.02)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (port,) = free_ports(1)
    done = invoke("security", "init", tmp_path / "secured", "--user", "alice", "--port", str(port))
    assert done.exit_code == 0, done.output
    return tmp_path / "secured"


def apache_in(folder: Path) -> SecuredNode:
    file = folder / "server.properties"
    command = [*java_command(VERSION, SMALL_JVM, "server", "kafka.Kafka"), str(file)]
    return SecuredNode(command, address_of(file), folder / "apache.log", "Kafka Server started")


def barnabas_in(folder: Path) -> SecuredNode:
    file = folder / "server.properties"
    command = [sys.executable, "-m", "barnabas", "serve", str(file)]
    return SecuredNode(command, address_of(file), folder / "barnabas.log", "reach it with")


def address_of(file: Path) -> tuple[str, int]:
    listeners = properties.loads(file.read_text())["listeners"]
    return HOST, int(listeners.split(",")[0].rpartition(":")[2])


def settings_of(folder: Path, user: str, password: str | None = None) -> Path:
    """The file of a user; one of another user is written if a password is given."""
    file = folder / "clients" / f"{user}.properties"
    if password is not None:
        given = properties.loads((folder / "clients" / "admin.properties").read_text())
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        given["sasl.jaas.config"] = f"{module} required username={quoted(user)} password={quoted(password)};"
        file.write_text(properties.dumps(given))
    return file


def java(name: str, file: Path, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    address = properties.loads(file.read_text())["bootstrap.servers"]
    config = "--producer.config" if name == "kafka-console-producer" else "--command-config"
    return run_tool(name, "--bootstrap-server", address, config, str(file), *args, stdin=stdin, timeout_s=240)


def who_logs_in(file: Path) -> bool:
    async def run() -> bool:
        async with client.Admin(load_file(file)) as admin:
            await admin.describe_cluster()
            return True

    try:
        return asyncio.run(run())
    except client.AuthenticationError:
        return False


def test_one_secured_directory_runs_in_both(folder: Path) -> None:
    admin = settings_of(folder, "admin")
    ours = ("--command-config", str(admin))
    with apache_in(folder):
        assert invoke("topics", "create", "orders", "--yes", *ours).exit_code == 0
        assert (
            invoke("users", "set", "carol", "--password-stdin", "--yes", *ours, stdin="carols secret\n").exit_code == 0
        )
        scram = "SCRAM-SHA-512=[iterations=8192,password=daves-secret]"
        made = java(
            "kafka-configs", admin, "--alter", "--entity-type", "users", "--entity-name", "dave", "--add-config", scram
        )
        assert made.returncode == 0, made.stdout + made.stderr
        assert who_logs_in(settings_of(folder, "alice"))
    users = {"carol": "carols secret", "dave": "daves-secret"}
    with barnabas_in(folder):
        listed = java("kafka-topics", admin, "--list")
        assert listed.stdout.split() == ["orders"], listed.stdout + listed.stderr
        for user, password in users.items():
            assert who_logs_in(settings_of(folder, user, password))
            assert not who_logs_in(settings_of(folder, user, password + "!"))
        scram = "SCRAM-SHA-512=[password=erins-secret]"
        made = java(
            "kafka-configs", admin, "--alter", "--entity-type", "users", "--entity-name", "erin", "--add-config", scram
        )
        assert made.returncode == 0, made.stdout + made.stderr
        erin = settings_of(folder, "erin", "erins-secret")
        seen = java("kafka-topics", erin, "--list")
        assert (seen.returncode, seen.stdout.split()) == (0, []), seen.stderr
    with apache_in(folder):
        assert who_logs_in(erin)
        for user, password in users.items():
            assert who_logs_in(settings_of(folder, user, password))


# --- Java's clients on each protocol and mechanism


def java_settings(broker: Broker, security: Security, user: str, password: str) -> dict[str, str]:
    given = {
        name: text
        for name, text in broker.client_config(user).items()
        if name not in ("sasl.username", "sasl.password")
    }
    if security.has_sasl and security.mechanisms[0] != "OAUTHBEARER":
        mechanism = security.mechanisms[0]
        given["sasl.jaas.config"] = jaas_line("SCRAM-SHA-256", (user, password), {})
        if mechanism == "PLAIN":
            given["sasl.jaas.config"] = given["sasl.jaas.config"].replace("scram.Scram", "plain.Plain")
    return given


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        ("SSL", "PLAIN"),
        *((protocol, name) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for name in (*MECHANISMS, "OAUTHBEARER")),
    ],
)
def test_java_clients_reach_a_secured_node(tmp_path: Path, protocol: str, mechanism: str) -> None:
    security = Security(protocol, (mechanism,), USERS, client_auth="required" if protocol == "SSL" else "none")
    file, wrong = tmp_path / "client.properties", tmp_path / "wrong.properties"
    with Broker(["t"], security=security) as broker:
        file.write_text(properties.dumps(java_settings(broker, security, "bob", "builder")))
        listed = java("kafka-topics", file, "--list")
        assert listed.stdout.split() == ["t"], listed.stdout + listed.stderr
        java("kafka-console-producer", file, "--topic", "t", stdin="from java\n")
        assert [record.value for record in broker.records("t", 1)] == [b"from java"]
        if security.has_sasl and mechanism != "OAUTHBEARER":
            wrong.write_text(properties.dumps(java_settings(broker, security, "bob", "wrong")))
            refused = java("kafka-topics", wrong, "--list")
            assert refused.returncode == 1
            assert "SaslAuthenticationException: Authentication failed" in refused.stdout + refused.stderr
        if protocol == "SSL":
            given = java_settings(broker, security, "bob", "builder")
            wrong.write_text(properties.dumps({name: text for name, text in given.items() if "keystore" not in name}))
            refused = java("kafka-topics", wrong, "--list")
            assert refused.returncode == 1
            assert "SslAuthenticationException" in refused.stdout + refused.stderr


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_a_java_producer_logs_in_again_before_its_session_ends(
    tmp_path: Path, mechanism: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, renewals = Login._begins_renewal, []

    def noted(login: Login, frame: bytes) -> bool:
        renewals.append(begins(login, frame))
        return renewals[-1]

    monkeypatch.setattr(Login, "_begins_renewal", noted)
    security, file = Security("SASL_SSL", (mechanism,), USERS), tmp_path / "client.properties"
    with Broker(["t"], security=security, config={"connections.max.reauth.ms": 1500}) as broker:
        file.write_text(properties.dumps(java_settings(broker, security, "bob", "builder") | {"linger.ms": "0"}))
        rate = ["--num-records", "60", "--throughput", "10", "--record-size", "10", "--topic", "t", "--command-config"]
        done = run_tool("kafka-producer-perf-test", *rate, str(file), timeout_s=240)
        assert "60 records sent" in done.stdout, done.stdout + done.stderr
        assert len(broker.records("t", 60)) == 60
    assert sum(renewals) >= 3
    assert not any("did not log in again" in record.getMessage() for record in caplog.records)


@pytest.fixture(scope="module")
def everywhere() -> Iterator[tuple[Security, dict[str, int]]]:
    """A node of Apache Kafka with a listener of each protocol, and every mechanism."""
    security = Security("SASL_SSL", (*MECHANISMS, "OAUTHBEARER"), USERS)
    names = ("SASL_SSL", "CONTROLLER", "SASL_PLAINTEXT", "SSL")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    settings = security.server_settings((HOST, "localhost"), is_authorizing=False)
    settings |= {
        name.replace("sasl_ssl", "sasl_plaintext"): text
        for name, text in settings.items()
        if ".sasl_ssl." in name and ".ssl.client" not in name
    }
    settings |= {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{name.replace('CONTROLLER', 'SSL')}" for name in names),
        "controller.quorum.bootstrap.servers": f"{HOST}:{ports['CONTROLLER']}",
        "listener.name.ssl.ssl.client.auth": "required",
    }
    format_args = ["--standalone"]
    for mechanism in MECHANISMS[1:]:
        for user, password in USERS.items():
            format_args += ["--add-scram", f"{mechanism}=[name={user},password={password}]"]
    lines = {name: text.replace("\n", "\\n") for name, text in settings.items()}
    apache = ApacheKafka(lines, format_args=format_args)
    apache.address = (HOST, ports["SASL_PLAINTEXT"])
    with apache:
        yield security, ports


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        ("SSL", "PLAIN"),
        *((protocol, name) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for name in (*MECHANISMS, "OAUTHBEARER")),
    ],
)
def test_our_client_and_commands_reach_a_secured_kafka(
    everywhere: tuple[Security, dict[str, int]], tmp_path: Path, protocol: str, mechanism: str
) -> None:
    security, ports = everywhere
    own = security.certificate("bob")
    given = {
        "bootstrap.servers": f"{HOST}:{ports[protocol]}",
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas_line(mechanism, ("bob", "builder"), {}),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": security.authority.pem,
    }
    if protocol == "SSL":
        given |= {"ssl.keystore.type": "PEM", "ssl.keystore.key": own.key, "ssl.keystore.certificate.chain": own.chain}
    file = tmp_path / "client.properties"
    file.write_text(properties.dumps(given))
    assert who_logs_in(file)
    topic = f"{protocol}-{mechanism}"
    assert invoke("topics", "create", topic, "--yes", "--command-config", file).exit_code == 0
    assert topic in invoke("topics", "list", "--command-config", file).output
    if protocol != "SSL" and mechanism != "OAUTHBEARER":
        file.write_text(properties.dumps(given | {"sasl.jaas.config": jaas_line(mechanism, ("bob", "no"), {})}))
        assert not who_logs_in(file)


def test_stores_of_keytool_serve_both_sides(tmp_path: Path) -> None:
    """PKCS12 stores, which keytool writes, without saying so: their type is Kafka's default, JKS."""
    password = ("-storepass", "s3cret-store", "-keypass", "s3cret-store")

    def keytool(*args: str) -> None:
        subprocess.run(["keytool", *args], cwd=tmp_path, check=True, capture_output=True, timeout=60)

    for name in ("node", "alice"):
        subject = ("-dname", f"CN={name}", "-ext", "san=ip:127.0.0.1,dns:localhost", "-keyalg", "EC", "-validity", "2")
        keytool("-genkeypair", "-alias", name, *subject, "-keystore", f"{name}.ks", *password)
        keytool("-exportcert", "-rfc", "-alias", name, "-keystore", f"{name}.ks", *password[:2], "-file", f"{name}.crt")
        keytool(
            "-importcert", "-noprompt", "-alias", name, "-file", f"{name}.crt", "-keystore", "trust.ks", *password[:2]
        )

    def stores(name: str) -> dict[str, str]:
        return {
            "ssl.keystore.location": str(tmp_path / f"{name}.ks"),
            "ssl.keystore.password": "s3cret-store",
            "ssl.key.password": "s3cret-store",
            "ssl.truststore.location": str(tmp_path / "trust.ks"),
            "ssl.truststore.password": "s3cret-store",
        }

    config = {
        "listeners": "SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "SSL:SSL,CONTROLLER:SSL",
        "security.inter.broker.protocol": "SSL",
        "ssl.client.auth": "required",
        **stores("node"),
    }
    with Broker(["t"], config=config) as broker:
        given = {"bootstrap.servers": broker.bootstrap_servers, "security.protocol": "SSL", **stores("alice")}
        file = tmp_path / "client.properties"
        file.write_text(properties.dumps(given))
        listed = java("kafka-topics", file, "--list")
        assert listed.stdout.split() == ["t"], listed.stdout + listed.stderr
        assert who_logs_in(file)


def test_a_jks_store_is_refused_with_a_command_that_converts_it(tmp_path: Path) -> None:
    store, password = tmp_path / "the node's.jks", "s3cret-store"
    subject = ["-dname", "CN=node", "-ext", "san=ip:127.0.0.1,dns:localhost", "-keyalg", "EC", "-validity", "2"]
    command = ["keytool", "-genkeypair", "-alias", "node", *subject, "-storetype", "JKS", "-keystore", str(store)]
    subprocess.run(
        [*command, "-storepass", password, "-keypass", password], check=True, capture_output=True, timeout=60
    )
    given = {"ssl.keystore.type": "JKS", "ssl.keystore.location": str(store), "ssl.keystore.password": password}
    values = dict.fromkeys(tls.TLS_SETTINGS) | given
    with pytest.raises(ConfigError) as refused:
        tls.server_context(values, client_auth="none")
    convert = shlex.split(str(refused.value).partition("to the result: ")[2])
    typed = f"{password}\n" * 3  # the new password twice, and the old one
    subprocess.run(convert, input=typed, text=True, check=True, capture_output=True, timeout=60)
    tls.server_context(values | {"ssl.keystore.location": f"{store}.p12"}, client_auth="none")


# --- the same answers


def frame(request: Message, version: int) -> bytes:
    key = request.schema().key or 0
    header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=9, client_id="c")
    return wire.encode(header, APIS[key].request_header_version(version)) + wire.encode(request, version)


def handshake(mechanism: str = "PLAIN", version: int = 1) -> bytes:
    return frame(SaslHandshakeRequest(mechanism=mechanism), version)


def token(data: bytes, version: int = 2) -> bytes:
    return frame(SaslAuthenticateRequest(auth_bytes=data), version)


ALICE = b"\0alice\0wonderland"
UNKNOWN_VERSION = (
    frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)[:2] + b"\0\x63" + bytes(10)
)
SCRIPTS: dict[str, Sequence[bytes]] = {
    "login": [handshake(), token(ALICE)],
    "login in version 0": [handshake(version=0), ALICE],
    "tokens in old versions": [handshake(), token(ALICE, 0)],
    "tokens in version 1": [handshake(), token(ALICE, 1)],
    "handshake after a login": [handshake(), token(ALICE), handshake()],
    "token after a login": [handshake(), token(ALICE), token(ALICE)],
    "unknown mechanism": [handshake("NOPE")],
    "known mechanism that is not enabled": [handshake("GSSAPI", 0)],
    "wrong password": [handshake(), token(b"\0alice\0no")],
    "wrong password in version 0": [handshake(version=0), b"\0alice\0no"],
    "unknown user": [handshake(), token(b"\0nobody\0no")],
    "no password": [handshake(), token(b"\0alice\0")],
    "two parts": [handshake(), token(b"alice\0no")],
    "another authorization id": [handshake(), token(b"bob\0alice\0wonderland")],
    "scram with nonsense": [handshake("SCRAM-SHA-256"), token(b"nonsense")],
    "scram with another authorization id": [handshake("SCRAM-SHA-256"), token(b"n,a=bob,n=alice,r=abc")],
    "second handshake": [handshake(), handshake()],
    "request instead of a token": [handshake(), frame(DescribeClusterRequest(), 1)],
    "request before the handshake": [frame(DescribeClusterRequest(), 1)],
    "token before the handshake": [token(ALICE)],
    "unknown version of ApiVersions": [UNKNOWN_VERSION],
    "garbage": [b"\xff" * 20],
    "empty frame": [b""],
    "a part of a header": [b"\0\x11\0\1\0"],
    "mechanism in lower case": [handshake("plain")],
    "mechanism without a name": [handshake("")],
    "empty token": [handshake(), token(b"")],
    "empty token in version 0": [handshake(version=0), b""],
    "four parts": [handshake(), token(b"\0alice\0wonderland\0more")],
    "no user": [handshake(), token(b"\0\0wonderland")],
    "user in another case": [handshake(), token(b"\0Alice\0wonderland")],
    "own authorization id": [handshake(), token(b"alice\0alice\0wonderland")],
    "no UTF-8": [handshake(), token(b"\0\xff\xfe\0\xff")],
    "token in a version that does not exist": [
        handshake(),
        frame(SaslAuthenticateRequest(auth_bytes=ALICE), 2)[:2] + b"\0\x09" + bytes(8),
    ],
    "handshake in a version that does not exist": [b"\0\x11\0\x09" + bytes(8)],
    "versions between handshake and token": [
        handshake(),
        frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3),
    ],
    "versions and login": [
        frame(ApiVersionsRequest(), 0),
        handshake(),
        token(ALICE),
        b"\xff\xff",
    ],
    "a byte too many": [frame(ApiVersionsRequest(), 0) + b"\xff"],
    "scram with channel binding": [handshake("SCRAM-SHA-256"), token(b"p=tls-unique,,n=alice,r=abc")],
    "scram that is not enabled": [handshake("SCRAM-SHA-512")],
    "ApiVersions twice": [
        frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4),
        frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4),
    ],
    "wrong name of the software": [frame(ApiVersionsRequest(client_software_name="-", client_software_version="1"), 3)],
}


AFTER_LOGIN = [handshake(), token(ALICE)]
BOB = b"\0bob\0builder"
DESCRIBE = frame(ApiVersionsRequest(), 0)  # answered before, during and after a login in different ways
RENEWALS: dict[str, Sequence[bytes]] = {
    "the same user": [*AFTER_LOGIN, handshake(), token(ALICE)],
    "another user": [*AFTER_LOGIN, handshake(), token(BOB)],
    "wrong password": [*AFTER_LOGIN, handshake(), token(b"\0alice\0no")],
    "token without a handshake": [*AFTER_LOGIN, token(ALICE)],
    "twice at once": [*AFTER_LOGIN, handshake(), token(ALICE), handshake()],
    "a request in between": [*AFTER_LOGIN, handshake(), DESCRIBE],
    "versions before it": [*AFTER_LOGIN, DESCRIBE, handshake(), token(ALICE)],
    "tokens in version 0": [*AFTER_LOGIN, handshake(), token(ALICE, 0)],
    "in version 0 of the handshake": [*AFTER_LOGIN, handshake(version=0), ALICE],
    "after a login in version 0": [handshake(version=0), ALICE, handshake(), token(ALICE)],
    "first token in version 0": [handshake(), token(ALICE, 0), handshake(), token(ALICE)],
}


def play(address: tuple[str, int], script: Sequence[bytes]) -> list[bytes | str]:
    """The answers to a script; the last is `closed` if the node has ended the connection."""
    answers: list[bytes | str] = []
    with socket.create_connection(address, 10) as sock:
        sock.settimeout(10)
        for each in script:
            sock.sendall(struct.pack(">i", len(each)) + each)
            answer = receive(sock)
            answers.append(answer)
            if answer == "closed":
                return answers
        sock.settimeout(0.7)
        try:
            answers.append(receive(sock))
        except TimeoutError:
            answers.append("open")
    return answers


def receive(sock: socket.socket) -> bytes | str:
    data = b""
    try:
        while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
            more = sock.recv(65536)
            if not more:
                return "closed"
            data += more
    except ConnectionResetError:
        return "closed"
    return data[4:]


@pytest.fixture(scope="module")
def addresses() -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """A listener with SASL_PLAINTEXT of each."""
    with both({}) as found:
        yield found


@pytest.fixture(scope="module")
def renewing() -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """The same, where sessions end after a minute."""
    with both({"connections.max.reauth.ms": "60000"}) as found:
        yield found


@contextmanager
def both(more: dict[str, str]) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    security = Security("SASL_PLAINTEXT", ("PLAIN", "SCRAM-SHA-256"), USERS)
    ports = free_ports(2)
    settings = (
        security.server_settings((), is_authorizing=False)
        | more
        | {
            "listeners": f"SASL_PLAINTEXT://{HOST}:{ports[0]},CONTROLLER://{HOST}:{ports[1]}",
            "controller.quorum.bootstrap.servers": f"{HOST}:{ports[1]}",
        }
    )
    scram = "SCRAM-SHA-256=[name=alice,password=wonderland]"
    apache = ApacheKafka(settings, format_args=["--standalone", "--add-scram", scram])
    apache.address = (HOST, ports[0])
    with apache, Broker(security=security, config=more) as broker:
        yield apache.address, (broker.host, broker.port)


@pytest.mark.parametrize("name", RENEWALS)
def test_answers_to_another_login_are_kafkas(renewing: tuple[tuple[str, int], tuple[str, int]], name: str) -> None:
    theirs, ours = (play(address, RENEWALS[name]) for address in renewing)
    assert without_versions(ours) == without_versions(theirs)


def without_versions(answers: list[bytes | str]) -> list[bytes | str]:
    """Lists of versions differ where docs/compatibility.md says so."""
    return [each if isinstance(each, str) or len(each) < 300 else each[:6] for each in answers]


@pytest.mark.parametrize("name", SCRIPTS)
def test_answers_before_and_during_a_login_are_kafkas(
    addresses: tuple[tuple[str, int], tuple[str, int]], name: str
) -> None:
    theirs, ours = (play(address, SCRIPTS[name]) for address in addresses)
    assert without_versions(ours) == without_versions(theirs)
