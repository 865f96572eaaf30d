"""Parts of TLS as values: stores, names of cipher suites, subjects of certificates and the rules that map them."""

from __future__ import annotations

import datetime
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from barnabas.security.tls.certificate_principal import (
    CertificateError,
    distinguished_name,
    map_name,
    parse_rules,
)
from barnabas.security.tls.cipher_suites import openssl_name
from barnabas.security.tls.stores import StoreError, read_key_store, read_trust_store, wrapped

KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(name: x509.Name) -> x509.Certificate:
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=9999))
    return builder.sign(KEY, hashes.SHA256())


def subject(*attributes: tuple[x509.ObjectIdentifier, str]) -> str:
    name = x509.Name([x509.NameAttribute(kind, text) for kind, text in attributes])
    return distinguished_name(certificate(name).public_bytes(serialization.Encoding.DER))


def test_a_subject_is_printed_as_java_prints_it() -> None:
    """The expected texts are those of X500Principal.getName() in Java 17, for the same certificates."""
    assert subject(
        (NameOID.COUNTRY_NAME, "DE"), (NameOID.ORGANIZATION_NAME, "Acme"), (NameOID.COMMON_NAME, "alice")
    ) == ("CN=alice,O=Acme,C=DE")
    assert subject((NameOID.COMMON_NAME, 'a,b+c"d\\e<f>g;h')) == 'CN=a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h'
    assert subject((NameOID.COMMON_NAME, "#a")) == "CN=\\#a"
    assert subject((NameOID.COMMON_NAME, " a ")) == "CN=\\ a\\ "
    assert subject((NameOID.COMMON_NAME, "Jürgen")) == "CN=Jürgen"
    assert subject((NameOID.EMAIL_ADDRESS, "a@b"), (NameOID.COMMON_NAME, "a=b")) == (
        "CN=a\\=b,1.2.840.113549.1.9.1=#1603614062"
    )
    assert subject((NameOID.DOMAIN_COMPONENT, "example"), (NameOID.USER_ID, "u1")) == "UID=u1,DC=example"


def test_several_attributes_of_one_name_are_joined() -> None:
    attributes = [
        x509.NameAttribute(NameOID.COMMON_NAME, "a"),
        x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "b"),
    ]
    name = x509.Name([x509.RelativeDistinguishedName(attributes)])
    shown = distinguished_name(certificate(name).public_bytes(serialization.Encoding.DER))
    assert sorted(shown.split("+")) == ["CN=a", "OU=b"]


@pytest.mark.parametrize(
    "data", [b"", b"\x30", b"\x30\x82\xff\xff", b"\x30\x00", b"\x30\x02\x30\x00", b"not a certificate"]
)
def test_other_bytes_are_no_certificate(data: bytes) -> None:
    with pytest.raises(CertificateError):
        distinguished_name(data)


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("", "CN=a", "CN=a"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,O=x", "kafka"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L,DEFAULT", "CN=Bob,OU=Dev,O=x", "bob@dev"),
        ("RULE:^cn=(.*?)$/$1/U", "cn=bob", "BOB"),
        ("RULE:^CN=x$/y/,DEFAULT", "CN=a", "CN=a"),
        ("RULE:^CN=x$/y/", "CN=a", None),
        ("RULE:^CN=(.*)$/a\\/$1/", "CN=b", "a/b"),
    ],
)
def test_the_first_rule_that_applies_maps_a_name(rules: str, name: str, mapped: str | None) -> None:
    assert map_name(name, parse_rules(rules)) == mapped


@pytest.mark.parametrize("rules", ["nonsense", "RULE:a/b", "RULE:a/b/X", "DEFAULT RULE:a/b/", "RULE:(/b/"])
def test_a_rule_of_another_form_is_refused(rules: str) -> None:
    with pytest.raises(ValueError, match="Invalid rule"):
        parse_rules(rules)


def test_every_cipher_suite_of_tls_1_2_in_openssl_has_a_name_in_java() -> None:
    java = [
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
        "TLS_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_RSA_WITH_AES_256_CBC_SHA",
        "TLS_DHE_RSA_WITH_AES_128_CCM_8",
    ]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for name in java:
        found = openssl_name(name)
        assert found is not None
        context.set_ciphers(found + ":@SECLEVEL=0")
        assert context.get_ciphers()[-1]["name"] == found
    assert openssl_name("nonsense") is None


def test_a_pkcs12_store_gives_its_key_and_certificates() -> None:
    own = certificate(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")]))
    protection = serialization.BestAvailableEncryption(b"s3cret")
    data = pkcs12.serialize_key_and_certificates(b"a", KEY, own, [own], protection)
    store = read_key_store(data, "a.p12", "s3cret", None)
    assert store.pem.count(b"BEGIN CERTIFICATE") == 2 and b"BEGIN PRIVATE KEY" in store.pem
    assert "PRIVATE" not in repr(store)
    assert read_trust_store(data, "a.p12", "s3cret").count("BEGIN CERTIFICATE") == 2
    with pytest.raises(StoreError, match=r"a\.p12 is not a PKCS12 file, or the password of the store is wrong"):
        read_key_store(data, "a.p12", "wrong", None)
    without_key = pkcs12.serialize_key_and_certificates(None, None, None, [own], protection)
    with pytest.raises(StoreError, match="has no private key"):
        read_key_store(without_key, "t.p12", "s3cret", None)


def test_a_jks_file_is_refused_with_the_command_that_converts_it() -> None:
    with pytest.raises(StoreError, match=r"keytool -importkeystore -srckeystore k\.jks -destkeystore k\.jks\.p12"):
        read_key_store(b"\xfe\xed\xfe\xed\0\0\0\2", "k.jks", "x", None)


def test_pem_in_one_line_gets_its_lines_back() -> None:
    pem = certificate(x509.Name([])).public_bytes(serialization.Encoding.PEM).decode()
    assert wrapped(pem.replace("\n", " ")) == wrapped(pem) == pem.strip()
    old = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAA\n-----END EC PRIVATE KEY-----"
    assert wrapped(old) == old
