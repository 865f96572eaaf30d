"""Listeners with TLS through sockets: certificates of clients, versions, replaced certificates, slow handshakes."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import os
import resource
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.broker import listener_securities, tls_handshakes
from barnabas.client import (
    Admin,
    AlterConfigOp,
    AlterConfigOpType,
    AuthenticationError,
    CallTimeoutError,
    ConfigResource,
    Consumer,
    NewTopic,
    Producer,
    TlsError,
    checked,
)
from barnabas.client.settings import load
from barnabas.operations.security.certificates import Authority
from barnabas.testing import AsyncBroker, BrokerError, Security
from barnabas.wire import ErrorCode, KafkaError

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
REFUSED = (TlsError, ConnectionError, CallTimeoutError)
CERTIFIED = Security("SSL", users={"alice": "", "bob": ""}, client_auth="required")


async def ask(settings: dict[str, Any]) -> None:
    async with Admin({"bootstrap.timeout.ms": 1000, **settings}) as admin:
        await admin.describe_cluster()


def own_store(security: Security, name: str, hosts: Sequence[str] = (), **validity: Any) -> dict[str, str]:
    certificate = security.authority.issue(name, hosts, **validity)
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": certificate.key,
        "ssl.keystore.certificate.chain": certificate.chain,
    }


@pytest.mark.parametrize("loop_factory", [None, "uvloop"])
def test_large_records_pass_through_tls(loop_factory: str | None) -> None:
    uvloop = pytest.importorskip("uvloop") if loop_factory else None

    async def run() -> None:
        async with (
            AsyncBroker({"t": 1}, security=Security("SSL"), config={"message.max.bytes": 8_000_000}) as broker,
            Producer(broker.client_config() | {"max.request.size": 8_000_000, "compression.type": "none"}) as producer,
            Consumer(broker.client_config() | {"group.id": "g", "auto.offset.reset": "earliest"}) as consumer,
        ):
            values = [os.urandom(size) for size in (1, 70_000, 5_000_000, 300_000)]
            for value in values:
                await producer.send("t", value)
            await producer.flush()
            await consumer.subscribe(["t"])
            found: list[bytes | None] = []
            while len(found) < len(values):
                found += [record.value for record in await consumer.poll(timeout_ms=20_000)]
            assert found == values

    asyncio.run(run()) if uvloop is None else uvloop.run(run())


def test_the_principal_is_that_of_the_certificate() -> None:
    async def run() -> None:
        config = AUTHORIZER | {"super.users": "User:node;User:alice"}
        async with AsyncBroker({"t": 1}, security=CERTIFIED, config=config) as broker:
            async with Admin(broker.client_config("alice")) as alice:
                checked(await alice.create_topics([NewTopic("of-alice", 1)]))
            async with Admin(broker.client_config("bob")) as bob:
                with pytest.raises(KafkaError) as refused:
                    checked(await bob.create_topics([NewTopic("of-bob", 1)]))
                assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED

    asyncio.run(run())


def test_a_required_certificate_must_be_sent_and_valid_and_signed(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with AsyncBroker(security=CERTIFIED) as broker:
            config = broker.client_config("alice")
            await ask(config)
            none = {name: text for name, text in config.items() if "keystore" not in name}
            expired = own_store(CERTIFIED, "alice", valid_from=NOW - 9 * DAY, valid_for=DAY)
            early = own_store(CERTIFIED, "alice", valid_from=NOW + 9 * DAY)
            foreign = own_store(Security("SSL"), "alice")
            for wrong in (none, config | expired, config | early, config | foreign):
                with pytest.raises(TlsError):
                    await ask(wrong)
            await ask(config)

    with caplog.at_level(logging.WARNING, "barnabas.broker.tls_handshakes"):
        asyncio.run(run())
    start = "failed TLS handshake with 127.0.0.1 on SSL: "
    lines = {each.getMessage().removeprefix(start) for each in caplog.records if each.name.endswith("tls_handshakes")}
    assert {each for each in lines if "not accepted" in each} >= {
        "the client's certificate is not accepted: certificate has expired",
        "the client's certificate is not accepted: certificate is not yet valid",
    }
    assert "peer did not return a certificate" in lines


def test_a_requested_certificate_may_be_missing() -> None:
    async def run() -> None:
        security = Security("SSL", client_auth="requested")
        async with AsyncBroker(security=security) as broker:
            config = broker.client_config("alice")
            await ask(config)
            await ask({name: text for name, text in config.items() if "keystore" not in name})
            with pytest.raises(TlsError):
                await ask(config | own_store(Security("SSL"), "alice"))

    asyncio.run(run())


def test_a_listener_may_want_a_certificate_and_a_password() -> None:
    """The password says who it is. As in Kafka, only the setting of the listener itself counts."""

    async def run() -> None:
        both = Security("SASL_SSL", ("PLAIN",), {"alice": "wonderland"}, client_auth="required")
        async with AsyncBroker(security=both) as broker:
            config = broker.client_config("alice")
            none = {name: text for name, text in config.items() if "keystore" not in name}
            await ask(config)
            with pytest.raises(TlsError, match="certificate required"):
                await ask(none)
            with pytest.raises(AuthenticationError):
                await ask(config | {"sasl.password": "no"})
        async with AsyncBroker(
            security=Security("SASL_SSL", ("PLAIN",), {"alice": "wonderland"}), config={"ssl.client.auth": "required"}
        ) as broker:
            await ask(broker.client_config("alice"))

    asyncio.run(run())


@pytest.mark.parametrize("loop_factory", [None, "uvloop"])
@pytest.mark.parametrize(
    ("version", "of_no_certificate"), [("TLSv1.2", "handshake failure"), ("TLSv1.3", "certificate required")]
)
def test_a_client_is_told_why_it_is_refused(version: str, of_no_certificate: str, loop_factory: str | None) -> None:
    """Event loops drop the alert. Without it Java's clients try again until their time is over."""
    uvloop = pytest.importorskip("uvloop") if loop_factory else None

    async def run() -> None:
        async with AsyncBroker(security=CERTIFIED, config={"ssl.enabled.protocols": version}) as broker:
            config = broker.client_config("alice") | {"bootstrap.timeout.ms": 30_000}
            none = {name: text for name, text in config.items() if "keystore" not in name}
            expired = own_store(CERTIFIED, "alice", valid_from=NOW - 9 * DAY, valid_for=DAY)
            foreign = own_store(Security("SSL"), "alice")
            for settings, why in (
                (none, of_no_certificate),
                (config | expired, "certificate expired"),
                (config | foreign, "unknown ca"),
            ):
                with pytest.raises(TlsError, match=f"refused the TLS handshake: {why}"):
                    await ask(settings)
            other = {"TLSv1.2": "TLSv1.3", "TLSv1.3": "TLSv1.2"}[version]
            with pytest.raises(TlsError, match="refused the TLS handshake: protocol version"):
                await ask(config | {"ssl.enabled.protocols": other})

    asyncio.run(run()) if uvloop is None else uvloop.run(run())


def test_clients_refuse_a_node_with_another_name_or_an_expired_certificate() -> None:
    async def run() -> None:
        security = Security("SSL")
        unchecked = {"listener.name.controller.ssl.endpoint.identification.algorithm": ""}
        other_name = {
            f"listener.name.ssl.{k}": v for k, v in own_store(security, "node", ["elsewhere.example"]).items()
        }
        async with AsyncBroker(security=security, config=other_name | unchecked) as broker:
            with pytest.raises(TlsError, match=r"not valid for '127\.0\.0\.1'"):
                await ask(broker.client_config())
            await ask(broker.client_config() | {"ssl.endpoint.identification.algorithm": ""})
        for validity, reason in (
            ({"valid_from": NOW - 9 * DAY, "valid_for": DAY}, "certificate has expired"),
            ({"valid_from": NOW + 9 * DAY}, "certificate is not yet valid"),
        ):
            store = own_store(security, "node", ["127.0.0.1"], **validity)
            async with AsyncBroker(
                security=security, config={f"listener.name.ssl.{k}": v for k, v in store.items()}
            ) as broker:
                with pytest.raises(TlsError, match=reason):
                    await ask(broker.client_config())

    asyncio.run(run())


def test_a_node_does_not_trust_a_controller_with_another_name() -> None:
    security = Security("SSL")
    names = {f"listener.name.controller.{k}": v for k, v in own_store(security, "node", ["elsewhere.example"]).items()}

    async def run() -> None:
        async with AsyncBroker(security=security, config=names):
            pass

    with pytest.raises(BrokerError, match=r"certificate of 127\.0\.0\.1:.* is not accepted"):
        asyncio.run(run())


def test_versions_and_cipher_suites_are_those_of_the_settings() -> None:
    async def run() -> None:
        suites = {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}
        async with AsyncBroker(security=Security("SSL"), config=suites) as broker:
            _, writer = await asyncio.open_connection(broker.host, broker.port, ssl=broker.ssl_context())
            used: tuple[str, str, int] = writer.get_extra_info("cipher")
            assert used[:2] == ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2")
            writer.close()
            with pytest.raises(TlsError):
                await ask(broker.client_config() | {"ssl.enabled.protocols": "TLSv1.3", "bootstrap.timeout.ms": 10_000})
        async with AsyncBroker(security=Security("SSL"), config={"ssl.enabled.protocols": "TLSv1.3"}) as broker:
            await ask(broker.client_config())
            with pytest.raises(TlsError):
                await ask(broker.client_config() | {"ssl.enabled.protocols": "TLSv1.2", "bootstrap.timeout.ms": 10_000})

    asyncio.run(run())


# --- replaced certificates


async def subject_of(broker: AsyncBroker, authority: str) -> Any:
    context = ssl.create_default_context(cadata=authority)
    _, writer = await asyncio.open_connection(broker.host, broker.port, ssl=context)
    subject = writer.get_extra_info("peercert")["subject"]
    writer.close()
    return subject[0][0][1]


def write_store(path: Path, security: Security, name: str) -> None:
    certificate = security.authority.issue(name, ["127.0.0.1"])
    path.with_suffix(".new").write_text(certificate.key + certificate.chain)
    path.with_suffix(".new").replace(path)


def test_changed_files_are_used_without_dropping_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_securities, "FILE_CHECK_S", 0.02)
    security, store = Security("SSL"), tmp_path / "node.pem"
    write_store(store, security, "first")
    config = {"listener.name.ssl.ssl.keystore.type": "PEM", "listener.name.ssl.ssl.keystore.location": str(store)}

    async def run() -> None:
        broker = AsyncBroker(security=FileStore(security), config=config)
        async with broker, Admin(broker.client_config()) as admin:
            await admin.describe_cluster()
            opened = next(iter(broker._running()._server.connections))
            assert await subject_of(broker, security.authority.pem) == "first"
            store.write_text("not a key")
            await asyncio.sleep(0.1)
            assert await subject_of(broker, security.authority.pem) == "first"
            write_store(store, security, "second")
            while await subject_of(broker, security.authority.pem) != "second":
                await asyncio.sleep(0.02)
            await admin.describe_cluster()
            assert opened in broker._running()._server.connections

    asyncio.run(asyncio.wait_for(run(), 30))


class FileStore(Security):
    """A security whose client listener has its key in a file."""

    def __init__(self, like: Security) -> None:
        super().__init__("SSL")
        self.__dict__["authority"] = like.authority

    def server_settings(
        self, hosts: tuple[str, ...], *, is_authorizing: bool, has_others: bool = False
    ) -> dict[str, str]:
        settings = super().server_settings(hosts, is_authorizing=is_authorizing, has_others=has_others)
        stores = {name: text for name, text in settings.items() if name.startswith("ssl.keystore")}
        kept = {name: text for name, text in settings.items() if name not in stores}
        return kept | {f"listener.name.controller.{name}": text for name, text in stores.items()}


def test_dynamic_settings_replace_a_certificate(tmp_path: Path) -> None:
    security, store = Security("SSL"), tmp_path / "node.pem"
    write_store(store, security, "first")
    prefix = "listener.name.ssl.ssl.keystore."
    config = {f"{prefix}type": "PEM", f"{prefix}location": str(store)}

    async def run() -> None:
        async with (
            AsyncBroker(security=FileStore(security), config=config) as broker,
            Admin(broker.client_config()) as admin,
        ):
            node = ConfigResource.broker(1)
            write_store(tmp_path / "other.pem", security, "second")
            missing = {node: [AlterConfigOp(f"{prefix}location", AlterConfigOpType.SET, str(tmp_path / "missing.pem"))]}
            with pytest.raises(KafkaError, match=r"missing\.pem cannot be read"):
                checked(await admin.incremental_alter_configs(missing))
            other = {node: [AlterConfigOp(f"{prefix}location", AlterConfigOpType.SET, str(tmp_path / "other.pem"))]}
            checked(await admin.incremental_alter_configs(other))
            while await subject_of(broker, security.authority.pem) != "second":
                await asyncio.sleep(0.02)
            await admin.describe_cluster()

    asyncio.run(asyncio.wait_for(run(), 30))


# --- handshakes that do not end


def hello() -> bytes:
    """What a client sends first."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("loop_factory", [None, "uvloop"])
def test_thousands_of_silent_clients_keep_nobody_from_connecting(loop_factory: str | None) -> None:
    """They are given up after ten seconds, and nobody waits for that."""
    uvloop = pytest.importorskip("uvloop") if loop_factory else None
    count = 1500
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2 * count + 200:
        pytest.skip("too few file descriptors are allowed")

    async def run() -> None:
        async with AsyncBroker(security=Security("SSL")) as broker:
            half_open = [await asyncio.open_connection(broker.host, broker.port) for _ in range(count)]
            await ask(broker.client_config())
            assert not any(reader.at_eof() for reader, _ in half_open)
            for _, writer in half_open:
                writer.close()

    with asyncio.Runner(loop_factory=None if uvloop is None else uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(run(), 120))


def test_the_oldest_of_too_many_silent_clients_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_handshakes, "MAX_WAITING", 5)

    async def run() -> None:
        async with AsyncBroker(security=Security("SSL")) as broker:
            clients = [await asyncio.open_connection(broker.host, broker.port) for _ in range(7)]
            for reader, _ in clients[:2]:
                assert await reader.read() == b""
            await ask(broker.client_config())  # and its connections push another one out
            assert not clients[-1][0].at_eof()
            for _, writer in clients:
                writer.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_handshakes_that_do_not_go_on_keep_nobody_from_connecting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest of them is given up for the newest client."""
    monkeypatch.setattr(tls_handshakes, "PATIENCE_S", 0.05)
    begun = hello()

    async def run() -> None:
        async with AsyncBroker(security=Security("SSL")) as broker:
            half_open = []
            for _ in range(5 * tls_handshakes.MAX_UNDER_WAY):
                half_open.append(await asyncio.open_connection(broker.host, broker.port))
                half_open[-1][1].write(begun)
            first, last = half_open[0][0], half_open[-1][0]
            assert await first.readexactly(1) and await last.readexactly(1)  # both were answered
            await ask(broker.client_config())
            async with asyncio.timeout(30):
                with contextlib.suppress(ConnectionError):
                    await first.read()
            for _, writer in half_open:
                writer.close()

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.parametrize("loop_factory", [None, "uvloop"])
def test_whatever_is_sent_instead_of_a_handshake_leaves_nothing_behind(
    loop_factory: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    uvloop = pytest.importorskip("uvloop") if loop_factory else None
    whole, random = hello(), Random(7)
    sent = [
        *(b"GET / HTTP/1.1\r\n\r\n", b"\0", whole[:50], whole + random.randbytes(200), random.randbytes(3000)),
        *(b"\x16\x03\x01\x40\x00" + random.randbytes(16384), b"\x16\x03\x01\x00\x01\x01" * 500, b""),
        *(bytes(each ^ (0xFF if random.random() < 0.02 else 0) for each in whole) for _ in range(20)),
    ]

    async def send(broker: AsyncBroker, data: bytes, *, aborts: bool) -> None:
        _, writer = await asyncio.open_connection(broker.host, broker.port)
        writer.write(data)
        await asyncio.sleep(0.01)
        writer.transport.abort() if aborts else writer.close()

    async def run() -> None:
        async with AsyncBroker(security=CERTIFIED) as broker:
            await asyncio.gather(*(send(broker, data, aborts=aborts) for data in sent for aborts in (False, True)))
            await ask(broker.client_config())
            server = broker._running()._server
            of_clients = next(each for each in server.endpoints if not each.listener.is_controller)
            while of_clients.present or of_clients._handshakes._begun:
                await asyncio.sleep(0.01)
            assert set(server.by_host.values()) == {len(server.connections)}  # those of the node itself

    with (
        caplog.at_level(logging.WARNING),
        asyncio.Runner(loop_factory=None if uvloop is None else uvloop.new_event_loop) as runner,
    ):
        runner.run(asyncio.wait_for(run(), 60))
    assert not [each for each in caplog.records if each.levelno > logging.WARNING or each.exc_info]


def test_connections_count_for_the_limits_before_their_handshake() -> None:
    async def run() -> None:
        config = {"max.connections.per.ip": 3}
        async with AsyncBroker(security=Security("SSL"), config=config) as broker:
            silent = [await asyncio.open_connection(broker.host, broker.port) for _ in range(3)]
            reader, writer = await asyncio.open_connection(broker.host, broker.port)
            assert await reader.read() == b""
            for _, each in (*silent, (reader, writer)):
                each.close()
            running = broker._running()
            while any(each.present for each in running._server.endpoints if not each.listener.is_controller):
                await asyncio.sleep(0.01)
            await ask(broker.client_config())

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_handshake_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_handshakes, "TIMEOUT_S", 0.1)

    async def run() -> None:
        async with AsyncBroker(security=Security("SSL")) as broker:
            reader, writer = await asyncio.open_connection(broker.host, broker.port)
            assert await asyncio.wait_for(reader.read(), 10) == b""
            writer.close()

    asyncio.run(run())


def test_a_client_without_tls_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with AsyncBroker(security=Security("SSL")) as broker:
            with pytest.raises(REFUSED):
                await ask({"bootstrap.servers": broker.bootstrap_servers})

    with caplog.at_level(logging.WARNING, "barnabas.broker.tls_handshakes"):
        asyncio.run(run())
    assert "failed TLS handshake with 127.0.0.1 on SSL: wrong version number" in caplog.text


# --- keys


def test_keys_in_settings_and_in_pkcs12_never_reach_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415

    authority = Authority("authority", NOW)
    own = authority.issue("node", ["127.0.0.1"])
    key = serialization.load_pem_private_key(own.key.encode(), None)
    first, *rest = load_pem_x509_certificates(own.chain.encode())
    protection = serialization.BestAvailableEncryption(b"s3cret")
    p12 = pkcs12.serialize_key_and_certificates(b"node", key, first, rest, protection)  # type: ignore[arg-type]
    (tmp_path / "node.p12").write_bytes(p12)
    encrypted = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection).decode()
    stores = [
        {"ssl.keystore.type": "PEM", "ssl.keystore.key": own.key, "ssl.keystore.certificate.chain": own.chain},
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": encrypted.replace("\n", " "),
            "ssl.keystore.certificate.chain": own.chain,
            "ssl.key.password": "s3cret",
        },
        {"ssl.keystore.location": str(tmp_path / "node.p12"), "ssl.keystore.password": "s3cret"},
    ]
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    opened: list[str] = []
    watching = True

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if (
            watching
            and event == "open"
            and isinstance(arguments[2], int)
            and arguments[2] & os.O_ACCMODE != os.O_RDONLY
        ):
            opened.append(str(arguments[0]))

    sys.addaudithook(note)
    try:
        for store in stores:
            settings = {"bootstrap.servers": "a:1", "security.protocol": "SSL", **store}
            assert load(settings).connect_options().tls is not None
    finally:
        watching = False
    assert opened == [] and list(folder.iterdir()) == []


def test_a_node_on_all_interfaces_is_reached_at_the_host_in_its_certificate() -> None:
    async def run() -> None:
        settings = {"listeners": "SASL_SSL://:0", "advertised.listeners": "SASL_SSL://localhost:0"}
        async with AsyncBroker(security=Security("SASL_SSL"), config=settings) as broker:
            *_, last = broker._running().describe()
            assert last == f"reach it with bootstrap.servers=localhost:{broker.port}; stop it with Ctrl-C"
            await ask(broker.client_config() | {"bootstrap.servers": f"localhost:{broker.port}"})

    asyncio.run(run())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"valid_from": NOW - 3 * DAY, "valid_for": DAY}, "certificate has expired"),
        ({"valid_from": NOW + DAY}, "not yet valid"),
    ],
)
def test_a_node_whose_own_certificate_is_not_valid_now_does_not_start_and_says_why(
    changes: dict[str, Any], says: str
) -> None:
    security = Security("SSL")
    own = own_store(security, "node", ["127.0.0.1", "localhost"], **changes)

    async def run() -> None:
        with pytest.raises(BrokerError, match=says):
            async with AsyncBroker(security=security, config=own):
                pass

    asyncio.run(run())


@pytest.mark.parametrize("name", ["missing.pem", "broken.pem"])
def test_a_store_that_cannot_be_read_stops_the_start_and_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.pem").write_text("nothing")
    prefix = "listener.name.ssl.ssl.keystore."

    async def run() -> None:
        config = {f"{prefix}type": "PEM", f"{prefix}location": str(tmp_path / name)}
        with pytest.raises(BrokerError, match=r"ssl\.keystore\.location"):
            async with AsyncBroker(security=FileStore(Security("SSL")), config=config):
                pass

    asyncio.run(run())


# --- what TLS 1.2 allows and a listener does not


def test_a_client_cannot_renegotiate() -> None:
    """In TLS 1.2, a client could ask for one handshake after another, each of which costs the node far more than itself."""
    security = Security("SSL")

    async def run() -> None:
        async with AsyncBroker({"t": 1}, security=security) as broker:
            client = await asyncio.create_subprocess_exec(
                *("openssl", "s_client", "-tls1_2", "-connect", f"{broker.host}:{broker.port}"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            assert client.stdin is not None and client.stdout is not None
            try:
                await asyncio.wait_for(client.stdout.readuntil(b"Verify return code"), 30)
                client.stdin.write(b"R\n")
                await client.stdin.drain()
                shown = await asyncio.wait_for(client.stdout.read(), 30)
            finally:
                if client.returncode is None:
                    client.kill()
                await client.wait()
            assert b"RENEGOTIATING" in shown and b"no renegotiation" in shown, shown
            await ask(broker.client_config())

    asyncio.run(run())


# --- trust in clients, replaced at run time


def test_dynamic_settings_replace_the_authority_of_clients() -> None:
    other = Security("SSL", users={"alice": ""}, client_auth="required")

    async def run() -> None:
        async with AsyncBroker(security=CERTIFIED) as broker, Admin(broker.client_config("alice")) as admin:
            known, new = (broker.client_config("alice") | own_store(each, "alice") for each in (CERTIFIED, other))
            await ask(known)
            with pytest.raises(REFUSED):
                await ask(new)
            prefix = "listener.name.ssl.ssl.truststore."
            given = {"type": "PEM", "certificates": other.authority.pem}
            ops = [AlterConfigOp(prefix + name, AlterConfigOpType.SET, text) for name, text in given.items()]
            checked(await admin.incremental_alter_configs({ConfigResource.broker(1): ops}))
            await ask(new)
            with pytest.raises(REFUSED):
                await ask(known)
            await admin.describe_cluster()  # its connection is older than the change

    asyncio.run(run())
