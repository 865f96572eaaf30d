"""A topic's configuration, converted to the values that its partitions use."""

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
    """The rules for appended batches, and the settings of the log files."""

    rules: AppendRules
    log: LogConfig
    min_insync_replicas: int
    segment_jitter_ms: int
    leader_throttled_replicas: tuple[str, ...] = ()
    follower_throttled_replicas: tuple[str, ...] = ()


def topic_settings(values: Mapping[str, Value], broker: ServerConfig | None = None) -> TopicSettings:
    """Convert all configs of a topic, by Kafka's names, and the broker-wide ones that apply to every log."""
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
        max_decompressed_bytes = broker.get_int("barnabas.decompressed.batch.max.bytes")
        rules = replace(rules, max_decompressed_bytes=max_decompressed_bytes)
        log = replace(
            log,
            max_decompressed_bytes=max_decompressed_bytes,
            producer_id_expiration_ms=broker.get_int("producer.id.expiration.ms"),
            max_producer_ids=broker.get_int("barnabas.producer.ids.max.per.partition"),
            transaction_partition_verification_enable=broker.get_bool("transaction.partition.verification.enable"),
        )
    return TopicSettings(
        rules,
        log,
        value("min.insync.replicas"),
        value("segment.jitter.ms"),
        tuple(value("leader.replication.throttled.replicas")),
        tuple(value("follower.replication.throttled.replicas")),
    )


def jittered(settings: TopicSettings, share: float) -> LogConfig:
    """Return the log's settings with its share of `segment.jitter.ms` applied, so that not all segments roll at once.

    `share` is at least 0 and less than 1.
    """
    jitter_ms = int(share * min(settings.segment_jitter_ms, settings.log.segment_ms))
    return replace(settings.log, segment_ms=settings.log.segment_ms - jitter_ms) if jitter_ms else settings.log
