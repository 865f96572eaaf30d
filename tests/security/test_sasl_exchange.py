"""The server side of SASL logins as values: the order of steps, and both sides of each mechanism against each other."""

from __future__ import annotations

import hashlib
import hmac
import re
from functools import partial

import pytest

from barnabas.security.principal import KafkaPrincipal
from barnabas.security.sasl import ClientMechanism, InvalidCredentialsError, SaslError
from barnabas.security.sasl.exchange import SaslExchange, Session, State
from barnabas.security.sasl.plain import PlainClient, PlainServer
from barnabas.security.sasl.scram import (
    HASHES,
    MAX_FAKE_SALT_BYTES,
    ScramClient,
    ScramCredential,
    ScramServer,
    fake_credential,
)
from barnabas.wire import ApiKey, ErrorCode, KafkaError

SCRAM = list(HASHES)
ALICE = KafkaPrincipal("User", "alice")
ALICE_ALONE = {"alice": "pencil"}


def credential(name: str, password: str, iterations: int = 4096) -> ScramCredential:
    salted = hashlib.pbkdf2_hmac(HASHES[name], password.encode(), b"salt", iterations)
    stored_key = hashlib.new(HASHES[name], hmac.digest(salted, b"Client Key", HASHES[name])).digest()
    return ScramCredential(b"salt", stored_key, hmac.digest(salted, b"Server Key", HASHES[name]), iterations)


def scram(name: str, users: dict[str, str], nonce: str = "server") -> ScramServer:
    kept = {user: credential(name, password) for user, password in users.items()}
    return ScramServer(name, kept.get, nonce=nonce, secret=b"secret")


def exchange(renewed: Session | None = None, users: dict[str, str] = ALICE_ALONE) -> SaslExchange:
    mechanisms = {name: partial(scram, name, users) for name in SCRAM}
    return SaslExchange({"PLAIN": partial(PlainServer, users), **mechanisms}, renewed)


def log_in(to: SaslExchange, client: ClientMechanism) -> None:
    to.handshake(client.name, 1)
    said: bytes | None = client.first()
    while said is not None:
        said = client.answer(to.evaluate(said))


def client_of(name: str, user: str = "alice", password: str = "pencil") -> ClientMechanism:
    return PlainClient(user, password) if name == "PLAIN" else ScramClient(name, user, password, nonce="client")


@pytest.mark.parametrize("name", ["PLAIN", *SCRAM])
def test_the_right_password_completes_a_login(name: str) -> None:
    to = exchange()
    log_in(to, client_of(name))
    assert to.state is State.COMPLETE
    assert to.session == Session(ALICE, name)


@pytest.mark.parametrize("name", SCRAM)
@pytest.mark.parametrize(("user", "password"), [("alice", "pen"), ("bob", "pencil"), ("", "pencil")])
def test_a_wrong_password_and_an_unknown_user_fail_alike(name: str, user: str, password: str) -> None:
    to, client = exchange(), client_of(name, user or "nobody", password)
    to.handshake(name, 1)
    final = client.answer(to.evaluate(client.first()))
    assert final is not None  # also an unknown user is sent a salt
    with pytest.raises(KafkaError) as refused:
        to.evaluate(final)
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    text = f"Authentication failed during authentication due to invalid credentials with SASL mechanism {name}"
    assert refused.value.message == text
    assert to.state is State.FAILED and to.session is None


def test_plain_says_the_same_of_a_wrong_password_and_an_unknown_user() -> None:
    for user, password in (("alice", "pen"), ("bob", "pencil"), ("bob", "bob")):
        with pytest.raises(SaslError, match="Authentication failed: Invalid username or password"):
            PlainServer({"alice": "pencil"}).evaluate(PlainClient(user, password).first())


@pytest.mark.parametrize(
    "message", [b"", b"alice", b"\0alice", b"\0alice\0", b"\0\0pencil", b"\0a\0b\0c", b"\xff\0\xfe"]
)
def test_a_message_that_is_not_plains_is_refused(message: bytes) -> None:
    with pytest.raises(SaslError, match=r"expected 3 tokens|not specified"):
        PlainServer({"alice": "pencil"}).evaluate(message)


def test_another_authorization_id_is_refused() -> None:
    for server, message in (
        (PlainServer({"alice": "pencil"}), b"root\0alice\0pencil"),
        (scram("SCRAM-SHA-256", {"alice": "pencil"}), b"n,a=root,n=alice,r=x"),
    ):
        with pytest.raises(SaslError, match="different from username"):
            server.evaluate(message)
    assert PlainServer({"alice": "pencil"}).evaluate(b"alice\0alice\0pencil") == b""


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,n=alice",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=a=b,r=x",
        b"n,,r=x,n=alice",
        b"\xff",
    ],
)
def test_a_first_message_that_is_not_scrams_is_refused(message: bytes) -> None:
    with pytest.raises(InvalidCredentialsError):
        scram("SCRAM-SHA-256", {"alice": "pencil"}).evaluate(message)


def test_names_with_commas_and_equals_signs_log_in() -> None:
    to = exchange(users={"a,b=c": "pencil"})
    log_in(to, client_of("SCRAM-SHA-256", "a,b=c"))
    assert to.session is not None and to.session.principal.name == "a,b=c"


def test_scram_messages_of_another_login_are_refused() -> None:
    first, client = scram("SCRAM-SHA-256", {"alice": "pencil"}, "one"), client_of("SCRAM-SHA-256")
    final = client.answer(first.evaluate(client.first()))
    assert final is not None
    other = scram("SCRAM-SHA-256", {"alice": "pencil"}, "two")
    other.evaluate(client.first())
    with pytest.raises(InvalidCredentialsError):
        other.evaluate(final)
    assert not other.is_complete
    first.evaluate(final)
    with pytest.raises(InvalidCredentialsError):
        first.evaluate(final)


def test_unknown_users_always_get_the_same_salt_and_each_their_own() -> None:
    def salt(user: str) -> bytes:
        answer = scram("SCRAM-SHA-256", {}).evaluate(b"n,,n=%b,r=x" % user.encode())
        found = re.search(rb"s=([^,]+)", answer)
        assert found is not None
        return found[1]

    assert salt("bob") == salt("bob") != salt("carol")


@pytest.mark.parametrize(
    "salt", [b"1c7q0zdx9m2l5v8k3j6h4g", bytes(range(200, 216)), b""], ids=["Java's", "bytes", "none"]
)
def test_the_credential_of_an_unknown_user_looks_like_those_of_others(salt: bytes) -> None:
    others = [ScramCredential(salt, b"stored", b"server", 8192)]
    made = [fake_credential("SCRAM-SHA-512", f"user {number}", b"secret", others) for number in range(50)]
    assert {(len(each.salt), each.iterations) for each in made} == {(len(salt), 8192)}
    assert len({each.salt for each in made}) == (50 if salt else 1)
    if salt:
        assert all(each.salt.isalnum() and each.salt == each.salt.lower() for each in made) == salt.isalnum()


def test_some_unknown_users_look_like_each_kind_of_known_ones() -> None:
    others = [ScramCredential(bytes(length), b"stored", b"server", 4096) for length in (16, 26, 5000)]
    made = [fake_credential("SCRAM-SHA-256", f"user {number}", b"secret", others) for number in range(100)]
    assert {len(each.salt) for each in made} == {16, 26, MAX_FAKE_SALT_BYTES}


def test_a_delegation_token_is_an_unknown_user() -> None:
    to = exchange()
    client = ScramClient("SCRAM-SHA-256", "alice", "pencil", nonce="x", extensions={"tokenauth": "true"})
    with pytest.raises(KafkaError, match="invalid credentials"):
        log_in(to, client)


def test_credentials_and_servers_show_no_secret() -> None:
    kept = credential("SCRAM-SHA-256", "pencil")
    server = ScramServer("SCRAM-SHA-256", {"alice": kept}.get, nonce="n", secret=b"hidden")
    shown = f"{kept!r} {server!r} {PlainServer({'alice': 'pencil'})!r}"
    assert "pencil" not in shown and "hidden" not in shown and repr(kept.stored_key) not in shown


# --- the order of steps


def test_only_versions_and_the_handshake_are_allowed_first() -> None:
    for key in ApiKey:
        to = exchange()
        if key in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE):
            to.check(key, key.name)
            continue
        with pytest.raises(KafkaError) as refused:
            to.check(key, key.name)
        assert refused.value.code is ErrorCode.ILLEGAL_SASL_STATE
        assert refused.value.message == f"Unexpected Kafka request of type {key.name} during SASL handshake."
        assert to.state is State.FAILED


def test_versions_are_asked_for_once() -> None:
    to = exchange()
    to.versions_sent()
    with pytest.raises(KafkaError):
        to.check(ApiKey.API_VERSIONS, "API_VERSIONS")


def test_a_mechanism_that_is_not_enabled_is_refused() -> None:
    to = exchange()
    with pytest.raises(KafkaError) as refused:
        to.handshake("GSSAPI", 1)
    assert refused.value.code is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert refused.value.message == "Unsupported SASL mechanism GSSAPI"


def test_after_a_failure_nothing_is_accepted() -> None:
    to = exchange()
    to.handshake("PLAIN", 1)
    with pytest.raises(KafkaError):
        to.evaluate(b"\0alice\0wrong")
    for step in (lambda: to.evaluate(b"\0alice\0pencil"), lambda: to.handshake("PLAIN", 1)):
        with pytest.raises(KafkaError):
            step()
    assert to.session is None


def test_a_second_handshake_is_refused() -> None:
    to = exchange()
    to.handshake("PLAIN", 1)
    with pytest.raises(KafkaError, match="during SASL authentication"):
        to.handshake("PLAIN", 1)


def test_after_a_handshake_of_version_0_tokens_have_no_header() -> None:
    to = exchange()
    assert not to.expects_raw_token
    to.handshake("PLAIN", 0)
    assert to.expects_raw_token
    to.evaluate(b"\0alice\0pencil")
    assert not to.expects_raw_token


def test_a_session_is_renewed_by_the_same_user_with_the_same_mechanism() -> None:
    users = {"alice": "pencil", "bob": "pencil"}
    session = Session(ALICE, "PLAIN")
    again = exchange(session, users)
    log_in(again, client_of("PLAIN"))
    assert again.session == session
    with pytest.raises(
        KafkaError, match=r"Cannot change principals during re-authentication from User.alice: User.bob"
    ):
        log_in(exchange(session, users), client_of("PLAIN", "bob"))
    with pytest.raises(KafkaError, match="'SCRAM-SHA-256' requested by client is not supported for re-authentication"):
        log_in(exchange(session, users), client_of("SCRAM-SHA-256"))
    with pytest.raises(KafkaError, match="failed during re-authentication"):
        log_in(exchange(Session(ALICE, "SCRAM-SHA-256")), client_of("SCRAM-SHA-256", password="pen"))
