"""`barnabas demo` as a process: what it leaves in a cluster, what it leaves alone, and what it says without Java."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from barnabas.batches import iterate_batches
from barnabas.client import sync
from barnabas.client.admin.config_values import ConfigResource
from barnabas.client.admin.part import checked
from barnabas.client.admin.quotas import quota_entity
from barnabas.client.admin.records import OffsetSpec
from barnabas.client.records import TopicPartition
from barnabas.demo import shop
from barnabas.raft.stored_log import metadata_log_directory
from barnabas.testing import Broker
from tests.broker.metrics.scraping import scrape
from tests.cli.commands.test_console import overview
from tests.demo.demo_process import Demo


def ends(admin: sync.Admin) -> dict[str, int]:
    """How many records each topic has ever got."""
    places = [TopicPartition(t.name, each) for t in admin.list_topics() for each in range(t.num_partitions)]
    found: dict[str, int] = {}
    for place, listed in checked(admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))).items():
        found[place.topic] = found.get(place.topic, 0) + listed.offset
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the demo has left behind, stopped with Ctrl-C when it was done."""
    directory = tmp_path_factory.mktemp("demo") / "data"
    with Demo("--data", directory, "--no-lake") as demo:
        demo.until("done in")
        assert "  the node stopped and started again" in demo.lines
        assert scrape(demo.metrics_url)("barnabas_ready") == 1  # at the address that was printed before the restart
        assert demo.interrupt() == 0, demo.lines
        assert not any("Traceback" in line or "WARNING" in line for line in demo.lines), demo.lines
    return directory


def test_the_shop_is_there_as_planted_and_a_second_start_does_not_repeat_it(data: Path) -> None:
    with Demo("--data", data, "--no-lake") as demo:
        demo.until("the example shop was loaded before")
        with sync.Admin({"bootstrap.servers": demo.servers}) as admin:
            topics = {topic.name: topic.num_partitions for topic in admin.list_topics()}
            assert topics == {topic.name: topic.partitions for topic in shop.TOPICS} | {shop.CLICKS: 6}
            assert set(admin.describe_acls()) == set(shop.ACLS)
            assert set(admin.describe_client_quotas()) == {
                quota_entity(user="analytics"),
                quota_entity(client_id="clicks-collector"),
            }
            assert list(admin.describe_user_scram_credentials()) == [shop.USER]
            orders = ConfigResource.topic(shop.ORDERS)
            assert checked(admin.describe_configs([orders]))[orders]["retention.ms"].value == str(shop.WEEK_MS)
            first = admin.list_offsets({TopicPartition(shop.AUDIT, 0): OffsetSpec.EARLIEST})
            assert checked(first)[TopicPartition(shop.AUDIT, 0)].offset == shop.AUDIT_DELETED
            written = ends(admin)
            assert written["promotions"] == 0
            assert written[shop.CLICKS] > written[shop.ORDERS] > 1000

            lag = {group: _lag(admin, group) for group in _groups(admin)}
            assert set(lag) == {shop.BILLING, shop.LEDGER, shop.DISPATCH, shop.RECOMMENDATIONS, shop.SEARCH}
            assert lag[shop.BILLING] == 0
            seen, name = scrape(demo.metrics_url), "kafka_consumergroup_lag"
            for group, expected in lag.items():
                rows = [row for row in seen.labels(name) if row["consumergroup"] == group]
                assert sum(seen(name, **row) for row in rows) == expected
            assert lag[shop.DISPATCH] > 500
            assert lag[shop.RECOMMENDATIONS] > 500
            ledger = checked(admin.describe_consumer_groups([shop.LEDGER]))[shop.LEDGER]
            assert len(ledger.members) == 4
        assert demo.interrupt() == 0
    with Demo("--data", data, "--no-lake") as demo:
        demo.until("the example shop was loaded before")
        with sync.Admin({"bootstrap.servers": demo.servers}) as admin:
            assert ends(admin) == written


def test_half_a_day_passes_in_the_metadata_log(data: Path) -> None:
    hour_ms = 3_600_000
    times_ms = [
        header.max_timestamp
        for path in sorted(metadata_log_directory(data).glob("*.log"))
        for _, header in iterate_batches(path.read_bytes())
    ]
    assert times_ms == sorted(times_ms)
    assert len({each // hour_ms for each in times_ms}) > 6  # something was changed in most of the hours
    assert 11 * hour_ms < times_ms[-1] - times_ms[0]
    assert times_ms[-1] <= time.time_ns() // 1_000_000


def _groups(admin: sync.Admin) -> set[str]:
    return {group.group_id for group in admin.list_groups()}


def test_its_console_shows_the_shop_at_the_address_that_is_printed_and_ends_with_it(data: Path) -> None:
    with Demo("--data", data, "--no-lake") as demo:
        line = demo.until("  console: ")
        assert "(read-only)" in line
        assert "Brokers running" in overview(line)
        assert shop.ORDERS in overview(line, "/topics")
        assert demo.interrupt() == 0
        with pytest.raises(OSError):
            overview(line)


def _lag(admin: sync.Admin, group: str) -> int:
    committed = checked(admin.list_consumer_group_offsets([group]))[group]
    offsets = {place: each.offset for place, each in checked(committed).items() if each is not None}
    listed = checked(admin.list_offsets(dict.fromkeys(offsets, OffsetSpec.LATEST)))
    return sum(max(0, listed[place].offset - offset) for place, offset in offsets.items())


def test_what_is_not_the_demos_is_left_alone_and_without_java_the_node_says_so_and_runs(tmp_path: Path) -> None:
    with Broker({"mine": 2}, data_dir=tmp_path / "data"):
        pass
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    without_java = {"PATH": str(programs), "JAVA_HOME": ""}
    prepare = ("--prepare", "echo fetching Spark; echo ERROR: no network >&2; echo and more >&2; exit 1")
    with Demo("--data", tmp_path / "data", *prepare, **without_java) as demo:
        said = demo.until("no report:")
        assert re.fullmatch(r"no report: there is no Java\. Spark needs Java 17 .*openjdk.*", said)
        assert f"{tmp_path}/data has other data and is served unchanged" in "\n".join(demo.lines)
        assert {"fetching Spark", "the --prepare command failed: ERROR: no network"} <= set(demo.lines)
        assert "and more" not in demo.lines
        with sync.Admin({"bootstrap.servers": demo.servers}) as admin:
            assert [topic.name for topic in admin.list_topics()] == ["mine"]
            assert admin.describe_acls() == []
        assert demo.interrupt() == 0
        assert not any("Traceback" in line for line in demo.lines), demo.lines


def test_without_spark_it_says_how_to_get_it(tmp_path: Path) -> None:
    with Broker({"mine": 1}, data_dir=tmp_path / "data"):
        pass
    hidden = tmp_path / "hidden" / "pyspark"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ModuleNotFoundError('there is no pyspark', name='pyspark')\n")
    with Demo("--data", tmp_path / "data", PYTHONPATH=str(hidden.parent)) as demo:
        said = demo.until("no report:")
        assert said == "no report: pyspark is not installed, and the lake needs it; try: pip install 'barnabas[lake]'"
        assert demo.interrupt() == 0


def alive(group: int) -> list[str]:
    """The processes of a group that have not ended; one that nobody has asked for its end yet is over."""
    listed = subprocess.run(["ps", "-e", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [row[2] for row in rows if int(row[0]) == group and not row[1].startswith("Z")]


def test_it_stops_while_something_runs_beside_it_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with Broker({"mine": 1}, data_dir=tmp_path / "data"):
        pass
    prepare = "echo beside $$; sleep 300; echo never"
    with Demo("--data", tmp_path / "data", "--prepare", prepare) as demo:
        pid = int(demo.until("beside ").removeprefix("beside "))
        assert alive(pid)
        assert demo.interrupt() == 0
        assert not any("never" in line for line in demo.lines)
        assert not alive(pid)


def test_a_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    with Broker() as other, Demo("--data", tmp_path / "data", "--no-lake", "--port", other.port) as demo:
        code, out, *_ = demo.ended()
        assert code == 1
        assert f"cannot listen on 127.0.0.1:{other.port}" in out
        assert "Traceback" not in out
