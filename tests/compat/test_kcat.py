"""kcat against a node; collected where kcat is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from tools.apache_kafka import Barnabas

from tests.compat.clients import CLIENTS, WAIT_S, Record, received, sent
from tests.compat.conftest import MakeTopic

FreshName = Callable[[str], str]

if shutil.which("kcat") is not None:

    def kcat(node: Barnabas, *args: str, stdin: str | None = None) -> str:
        command = ["kcat", "-b", node.bootstrap, *args]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=WAIT_S, check=True)
        return done.stdout

    def consumed(node: Barnabas, *args: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in kcat(node, "-C", "-e", "-q", "-J", *args).splitlines()]

    def test_kcat_lists_brokers_and_topics(node: Barnabas, make_topic: MakeTopic) -> None:
        topic = make_topic(2)
        listed = json.loads(kcat(node, "-L", "-J"))
        assert listed["brokers"] == [{"id": 1, "name": node.bootstrap}]
        (found,) = [each for each in listed["topics"] if each["topic"] == topic]
        assert [(p["partition"], p["leader"], p["isrs"]) for p in found["partitions"]] == [
            (0, 1, [{"id": 1}]),
            (1, 1, [{"id": 1}]),
        ]

    @pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
    def test_kcat_reads_what_it_has_written(node: Barnabas, make_topic: MakeTopic, codec: str) -> None:
        topic = make_topic()
        lines = "".join(f"key {number}:value {number}\n" for number in range(100))
        kcat(node, "-P", "-t", topic, "-K", ":", "-z", codec, "-H", "header=one", "-H", "header=two", stdin=lines)
        found = consumed(node, "-t", topic)
        assert [(each["key"], each["payload"]) for each in found] == [
            (f"key {number}", f"value {number}") for number in range(100)
        ]
        assert found[0]["headers"] == ["header", "one", "header", "two"]
        if codec in {"none", "gzip"}:
            for reader in CLIENTS:
                assert received(reader, node.bootstrap, topic, 100)[99].value == b"value 99"

    def test_kcat_makes_the_topic_that_it_writes_to(node: Barnabas, fresh_name: FreshName) -> None:
        topic = fresh_name("kcat-made")
        kcat(node, "-P", "-t", topic, stdin="two apples\n")
        assert [each["payload"] for each in consumed(node, "-t", topic)] == ["two apples"]

    def test_kcat_reads_from_an_offset_and_from_a_time(node: Barnabas, make_topic: MakeTopic) -> None:
        topic = make_topic(config={"retention.ms": "-1"})
        begin_ms = 1_700_000_000_000
        records = [Record(b"%d" % number, timestamp_ms=begin_ms + number * 1000) for number in range(10)]
        sent(CLIENTS[0], node.bootstrap, topic, records)
        assert [each["payload"] for each in consumed(node, "-t", topic, "-o", "7")] == ["7", "8", "9"]
        assert [each["payload"] for each in consumed(node, "-t", topic, "-o", "-2")] == ["8", "9"]
        from_time = consumed(node, "-t", topic, "-o", f"s@{begin_ms + 3000}", "-o", f"e@{begin_ms + 6000}")
        assert [each["payload"] for each in from_time] == ["3", "4", "5"]
        assert kcat(node, "-Q", "-t", f"{topic}:0:{begin_ms + 4500}") == f"{topic} [0] offset 5\n"

    def test_kcat_is_a_member_of_a_group(node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName) -> None:
        topic, group = make_topic(2), fresh_name("kcat")
        sent(CLIENTS[0], node.bootstrap, topic, [Record(b"%d" % number, partition=number % 2) for number in range(10)])
        args = ("-X", "auto.offset.reset=earliest", "-e", "-q", "-G", group, topic)
        assert sorted(kcat(node, *args).split()) == [str(number) for number in range(10)]
        sent(CLIENTS[0], node.bootstrap, topic, [Record(b"new")])
        assert kcat(node, *args).split() == ["new"]

    def test_kcat_writes_in_a_transaction(node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName) -> None:
        topic = make_topic()
        kcat(node, "-P", "-t", topic, "-X", f"transactional.id={fresh_name('kcat')}", stdin="one\ntwo\n")
        assert [each["payload"] for each in consumed(node, "-t", topic)] == ["one", "two"]
