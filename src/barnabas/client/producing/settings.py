"""A producer's settings, by the names of Kafka's, and what they may not be together. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from barnabas.batches import Compression
from barnabas.client.settings import ClientSettings
from barnabas.config.definitions import Definition, parse_table
from barnabas.config.values import ConfigError

MAX_ORDERED_IN_FLIGHT = 5
"""How many batches of a partition a broker remembers of an idempotent producer."""

_ACKS = {"0": 0, "1": 1, "-1": -1, "all": -1}


class ProducerSettings(NamedTuple):
    """Settings that were checked."""

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
    """`given` is what was said, to tell it from defaults. Raises `ConfigError`, as Kafka's producer refuses."""
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
    """The settings of producers, beside those of every client."""
    return parse_table(_TABLE)


_TABLE = """\
acks string all low in:all|-1|0|1
    Who must have a record before it counts as written: nobody, the leader, or all replicas in sync.
batch.size int 16384 medium >=0
    Bytes of records that are sent to a partition together, at most.
linger.ms long 5 medium >=0
    How long a record waits for others to be sent with.
buffer.memory long 33554432 high >=0
    Bytes of records that may wait or be under way, before `send` waits.
compression.type string none high in:none|gzip|snappy|lz4|zstd
    Codec of batches.
compression.gzip.level int -1 medium gzip-level
    Level of gzip.
compression.lz4.level int 9 medium 1..17
    Level of lz4.
compression.zstd.level int 3 medium -131072..22
    Level of zstd.
delivery.timeout.ms int 120000 medium >=0
    How long a record may take from `send` to its acknowledgement, with all attempts.
enable.idempotence boolean true low
    Whether every record is written exactly once and in order, whatever is sent again.
max.block.ms long 60000 medium >=0
    How long `send` and calls of transactions wait, for room, for metadata, for an answer.
max.in.flight.requests.per.connection int 5 low >=1
    Requests under way to one broker.
max.request.size int 1048576 medium >=0
    Bytes of one request, and of one record, at most.
partitioner.ignore.keys boolean false medium
    Whether records with keys are spread as those without.
partitioner.class string - medium
    Java's way to name a partitioner; of no effect.
partitioner.adaptive.partitioning.enable boolean true low
    Of no effect.
partitioner.availability.timeout.ms long 0 low >=0
    Of no effect.
key.serializer string - high
    Of no effect: keys are bytes.
value.serializer string - high
    Of no effect: values are bytes.
interceptor.classes list "" low
    Of no effect.
retries int 2147483647 high 0..2147483647
    How often a batch is sent again.
transactional.id string - low non-empty
    Name by which transactions survive the producer.
transaction.timeout.ms int 60000 low
    How long a transaction may stay open before the coordinator aborts it.
"""
