"""What the logs of a topic take from its settings."""

from __future__ import annotations

import pytest

from barnabas.config import resolve
from barnabas.storage import LogConfig
from barnabas.storage.log_config import log_config


def test_a_topic_that_sets_nothing_has_the_defaults_of_a_log() -> None:
    assert log_config({}) == LogConfig()


def test_every_setting_is_taken_over() -> None:
    settings = {
        "segment.bytes": "1048577",
        "segment.ms": "2",
        "segment.index.bytes": "40",
        "index.interval.bytes": "4",
        "max.message.bytes": "5",
        "flush.messages": "6",
        "flush.ms": "7",
        "cleanup.policy": "compact",
        "retention.ms": "8",
        "retention.bytes": "9",
        "file.delete.delay.ms": "10",
        "delete.retention.ms": "11",
        "min.compaction.lag.ms": "12",
        "max.compaction.lag.ms": "13",
        "min.cleanable.dirty.ratio": "0.25",
    }
    assert log_config(settings) == LogConfig(
        segment_bytes=1048577,
        segment_ms=2,
        segment_index_bytes=40,
        index_interval_bytes=4,
        max_message_bytes=5,
        flush_messages=6,
        flush_ms=7,
        delete=False,
        compact=True,
        retention_ms=8,
        retention_bytes=9,
        file_delete_delay_ms=10,
        delete_retention_ms=11,
        min_compaction_lag_ms=12,
        max_compaction_lag_ms=13,
        min_cleanable_dirty_ratio=0.25,
    )


@pytest.mark.parametrize(
    ("policy", "delete", "compact"),
    [
        ("delete", True, False),
        ("compact", False, True),
        ("compact,delete", True, True),
        ("delete,compact", True, True),
        ("", False, False),
    ],
)
def test_a_cleanup_policy_is_two_words_in_any_order(policy: str, delete: bool, compact: bool) -> None:
    config = log_config({"cleanup.policy": policy})
    assert (config.delete, config.compact) == (delete, compact)


def test_what_the_broker_sets_counts_where_the_topic_does_not() -> None:
    defaults = resolve.topic_defaults(resolve.Layers(static={"log.retention.hours": "1", "log.roll.hours": "2"}))
    config = log_config({"segment.ms": "3"}, defaults)
    assert (config.retention_ms, config.segment_ms) == (3_600_000, 3)


def test_a_compacted_topic_closes_its_segments_within_the_largest_lag() -> None:
    lag = {"segment.ms": "5000", "max.compaction.lag.ms": "2000"}
    assert log_config(lag).segment_ms == 5000
    assert log_config({**lag, "cleanup.policy": "compact"}).segment_ms == 2000
    assert log_config({**lag, "cleanup.policy": "compact"}, segment_jitter_ms=300).segment_ms == 1700


def test_segments_below_the_usual_minimum_are_for_tests() -> None:
    assert log_config({"internal.segment.bytes": "100", "segment.bytes": "2000000"}).segment_bytes == 100


def test_local_retention_is_ignored() -> None:
    assert log_config({"local.retention.ms": "1", "local.retention.bytes": "1"}) == LogConfig()
