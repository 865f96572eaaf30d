"""Settings by the names of Kafka's clients: what is taken, what is refused and what is warned of."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.handshake import Login
from barnabas.client.jaas import Credentials, parse_jaas
from barnabas.client.settings import load, load_file, password_login
from barnabas.config.definitions import parse_table
from barnabas.config.endpoints import Address
from barnabas.config.values import ConfigError
from barnabas.security.sasl import ClientMechanism
from tests.client.certificates import make_certificates

SERVERS = {"bootstrap.servers": "localhost:9092"}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="s3cret";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required username=alice password=s3cret;"


def begun(login: Login) -> ClientMechanism:
    async def begin() -> ClientMechanism:
        return await login()

    return asyncio.run(begin())


def test_everything_has_a_default_but_the_address() -> None:
    settings = load(SERVERS)
    assert settings.bootstrap_servers == (Address("localhost", 9092),)
    assert settings.get_int("request.timeout.ms") == 30_000
    assert settings.security_protocol == "PLAINTEXT"
    options = settings.connect_options()
    assert (options.tls, options.login, options.client_id) == (None, None, "barnabas")
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        load({})


def test_values_may_be_texts_numbers_and_lists() -> None:
    settings = load(
        {"bootstrap.servers": ["one:1", "[::1]:2", "PLAINTEXT://three:3"], "request.timeout.ms": 5, "client.id": "me"}
    )
    assert settings.bootstrap_servers == (Address("one", 1), Address("::1", 2), Address("three", 3))
    assert settings.get_int("request.timeout.ms") == 5
    assert settings.client_id == "me"


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"bootstrap.servers": "localhost"}, "bootstrap.servers"),
        ({"bootstrap.servers": "localhost:99999"}, "bootstrap.servers"),
        ({"bootstrap.servers": ":9092"}, "bootstrap.servers"),
        (SERVERS | {"bootstrap.controllers": "localhost:9093"}, "bootstrap.controllers"),
        (SERVERS | {"request.timeout.ms": "soon"}, "request.timeout.ms"),
        (SERVERS | {"retry.backoff.ms": -1}, "retry.backoff.ms"),
        (SERVERS | {"security.protocol": "TLS"}, "security.protocol"),
        (SERVERS | {"security.protocol": "SASL_SSL"}, "sasl.mechanism"),
        (SERVERS | {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config"),
        (
            SERVERS | {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "alice"},
            "sasl.password",
        ),
        (
            SERVERS
            | {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": SCRAM,
                "sasl.username": "alice",
            },
            "sasl.username",
        ),
        (
            SERVERS | {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": SCRAM},
            "sasl.jaas.config",
        ),
    ],
)
def test_what_cannot_be_taken_names_its_key_and_shows_no_password(given: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(given)
    assert key in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_unknown_names_are_warned_of_and_those_of_java_are_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        settings = load(
            SERVERS | {"metric.reporters": "x", "sasl.login.class": "y", "bootstrap.server": "z", "acks": "1"}
        )
    assert [each.split()[0] for each in settings.warnings] == ["bootstrap.server", "acks"]
    assert [record.args for record in caplog.records] == [(each,) for each in settings.warnings]


def test_others_bring_settings_of_their_own() -> None:
    table = parse_table("linger.ms long 5 medium >=0\n    How long to wait.\n")
    assert load(SERVERS, table).get_int("linger.ms") == 5
    assert load(SERVERS | {"linger.ms": "7"}, table).get_int("linger.ms") == 7
    with pytest.raises(ConfigError, match=r"linger\.ms"):
        load(SERVERS | {"linger.ms": "-7"}, table)


def test_a_java_properties_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "# a client\nbootstrap.servers = one:9092, \\\n    two:9092\nsecurity.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={SCRAM}\n"
    )
    settings = load_file(file, {"client.id": "x"})
    assert [address.host for address in settings.bootstrap_servers] == ["one", "two"]
    assert settings.credentials == Credentials("alice", "s3cret")
    assert settings.client_id == "x"
    assert "s3cret" not in repr(settings) + repr(settings.credentials)
    login = settings.connect_options().login
    assert login is not None
    assert (begun(login).name, begun(login).first() == begun(login).first()) == ("SCRAM-SHA-512", False)


def test_credentials_are_given_as_user_name_and_password() -> None:
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "x"}
    settings = load(SERVERS | login)
    assert settings.credentials == Credentials("alice", "x")
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("text", "password"),
    [
        (PLAIN, "s3cret"),
        ("x.PlainLoginModule  REQUIRED\n username=alice\tpassword='it;is=\"so\"' ;", 'it;is="so"'),
        ('PlainLoginModule required username="alice" password="a \\"quoted\\" \\\\ one";', 'a "quoted" \\ one'),
        ('PlainLoginModule required username=alice serviceName="k" password=";";', ";"),
    ],
)
def test_jaas_is_read_as_java_reads_it(text: str, password: str) -> None:
    assert parse_jaas(text, "PLAIN") == Credentials("alice", password)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("PlainLoginModule", "flag"),
        ("PlainLoginModule username=a password=b;", "flag"),
        ("PlainLoginModule required username=a password=b", "semicolon"),
        ("PlainLoginModule required username=a;", "password must be given"),
        ("PlainLoginModule required username a password b;", "option 1 is not"),
        ("PlainLoginModule required username=a password;", "option 2 is not"),
        ('PlainLoginModule required username="a password=b;', "quote is not closed"),
        ("other.Module required username=a password=b;", "needs the login module"),
    ],
)
def test_a_mistake_in_jaas_is_named(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        parse_jaas(text, "PLAIN")
    assert refused.value.key == "sasl.jaas.config"


def test_a_delegation_token_says_that_it_is_one() -> None:
    credentials = parse_jaas(
        'ScramLoginModule required username="id" password="key" tokenauth="true";', "SCRAM-SHA-256"
    )
    assert b"tokenauth=true" in begun(password_login("SCRAM-SHA-256", credentials, lambda: "nonce")).first()


# --- TLS


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pem")
    make_certificates(folder)
    return folder


def test_pem_files_become_a_context(pem: Path) -> None:
    context = (
        load(
            SERVERS
            | {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": pem / "authority.pem",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": pem / "client.store.pem",
                "ssl.key.password": "s3cret",
                "ssl.endpoint.identification.algorithm": "",
                "ssl.enabled.protocols": "TLSv1.3",
            }
        )
        .connect_options()
        .tls
    )
    assert context is not None
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3
    assert len(context.get_ca_certs()) == 1


def test_pem_may_stand_in_the_settings_themselves(pem: Path) -> None:
    context = (
        load(
            SERVERS
            | {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": (pem / "authority.pem").read_text(),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": (pem / "client.key").read_text(),
                "ssl.keystore.certificate.chain": (pem / "client.crt").read_text(),
                "ssl.key.password": "s3cret",
            }
        )
        .connect_options()
        .tls
    )
    assert context is not None
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ssl.truststore.location": "authority.pem"}, "authority.pem is PEM, and no PKCS12 file"),
        (
            {"ssl.truststore.type": "BKS", "ssl.truststore.location": "authority.pem"},
            "BKS is not supported; use one of PEM",
        ),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "nowhere.pem"},
            "nowhere.pem cannot be read: No such",
        ),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "x"}, "ssl.truststore.certificates has no"),
        ({"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "store.p12"}, "store.p12 cannot be read"),
        ({"ssl.protocol": "TLSv1.1"}, "ssl.protocol: TLSv1.1 is not supported"),
        ({"ssl.cipher.suites": "TLS_NO_SUCH"}, "ssl.cipher.suites: TLS_NO_SUCH is not known"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "Python cannot choose among the suites of TLS 1.3"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.location": "client.store.pem"}, "is ssl.key.password right"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.key": "x"}, "ssl.keystore.certificate.chain"),
        ({"ssl.enabled.protocols": "SSLv3"}, "ssl.enabled.protocols: SSLv3"),
    ],
)
def test_what_is_no_pem_names_its_key(
    pem: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], says: str
) -> None:
    monkeypatch.chdir(pem)
    with pytest.raises(ConfigError) as refused:
        load(SERVERS | {"security.protocol": "SSL"} | given).connect_options()
    assert says in str(refused.value)
