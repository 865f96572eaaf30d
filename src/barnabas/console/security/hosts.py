"""Which Host and Origin headers are accepted. Pure.

Its one rule: a name that somebody else's DNS server may resolve to this machine (DNS rebinding) is not accepted. Names of the
loopback interface, the address that the connection came to, and names that were configured are.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Return whether a name or an address is that of the loopback interface.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("10.0.0.1"), is_loopback("localhost.example")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def split_host(text: str) -> tuple[str, str]:
    """Split a Host header into the name in lower case and the port, which may be empty.

    >>> split_host("[::1]:8080"), split_host("LocalHost")
    (('::1', '8080'), ('localhost', ''))
    """
    if text.startswith("["):
        name, _, rest = text[1:].partition("]")
        return name.lower(), rest.removeprefix(":")
    name, _, port = text.partition(":")
    return name.lower(), port


def is_known_host(header: str, configured: Collection[str], own_address: str) -> bool:
    """Return whether browsers may name this console so. `own_address` is the one that the connection came to.

    >>> is_known_host("localhost:8080", (), "127.0.0.1"), is_known_host("evil.example:8080", (), "127.0.0.1")
    (True, False)
    """
    name, _ = split_host(header)
    return name in LOOPBACK_NAMES or name == own_address.lower() or name in {each.lower() for each in configured}


def is_same_origin(origin: str, scheme: str, host: str) -> bool:
    """Return whether an Origin header names this console, as the Host header does.

    >>> is_same_origin("http://localhost:8080", "http", "localhost:8080"), is_same_origin("null", "http", "localhost:8080")
    (True, False)
    """
    return origin.lower() == f"{scheme}://{host.lower()}"
