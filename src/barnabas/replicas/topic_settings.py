"""A topic's settings as the values that its partitions work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from barnabas.batches import AppendRules, Compression, TimestampType
from barnabas.config.definitions import Value
from barnabas.config.server_config import ServerConfig
from barnabas.storage import LogConfig
from barnabas.storage.log_config import log_config

_TIMESTAMP_TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}
_COMPRESSIONS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
_WITH_LEVEL = ("gzip", "lz4", "zstd")


class TopicSettings(NamedTuple):
    """What a leader asks of batches, and what shapes the files."""

    rules: AppendRules
    log: LogConfig
    min_insync_replicas: int
    segment_jitter_ms: int


def topic_settings(values: Mapping[str, Value], broker: ServerConfig | None = None) -> TopicSettings:
    """From the values of all settings of a topic, by Kafka's names, and what the broker says for all of them."""
    value: Any = values.__getitem__
    codec = value("compression.type")
    policies = value("cleanup.policy")
    rules = AppendRules(
        max_message_bytes=value("max.message.bytes"),
        compacted="compact" in policies,
        timestamp_type=_TIMESTAMP_TYPES[value("message.timestamp.type")],
        timestamp_before_max_ms=value("message.timestamp.before.max.ms"),
        timestamp_after_max_ms=value("message.timestamp.after.max.ms"),
        compression=_COMPRESSIONS.get(codec),
        compression_level=value(f"compression.{codec}.level") if codec in _WITH_LEVEL else None,
    )
    log = log_config({}, values)
    if broker is not None:
        log = replace(
            log,
            producer_id_expiration_ms=broker.get_int("producer.id.expiration.ms"),
            transaction_partition_verification_enable=broker.get_bool("transaction.partition.verification.enable"),
        )
    return TopicSettings(rules, log, value("min.insync.replicas"), value("segment.jitter.ms"))


def jittered(settings: TopicSettings, share: float) -> LogConfig:
    """For one log, whose share of the jitter is from 0 to less than 1: so not all segments roll at once."""
    jitter_ms = int(share * min(settings.segment_jitter_ms, settings.log.segment_ms))
    return replace(settings.log, segment_ms=settings.log.segment_ms - jitter_ms) if jitter_ms else settings.log
