"""Logging in: the examples of the standards, and servers that do not keep to them."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.security.sasl import SaslError
from barnabas.security.sasl.plain import PlainClient
from barnabas.security.sasl.scram import HASHES, ScramClient

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()


def client(name: str = "SCRAM-SHA-256") -> ScramClient:
    return ScramClient(name, "user", "pencil", nonce=NONCE)


def test_the_example_of_rfc_7677() -> None:
    scram = client()
    assert scram.first() == f"n,,n=user,r={NONCE}".encode()
    final = scram.answer(SERVER_FIRST)
    assert final == f"c=biws,r={SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    assert not scram.is_complete
    assert scram.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None
    assert scram.is_complete


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    scram = client()
    scram.first()
    scram.answer(SERVER_FIRST)
    with pytest.raises(SaslError, match="does not know the password"):
        scram.answer(b"v=" + base64.b64encode(bytes(32)))
    assert not scram.is_complete


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"r=other,s=AAAA,i=4096", "nonce"),
        (f"r={NONCE},s=AAAA,i=4096".encode(), "nonce"),
        (f"r={SERVER_NONCE},s=AAAA,i=4095".encode(), "4095 iterations"),
        (f"r={SERVER_NONCE},s=AAAA,i=99999999999999".encode(), "iterations"),
        (f"r={SERVER_NONCE},s=AAAA,i=-1".encode(), "iterations"),
        (f"r={SERVER_NONCE},s=AAAA".encode(), "no iterations"),
        (f"r={SERVER_NONCE},s=!,i=4096".encode(), "s="),
        (f"r={SERVER_NONCE},i=4096".encode(), "s="),
        (b"", "not a SCRAM message"),
        (b"\xff\xfe", "not text"),
    ],
)
def test_a_server_that_does_not_keep_to_scram_is_refused(message: bytes, reason: str) -> None:
    scram = client()
    scram.first()
    with pytest.raises(SaslError, match=reason):
        scram.answer(message)


def test_the_servers_own_refusal_is_told() -> None:
    scram = client()
    scram.first()
    scram.answer(SERVER_FIRST)
    with pytest.raises(SaslError, match="invalid-proof"):
        scram.answer(b"e=invalid-proof")


def test_names_are_escaped_and_a_token_says_so() -> None:
    scram = ScramClient("SCRAM-SHA-512", "a=b,c", "x", nonce="n", extensions={"tokenauth": "true"})
    assert scram.first() == b"n,,n=a=3Db=2Cc,r=n,tokenauth=true"


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(sorted(HASHES)),
    st.text(min_size=1, max_size=20),
    st.text(min_size=1, max_size=20),
    st.binary(min_size=1),
)
def test_a_server_that_knows_the_stored_keys_accepts_the_proof(
    name: str, user: str, password: str, salt: bytes
) -> None:
    algorithm = HASHES[name]
    scram = ScramClient(name, user, password, nonce="abc")
    first = scram.first()
    server_first = b"r=abcdef,s=" + base64.b64encode(salt) + b",i=4096"
    final = scram.answer(server_first)
    assert final is not None
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, 4096)
    stored_key = hashlib.new(algorithm, hmac.digest(salted, b"Client Key", algorithm)).digest()
    without_proof, _, proof = final.rpartition(b",p=")
    said = b",".join((first.removeprefix(b"n,,"), server_first, without_proof))
    signature = hmac.digest(stored_key, said, algorithm)
    client_key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.new(algorithm, client_key).digest() == stored_key
    server_key = hmac.digest(salted, b"Server Key", algorithm)
    scram.answer(b"v=" + base64.b64encode(hmac.digest(server_key, said, algorithm)))
    assert scram.is_complete


def test_plain_says_all_at_once() -> None:
    plain = PlainClient("alice", "sécret")
    assert not plain.is_complete
    assert plain.first() == b"\0alice\0s\xc3\xa9cret"
    assert plain.answer(b"") is None
    assert plain.is_complete
    with pytest.raises(SaslError):
        plain.answer(b"more?")
    with pytest.raises(SaslError):
        PlainClient("a\0b", "c")
