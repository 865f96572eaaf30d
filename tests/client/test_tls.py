"""TLS: peers that are trusted, peers that are not, and peers that do not speak it."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest
import uvloop

from barnabas.client import CallTimeoutError, Cluster, TlsError, tls
from barnabas.config.values import ConfigError
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.client.certificates import PASSWORD, Certificates, make_certificates
from tests.client.peers import Asked, answering, one_broker, peer, ranges

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def server(store: Path, client_authority: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(store)
    if client_authority is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_authority)
    return context


def trusting(authority: Path, **more: Any) -> dict[str, Any]:
    settings = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": authority}
    return settings | {name.replace("_", "."): value for name, value in more.items()}


def call(context: ssl.SSLContext | None, settings: dict[str, Any], loop_factory: Any = None) -> None:
    """Ask one question of a scripted node behind TLS, or behind none."""

    async def main() -> None:
        def answers(asked: Asked) -> bytes | None:
            if asked.name == "ApiVersions":
                return asked.answer(ranges(Metadata=(0, 13), ListGroups=(0, 5)))
            return asked.answer(
                one_broker(int(servers.partition(":")[2])) if asked.name == "Metadata" else ListGroupsResponse()
            )

        async with peer(answering(answers), context) as port:
            servers = f"127.0.0.1:{port}"
            given = {"bootstrap.servers": servers, "default.api.timeout.ms": 5_000} | settings
            async with Cluster(given) as cluster:
                await asyncio.gather(*(cluster.call(ListGroupsRequest()) for _ in range(20)))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_a_server_whose_authority_is_trusted_is_talked_to(certificates: Certificates, loop_factory: Any) -> None:
    call(server(certificates.server_store), trusting(certificates.authority), loop_factory)


def test_a_server_of_another_authority_is_not_trusted(certificates: Certificates) -> None:
    with pytest.raises(TlsError, match=r"certificate of 127\.0\.0\.1:\d+ is not accepted"):
        call(server(certificates.server_store), trusting(certificates.other_authority))


def test_a_name_that_is_not_in_the_certificate_is_refused_unless_that_is_turned_off(certificates: Certificates) -> None:
    with pytest.raises(TlsError, match=r"127\.0\.0\.1"):
        call(server(certificates.misnamed_store), trusting(certificates.authority))
    unchecked = trusting(certificates.authority, ssl_endpoint_identification_algorithm="")
    call(server(certificates.misnamed_store), unchecked)
    with pytest.raises(TlsError, match="not accepted"):
        call(server(certificates.misnamed_store), unchecked | {"ssl.truststore.location": certificates.other_authority})


@pytest.mark.parametrize("loop_factory", LOOPS)
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_client_shows_its_certificate_where_one_is_asked_for(
    certificates: Certificates, version: str, loop_factory: Any
) -> None:
    context = server(certificates.server_store, certificates.authority)
    settings = trusting(certificates.authority, ssl_enabled_protocols=version)
    with pytest.raises((TlsError, CallTimeoutError), match="a client certificate"):
        call(context, settings | {"default.api.timeout.ms": 300}, loop_factory)
    key = {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificates.client_store, "ssl.key.password": PASSWORD}
    call(context, settings | key, loop_factory)


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_a_peer_that_does_not_speak_tls_is_named(certificates: Certificates, loop_factory: Any) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"what?")

    async def main() -> None:
        async with peer(script) as port:
            settings = {"bootstrap.servers": f"127.0.0.1:{port}"} | trusting(certificates.authority)
            with pytest.raises(TlsError, match="does it speak TLS"):
                await Cluster(settings).start()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


def test_a_peer_that_speaks_tls_hangs_up_on_a_client_that_does_not(certificates: Certificates) -> None:
    with pytest.raises(CallTimeoutError, match="does the listener require TLS or SASL"):
        call(server(certificates.server_store), {"default.api.timeout.ms": 300})


def test_a_trusted_certificate_needs_no_authority(certificates: Certificates, tmp_path: Path) -> None:
    """As in Java: a store may have the certificate of the node itself, or of an authority in between, and nothing else."""
    own = certificates.server_store.read_text()
    trusted = tmp_path / "node.pem"
    trusted.write_text(own[own.index("-----BEGIN CERTIFICATE") :])
    call(server(certificates.server_store), trusting(trusted))
    with pytest.raises(TlsError, match="not accepted"):
        call(server(certificates.misnamed_store), trusting(trusted, ssl_endpoint_identification_algorithm=""))


def test_names_beside_certificates_may_be_in_any_language(certificates: Certificates, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    authorities = (certificates.other_authority.read_text(), certificates.authority.read_text())
    bundle.write_text(
        "".join(f"F\u0151tan\u00fas\u00edtv\u00e1ny\n=====\n{each}" for each in authorities), encoding="utf-8"
    )
    call(server(certificates.server_store), trusting(bundle))


def test_a_store_that_is_gone_between_two_looks_is_an_error_of_the_setting(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node looks at its stores while somebody replaces them, and must go on looking."""
    store = tmp_path / "store.pem"
    store.write_bytes(certificates.server_store.read_bytes())
    read = tls._read

    def read_once(key: str, location: str) -> bytes:
        data = read(key, location)
        store.unlink(missing_ok=True)
        return data

    monkeypatch.setattr(tls, "_read", read_once)
    values = dict.fromkeys(tls.TLS_SETTINGS) | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location"):
        tls.server_context(values, client_auth="none")


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (("authority",), r"ssl\.keystore\.location: .*store\.pem has no private key in PEM"),
        (("key of the server",), r"ssl\.keystore\.location: .*store\.pem has no certificate in PEM"),
        ((), r"ssl\.keystore\.location: .*store\.pem has no private key and no certificate in PEM"),
        (("key of the server", "authority"), "cannot be used: the key is not that of the first certificate"),
        (("client_store",), r"cannot be used: .*; is ssl\.key\.password right\?"),
    ],
)
def test_what_is_wrong_with_a_key_store_is_said(
    certificates: Certificates, tmp_path: Path, parts: tuple[str, ...], says: str
) -> None:
    key = certificates.server_store.read_text().partition("-----BEGIN CERTIFICATE")[0]
    texts = {"key of the server": key, **{name: path.read_text() for name, path in certificates._asdict().items()}}
    store = tmp_path / "store.pem"
    store.write_text("".join(texts[each] for each in parts))
    values = dict.fromkeys(tls.TLS_SETTINGS) | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}
    with pytest.raises(ConfigError, match=says):
        tls.server_context(values, client_auth="none")


def test_a_store_in_pem_without_its_type_is_told_its_type(certificates: Certificates) -> None:
    """Kafka's default type is JKS."""
    store, authority = str(certificates.server_store), str(certificates.authority)
    values = dict.fromkeys(tls.TLS_SETTINGS) | {"ssl.keystore.type": "JKS", "ssl.keystore.location": store}
    with pytest.raises(ConfigError, match=r"is PEM, and no PKCS12 file: set ssl\.keystore\.type=PEM"):
        tls.server_context(values, client_auth="none")
    values = dict.fromkeys(tls.TLS_SETTINGS) | {"ssl.truststore.type": "JKS", "ssl.truststore.location": authority}
    with pytest.raises(ConfigError, match=r"is PEM, and no PKCS12 file: set ssl\.truststore\.type=PEM"):
        tls.client_context(values)
