"""Java's names of cipher suites, as `ssl.cipher.suites` has them, and OpenSSL's. Pure.

>>> openssl_name("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
'ECDHE-RSA-AES128-GCM-SHA256'
>>> openssl_name("TLS_RSA_WITH_AES_256_CBC_SHA")
'AES256-SHA'
"""

from __future__ import annotations

import re
from typing import Final

TLS_1_3: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"})
"""The suites of TLS 1.3 that OpenSSL enables; Python cannot choose among them."""

_SUITE: Final = r"(?:TLS|SSL)_(\w+?)_WITH_(\w+?)_(SHA|SHA256|SHA384|CCM|CCM_8)"


def openssl_name(java_name: str) -> str | None:
    """Return OpenSSL's name of a suite of TLS 1.2, or None if the name has another form."""
    match = re.fullmatch(_SUITE, java_name)
    if match is None:
        return None
    exchange, cipher, digest = match.groups()
    parts = [] if exchange == "RSA" else [exchange.replace("_", "-")]
    if cipher.startswith("CHACHA20"):
        return "-".join((*parts, "CHACHA20-POLY1305"))
    cipher = re.sub(r"^AES_(\d+)", r"AES\1", cipher.removesuffix("_CBC")).replace("_", "-")
    return "-".join((*parts, cipher, digest.replace("_", "")))
