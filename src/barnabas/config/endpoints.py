"""Addresses in configs: listeners, quorum voters, and quorum bootstrap servers.

Only the text is parsed: no name is resolved, and an empty host stays empty, which for a listener means all interfaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.config.values import ConfigError, split_list

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ANY_ADDRESS = "0.0.0.0"
LOOPBACK = "127.0.0.1"

_HOST = r"\[?([0-9a-zA-Z\-%._:]*)\]?"
_LISTENER = rf"(.*)://{_HOST}:(-?[0-9]+)"
_HOST_PORT = rf"(?:[0-9a-zA-Z\-%._]*://)?{_HOST}:([0-9]+)"
_MAX_PORT = 65535


class Endpoint(NamedTuple):
    """A listener: its name in upper case, its security protocol and its address. An empty host means all interfaces."""

    listener_name: str
    security_protocol: str
    host: str
    port: int


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int


class Voter(NamedTuple):
    """A voter of a static quorum."""

    id: int
    host: str
    port: int


def parse_voters(name: str, entries: Iterable[str]) -> tuple[Voter, ...]:
    """Parse `id@host:port` entries. The last entry of an id wins."""
    form = "Each entry should be in the form `{id}@{host}:{port}`."
    voters: dict[int, Voter] = {}
    for entry in entries:
        id_text, at, rest = entry.partition("@")
        if not at or "@" in rest:
            raise ConfigError(name, f"Invalid configuration value for {name}. {form}")
        if not re.fullmatch(r"[+-]?\d+", id_text):
            raise ConfigError(name, f"Failed to parse voter ID as an integer from {id_text}")
        match = re.fullmatch(_HOST_PORT, rest)
        if match is None:
            raise ConfigError(
                name, f"Failed to parse host name from entry {entry} for the configuration {name}. {form}"
            )
        voters[int(id_text)] = Voter(int(id_text), match[1], _port(name, match[2]))
    return tuple(voters.values())


def parse_addresses(name: str, entries: Iterable[str]) -> tuple[Address, ...]:
    """Parse `host:port` entries."""
    addresses = []
    for entry in entries:
        match = re.fullmatch(_HOST_PORT, entry)
        if match is None:
            form = 'Each entry should be in the form "{host}:{port}"'
            raise ConfigError(name, f"Failed to parse host name from {entry} for the configuration {name}. {form}")
        addresses.append(Address(match[1], _port(name, match[2])))
    return tuple(addresses)


def parse_loopback_address(name: str, text: str) -> Address | None:
    """Parse `host:port`, or `:port` for the loopback address; None if the text is empty."""
    if not text:
        return None
    match = re.fullmatch(rf"{_HOST}:([0-9]+)", text)
    if match is None:
        raise ConfigError(name, f"Invalid value {text} for configuration {name}: It must have the form host:port")
    return Address(match[1] or LOOPBACK, _port(name, match[2]))


def is_loopback(host: str) -> bool:
    """Return whether only programs on this machine reach the host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("10.0.0.1"), is_loopback("")
    (True, True, False, False)
    """
    return host == "localhost" or host.strip("[]") == "::1" or re.fullmatch(r"127(\.[0-9]{1,3}){3}", host) is not None


def parse_pairs(name: str, text: str) -> dict[str, str]:
    """Parse a comma-separated list of `key:value` pairs. A key may contain colons, a value may not."""
    pairs = {}
    for entry in split_list(text.rstrip(", ")):
        key, colon, value = entry.rpartition(":")
        if not colon:
            raise ConfigError(name, f"Error parsing configuration property '{name}': no colon in '{entry}'")
        pairs[key.strip()] = value.strip()
    return pairs


def parse_protocol_map(name: str, text: str) -> dict[str, str]:
    """Parse the security protocols by listener name, all in upper case."""
    protocols = {}
    for listener_name, protocol in parse_pairs(name, text).items():
        if protocol.upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(name, f"Invalid security protocol `{protocol}` defined in {name}")
        protocols[listener_name.upper()] = protocol.upper()
    return protocols


def parse_listeners(
    name: str, entries: Sequence[str], protocols: Mapping[str, str], *, same_port_allowed: bool = False
) -> tuple[Endpoint, ...]:
    """Parse `NAME://host:port` entries. Names must be unique and, unless allowed, ports too."""
    shown = f"[{', '.join(entries)}]"

    def refused(reason: str) -> ConfigError:
        return ConfigError(name, f"Error creating broker listeners from '{shown}': {reason}")

    endpoints = []
    for entry in entries:
        match = re.fullmatch(_LISTENER, entry)
        if match is None or not 0 <= int(match[3]) <= _MAX_PORT:
            raise refused(f"Unable to parse {entry} to a broker endpoint")
        listener_name = match[1].upper()
        if not listener_name:
            raise refused("The provided listener name is null or empty string")
        if listener_name not in protocols:
            raise refused(f"No security protocol defined for listener {listener_name}")
        endpoints.append(Endpoint(listener_name, protocols[listener_name], match[2], int(match[3])))
    if len({endpoint.listener_name for endpoint in endpoints}) < len(endpoints):
        raise refused(f"Each listener must have a different name, listeners: {shown}")
    if not same_port_allowed and (reason := _port_clash(endpoints, shown)) is not None:
        raise refused(reason)
    return tuple(endpoints)


def address_text(host: str, port: int) -> str:
    """Return `host:port`, as in configs and clients."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reachable_text(host: str, port: int) -> str:
    """Return `host:port` for a client on the same machine, with the loopback address instead of all interfaces."""
    return address_text({"": "127.0.0.1", ANY_ADDRESS: "127.0.0.1", "::": "::1"}.get(host, host), port)


def _port_clash(endpoints: Iterable[Endpoint], shown: str) -> str | None:
    """Check that two listeners share a port only if one has an IPv4 and the other an IPv6 address."""
    hosts_by_port: dict[int, list[str]] = {}
    for endpoint in endpoints:
        if endpoint.port != 0:
            hosts_by_port.setdefault(endpoint.port, []).append(endpoint.host)
    for port, hosts in hosts_by_port.items():
        if len(hosts) == 1:
            continue
        versions = [version for host in hosts if (version := _ip_version(host))]
        if not versions:
            return f"Each listener must have a different port, listeners: {shown}"
        if len(hosts) != 2 or len(versions) != 2:
            return (
                "Each listener must have a different port unless exactly one listener has an IPv4 address "
                f"and the other IPv6 address, listeners: {shown}, port: {port}"
            )
        if versions[0] == versions[1]:
            return (
                "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, "
                f"listeners: {shown}, port: {port}"
            )
    return None


def _ip_version(host: str) -> int | None:
    # Imported here because it is slow to import and rarely needed.
    from ipaddress import ip_address  # noqa: PLC0415

    try:
        return ip_address(host).version
    except ValueError:
        return None


def _port(name: str, text: str) -> int:
    port = int(text)
    if port > _MAX_PORT:
        raise ConfigError(name, f"port out of range:{text}")
    return port
