"""Whether a run would find anything: asked of the sources of a real cluster, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from barnabas.lake.keeping.feeds import Feed, find_feeds
from barnabas.lake.keeping.manifest import Manifest, StreamState
from barnabas.lake.keeping.news import has_news
from barnabas.lake.sources import SOURCES
from barnabas.lake.tables.all import OBSERVING, STREAMS, TRAFFIC
from tests.lake.commands import run
from tests.lake.keeping.test_feeds import log_dir


@pytest.fixture(scope="module")
def feeds(nodes: list[Path]) -> list[Feed]:
    found = find_feeds(nodes, (*STREAMS, TRAFFIC), {})
    assert {feed.stream.source for feed in found} >= {
        "kafka_metadata",
        "kafka_consumer_offsets",
        "kafka_transaction_state",
    }
    return found


def read(feed: Feed) -> dict[str, Any]:
    """The offsets of a lake that has read everything."""
    module, name = SOURCES[feed.stream.source].split(":")
    reader = getattr(import_module(module), name)(feed.options).streamReader(StructType())
    found: dict[str, Any] = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    return found


def at(offsets: Mapping[str, dict[str, Any] | str]) -> Manifest:
    texts = {name: text if isinstance(text, str) else json.dumps(text) for name, text in offsets.items()}
    return Manifest(1, 0, {}, {name: StreamState(0, "", 1, (), text) for name, text in texts.items()})


def test_a_lake_that_has_read_all_of_its_sources_has_no_news_and_no_java_is_asked(feeds: list[Feed]) -> None:
    before = SparkContext._active_spark_context
    assert not has_news(at({feed.name: read(feed) for feed in feeds}), feeds, {})
    assert SparkContext._active_spark_context is before


def test_one_record_more_is_news_whichever_source_has_it(feeds: list[Feed]) -> None:
    everything = {feed.name: read(feed) for feed in feeds}
    for feed in feeds:
        less = json.loads(json.dumps(everything[feed.name]))
        place = less if "offset" in less else max(less.values(), key=lambda each: each["offset"])
        place["offset"] -= 1
        assert has_news(at({**everything, feed.name: less}), feeds, {}), feed.name


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("nosuch=1", "kafka_metadata has no option nosuch; known options are bootstrap.controllers"),
        ("maxBytesPerTrigger=much", "maxBytesPerTrigger"),
        ("startingOffsets=0,1", "startingOffsets"),
    ],
)
def test_an_option_that_is_wrong_is_told_before_java_is_looked_for(
    nodes: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, message: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = run("run", *nodes, "--lake", tmp_path / "lake", "--option", option)
    assert (result.exit_code, message in result.stderr) == (1, True), result.stderr
    assert not (tmp_path / "lake").exists()


def test_what_is_not_known_is_news(feeds: list[Feed], tmp_path: Path) -> None:
    everything = {feed.name: read(feed) for feed in feeds}
    unread = {name: offsets for name, offsets in everything.items() if name != feeds[0].name}
    assert has_news(at(unread), feeds, {}), "a source that was never read"
    assert has_news(at({**everything, feeds[0].name: ""}), feeds, {}), "offsets that are not readable"
    gone = log_dir(tmp_path / "gone", "__cluster_metadata-0")
    lost = replace(feeds[0], options={**feeds[0].options, "paths": json.dumps([str(gone)])})
    assert has_news(at(everything), [lost, *feeds[1:]], {}), "a log that lost its records, which the run tells"
    observation = Feed(feeds[0].cluster_id, OBSERVING[0], {**OBSERVING[0].options, "bootstrap.servers": "nowhere:1"})
    seen = {observation.name: {"observation": 1, "at_ms": 0}}
    assert has_news(at({**everything, **seen}), [*feeds, observation], {}), "each run makes an observation"
