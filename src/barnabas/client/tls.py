"""TLS contexts of clients and listeners, from Kafka's settings: PEM and PKCS12 stores, in files or inline.

Host names in certificates are checked unless `ssl.endpoint.identification.algorithm` is empty. The certificate chain is
always checked. OpenSSL reads keys only from files, so a key that is not in one goes through an anonymous file in memory:
a decrypted key never reaches the disk.
"""

from __future__ import annotations

import contextlib
import os
import re
import ssl
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from barnabas.config.definitions import Value
from barnabas.config.values import ConfigError
from barnabas.security.tls.cipher_suites import TLS_1_3, openssl_name
from barnabas.security.tls.stores import StoreError, is_pem, read_key_store, read_trust_store, wrapped

TLS_SETTINGS: Final = (
    *("ssl.protocol", "ssl.enabled.protocols", "ssl.cipher.suites", "ssl.endpoint.identification.algorithm"),
    *("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.certificates"),
    *("ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.key"),
    *("ssl.keystore.certificate.chain", "ssl.key.password"),
)
"""The settings that a context is made from."""

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_REASONS = {"KEY_VALUES_MISMATCH": "the key is not that of the first certificate"}
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def client_context(values: Mapping[str, Value]) -> ssl.SSLContext:
    """Return the context for these settings. Raises `ConfigError` with the name of a wrong setting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(values["ssl.endpoint.identification.algorithm"])
    _restrict(context, values)
    _load_trust(context, values)
    _load_key(context, values)
    return context


class ServerHandshake(ssl.SSLObject):
    """Adds the alert of a handshake that fails to `alert`, because event loops drop it. It tells the client why."""

    outgoing: ssl.MemoryBIO
    alert: bytearray | None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self.alert is not None:
                self.alert += self.outgoing.read()
            raise
        self.alert = None  # the connection may live for long


ALERT: Final[ContextVar[bytearray | None]] = ContextVar("ALERT", default=None)
"""Where a handshake that is begun in this context adds its alert."""


class ServerContext(ssl.SSLContext):
    """The context of a listener."""

    sslobject_class = ServerHandshake

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, ServerHandshake)
        made.outgoing, made.alert = outgoing, ALERT.get()
        return made


def server_context(values: Mapping[str, Value], *, client_auth: str) -> ServerContext:
    """Return the context of a listener; `client_auth` is none, requested or required. Raises `ConfigError`."""
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    _restrict(context, values)
    if not _load_key(context, values):
        key = "ssl.keystore.location"
        raise ConfigError(key, f"{key} is not set: a listener with TLS needs a key, or ssl.keystore.key in PEM")
    context.verify_mode = _CLIENT_AUTH[client_auth]
    if context.verify_mode is not ssl.CERT_NONE:
        _load_trust(context, values)
    return context


def store_stamps(values: Mapping[str, Value]) -> tuple[tuple[str, int, int, int], ...]:
    """Return what changes when one of the files changes that the context is made from."""
    stamps = []
    for name in (_text(values, f"ssl.{store}.location") for store in ("keystore", "truststore")):
        if name:
            with contextlib.suppress(OSError):
                stat = Path(name).stat()
                stamps.append((name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(stamps)


# --- versions and cipher suites


def _restrict(context: ssl.SSLContext, values: Mapping[str, Value]) -> None:
    key = "ssl.enabled.protocols"
    names = values[key]
    wanted = names if isinstance(names, tuple) and names else tuple(_VERSIONS)
    protocol = _text(values, "ssl.protocol") or "TLS"
    for name, used in ((key, wanted), ("ssl.protocol", () if protocol == "TLS" else (protocol,))):
        unknown = [each for each in used if each not in _VERSIONS]
        if unknown:
            raise ConfigError(name, f"{name}: {unknown[0]} is not supported; use {' and '.join(_VERSIONS)}")
    suites = values["ssl.cipher.suites"]
    if isinstance(suites, tuple) and suites:
        wanted = _restrict_suites(context, suites, wanted)
    context.minimum_version = min(_VERSIONS[name] for name in wanted)
    context.maximum_version = max(_VERSIONS[name] for name in wanted)


def _restrict_suites(context: ssl.SSLContext, suites: tuple[str, ...], versions: tuple[str, ...]) -> tuple[str, ...]:
    """Allow these suites only, and return the TLS versions that can use one of them."""
    key, older = "ssl.cipher.suites", []
    for name in suites:
        if name not in TLS_1_3:
            older.append(openssl_name(name) or name)
            try:
                context.set_ciphers(older[-1])
            except ssl.SSLError:
                raise ConfigError(key, f"{key}: {name} is not known to OpenSSL") from None
    named = TLS_1_3.intersection(suites)
    if named and named != TLS_1_3 and "TLSv1.3" in versions:
        raise ConfigError(
            key,
            f"{key}: Python cannot choose among the suites of TLS 1.3. Name all of {', '.join(sorted(TLS_1_3))}, "
            "or none of them",
        )
    if older:
        context.set_ciphers(":".join(older))
    left = tuple(each for each in versions if (named if each == "TLSv1.3" else older))
    if not left:
        raise ConfigError(key, f"{key}: no suite belongs to a version in ssl.enabled.protocols")
    return left


# --- stores


def _load_trust(context: ssl.SSLContext, values: Mapping[str, Value]) -> None:
    # As in Java, each trusted certificate is enough by itself, also that of a node or of an authority in between.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    inline, location = _text(values, "ssl.truststore.certificates"), _text(values, "ssl.truststore.location")
    if not inline and not location:
        context.load_default_certs()
        return
    key = "ssl.truststore.certificates" if inline else "ssl.truststore.location"
    try:
        if inline or _is_pem(values, "truststore"):
            # Bundles of authorities have their names beside them, in any language.
            certificates = wrapped(inline) if inline else _read(key, location).decode("ascii", errors="ignore")
        else:
            certificates = read_trust_store(
                _read(key, location), location, _password(values, "ssl.truststore.password")
            )
        context.load_verify_locations(cadata=certificates)
    except StoreError as error:
        raise ConfigError(key, f"{key}: {error}") from None
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(key, f"{key} has no certificates in PEM: {_reason(error)}") from None


def _load_key(context: ssl.SSLContext, values: Mapping[str, Value]) -> bool:
    """Load the key and its certificates. Returns False if there are none."""
    inline, location = _text(values, "ssl.keystore.key"), _text(values, "ssl.keystore.location")
    if not inline and not location:
        return False
    key = "ssl.keystore.key" if inline else "ssl.keystore.location"
    password = _password(values, "ssl.key.password")
    if inline:
        chain = _text(values, "ssl.keystore.certificate.chain")
        if not chain:
            raise ConfigError("ssl.keystore.certificate.chain", "ssl.keystore.certificate.chain needs ssl.keystore.key")
        _load_chain(context, key, wrapped(f"{inline}\n{chain}").encode(), password)
    elif _is_pem(values, "keystore"):
        _load_file(context, key, location, password, _read(key, location), location)
    else:
        _load_chain(context, key, _read_pkcs12(values, location), None)
    return True


def own_certificate(values: Mapping[str, Value]) -> bytes | None:
    """Return the certificate that goes with the key in these settings, in DER, or None. Raises `ConfigError`."""
    inline, location = _text(values, "ssl.keystore.key"), _text(values, "ssl.keystore.location")
    if inline:
        pem = wrapped(_text(values, "ssl.keystore.certificate.chain"))
    elif not location:
        return None
    elif _is_pem(values, "keystore"):
        pem = _read("ssl.keystore.location", location).decode("ascii", errors="ignore")
    else:
        pem = _read_pkcs12(values, location).decode()
    found = re.search(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", pem, re.DOTALL)
    return None if found is None else ssl.PEM_cert_to_DER_cert(found[0])


def _read_pkcs12(values: Mapping[str, Value], location: str) -> bytes:
    key = "ssl.keystore.location"
    passwords = _password(values, "ssl.keystore.password"), _password(values, "ssl.key.password")
    try:
        return read_key_store(_read(key, location), location, *passwords).pem
    except StoreError as error:
        raise ConfigError(key, f"{key}: {error}") from None


def _load_chain(context: ssl.SSLContext, key: str, pem: bytes, password: str | None) -> None:
    if not hasattr(os, "memfd_create"):
        text = "only a key store in a file of the type PEM can be used, because this system has no memory files"
        raise ConfigError(key, f"{key}: {text}")
    file = os.memfd_create("key", os.MFD_CLOEXEC)
    try:
        os.write(file, pem)
        _load_file(context, key, f"/proc/self/fd/{file}", password, pem)
    finally:
        os.close(file)


def _load_file(
    context: ssl.SSLContext, key: str, path: str, password: str | None, pem: bytes, location: str = ""
) -> None:
    """Load a key and its certificates. `pem` is what the file has, and `location` its name, for messages."""
    try:
        context.load_cert_chain(path, password=lambda: password or "")
    except (OSError, ValueError) as error:  # SSLError, and a file that is gone meanwhile
        kinds = re.findall(rb"-----BEGIN ([A-Z0-9 ]+)-----", pem)
        missing = [
            name
            for name, end in (("private key", b"PRIVATE KEY"), ("certificate", b"CERTIFICATE"))
            if not any(kind.endswith(end) for kind in kinds)
        ]
        where = f": {location}" if location else ""
        if missing:
            raise ConfigError(key, f"{key}{where} has no {' and no '.join(missing)} in PEM") from None
        wrong = "; is ssl.key.password right?" if b"ENCRYPTED" in pem else ""
        reason = _REASONS.get(getattr(error, "reason", None) or "", _reason(error))
        raise ConfigError(key, f"{key}{where} cannot be used: {reason}{wrong}") from None


def _is_pem(values: Mapping[str, Value], store: str) -> bool:
    key = f"ssl.{store}.type"
    try:
        return is_pem(_text(values, key))
    except StoreError as error:
        raise ConfigError(key, f"{key}: {error}") from None


def _read(key: str, location: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise ConfigError(key, f"{key}: {location} cannot be read: {error.strerror}") from None


def _text(values: Mapping[str, Value], key: str) -> str:
    value = values[key]
    return value if isinstance(value, str) else ""


def _password(values: Mapping[str, Value], key: str) -> str | None:
    value = values[key]
    return value if isinstance(value, str) else None


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)
