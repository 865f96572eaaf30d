"""OAUTHBEARER and delegation tokens beside Apache Kafka: the same answers, clients of both on both, one directory in both."""

from __future__ import annotations

import base64
import contextlib
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka.admin
import pytest
from tools.apache_kafka import HOST, VERSION, ApacheKafka, Barnabas, free_ports

from barnabas import wire
from barnabas.client.jaas import MODULES
from barnabas.client.oauth_urls import ALLOWED_URLS
from barnabas.config import properties
from barnabas.wire import APIS, Message
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.command_line import invoke
from tests.interop.conftest import jars
from tests.interop.test_security import frame, handshake, java, play, token
from tests.security.oauth_service import CLIENT_ID, CLIENT_SECRET, OAuthService
from tests.security.tokens import Keys, claims, raw_token, unsecured

pytestmark = pytest.mark.interop

KEYS = Keys()
OAUTH = "org.apache.kafka.common.security.oauthbearer."
MODULE = MODULES["OAUTHBEARER"]
LISTENERS = ("PLAINTEXT", "CONTROLLER", "SASL_PLAINTEXT", "STRICT", "LOOSE", "SCOPED")


class Nodes(NamedTuple):
    """The ports of each, by listener."""

    theirs: Mapping[str, int]
    ours: Mapping[str, int]


def settings_of(ports: Mapping[str, int], jwks: str, secret_key: str | None = "a secret") -> dict[str, str]:
    prefix = {name: f"listener.name.{name.lower()}" for name in LISTENERS}
    plain = f'{MODULES["PLAIN"]} required user_alice="wonderland" user_bob="builder" user_eve="apple";'
    given = {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(
            f"{name}:{'PLAINTEXT' if name in ('PLAINTEXT', 'CONTROLLER') else 'SASL_PLAINTEXT'}" for name in ports
        ),
        "controller.quorum.bootstrap.servers": f"{HOST}:{ports['CONTROLLER']}",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix['SASL_PLAINTEXT']}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{prefix['SASL_PLAINTEXT']}.plain.sasl.jaas.config": plain,
        f"{prefix['SASL_PLAINTEXT']}.scram-sha-256.sasl.jaas.config": f"{MODULES['SCRAM-SHA-256']} required;",
        f"{prefix['SASL_PLAINTEXT']}.scram-sha-512.sasl.jaas.config": f"{MODULES['SCRAM-SHA-512']} required;",
        "connection.failed.authentication.delay.ms": "0",
    }
    for name in ("SASL_PLAINTEXT", "STRICT", "LOOSE"):
        given[f"{prefix[name]}.oauthbearer.sasl.jaas.config"] = f"{MODULE} required;"
    # Kafka's broker logs in too, as soon as there is an option.
    scoped = 'unsecuredLoginStringClaim_sub="node" unsecuredValidatorRequiredScope="read write" '
    scoped += 'unsecuredValidatorAllowableClockSkewMs="60000"'
    given[f"{prefix['SCOPED']}.oauthbearer.sasl.jaas.config"] = f"{MODULE} required {scoped};"
    for name in ("STRICT", "LOOSE"):
        own = f"{prefix[name]}.oauthbearer.sasl"
        given[f"{own}.server.callback.handler.class"] = OAUTH + "OAuthBearerValidatorCallbackHandler"
        given[f"{own}.oauthbearer.jwks.endpoint.url"] = jwks
    given[f"{prefix['STRICT']}.oauthbearer.sasl.oauthbearer.expected.audience"] = "kafka,other"
    given[f"{prefix['STRICT']}.oauthbearer.sasl.oauthbearer.expected.issuer"] = "https://issuer"
    if secret_key is not None:
        given["delegation.token.secret.key"] = secret_key
    return given


def ports_of() -> dict[str, int]:
    return dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))


@pytest.fixture(scope="module")
def jwks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a file of keys, which nodes and tools of both may use."""
    file = tmp_path_factory.mktemp("keys") / "jwks.json"
    file.write_text(KEYS.jwks())
    allowed = f"-D{ALLOWED_URLS}=file://{file},file://{file.parent}/token"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_OPTS", allowed)
        patch.setenv("JAVA_TOOL_OPTIONS", allowed)
        yield f"file://{file}"


@pytest.fixture(scope="module")
def nodes(jwks: str) -> Iterator[Nodes]:
    with side_by_side(jwks, "a secret") as found:
        yield found


@pytest.fixture(scope="module")
def keyless(jwks: str) -> Iterator[Nodes]:
    with side_by_side(jwks, None) as found:
        yield found


@contextlib.contextmanager
def side_by_side(jwks: str, secret_key: str | None) -> Iterator[Nodes]:
    jars(VERSION)
    found = Nodes(ports_of(), ports_of())
    apache = ApacheKafka(settings_of(found.theirs, jwks, secret_key))
    barnabas = Barnabas(settings_of(found.ours, jwks, secret_key))
    for node, ports in ((apache, found.theirs), (barnabas, found.ours)):
        node.address, node.controller = (HOST, ports["PLAINTEXT"]), f"{HOST}:{ports['CONTROLLER']}"
    with apache, barnabas:
        yield found
        log = barnabas.log.read_text()
    assert "Traceback" not in log, log


def first(text: str, authorization_id: str = "", more: str = "") -> bytes:
    return f"n,{authorization_id},\x01auth=Bearer {text}\x01{more}\x01".encode()


NOW = int(time.time())
UNSECURED: dict[str, Any] = {
    "a good token": unsecured(),
    "expired": unsecured(exp=NOW - 100),
    "issued later": unsecured(iat=NOW + 30),
    "expires before it was issued": unsecured(iat=NOW - 10, exp=NOW - 20),
    "no exp": unsecured(exp=None),
    "exp is a text": unsecured(exp="soon"),
    "no iat": unsecured(iat=None),
    "no sub": unsecured(sub=None),
    "sub is a number": unsecured(sub=7),
    "sub is blank": unsecured(sub=" "),
    "a scope": unsecured(scope="read"),
    "both scopes": unsecured(scope=["read", "write", "more"]),
    "scopes in one text": unsecured(scope="read write"),
    "a fraction of a second": unsecured(exp=NOW + 3600.5),
    "signed": KEYS.sign(claims()),
    "two parts": "e30.e30",
    "four parts": "e30.e30.e30.e30",
    "an empty part": "e30..",
    "a signature": unsecured() + "YQ",
    "not base64": "%%%.%%%.",
    "not JSON": raw_token("nonsense", "nonsense"),
}
SIGNED: dict[str, Any] = {
    "RS256": KEYS.sign(claims()),
    "RS512": KEYS.sign(claims(), algorithm="RS512"),
    "PS256": KEYS.sign(claims(), algorithm="PS256"),
    "ES256": KEYS.sign(claims(), "ec", "ES256"),
    "EdDSA": KEYS.sign(claims(), "ed", "EdDSA"),
    "HS256": KEYS.sign(claims(), "oct", "HS256"),
    "HS512": KEYS.sign(claims(), "oct", "HS512"),
    "no key id": KEYS.sign(claims(), None),
    "unknown key id": KEYS.sign(claims(), "nobody"),
    "the key of another algorithm": KEYS.sign(claims(), "ec", "RS256"),
    "a key for encryption": KEYS.sign(claims(), "for encryption"),
    "a weak key": KEYS.sign(claims(), "weak"),
    "another key": Keys().sign(claims()),
    "no signature": unsecured(),
    "an empty signature": KEYS.sign(claims()).rpartition(".")[0] + ".",
    "changed claims": KEYS.sign(claims()).rpartition(".")[0] + "." + KEYS.sign(claims(sub="bob")).rpartition(".")[2],
    "expired": KEYS.sign(claims(exp=NOW - 100)),
    "expired within the skew": KEYS.sign(claims(exp=NOW - 5)),
    "not yet": KEYS.sign(claims(nbf=NOW + 300)),
    "not yet within the skew": KEYS.sign(claims(nbf=NOW + 5)),
    "issued later": KEYS.sign(claims(iat=NOW + 300)),
    "expires before it was issued": KEYS.sign(claims(iat=NOW + 300, exp=NOW + 200)),
    "no exp": KEYS.sign(claims(exp=None)),
    "no iat": KEYS.sign(claims(iat=None)),
    "no sub": KEYS.sign(claims(sub=None)),
    "sub is a list": KEYS.sign(claims(sub=["a"])),
    "blanks around sub": KEYS.sign(claims(sub=" alice ")),
    "no aud": KEYS.sign(claims(aud=None)),
    "another aud": KEYS.sign(claims(aud="postgres")),
    "several auds": KEYS.sign(claims(aud=["a", "other"])),
    "aud is a number": KEYS.sign(claims(aud=7)),
    "no iss": KEYS.sign(claims(iss=None)),
    "another iss": KEYS.sign(claims(iss="https://evil")),
    "scope": KEYS.sign(claims(scope="read")),
    "scope twice": KEYS.sign(claims(scope=["read", "read"])),
    "scope is a number": KEYS.sign(claims(scope=7)),
    "exp is a text": KEYS.sign(claims(iat=str(NOW))),
    "only claims": "e30.e30.YQ",
}


def answers(nodes: Nodes, listener: str, script: list[bytes]) -> tuple[list[bytes | str], list[bytes | str]]:
    ours, theirs = (play((HOST, ports[listener]), script) for ports in (nodes.ours, nodes.theirs))
    return ours, theirs


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SCOPED"])
@pytest.mark.parametrize("name", UNSECURED)
def test_tokens_without_a_signature_are_judged_as_by_kafka(nodes: Nodes, name: str, listener: str) -> None:
    script = [handshake("OAUTHBEARER"), token(first(UNSECURED[name]), 0), token(b"\x01", 0)]
    ours, theirs = answers(nodes, listener, script)
    assert ours == theirs


@pytest.mark.parametrize("listener", ["STRICT", "LOOSE"])
@pytest.mark.parametrize("name", SIGNED)
def test_signed_tokens_are_judged_as_by_kafka(nodes: Nodes, name: str, listener: str) -> None:
    script = [handshake("OAUTHBEARER"), token(first(SIGNED[name]), 0), token(b"\x01", 0)]
    ours, theirs = answers(nodes, listener, script)
    assert ours == theirs


FRAMES: dict[str, bytes] = {
    "another authorization id": first(unsecured(), "a=bob"),
    "its own authorization id": first(unsecured(), "a=alice"),
    "an extension": first(unsecured(), more="traceId=7\x01"),
    "a wrong extension": first(unsecured(), more="trace_id=7\x01"),
    "lower case": first(unsecured()).replace(b"Bearer", b"bearer"),
    "channel binding": first(unsecured()).replace(b"n,", b"p,", 1),
    "no token": b"n,,\x01\x01",
    "empty": b"",
    "one byte": b"\x01",
    "not text": b"\xff\xfe",
}


@pytest.mark.parametrize("name", FRAMES)
def test_messages_of_the_mechanism_are_read_as_by_kafka(nodes: Nodes, name: str) -> None:
    ours, theirs = answers(nodes, "SASL_PLAINTEXT", [handshake("OAUTHBEARER"), token(FRAMES[name], 0)])
    assert ours == theirs
    ours, theirs = answers(nodes, "SASL_PLAINTEXT", [handshake("OAUTHBEARER", 0), FRAMES[name]])
    assert ours == theirs


def test_a_session_ends_with_its_token_in_both(nodes: Nodes) -> None:
    script = [handshake("OAUTHBEARER"), token(first(unsecured(exp=int(time.time()) + 1000)), 1)]
    lifetimes = [
        struct.unpack(">q", bytes(answer[1])[-8:])[0]
        for answer in answers(nodes, "SASL_PLAINTEXT", script)
        if isinstance(answer[1], bytes)
    ]
    assert len(lifetimes) == 2
    assert all(0 < 1_000_000 - lifetime_ms < 30_000 for lifetime_ms in lifetimes), lifetimes


# --- delegation tokens


def asked(nodes: Nodes, user: str, *requests: tuple[Message, int]) -> tuple[list[Any], list[Any]]:
    """The answers of both to a user who has logged in with PLAIN, without times, ids and secrets."""
    password = {"alice": "wonderland", "bob": "builder", "eve": "apple"}[user]
    script = [handshake(), token(f"\0{user}\0{password}".encode(), 0), *(frame(*each) for each in requests)]
    ours, theirs = answers(nodes, "SASL_PLAINTEXT", script)
    return tuple([_decoded(*each) for each in zip(requests, found[2:], strict=False)] for found in (ours, theirs))  # type: ignore[return-value]


def _decoded(request: tuple[Message, int], answer: bytes | str) -> Any:
    if isinstance(answer, str):
        return answer
    api = APIS[request[0].schema().key or 0]
    return wire.decode(api.response, request[1], answer[4 + api.response_header_version(request[1]) :])


def common(answer: Any) -> Any:
    """An answer with what differs between two tokens replaced by its kind."""
    if isinstance(answer, str):
        return answer
    shown = {name: getattr(answer, name) for name in type(answer).__slots__}
    for name, value in shown.items():
        if "timestamp" in name and value > 0:
            shown[name] = "a time"
        elif name == "token_id" and value:
            shown[name] = "an id"
        elif name == "hmac" and value:
            shown[name] = f"{len(value)} bytes"
        elif name in ("tokens", "renewers"):
            shown[name] = sorted((common(each) for each in value), key=str)
    return shown


def create(owner: str = "", renewers: tuple[str, ...] = (), kind: str = "User", ms: int = -1) -> Message:
    row = CreateDelegationTokenRequest.CreatableRenewers
    return CreateDelegationTokenRequest(
        owner_principal_type="User" if owner else "",
        owner_principal_name=owner,
        renewers=[row(principal_type=kind, principal_name=each) for each in renewers],
        max_lifetime_ms=ms,
    )


def describe(*owners: str) -> Message:
    row = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    return DescribeDelegationTokenRequest(owners=[row(principal_type="User", principal_name=each) for each in owners])


REQUESTS: dict[str, tuple[Message, int]] = {
    **{f"create v{version}": (create(renewers=("bob",)), version) for version in (1, 2, 3)},
    "for another": (create("carl"), 3),
    "a short life": (create(ms=1000), 3),
    "a renewer that is no user": (create(renewers=("x",), kind="Group"), 3),
    **{f"describe v{version}": (describe("alice"), version) for version in (1, 2, 3)},
    "describe all": (DescribeDelegationTokenRequest(owners=None), 3),
    "describe nobody": (describe(), 3),
    "describe a stranger": (describe("stranger"), 3),
    **{f"renew nothing v{version}": (RenewDelegationTokenRequest(hmac=b"x"), version) for version in (1, 2)},
    **{f"expire nothing v{version}": (ExpireDelegationTokenRequest(hmac=b"x"), version) for version in (1, 2)},
}


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_for_tokens_are_answered_as_by_kafka(nodes: Nodes, name: str) -> None:
    ours, theirs = asked(nodes, "alice", REQUESTS[name])
    assert [common(each) for each in ours] == [common(each) for each in theirs]


@pytest.mark.parametrize("user", ["alice", "bob", "eve"])
@pytest.mark.parametrize("period_ms", [-1, 0, 1000, 10**18])
@pytest.mark.parametrize("kind", ["renew", "expire"])
def test_owners_and_renewers_alone_change_a_token(nodes: Nodes, user: str, period_ms: int, kind: str) -> None:
    made = asked(nodes, "alice", (create(renewers=("bob",)), 3))
    found = []
    for which, (answer,) in enumerate(made):
        request: Message = RenewDelegationTokenRequest(hmac=answer.hmac, renew_period_ms=period_ms)
        if kind == "expire":
            request = ExpireDelegationTokenRequest(hmac=answer.hmac, expiry_time_period_ms=period_ms)
        (changed,) = asked(nodes, user, (request, 2))[which]
        times = (answer.issue_timestamp_ms, answer.max_timestamp_ms)
        lifetime_ms = changed.expiry_timestamp_ms - times[0] if changed.expiry_timestamp_ms > 0 else None
        found.append((changed.error_code, changed.throttle_time_ms, lifetime_ms and round(lifetime_ms, -5)))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["create v3", "describe v3", "renew nothing v2", "expire nothing v2"])
def test_without_a_secret_key_there_are_no_tokens(jwks: str, keyless: Nodes, name: str) -> None:
    ours, theirs = asked(keyless, "alice", REQUESTS[name])
    assert [common(each) for each in ours] == [common(each) for each in theirs]


# --- clients and tools of each on the other


def client_file(
    folder: Path, address: str, mechanism: str, options: str, more: Mapping[str, str] | None = None
) -> Path:
    file = folder / f"{mechanism}-{len(list(folder.iterdir()))}.properties"
    given = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{MODULES[mechanism]} required {options};",
        **(more or {}),
    }
    file.write_text(properties.dumps(given))
    return file


def from_endpoint(url: str) -> dict[str, str]:
    return {
        "sasl.login.callback.handler.class": OAUTH + "OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": url,
    }


def test_javas_clients_log_in_here_with_tokens(nodes: Nodes, jwks: str, tmp_path: Path) -> None:
    unsigned = f"{HOST}:{nodes.ours['SASL_PLAINTEXT']}"
    file = client_file(tmp_path, unsigned, "OAUTHBEARER", 'unsecuredLoginStringClaim_sub="alice"')
    created = java("kafka-topics", file, "--create", "--topic", "of-java")
    assert created.returncode == 0, created.stdout + created.stderr
    java("kafka-console-producer", file, "--topic", "of-java", stdin="by token\n")

    signed = f"{HOST}:{nodes.ours['STRICT']}"
    at = Path(jwks.removeprefix("file://")).with_name("token")
    at.write_text(KEYS.sign(claims()))
    file = client_file(tmp_path, signed, "OAUTHBEARER", 'extension_traceId="7"', from_endpoint(f"file://{at}"))
    listed = java("kafka-topics", file, "--list")
    assert "of-java" in listed.stdout.split(), listed.stdout + listed.stderr
    at.write_text(Keys().sign(claims()))
    refused = java("kafka-topics", file, "--list")
    assert refused.returncode == 1
    assert 'SaslAuthenticationException: {"status":"invalid_token"}' in refused.stdout + refused.stderr


def test_our_commands_log_in_there_with_tokens(nodes: Nodes, jwks: str, tmp_path: Path) -> None:
    unsigned = f"{HOST}:{nodes.theirs['SASL_PLAINTEXT']}"
    file = client_file(tmp_path, unsigned, "OAUTHBEARER", 'unsecuredLoginStringClaim_sub="alice"')
    invoke("topics", "create", "ours", "--yes", "--command-config", file, code=0)
    invoke("records", "produce", "ours", "--command-config", file, stdin="by token\n", code=0)

    signed = f"{HOST}:{nodes.theirs['STRICT']}"
    at = Path(jwks.removeprefix("file://")).with_name("token")
    at.write_text(KEYS.sign(claims(), "ec", "ES256"))
    file = client_file(tmp_path, signed, "OAUTHBEARER", 'extension_traceId="7"', from_endpoint(f"file://{at}"))
    assert "ours" in invoke("topics", "list", "--command-config", file, code=0).output
    at.write_text(Keys().sign(claims()))
    refused = invoke("topics", "list", "--command-config", file)
    assert refused.exit_code != 0 and '{"status":"invalid_token"}' in refused.output


def test_a_token_endpoint_serves_javas_client_here_and_ours_there(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OAuthService(KEYS) as service:
        allowed = f"-D{ALLOWED_URLS}={service.url}/token"
        monkeypatch.setenv("KAFKA_OPTS", allowed)
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", allowed)
        more = from_endpoint(f"{service.url}/token") | {
            "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
            "sasl.oauthbearer.scope": "kafka",
        }
        here = client_file(tmp_path, f"{HOST}:{nodes.ours['STRICT']}", "OAUTHBEARER", "", more)
        listed = java("kafka-topics", here, "--list")
        assert listed.returncode == 0, listed.stdout + listed.stderr
        there = client_file(tmp_path, f"{HOST}:{nodes.theirs['STRICT']}", "OAUTHBEARER", "", more)
        invoke("topics", "list", "--command-config", there, code=0)
        assert service.asked == [("/token", b"grant_type=client_credentials&scope=kafka")] * len(service.asked)
        assert len(service.asked) == 2


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "STRICT"])
def test_librdkafka_logs_in_here_with_tokens(nodes: Nodes, listener: str) -> None:
    def give(config: str) -> tuple[str, float]:
        return KEYS.sign(claims()), time.time() + 3600

    given: dict[str, Any] = {
        "bootstrap.servers": f"{HOST}:{nodes.ours[listener]}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
    }
    if listener == "STRICT":
        given["oauth_cb"] = give
    else:
        given |= {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=alice"}
    assert confluent_kafka.admin.AdminClient(given).list_topics(timeout=20).brokers


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_delegation_token_of_either_is_used_by_clients_of_the_other(
    nodes: Nodes, tmp_path: Path, mechanism: str
) -> None:
    ours, theirs = asked(nodes, "alice", (create(), 3))
    for (made,), ports in ((ours, nodes.ours), (theirs, nodes.theirs)):
        password = base64.b64encode(bytes(made.hmac)).decode()
        options = f'username="{made.token_id}" password="{password}" tokenauth="true"'
        file = client_file(tmp_path, f"{HOST}:{ports['SASL_PLAINTEXT']}", mechanism, options)
        if ports is nodes.ours:
            listed = java("kafka-topics", file, "--list")
            assert listed.returncode == 0, listed.stdout + listed.stderr
            again = java("kafka-delegation-tokens", file, "--create", "--max-life-time-period", "-1")
            assert "Delegation Token requests are not allowed" in again.stdout + again.stderr
        else:
            invoke("topics", "list", "--command-config", file, code=0)
            tool = ("kafka-delegation-tokens", "--bootstrap-server", f"{HOST}:{ports['SASL_PLAINTEXT']}")
            again_here = invoke(*tool, "--command-config", file, "--create", "--max-life-time-period", "-1")
            assert "Delegation Token requests are not allowed" in again_here.output


def test_tokens_and_users_of_either_are_good_on_the_other_with_one_directory(jwks: str, tmp_path: Path) -> None:
    jars(VERSION)
    ports = ports_of()
    settings = settings_of(ports, jwks)
    address = f"{HOST}:{ports['SASL_PLAINTEXT']}"
    login = client_file(tmp_path, address, "PLAIN", 'username="alice" password="wonderland"')
    tool = ("kafka-delegation-tokens", "--bootstrap-server", address, "--command-config", str(login))
    made: list[tuple[str, str]] = []

    def all_are_good() -> None:
        for _ in range(50):  # a broker of Kafka hears of a token a moment after its creation
            shown = invoke(*tool, "--describe", "--owner-principal", "User:alice", code=0).stdout
            if all(each in shown for pair in made for each in pair):
                break
            time.sleep(0.1)
        for token_id, hmac in made:
            assert token_id in shown and hmac in shown
            options = f'username="{token_id}" password="{hmac}" tokenauth="true"'
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                invoke("topics", "list", "--command-config", client_file(tmp_path, address, mechanism, options), code=0)

    for kind in (ApacheKafka, Barnabas, ApacheKafka):
        node = kind(settings, directory=tmp_path / "node")
        node.address, node.controller = (HOST, ports["PLAINTEXT"]), f"{HOST}:{ports['CONTROLLER']}"
        with node:
            all_are_good()
            created = invoke(*tool, "--create", "--max-life-time-period", "-1", code=0).stdout
            token_id, hmac = created.splitlines()[-1].split()[:2]
            made.append((token_id, hmac))
            all_are_good()
            if len(made) == 3:  # the first and the second are removed by the third, whoever has created them
                invoke(*tool, "--expire", f"--hmac={made.pop(1)[1]}", "--expiry-time-period", "-1", code=0)
                all_are_good()
