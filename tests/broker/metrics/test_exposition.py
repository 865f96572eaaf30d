"""The text format, read back by Prometheus' own parser."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.metrics.exposition import ROWS_AT_ONCE, Exposition, Metric, counter, gauge, histogram, labels
from barnabas.broker.metrics.histogram import Histogram
from tests.broker.metrics.scraping import Scrape

SIZE = gauge("a_size", "Size of things.", "name")
COUNT = counter("things_total", "Things.", "name", "kind")
TIME = histogram("time_ms", "Time.", "name")


def text_of(out: Exposition) -> str:
    work = out.encode()
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: bytes = end.value
            return found.decode()


def exposition(*metrics: Metric, max_rows: int = 1000) -> Exposition:
    return Exposition(metrics, max_rows)


def test_rows_of_one_metric_stand_together_below_its_help_and_type() -> None:
    out = exposition(SIZE, COUNT)
    for name in ("a", "b"):
        out.add(COUNT, 2, labels(name=name, kind="x"))
        out.add(SIZE, 1.5, labels(name=name))
    assert text_of(out).splitlines() == [
        "# HELP a_size Size of things.",
        "# TYPE a_size gauge",
        'a_size{name="a"} 1.5',
        'a_size{name="b"} 1.5',
        "# HELP things_total Things.",
        "# TYPE things_total counter",
        'things_total{name="a",kind="x"} 2',
        'things_total{name="b",kind="x"} 2',
    ]


@given(st.lists(st.text(), max_size=5, unique=True))
def test_any_text_survives_as_the_value_of_a_label(names: Sequence[str]) -> None:
    out = exposition(SIZE)
    for number, name in enumerate(names):
        out.add(SIZE, number, labels(name=name))
    found = Scrape(text_of(out))
    assert {each["name"] for each in found.labels("a_size")} == set(names)


def test_a_lone_surrogate_does_not_break_the_text() -> None:
    out = exposition(SIZE)
    out.add(SIZE, 1, labels(name="\ud800"))
    assert Scrape(text_of(out))("a_size", name="?") == 1


def test_a_histogram_counts_up_to_each_bound_in_the_unit_that_is_shown() -> None:
    out = exposition(TIME)
    found = Histogram((1000, 5000))
    for value in (10, 1000, 1001, 70_000):
        found.observe(value)
    out.add_histogram(TIME, found, labels(name="x"), unit=1000)
    seen = Scrape(text_of(out))
    assert [seen("time_ms_bucket", name="x", le=bound) for bound in ("1", "5", "+Inf")] == [2, 3, 4]
    assert seen("time_ms_count", name="x") == found.count == 4
    assert seen("time_ms_sum", name="x") == 72.011


def test_histograms_with_the_same_bounds_can_be_added() -> None:
    one, other = Histogram((1, 2)), Histogram((1, 2))
    one.observe(1)
    other.observe(2)
    other.observe(9)
    one.add(other)
    assert list(one.cumulated()) == [(1, 1), (2, 2), (None, 3)]
    assert one.sum == 12


def test_rows_above_the_limit_are_counted_instead_of_written() -> None:
    out = exposition(SIZE, COUNT, max_rows=3)
    for number in range(5):
        out.add(SIZE, number, labels(name=number))
    assert out.left_out == 2
    assert len(list(Scrape(text_of(out)).labels("a_size"))) == 3


def test_metrics_that_are_dropped_have_no_rows_and_make_room_for_others() -> None:
    out = exposition(SIZE, COUNT, max_rows=1)
    out.add(SIZE, 1, labels(name="a"))
    out.drop([SIZE])
    out.add(COUNT, 1, labels(name="a", kind="b"))
    found = Scrape(text_of(out))
    assert not list(found.labels("a_size"))
    assert found("things_total", name="a", kind="b") == 1


def test_writing_many_rows_pauses_in_between() -> None:
    out = exposition(SIZE, max_rows=10 * ROWS_AT_ONCE)
    for number in range(10 * ROWS_AT_ONCE):
        out.add(SIZE, number, labels(name=number))
    assert sum(1 for _ in out.encode()) == 10
