"""The settings of one log, and their derivation from a topic's configs.

Its one rule: a config of the topic wins, then the broker's value for all topics, then the default. Values are assumed
valid, because they were checked when they were set. `local.retention.*` is ignored: there is no tiered storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from barnabas.batches.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from barnabas.batches.format import MAX_INT64
from barnabas.config import topic
from barnabas.config.definitions import Value

_NO_DEFAULTS: Mapping[str, Value] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Settings for the files of a log and their retention. The names are those of the topic configs."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 60 * 60 * 1000  # minus the jitter of this log; at most max.compaction.lag.ms
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    max_message_bytes: int = 1048588
    flush_messages: int = MAX_INT64
    flush_ms: int = MAX_INT64
    # The two values of cleanup.policy. With neither, only records before the log start offset are deleted.
    delete: bool = True
    compact: bool = False
    retention_ms: int = 7 * 24 * 60 * 60 * 1000  # negative: unlimited
    retention_bytes: int = -1  # negative: unlimited
    file_delete_delay_ms: int = 60_000
    delete_retention_ms: int = 24 * 60 * 60 * 1000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_INT64
    min_cleanable_dirty_ratio: float = 0.5
    # The metadata log: offsets have no gaps, flushed data must not be lost, and there are no producers.
    metadata: bool = False
    # Broker settings.
    producer_id_expiration_ms: int = 24 * 60 * 60 * 1000
    transaction_partition_verification_enable: bool = True
    max_producer_ids: int = 100_000
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES


def log_config(
    configs: Mapping[str, str], defaults: Mapping[str, Value] = _NO_DEFAULTS, *, segment_jitter_ms: int = 0
) -> LogConfig:
    """Return the settings of one log. `configs` are those of the topic, `defaults` the values for all topics.

    The jitter is chosen for each log, at least 0 and less than the smaller of segment.jitter.ms and segment.ms.
    """

    def value(name: str) -> Value:
        definition = topic.definitions()[name]
        if name in configs:
            return definition.parse(configs[name])
        return defaults[name] if name in defaults else definition.default_value()

    def number(name: str) -> int:
        found = value(name)
        assert isinstance(found, int)
        return found

    policy = value("cleanup.policy")
    assert isinstance(policy, tuple)
    ratio = value("min.cleanable.dirty.ratio")
    assert isinstance(ratio, float)
    segment_bytes = value("internal.segment.bytes")
    segment_ms = number("segment.ms")
    if "compact" in policy:
        # The active segment is never compacted, so it must be rolled in time.
        segment_ms = min(segment_ms, number("max.compaction.lag.ms"))
    return LogConfig(
        segment_bytes=segment_bytes if isinstance(segment_bytes, int) else number("segment.bytes"),
        segment_ms=segment_ms - segment_jitter_ms,
        segment_index_bytes=number("segment.index.bytes"),
        index_interval_bytes=number("index.interval.bytes"),
        max_message_bytes=number("max.message.bytes"),
        flush_messages=number("flush.messages"),
        flush_ms=number("flush.ms"),
        delete="delete" in policy,
        compact="compact" in policy,
        retention_ms=number("retention.ms"),
        retention_bytes=number("retention.bytes"),
        file_delete_delay_ms=number("file.delete.delay.ms"),
        delete_retention_ms=number("delete.retention.ms"),
        min_compaction_lag_ms=number("min.compaction.lag.ms"),
        max_compaction_lag_ms=number("max.compaction.lag.ms"),
        min_cleanable_dirty_ratio=ratio,
    )
