"""What the shop has and writes: what is planted in it is there to be found."""

from __future__ import annotations

from collections import Counter
from random import Random

from barnabas.demo import records, shop
from barnabas.security.acl_audit import Kind, audit

NOW_MS = 1_790_000_000_000
GROUPS = (shop.BILLING, shop.LEDGER, shop.DISPATCH, shop.RECOMMENDATIONS, shop.SEARCH)


def test_each_kind_of_odd_acl_is_planted() -> None:
    found = {
        (finding.kind, entry)
        for finding in audit(shop.ACLS, [topic.name for topic in shop.TOPICS], GROUPS)
        for entry in finding.entries
    }
    assert {
        (Kind.SHADOWED, shop.SHADOWED),
        (Kind.SHADOWED, shop.DUPLICATE_IN_EFFECT),
        (Kind.NEVER_DENIES, shop.NEVER_DENIES),
        (Kind.NO_SUCH_RESOURCE, shop.OF_A_DELETED_TOPIC),
        (Kind.WILDCARD, shop.EVERYTHING),
    } <= found
    replaceable = [entry.resource_name for kind, entry in found if kind is Kind.REPLACEABLE]
    assert sorted(replaceable) == list(shop.SHIPMENTS)


def test_hours_end_now_and_do_not_overlap() -> None:
    spans = records.hours(NOW_MS, 3)
    assert [start % records.HOUR_MS for start, _ in spans] == [0, 0, 0, 0]
    assert [end for _, end in spans] == [*(start for start, _ in spans[1:]), NOW_MS]


def test_records_are_the_same_for_the_same_seed_in_order_and_skewed() -> None:
    span = records.hours(NOW_MS, 1)[0]
    clicks, again = (list(records.clicks(Random(1), span, 500)) for _ in range(2))
    assert clicks == again
    times = [click.timestamp_ms for click in clicks]
    assert times == sorted(times)
    assert span[0] <= times[0] <= times[-1] < span[1]
    assert Counter(click.key for click in clicks)[records.BOT] > 250
    placed = [order for order, _ in records.orders(Random(1), span, 200, 1)]
    buyers = Counter(order.customer for order in placed)
    assert buyers.most_common(1)[0][0] == records.RESELLER
    assert len(buyers) > 50
    assert [order.number for order in placed] == list(range(1, 201))


def test_the_busy_hour_has_more_than_the_night() -> None:
    day_ms = NOW_MS - NOW_MS % shop.DAY_MS
    spans = [
        (day_ms + hour * records.HOUR_MS, day_ms + (hour + 1) * records.HOUR_MS) for hour in (2, records.BUSIEST_HOUR)
    ]
    night, day = (records.how_many(span, 100) for span in spans)
    assert day > 3 * night
