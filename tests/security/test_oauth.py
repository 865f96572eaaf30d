"""Bearer tokens: which are accepted, with and without a signature, and what is said of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.security.oauth import signed, unsecured
from barnabas.security.oauth.claims import BearerToken, InvalidTokenError, decoded
from barnabas.security.sasl import InvalidCredentialsError, SaslError
from barnabas.security.sasl.oauthbearer import OAuthBearerClient, OAuthBearerServer, check_extensions
from tests.security.tokens import Keys, claims, encoded, raw_token

KEYS = Keys()
NOW_S = 1_700_000_000
RULES = signed.Rules(frozenset({"kafka"}), "https://issuer")


def said(**changes: Any) -> dict[str, Any]:
    return claims(**{"iat": NOW_S, "exp": NOW_S + 60, **changes})


def check(token: str, rules: signed.Rules = RULES) -> BearerToken:
    return signed.check_token(token, signed.parse_keys(KEYS.jwks()), rules, NOW_S * 1000)


# --- signed tokens


@pytest.mark.parametrize(
    ("algorithm", "kid"),
    [
        *(("RS256", "rsa"), ("RS384", "rsa"), ("RS512", "rsa"), ("PS256", "rsa"), ("PS512", "rsa")),
        *(("ES256", "ec"), ("EdDSA", "ed"), ("HS256", "oct"), ("HS512", "oct"), ("RS256", None)),
    ],
)
def test_a_signed_token_says_who_its_owner_is(algorithm: str, kid: str | None) -> None:
    found = check(KEYS.sign(said(scope=["read"]), kid, algorithm))
    assert found == BearerToken("alice", (NOW_S + 60) * 1000, frozenset({"read"}), NOW_S * 1000)


@pytest.mark.parametrize(
    "token",
    [
        raw_token({"alg": "none"}, said()),
        raw_token({"alg": "none", "kid": "rsa"}, said(), "YQ"),
        raw_token({"alg": "NONE"}, said(), "YQ"),
        raw_token({"alg": "RS256", "kid": "rsa"}, said(), "YQ"),
        raw_token({"kid": "rsa"}, said(), "YQ"),
        raw_token({"alg": ["RS256"]}, said(), "YQ"),
        raw_token({"alg": "RS256", "kid": 7}, said(), "YQ"),
        raw_token([], said(), "YQ"),
        KEYS.sign(said(), "weak"),
        KEYS.sign(said(), "for encryption"),
        KEYS.sign(said(), "oct", "RS256"),
        KEYS.sign(said(), "rsa", "HS256"),
        Keys().sign(said()),
        KEYS.sign(said())[:-6] + "AAAAAA",
        "a.b",
        "a.b.c.d",
        "",
    ],
)
def test_a_token_without_a_good_signature_is_refused(token: str) -> None:
    with pytest.raises(InvalidTokenError) as refused:
        check(token)
    assert refused.value.status == "invalid_token"
    assert not token or token not in str(refused.value)


def test_the_public_key_is_no_secret_key() -> None:
    """The well-known attack: an HMAC with the text of the public key as its secret."""
    import hmac  # noqa: PLC0415

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415

    public = KEYS.rsa.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    start = raw_token({"alg": "HS256", "kid": "rsa"}, said())[:-1]
    with pytest.raises(signed.MissingKeyError):
        check(f"{start}.{encoded(hmac.digest(public, start.encode(), 'sha256'))}")


@pytest.mark.parametrize(
    ("changes", "skew_s", "is_good"),
    [
        ({}, 0, True),
        ({"exp": NOW_S}, 0, False),
        ({"exp": NOW_S, "iat": NOW_S - 9}, 1, True),
        ({"exp": NOW_S - 30, "iat": NOW_S - 90}, 30, False),
        ({"nbf": NOW_S + 1}, 0, False),
        ({"nbf": NOW_S + 1}, 1, True),
        ({"nbf": NOW_S + 61}, 100, False),
        ({"iat": NOW_S + 61}, 100, False),
        ({"iat": NOW_S + 30}, 0, True),
        ({"exp": None}, 0, False),
        ({"iat": None}, 0, False),
        ({"exp": True}, 0, False),
        ({"exp": 10**30}, 0, False),
        ({"iat": -1}, 0, False),
        ({"sub": None}, 0, False),
        ({"sub": ""}, 0, False),
        ({"sub": 7}, 0, False),
        ({"aud": None}, 0, False),
        ({"aud": "other"}, 0, False),
        ({"aud": ["other", "kafka"]}, 0, True),
        ({"aud": [7]}, 0, False),
        ({"iss": None}, 0, False),
        ({"iss": "https://issuer/"}, 0, False),
        ({"jti": 7}, 0, False),
        ({"scope": ["a", "a"]}, 0, False),
        ({"sub": "alice\ud800"}, 0, False),
        ({"sub": "a" * 33_000}, 0, False),
    ],
)
def test_claims_decide(changes: dict[str, Any], skew_s: int, is_good: bool) -> None:
    token = KEYS.sign(said(**changes))
    if is_good:
        assert check(token, RULES._replace(clock_skew_s=skew_s)).principal_name == "alice"
    else:
        with pytest.raises(InvalidTokenError):
            check(token, RULES._replace(clock_skew_s=skew_s))


def test_names_of_claims_can_be_others() -> None:
    rules = signed.Rules(sub_claim="client_id", scope_claim="scp")
    found = check(KEYS.sign(said(aud=None, client_id=" app ", scp="a")), rules)
    assert (found.principal_name, found.scopes) == ("app", frozenset({"a"}))


def test_a_set_of_keys_keeps_no_private_half() -> None:
    from jwt.algorithms import RSAAlgorithm  # noqa: PLC0415

    row = {**RSAAlgorithm.to_jwk(KEYS.rsa, as_dict=True), "kid": "rsa"}
    (key,) = signed.parse_keys(json.dumps({"keys": [row, {"kty": "RSA"}, 7]}))
    assert key.parsed is not None and not hasattr(key.parsed.key, "private_numbers")
    assert row["d"] not in repr(key)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": {}}', "[" * 100_000])
def test_what_is_no_set_of_keys_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        signed.parse_keys(text)


@pytest.mark.parametrize("part", ["%", "e30=e30", encoded(b"[]"), encoded(b"[" * 100_000), encoded(b'{"a":1,"a":2}')])
def test_a_part_of_a_token_is_one_json_object(part: str) -> None:
    with pytest.raises(InvalidTokenError):
        decoded(part)


# --- tokens without a signature


def test_a_token_is_made_of_the_options() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginStringClaim_name": 'a "quoted" one',
        "unsecuredLoginNumberClaim_level": "7",
        "unsecuredLoginListClaim_scope": "|read|write",
        "unsecuredLoginLifetimeSeconds": "60",
        "unsecuredLoginExtension_traceId": "1",
    }
    header, said, signature = unsecured.make_token(options, NOW_S * 1000).split(".")
    assert (decoded(header), signature) == ({"alg": "none"}, "")
    assert decoded(said) == {
        **{"exp": NOW_S + 60, "iat": NOW_S, "sub": "alice", "name": 'a "quoted" one', "level": 7},
        "scope": ["read", "write"],
    }
    found = unsecured.check_token(f"{header}.{said}.", unsecured.Rules(), NOW_S * 1000)
    assert found == BearerToken("alice", (NOW_S + 60) * 1000, frozenset({"read", "write"}), NOW_S * 1000)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"unsecuredLoginStringClaim_sub": " "},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginStringClaim_exp": "1"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "x"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_n": "nan"},
    ],
)
def test_wrong_options_make_no_token(options: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        unsecured.make_token(options, 0)


@pytest.mark.parametrize("name", ['"\\ud800"', '"alice\\udfff"', f'"{"a" * 33_000}"'])
def test_a_name_that_no_record_can_have_is_refused(name: str) -> None:
    token = raw_token({"alg": "none"}, f'{{"sub":{name},"exp":4102444800}}')
    with pytest.raises(InvalidTokenError, match="the principal name has"):
        unsecured.check_token(token, unsecured.Rules(), NOW_S * 1000)


@pytest.mark.parametrize("name", ["exp", "iat", "nbf"])
def test_a_time_that_is_too_large_is_refused(name: str) -> None:
    text = json.dumps(said(**{name: "TIME"})).replace('"TIME"', "1e400")
    with pytest.raises(InvalidTokenError):
        check(KEYS.sign(text))


def test_a_missing_scope_is_named() -> None:
    rules = unsecured.parse_rules({"unsecuredValidatorRequiredScope": "read write"})
    token = raw_token({"alg": "none"}, said(scope="read"))
    with pytest.raises(InvalidTokenError) as refused:
        unsecured.check_token(token, rules, NOW_S * 1000)
    assert (refused.value.status, refused.value.missing_scope) == ("insufficient_scope", "[read, write]")


@pytest.mark.parametrize(
    "options",
    [
        {"unsecuredValidatorAllowableClockSkewMs": "-1"},
        {"unsecuredValidatorAllowableClockSkewMs": "x"},
        {"unsecuredValidatorRequiredScope": 'a"b'},
    ],
)
def test_wrong_rules_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        unsecured.parse_rules(options)


# --- the mechanism


def accepting(token: str) -> BearerToken:
    if token != "good":
        raise InvalidTokenError("it is not good", missing_scope="[kafka]" if token == "poor" else None)
    return BearerToken("alice", 5000)


def test_a_good_token_is_one_message() -> None:
    client, server = OAuthBearerClient("good", {"traceId": "7"}), OAuthBearerServer(accepting)
    assert client.answer(server.evaluate(client.first())) is None
    assert client.is_complete and server.is_complete
    assert (server.authorization_id, server.expires_at_ms, server.is_token) == ("alice", 5000, False)


@pytest.mark.parametrize(
    ("token", "text"),
    [("bad", '{"status":"invalid_token"}'), ("poor", '{"status":"insufficient_scope", "scope":"[kafka]"}')],
)
def test_a_refused_token_is_acknowledged_before_the_login_fails(token: str, text: str) -> None:
    client, server = OAuthBearerClient(token), OAuthBearerServer(accepting)
    challenge = server.evaluate(client.first())
    assert challenge == text.encode()
    acknowledged = client.answer(challenge)
    assert acknowledged == b"\x01"
    with pytest.raises(SaslError) as failed:
        server.evaluate(acknowledged)
    assert (failed.value.message, failed.value.reason) == (text, "it is not good")
    with pytest.raises(SaslError, match="the server refused the token"):
        client.answer(b"")
    assert not client.is_complete and not server.is_complete


def test_a_second_token_is_not_looked_at() -> None:
    server = OAuthBearerServer(accepting)
    server.evaluate(OAuthBearerClient("bad").first())
    with pytest.raises(InvalidCredentialsError):
        server.evaluate(OAuthBearerClient("good").first())


@pytest.mark.parametrize(
    "message",
    [
        *(b"", b"\x01", b"n,,\x01\x01", b"n,,\x01auth=Basic good\x01\x01", b"n,,\x01auth=Bearer\x01\x01"),
        *(b"p,,\x01auth=Bearer good\x01\x01", b"n,,\x01auth=Bearer good\x01", b"n,,\x01auth=Bearer a b\x01\x01"),
        *(b"\xff" * 100, b"n,,\x01" + b"a=b\x01" * 50_000),
    ],
)
def test_other_messages_are_no_login(message: bytes) -> None:
    with pytest.raises(InvalidCredentialsError):
        OAuthBearerServer(accepting).evaluate(message)


def test_another_authorization_id_is_refused() -> None:
    with pytest.raises(SaslError, match=r"\(bob\) that is different from the token's principal name \(alice\)"):
        OAuthBearerServer(accepting).evaluate(b"n,a=bob,\x01auth=Bearer good\x01\x01")


@pytest.mark.parametrize("extensions", [{"auth": "x"}, {"trace_id": "x"}, {"a": ""}, {"a": "\x01"}])
def test_extensions_that_cannot_be_sent_are_refused(extensions: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        check_extensions(extensions)
