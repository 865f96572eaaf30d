"""The quotas of users, client ids and IP addresses, and the validation of a quota's value.

Quotas are doubles, not text. Which of them an entity may have depends on whether it is an IP address.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from barnabas.config.definitions import ConfigError, ConfigType, Definition, parse_table
from barnabas.wire.errors import ErrorCode

_LARGEST = {ConfigType.INT: 2.0**31 - 1, ConfigType.LONG: 2.0**63}
_FRACTION_TOLERATED = 1e-6


@cache
def user_or_client_definitions() -> Mapping[str, Definition]:
    """Return the quotas of a user, a client id, or both."""
    return parse_table(_USER_OR_CLIENT_TABLE)


@cache
def ip_definitions() -> Mapping[str, Definition]:
    """Return the quotas of an IP address."""
    return parse_table(_IP_TABLE)


def validate(definitions: Mapping[str, Definition], key: str, value: float) -> None:
    """Validate one quota of an entity whose quotas are `definitions`. Raises `ConfigError`."""

    def refused(message: str) -> ConfigError:
        return ConfigError(key, message, ErrorCode.INVALID_REQUEST)

    if key not in definitions:
        raise refused(f"Invalid configuration key {key}")
    if not value > 0:
        raise refused(f"Quota {key} must be greater than 0")
    config_type = definitions[key].type
    if config_type in _LARGEST:
        if value > _LARGEST[config_type]:
            article = "an" if config_type is ConfigType.INT else "a"
            raise refused(f"Proposed value for {key} is too large for {article} {config_type.name}.")
        if value % 1 > _FRACTION_TOLERATED:
            raise refused(f"{key} cannot be a fractional value.")


_USER_OR_CLIENT_TABLE = """\
producer_byte_rate long 9223372036854775807 medium
    Maximum bytes per second produced.
consumer_byte_rate long 9223372036854775807 medium
    Maximum bytes per second fetched.
request_percentage double 2.147483647E9 medium
    Maximum time of handlers and network, in percent of one thread.
controller_mutation_rate double 2.147483647E9 medium
    Maximum partitions per second created or deleted.
"""

_IP_TABLE = """\
connection_creation_rate int 2147483647 medium >=0
    Maximum new connections per second from an address.
"""
