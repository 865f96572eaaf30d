"""Long lists: every row is on one of their pages, and no page is large. Without a browser."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

import pytest

from barnabas.client.admin.quotas import quota_entity
from barnabas.client.records import TopicPartition
from barnabas.client.sync import Admin, Producer
from barnabas.console.pages import records
from barnabas.testing import Broker
from tests.console.running_console import NAME, RunningConsole, entry
from tests.console.shop import AUTHORIZED, allow

WIDE, MANY = 230, 130
MAX_BYTES = 300_000
LISTS = {
    "/topics/wide": (r"records\?partition=(\d+)", WIDE),
    "/topics/wide?tab=groups": (r'scope="row"><a [^>]*>(group-\d+)', MANY),
    "/topics/wide?tab=acls": (r'scope="row"><a [^>]*>(User:app-\d+)', MANY),
    "/group?id=group-0": (r"partition=(\d+)&amp;offset=0", WIDE),
    "/groups": (r'scope="row"><a [^>]*>(group-\d+)', MANY),
    "/access?by=principal": (r'scope="row">(User:app-\d+)', MANY),
    "/access?tab=quotas": (r'scope="row">([^<]*app-\d+)', MANY),
    "/metadata?path=image/clientQuotas": (r'class="mono"><a [^>]*>([^<]*app-\d+)', MANY),
    "/metadata?path=image/clientQuotas&find=app-": (r'class="mono"><a [^>]*>([^<]*app-\d+)', MANY),
    "/metadata?tab=difference&from=10": (r"<li>([^<]*app-\d+)", 2 * MANY),
    "/rehearsal?do=kill:1": (r'scope="row"><a [^>]*>(wide-\d+)', WIDE),
}
"""What a row of each list looks like, and how many there are."""


@pytest.fixture(scope="module")
def console() -> Iterator[RunningConsole]:
    with Broker(topics={"wide": WIDE, "logged": 1, "bulky": 1}, config=AUTHORIZED) as broker:
        with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            admin.create_acls([allow(f"User:app-{number}", "wide") for number in range(MANY)])
            admin.alter_client_quotas(
                {quota_entity(user=f"app-{number}"): {"producer_byte_rate": 1024.0} for number in range(MANY)}
            )
            for number in range(MANY):
                offsets = {TopicPartition("wide", each): 0 for each in (range(WIDE) if number == 0 else range(1))}
                admin.alter_consumer_group_offsets(f"group-{number}", offsets)
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            document = json.dumps({f"field {number}": "x" * 10 for number in range(100)}).encode()
            headers = [(f"header-{number}", b"y" * 20) for number in range(40)]
            for number in range(200):
                producer.send("logged", document, b"key-%d" % number, headers=headers)
            for number in range(20):
                producer.send("bulky", b"%d " % number + b"x" * 200_000)
                producer.flush()
            producer.flush()
        with RunningConsole(entry(broker)) as console:
            yield console.enter()


@pytest.mark.parametrize("path", LISTS)
def test_every_row_of_a_long_list_is_on_one_of_its_pages(console: RunningConsole, path: str) -> None:
    row, count = LISTS[path]
    seen: list[str] = []
    address = f"/c/{NAME}{path}"
    for _ in range(5):
        page = console.get(address)
        assert page.status == 200, page.text
        assert len(page.text.encode()) < MAX_BYTES
        found = re.findall(row, page.text)
        assert 0 < len(found) <= 100
        seen += found
        following = re.search(r'<a href="([^"]+)" rel="next"', page.text)
        if following is None:
            break
        address = address.partition("?")[0] + html.unescape(following[1])
    assert len(seen) == len(set(seen)) == count


def test_many_large_records_are_cut_and_one_is_not(console: RunningConsole) -> None:
    many = console.get(f"/c/{NAME}/topics/logged/records?partition=0&offset=0&count=1000").text
    assert len(many.encode()) < MAX_BYTES
    assert many.count("all of it") >= 100
    assert "and 35 more" in many
    assert "field 99" not in many
    one = console.get(f"/c/{NAME}/topics/logged/records?partition=0&offset=0&count=1").text
    assert "field 99" in one
    assert "header-39" in one
    assert "all of it" not in one


def test_of_bulky_records_the_newest_are_shown_and_all_are_downloaded(console: RunningConsole) -> None:
    page = console.get(f"/c/{NAME}/topics/bulky/records?partition=0").text
    assert "there are fewer, because they are large" in page
    offsets = [int(each) for each in re.findall(r"records\?partition=0&amp;offset=(\d+)\">\d", page)]
    assert 0 < len(offsets) < 20
    assert offsets == list(range(19, 19 - len(offsets), -1))
    lines = console.get(f"/c/{NAME}/topics/bulky/records/download").text.splitlines()
    assert [json.loads(each)["offset"] for each in lines] == list(range(20))


def test_more_downloads_than_may_be_prepared_at_once_are_refused(
    console: RunningConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_downloads", records.MAX_DOWNLOADS)
    assert console.get(f"/c/{NAME}/topics/bulky/records/download").status == 503
    monkeypatch.undo()
    assert console.get(f"/c/{NAME}/topics/bulky/records/download").status == 200
