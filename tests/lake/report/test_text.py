"""Values as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from barnabas.lake.declared_column import Column
from barnabas.lake.report import text
from barnabas.lake.report.plots import nice, nice_bytes, nice_minutes


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (0, "0"),
        (0.001, "< 1 s"),
        (0.2, "12 s"),
        (0.995, "1 min"),
        (59.6, "1 h"),
        (192, "3 h 12 min"),
        (1440, "1 d"),
        (3120, "2 d 4 h"),
        (1440 * 400 + 60, "400 d"),
    ],
)
def test_a_duration_has_its_two_largest_units(minutes: float, said: str) -> None:
    assert text.duration(minutes) == said


def test_bytes_are_in_binary_units() -> None:
    assert [text.size(n) for n in (0, 1023, 1024, 1536, 500 * 1024**2, 3 * 1024**5)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 KiB",
        "500 MiB",
        "3.0 PiB",
    ]


def test_a_time_is_told_in_utc_with_its_zone() -> None:
    assert text.iso(datetime(2026, 11, 16, 10, 0, tzinfo=timezone(timedelta(hours=2)))) == "2026-11-16T08:00:00Z"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        text.iso(datetime(2026, 11, 16))  # noqa: DTZ001, RUF100


def test_what_a_terminal_or_a_page_would_act_on_is_made_visible() -> None:
    assert text.visible("a\x1b[31m\u202eb\x00\ud800\n") == r"a\x1b[31m\u202eb\x00\ud800\n"
    assert text.escaped("<a href=\"x\" title='y'>&") == "&lt;a href=&quot;x&quot; title=&#x27;y&#x27;&gt;&amp;"


def test_a_long_name_keeps_both_of_its_ends() -> None:
    assert text.clipped("orders", 6) == "orders"
    assert text.clipped("tenant-01.stream-00042", 9) == "tena…0042"


@pytest.mark.parametrize(
    ("name", "type", "value", "said"),
    [
        ("broker_id", "int", 10_000, "10000"),
        ("offset", "bigint", 1_234_567, "1234567"),
        ("records", "bigint", 1_234_567, "1,234,567"),
        ("offline_minutes", "double", 61.0, "1 h 1 min"),
        ("peak_bytes_per_second", "double", 2048.0, "2.0 KiB/s"),
        ("peak_bytes_per_second", "double", 1.0, "1 B/s"),
        ("peak_bytes_per_second", "double", 0.36, "22 B/min"),
        ("peak_bytes_per_second", "double", 0.001, "4 B/h"),
        ("peak_bytes_per_second", "double", 0.00001, "1 B/day"),
        ("peak_bytes_per_second", "double", 0.0, "0 B/s"),
        ("share", "double", 0.525, "52 %"),
        ("leader_skew", "double", 1.4, f"1.40{text.TIMES}"),
        ("fenced", "boolean", True, "yes"),
        ("replicas", "array<int>", [1, 2], "1, 2"),
        ("denied", "array<string>", [], "none"),
        ("rack", "string", None, text.NONE),
        ("last_time", "timestamp", datetime(2026, 11, 16, tzinfo=UTC), "2026-11-16T00:00:00Z"),
    ],
)
def test_a_value_is_shown_by_what_its_column_is(name: str, type: str, value: object, said: str) -> None:
    assert text.shown(Column(name, type, ""), value) == said


def test_axes_end_at_numbers_that_are_good_to_read() -> None:
    assert [nice(n) for n in (0, 0.3, 1, 3, 41, 999, 1001)] == [1, 0.4, 1, 4, 60, 1000, 2000]
    assert [nice_bytes(n) for n in (0, 1000, 1024, 1025)] == [1, 1024, 1024, 2048]
    assert [nice_minutes(n) for n in (3, 45, 500, 3000)] == [4, 60, 720, 4 * 1440]
