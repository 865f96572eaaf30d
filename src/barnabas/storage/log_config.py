"""From a topic's settings to what its logs need of them.

Its one rule: a name that the topic sets counts, then what the broker gives all topics, then the default. Texts are taken to
be valid: they were checked when they were set. `local.retention.*` is for tiered storage, which there is not: it is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from barnabas.config import topic
from barnabas.config.definitions import Value
from barnabas.storage.segment import LogConfig

_NO_DEFAULTS: Mapping[str, Value] = MappingProxyType({})


def log_config(
    configs: Mapping[str, str], defaults: Mapping[str, Value] = _NO_DEFAULTS, *, segment_jitter_ms: int = 0
) -> LogConfig:
    """The settings of one log. `configs` is what the topic sets, `defaults` are the values of one that sets nothing.

    The jitter of a segment is drawn anew for each log, from 0 to less than the smaller of segment.jitter.ms and segment.ms.
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
        # A segment that is written to is never compacted, so it has to be closed in time.
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
