"""The settings of a producer, with the names of Kafka's, and the checks of their combinations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from barnabas.batches import Compression
from barnabas.client.settings import ClientSettings
from barnabas.config.definitions import Definition, parse_table
from barnabas.config.values import ConfigError

MAX_ORDERED_IN_FLIGHT = 5
"""Number of batches per partition that a broker remembers of an idempotent producer."""

_ACKS = {"0": 0, "1": 1, "-1": -1, "all": -1}


class ProducerSettings(NamedTuple):
    """Checked settings."""

    acks: int
    batch_size: int
    linger_ms: int
    buffer_memory: int
    compression: Compression
    compression_level: int | None
    delivery_timeout_ms: int
    enable_idempotence: bool
    max_block_ms: int
    max_in_flight: int
    max_request_size: int
    ignore_keys: bool
    retries: int
    request_timeout_ms: int
    transactional_id: str | None
    transaction_timeout_ms: int


def producer_settings(settings: ClientSettings, given: Mapping[str, object]) -> ProducerSettings:
    """Return checked settings.

    `given` has those that are not defaults. Raises `ConfigError` where Kafka's producer does.
    """
    acks = _ACKS[settings.get_str("acks")]
    retries = settings.get_int("retries")
    max_in_flight = settings.get_int("max.in.flight.requests.per.connection")
    transactional_id = settings.get_str("transactional.id") or None
    idempotent = settings.get_bool("enable.idempotence")
    if idempotent and (acks != -1 or retries == 0 or max_in_flight > MAX_ORDERED_IN_FLIGHT):
        if "enable.idempotence" in given or transactional_id is not None:
            raise ConfigError("enable.idempotence", _NEEDS.format("enable.idempotence"))
        idempotent = False
    if transactional_id is not None and not idempotent:
        raise ConfigError("transactional.id", "a transactional.id needs enable.idempotence")
    linger_ms, request_timeout_ms = settings.get_int("linger.ms"), settings.get_int("request.timeout.ms")
    delivery_timeout_ms = settings.get_int("delivery.timeout.ms")
    if delivery_timeout_ms < linger_ms + request_timeout_ms:
        if "delivery.timeout.ms" in given:
            text = "delivery.timeout.ms must not be less than linger.ms and request.timeout.ms together"
            raise ConfigError("delivery.timeout.ms", text)
        delivery_timeout_ms = linger_ms + request_timeout_ms
    codec = settings.get_str("compression.type")
    level = None if codec in ("none", "snappy") else settings.get_int(f"compression.{codec}.level")
    return ProducerSettings(
        acks=acks,
        batch_size=settings.get_int("batch.size"),
        linger_ms=linger_ms,
        buffer_memory=settings.get_int("buffer.memory"),
        compression=Compression[codec.upper()],
        compression_level=None if codec == "gzip" and level == -1 else level,
        delivery_timeout_ms=delivery_timeout_ms,
        enable_idempotence=idempotent,
        max_block_ms=settings.get_int("max.block.ms"),
        max_in_flight=max_in_flight,
        max_request_size=settings.get_int("max.request.size"),
        ignore_keys=settings.get_bool("partitioner.ignore.keys"),
        retries=retries,
        request_timeout_ms=request_timeout_ms,
        transactional_id=transactional_id,
        transaction_timeout_ms=settings.get_int("transaction.timeout.ms"),
    )


_NEEDS = "{} needs acks=all, retries above 0 and no more than 5 max.in.flight.requests.per.connection"


@cache
def definitions() -> Mapping[str, Definition]:
    """Return the definitions of the settings of producers, without those of all clients."""
    return parse_table(_TABLE)


_TABLE = """\
acks string all low in:all|-1|0|1
    Replicas that must have a record before it counts as written: none (0), the leader (1), or all in sync (all).
batch.size int 16384 medium >=0
    Maximum bytes of records in one batch.
linger.ms long 5 medium >=0
    Time that a record waits for others to be sent in the same batch.
buffer.memory long 33554432 high >=0
    Maximum bytes of records that wait or are in flight; `send` waits when it is reached.
compression.type string none high in:none|gzip|snappy|lz4|zstd
    Codec of batches.
compression.gzip.level int -1 medium gzip-level
    Level of gzip.
compression.lz4.level int 9 medium 1..17
    Level of lz4.
compression.zstd.level int 3 medium -131072..22
    Level of zstd.
delivery.timeout.ms int 120000 medium >=0
    Maximum time from `send` to the acknowledgement of a record, with all retries.
enable.idempotence boolean true low
    Write every record exactly once and in order, also after retries.
max.block.ms long 60000 medium >=0
    Maximum time that `send` and methods for transactions wait for room, metadata or a response.
max.in.flight.requests.per.connection int 5 low >=1
    Maximum number of requests in flight to one broker.
max.request.size int 1048576 medium >=0
    Maximum bytes of one request, and of one record.
partitioner.ignore.keys boolean false medium
    Choose partitions of records with keys as of those without.
partitioner.class string - medium
    Java class of the partitioner; no effect.
partitioner.adaptive.partitioning.enable boolean true low
    No effect.
partitioner.availability.timeout.ms long 0 low >=0
    No effect.
key.serializer string - high
    Java class; no effect. Pass key_serializer= to Producer.
value.serializer string - high
    Java class; no effect. Pass value_serializer= to Producer.
interceptor.classes list "" low
    No effect.
retries int 2147483647 high 0..2147483647
    Maximum number of retries of a batch.
transactional.id string - low non-empty
    Name that identifies the producer across restarts; required for transactions.
transaction.timeout.ms int 60000 low
    Time after which the coordinator aborts an open transaction.
"""
