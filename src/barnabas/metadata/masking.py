"""Secrets in records of the metadata log, and the same records without them. Pure.

Its one rule: in doubt, a value is hidden. Keys and salts of SCRAM credentials are hidden; so is the value of a setting that is
sensitive or unknown, as in Kafka. A record that may have a secret but cannot be decoded is hidden completely. A text becomes
`MASK`, bytes become empty, and null stays null.

The log has no HMACs of delegation tokens: brokers compute them from the token id and their common secret.
"""

from __future__ import annotations

from functools import lru_cache

from barnabas.config import broker, client_metrics, group, topic
from barnabas.config.resource_type import ConfigResourceType
from barnabas.wire import decode_record, encode_record
from barnabas.wire.errors import MalformedError, UnsupportedVersionError
from barnabas.wire.records.metadata import ConfigRecord, UserScramCredentialRecord

MASK = "********"
SECRET_BYTES = {"UserScramCredentialRecord": frozenset({"salt", "stored_key", "server_key"})}
"""Fields that are always secret, by type of record."""
SECRET_TYPES = frozenset({"UserScramCredentialRecord", "ConfigRecord"})
"""Types of records that may have a secret."""

_LEVELS = frozenset({"OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"})


def is_hidden(resource_type: int, name: str, value: str) -> bool:
    """Return whether the value of a setting must be hidden.

    >>> is_hidden(2, "retention.ms", "1"), is_hidden(4, "ssl.key.password", "x"), is_hidden(4, "my.plugin.setting", "x")
    (False, True, True)
    """
    if resource_type == ConfigResourceType.BROKER_LOGGER:
        return value.upper() not in _LEVELS
    return _is_secret(resource_type, name)


@lru_cache(maxsize=65536)
def _is_secret(resource_type: int, name: str) -> bool:
    match resource_type:
        case ConfigResourceType.BROKER:
            return broker.is_sensitive(name)
        case ConfigResourceType.TOPIC:
            definition = topic.definitions().get(name)
        case ConfigResourceType.GROUP:
            definition = group.definitions().get(name)
        case ConfigResourceType.CLIENT_METRICS:
            definition = client_metrics.definitions().get(name)
        case _:
            return True
    return definition is None or definition.sensitive


def masked(value: bytes) -> bytes | None:
    """Return the value of a record of the `SECRET_TYPES` without its secret; None if it cannot be decoded."""
    try:
        record, version = decode_record(value)
    except (MalformedError, UnsupportedVersionError):
        return None
    if isinstance(record, ConfigRecord):
        if record.value is None or not is_hidden(record.resource_type, record.name, record.value):
            return value
        record.value = MASK
    elif isinstance(record, UserScramCredentialRecord):
        for name in SECRET_BYTES["UserScramCredentialRecord"]:
            setattr(record, name, b"")
    record.unknown_tagged_fields = None  # of a later Kafka: they may be secret
    return encode_record(record, version)
