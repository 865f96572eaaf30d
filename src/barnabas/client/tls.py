"""TLS contexts of clients, from the settings of Java clients. Key and trust stores must be PEM.

JKS and PKCS12 files have to be exported to PEM; the error message shows the command. Host names in certificates are checked
unless `ssl.endpoint.identification.algorithm` is empty. The certificate chain is always checked.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

from barnabas.config.definitions import Value
from barnabas.config.values import ConfigError

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_EXPORT = {
    "truststore": "keytool -exportcert -rfc -keystore STORE -alias ALIAS",
    "keystore": "openssl pkcs12 -in STORE",
}


def client_context(values: Mapping[str, Value]) -> ssl.SSLContext:
    """Return the context for these settings. Raises `ConfigError` with the name of a wrong setting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(values["ssl.endpoint.identification.algorithm"])
    _set_versions(context, values["ssl.enabled.protocols"])
    _load_trust(context, values)
    _load_key(context, values)
    return context


def _set_versions(context: ssl.SSLContext, names: Value) -> None:
    key = "ssl.enabled.protocols"
    wanted = names if isinstance(names, tuple) and names else tuple(_VERSIONS)
    unknown = [name for name in wanted if name not in _VERSIONS]
    if unknown:
        raise ConfigError(key, f"{key}: {unknown[0]} is not supported; use {' and '.join(_VERSIONS)}")
    context.minimum_version = min(_VERSIONS[name] for name in wanted)
    context.maximum_version = max(_VERSIONS[name] for name in wanted)


def _load_trust(context: ssl.SSLContext, values: Mapping[str, Value]) -> None:
    inline, location = _text(values, "ssl.truststore.certificates"), _text(values, "ssl.truststore.location")
    if not inline and not location:
        context.load_default_certs()
        return
    _require_pem(values, "truststore")
    key = "ssl.truststore.certificates" if inline else "ssl.truststore.location"
    try:
        context.load_verify_locations(cadata=inline or _read("ssl.truststore.location", location))
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(key, f"{key} has no certificates in PEM: {_reason(error)}") from None


def _load_key(context: ssl.SSLContext, values: Mapping[str, Value]) -> None:
    inline, location = _text(values, "ssl.keystore.key"), _text(values, "ssl.keystore.location")
    if not inline and not location:
        return
    _require_pem(values, "keystore")
    key = "ssl.keystore.key" if inline else "ssl.keystore.location"
    chain = _text(values, "ssl.keystore.certificate.chain")
    if inline and not chain:
        raise ConfigError("ssl.keystore.certificate.chain", "ssl.keystore.certificate.chain needs ssl.keystore.key")
    text = f"{inline}\n{chain}\n" if inline else _read(key, location)
    password = _text(values, "ssl.key.password")
    # OpenSSL reads keys only from files: this one is readable only by this user, and deleted at once.
    with tempfile.NamedTemporaryFile("w", prefix="barnabas-", suffix=".pem") as file:
        file.write(text)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=lambda: password)
        except (ssl.SSLError, ValueError) as error:
            wrong = "; is ssl.key.password right?" if "ENCRYPTED" in text else ""
            raise ConfigError(key, f"{key} has no key and certificate in PEM: {_reason(error)}{wrong}") from None


def _require_pem(values: Mapping[str, Value], store: str) -> None:
    key = f"ssl.{store}.type"
    kind = _text(values, key)
    if kind.upper() != "PEM":
        how = f"export it with `{_EXPORT[store]}` and set {key}=PEM"
        raise ConfigError(key, f"{key}: only PEM is supported, not {kind}; {how}")


def _read(key: str, location: str) -> str:
    try:
        return Path(location).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise ConfigError(key, f"{key}: {location} cannot be read: {error.strerror}") from None


def _text(values: Mapping[str, Value], key: str) -> str:
    value = values[key]
    return value if isinstance(value, str) else ""


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)
