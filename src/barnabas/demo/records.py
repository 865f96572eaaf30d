"""Generates the records of the shop: keys, values and timestamps, equal for equal seed and time. Pure.

Its one rule: timestamps only increase within a topic. Traffic follows the time of day, and a few keys are much busier
than the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from math import cos, pi
from random import Random
from typing import Final, NamedTuple

from barnabas.demo.shop import AUDIT, CLICKS, CUSTOMERS, ORDERS, PAYMENTS, SHIPMENTS

HOUR_MS: Final = 3_600_000
BUSIEST_HOUR: Final = 14
BOT: Final = b"visitor-bot-42"
"""A crawler that makes more than half of all clicks."""
RESELLER: Final = "customer-0007"
_BOT_SHARE: Final = 0.56
_RESELLER_SHARE: Final = 0.17
_CUSTOMERS: Final = 400
_ARTICLES: Final = (
    "kettle",
    "teapot",
    "cup",
    "saucer",
    "tea strainer",
    "tea cosy",
    "honey",
    "biscuits",
    "assam",
    "oolong",
)
_PAGES: Final = ("/", "/search", "/tea", "/cups", "/basket", "/checkout", "/about")
_BROWSER: Final = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)"
_CRAWLER: Final = "TeaCrawler/2.1 (+https://crawler.example)"


class Written(NamedTuple):
    """A record to write."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


class Order(NamedTuple):
    """An order, as other records refer to it."""

    number: int
    customer: str
    cents: int
    timestamp_ms: int


def _text(fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def weight(timestamp_ms: int) -> float:
    """Return how busy the shop is at this time of day, from 0.2 at night to 1.

    >>> round(weight(14 * HOUR_MS), 2), round(weight(2 * HOUR_MS), 2)
    (1.0, 0.2)
    """
    at = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    hour = at.hour + at.minute / 60
    return 0.6 + 0.4 * cos((hour - BUSIEST_HOUR) * pi / 12)


def hours(now_ms: int, count: int) -> list[tuple[int, int]]:
    """Return the start and end in milliseconds of the last `count` full hours, and of the current one."""
    begun = now_ms - now_ms % HOUR_MS
    starts = [begun - back * HOUR_MS for back in range(count, -1, -1)]
    return [(start, min(start + HOUR_MS, now_ms)) for start in starts]


def _times(random: Random, span: tuple[int, int], count: int) -> list[int]:
    return sorted(random.randrange(span[0], max(span[1], span[0] + 1)) for _ in range(count))


def how_many(span: tuple[int, int], an_hour: int) -> int:
    """Return the number of records in a span, given the number in the busiest hour."""
    return max(1, round(an_hour * weight((span[0] + span[1]) // 2) * (span[1] - span[0]) / HOUR_MS))


def orders(random: Random, span: tuple[int, int], count: int, first_number: int) -> list[tuple[Order, Written]]:
    found = []
    for number, timestamp_ms in enumerate(_times(random, span, count), first_number):
        customer = RESELLER
        if random.random() >= _RESELLER_SHARE:
            customer = f"customer-{int(_CUSTOMERS * random.random() ** 2):04d}"
        basket = [
            (random.choice(_ARTICLES), random.randint(199, 8999)) for _ in range(random.choice((1, 1, 2, 2, 3, 5)))
        ]
        order = Order(number, customer, sum(cents for _, cents in basket), timestamp_ms)
        items = [{"article": article, "cents": cents} for article, cents in basket]
        value = {"order": f"o-{number:06d}", "customer": customer, "items": items, "cents": order.cents}
        found.append((order, Written(ORDERS, customer.encode(), _text(value), timestamp_ms)))
    return found


def payments(random: Random, placed: list[Order]) -> Iterator[Written]:
    """Yield one payment for each order."""
    for order in placed:
        value = {
            "order": f"o-{order.number:06d}",
            "cents": order.cents,
            "by": random.choice(("card", "card", "transfer", "invoice")),
        }
        yield Written(PAYMENTS, f"o-{order.number:06d}".encode(), _text(value), order.timestamp_ms)


def shipments(random: Random, placed: list[Order]) -> Iterator[Written]:
    """Yield shipments of most orders, most of them to the EU."""
    for order in placed:
        if random.random() < 0.85:
            topic = random.choices(SHIPMENTS, (1, 6, 3))[0]
            value = {"order": f"o-{order.number:06d}", "parcels": random.choice((1, 1, 1, 2)), "state": "handed over"}
            yield Written(topic, f"o-{order.number:06d}".encode(), _text(value), order.timestamp_ms)


def clicks(random: Random, span: tuple[int, int], count: int) -> Iterator[Written]:
    for timestamp_ms in _times(random, span, count):
        is_bot = random.random() < _BOT_SHARE
        key = BOT if is_bot else f"visitor-{random.randrange(100_000):05d}".encode()
        value = {
            "page": random.choice(_PAGES),
            "agent": _CRAWLER if is_bot else _BROWSER,
            "trail": [random.choice(_PAGES) for _ in range(random.randrange(30))],
        }
        yield Written(CLICKS, key, _text(value), timestamp_ms)


def customers(random: Random, placed: list[Order]) -> Iterator[Written]:
    """Yield updates of customers with their orders, and sometimes a deletion."""
    for order in placed[::4]:
        value = None if random.random() < 0.05 else _text({"name": order.customer, "last": f"o-{order.number:06d}"})
        yield Written(CUSTOMERS, order.customer.encode(), value, order.timestamp_ms)


def audit(random: Random, span: tuple[int, int], count: int) -> Iterator[Written]:
    for timestamp_ms in _times(random, span, count):
        who = random.choice(("alice", "bob", "ops", "cron"))
        did = random.choice(("login", "price changed", "refund", "export", "logout"))
        yield Written(AUDIT, None, _text({"who": who, "did": did}), timestamp_ms)
