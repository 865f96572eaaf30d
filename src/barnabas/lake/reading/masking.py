"""What is a secret in records of the metadata log, and the records without it. Pure.

Its one rule: when in doubt it is hidden. Keys and salts of SCRAM credentials are; so is the value of a setting that is
marked as sensitive or that nobody knows, as Kafka itself hides it; and of a record that may hold a secret but cannot be
read, nothing is shown. A text becomes `MASK`, bytes become empty, and what is null stays null.

The log has no HMACs of delegation tokens: brokers compute them from the id and the secret that they share.
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
"""The fields that are secret whatever they hold."""
SECRET_TYPES = frozenset({"UserScramCredentialRecord", "ConfigRecord"})
"""The records that may hold a secret."""

_LEVELS = frozenset({"OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"})


def is_hidden(resource_type: int, name: str, value: str) -> bool:
    """Whether the value of a setting is not to be seen.

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
    """The value of a metadata record of one of the `SECRET_TYPES`, without its secret; None where it cannot be read."""
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
    record.unknown_tagged_fields = None  # of a later Kafka; who knows what they are
    return encode_record(record, version)
