"""`barnabas records`, and the console tools, against a node of barnabas."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.kafka.console_tools import LineReader, ToolError, default_formatter
from barnabas.client.admin.records import Records
from barnabas.client.records import ConsumerRecord, TopicPartition
from barnabas.testing import Broker
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Command, Process, Script, environment, invoke, program

T0_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    # Records have old timestamps: they would be deleted as soon as retention begins.
    settings = {
        "auto.create.topics.enable": False,
        "group.initial.rebalance.delay.ms": 0,
        "log.retention.ms": -1,
    }
    with Broker(["bad", "slowly"], config=settings) as started:
        yield started


run = Command()
tool = Script()


def produce(broker: Broker, topic: str, stdin: str | bytes, *arguments: object) -> list[dict[str, Any]]:
    result = run(broker, "records", "produce", topic, *arguments, "-o", "json", stdin=stdin)
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout or "[]")
    return found


def consume(broker: Broker, *arguments: object) -> list[dict[str, Any]]:
    result = run(broker, "records", "consume", *arguments, "-o", "jsonl")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def values(broker: Broker, *arguments: object) -> list[Any]:
    return [row["value"] for row in consume(broker, *arguments)]


# --- produce


def test_lines_become_records_and_where_they_went_is_shown(broker: Broker) -> None:
    broker.create_topic("lines", 1)
    assert produce(broker, "lines", "one\ntwo\r\n\nlast") == [
        {"topic": "lines", "partition": 0, "records": 4, "firstOffset": 0, "lastOffset": 3}
    ]
    assert values(broker, "lines") == ["one", "two", "", "last"]


def test_keys_headers_and_null_are_told_apart(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("keyed", 2)
    file = tmp_path / "lines.txt"
    file.write_text("alice:two apples\nbob:-\n")
    produce(broker, "keyed", "", file, "-K", ":", "--null", "-", "--header", "source=web", "-H", "empty", "-p", 1)
    first, second = consume(broker, "keyed")
    assert (first["key"], first["value"], first["partition"]) == ("alice", "two apples", 1)
    assert first["headers"] == [{"key": "source", "value": "web"}, {"key": "empty", "value": None}]
    assert (second["key"], second["value"]) == ("bob", None)


def test_json_and_tsv_say_everything(broker: Broker) -> None:
    broker.create_topic("said", 3)
    lines = [
        {"key": "k", "value": {"a": [1]}, "headers": {"h": "1"}, "partition": 2, "timestamp": T0_MS},
        {"value": {"base64": "/wA="}, "headers": [["x", None]], "partition": 2},
        {"value": None, "partition": 2},
    ]
    produce(broker, "said", "\n".join(map(json.dumps, lines)), "--format", "json")
    first, second, third = consume(broker, "said:2", "--format", "json")
    assert (first["key"], first["value"], first["timestamp"]) == ("k", {"a": [1]}, T0_MS)
    assert (second["value"], second["headers"]) == ({"base64": "/wA="}, [{"key": "x", "value": None}])
    assert (third["key"], third["value"], third["headers"]) == (None, None, [])
    produce(broker, "said", "key\tline\\none\th=1\n\\N\t\\N\n", "--format", "tsv", "--null", "\\N", "-p", 0)
    first, second = consume(broker, "said:0")
    assert (first["key"], first["value"], first["headers"]) == ("key", "line\none", [{"key": "h", "value": "1"}])
    assert (second["key"], second["value"]) == (None, None)


def test_what_was_consumed_can_be_produced_again(broker: Broker) -> None:
    broker.create_topic("source", 1)
    broker.create_topic("copy", 1)
    produce(broker, "source", b'{"n": 1}\nplain\n\xff\xfe\n', "--key", "k", "--header", "h=v", "--compression", "zstd")
    shown = run(broker, "records", "consume", "source", "-o", "jsonl").stdout
    produce(broker, "copy", shown, "--format", "json")
    assert [record[2:] for record in broker.records("copy")] == [record[2:] for record in broker.records("source")]


def test_a_transaction_writes_all_or_nothing(broker: Broker) -> None:
    broker.create_topic("whole", 1)
    produce(broker, "whole", "a\nb\n", "--transactional-id", "cli")
    failed = run(broker, "records", "produce", "whole", "-K", ":", "--transactional-id", "cli", stdin="k:c\nbad\n")
    assert failed.exit_code == 1
    assert "line 2: no key separator ':': 'bad'" in failed.stderr
    assert values(broker, "whole", "--isolation-level", "read_committed") == ["a", "b"]


def test_a_dry_run_writes_nothing(broker: Broker) -> None:
    broker.create_topic("dry", 1)
    result = run(broker, "records", "produce", "dry", "--dry-run", stdin="a\nb\n")
    assert (result.exit_code, result.stderr) == (0, "would write 2 records to dry\n")
    assert values(broker, "dry") == []


@pytest.mark.parametrize(
    ("arguments", "stdin", "says"),
    [
        (["--format", "json"], "{", "Error: bad: line 1: this is not JSON"),
        (["--format", "json"], "[]", "an object is needed"),
        (["--format", "json"], '{"value": 1, "partition": "x"}', "partition must be a whole number"),
        (["--format", "json"], '{"value": 1}\n{"valu": 1}', "line 2: unknown member 'valu'; did you mean 'value'?"),
        (["--format", "json"], '{"Value": 1}', "unknown member 'Value'; did you mean 'value'?"),
        (["--format", "json"], '{"value": 1, "color": 2}', "unknown member 'color'; the members are key, value,"),
        (["--format", "json"], '{"key": "k"}', 'the member "value" is missing; null as its value is a tombstone'),
        (["--format", "json"], '{"value": 1, "value": 2}', "the member 'value' is given twice"),
        (["--format", "json"], '{"value": {"a": 1, "a": 2}}', "the member 'a' is given twice"),
        (["--format", "json"], '{"value": NaN}', "this is not JSON (NaN is not a number)"),
        (["--format", "json"], '{"value": 1e999}', "not JSON compliant"),
        (["--format", "json"], '{"value": 1, "partition": true}', "partition must be a whole number"),
        (["--format", "json"], '{"value": 1, "partition": -1}', "partition must be between 0 and"),
        (["--format", "json"], '{"value": 1, "timestamp": 1.5}', "timestamp must be a whole number"),
        (["--format", "json"], '{"value": 1, "timestamp": "2026-01-31"}', "timestamp must be a whole number"),
        (["--format", "json"], '{"value": 1, "timestamp": 99999999999999999999}', "timestamp must be between"),
        (["--format", "json"], '{"value": 1, "headers": 5}', "headers must be an object, or a list of pairs"),
        (["--format", "json"], '{"value": 1, "headers": false}', "headers must be an object, or a list of pairs"),
        (["--format", "json"], '{"value": 1, "headers": ["ab"]}', "headers must be an object, or a list of pairs"),
        (["--format", "json"], '{"value": 1, "headers": [[1, "x"]]}', "the name of a header must be a string, not 1"),
        (["--format", "json"], '{"value": 1, "headers": [{"key": "h", "val": 1}]}', "did you mean 'value'?"),
        (["--format", "json"], '{"value": 1, "headers": [{"key": "h"}]}', "a header needs the members key and value"),
        (["--format", "tsv"], "k\tv\t", "a header is NAME=VALUE"),
        (["--format", "json"], '{"value": {"base64": "?"}}', "the value of base64 is not Base64"),
        (["--format", "tsv"], "one", "a key, a tab and a value are needed"),
        (["-p", "7"], "x", "topic bad has no partition 7"),
        (["-X", "acks=7"], "x", "acks"),
    ],
)
def test_what_cannot_be_written_is_said_with_its_line(
    broker: Broker, arguments: list[str], stdin: str, says: str
) -> None:
    result = run(broker, "records", "produce", "bad", *arguments, stdin=stdin)
    assert result.exit_code == 1, result.output
    assert says in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "command",
    [
        ["records", "produce", "slowly", "-b"],
        ["kafka-console-producer", "--topic", "slowly", "--timeout", "0", "--bootstrap-server"],
    ],
    ids=["records", "console"],
)
def test_a_line_that_comes_slowly_is_written_at_once(broker: Broker, command: list[str]) -> None:
    before = len(broker.records("slowly"))
    with Process(*command, broker.bootstrap_servers) as process:
        for number in range(1, 3):
            process.write(f"line {number}\n")
            assert broker.records("slowly", before + number, timeout_s=20)[-1].value == b"line %d" % number
        assert process.ended().exit_code == 0


def test_a_topic_that_is_created_automatically_is_announced(broker: Broker) -> None:
    with Broker(config={"num.partitions": 3}) as creating:
        refused = run(creating, "records", "produce", "fresh", "--no-create", stdin="a\n", code=1)
        assert "topic fresh: UNKNOWN_TOPIC_OR_PARTITION: it does not exist" in refused.stderr
        assert "barnabas topics create fresh" in refused.stderr
        assert run(creating, "records", "produce", "fresh", stdin="", code=0).stderr == ""  # creates nothing
        assert run.rows(creating, "topics", "list") == []
        made = run(creating, "records", "produce", "fresh", stdin="a\nb\n", code=0)
        assert made.stderr == (
            "topic fresh does not exist: the broker creates it with 3 partitions and replication factor 1; see --no-create\n"
        )
        assert len(run.rows(creating, "offsets", "list", "fresh")) == 3
        for option in ([], ["--no-create"]):
            assert run(creating, "records", "produce", "fresh", *option, stdin="c\n", code=0).stderr == ""
    absent = run(broker, "records", "produce", "nowhere", "-X", "max.block.ms=200", stdin="a\n", code=1)
    assert "the cluster does not create topics (auto.create.topics.enable=false)" in absent.stderr


# --- consume


@pytest.fixture(scope="module")
def history(broker: Broker) -> str:
    """Ten records in each of two partitions, a second apart."""
    broker.create_topic("history", 2)
    lines = [
        {
            "key": f"user-{number % 3}",
            "value": {"n": number, "who": {"name": "abc"[number % 3], "tags": ["x", number]}},
            "headers": {"kind": "even" if number % 2 == 0 else "odd"},
            "partition": partition,
            "timestamp": T0_MS + number * 1000,
        }
        for partition in range(2)
        for number in range(10)
    ]
    produce(broker, "history", "\n".join(map(json.dumps, lines)), "--format", "json")
    return "history"


@pytest.mark.parametrize(
    ("arguments", "offsets"),
    [
        ([], range(10)),
        (["--offset", "7"], range(7, 10)),
        (["--offset", "-2"], range(8, 10)),
        (["--tail", "3"], range(7, 10)),
        (["--tail", "300"], range(10)),
        (["--from", T0_MS + 5_500], range(6, 10)),
        (["--from", "2023-11-14T22:13:25Z", "--until", T0_MS + 8_000], range(5, 8)),
        (["--max", "4"], range(4)),
        (["--key", "^user-1$"], [1, 4, 7]),
        (["--value", r'"n":[23]\b'], [2, 3]),
        (["--header", "kind=odd"], [1, 3, 5, 7, 9]),
        (["--header", "kind", "--offset", "9"], [9]),
        (["--header", "nothing"], []),
        (["--where", "n>=8"], [8, 9]),
        (["--where", "who.name=b", "--where", "n<5"], [1, 4]),
        (["--where", "who.tags[1]=6"], [6]),
        (["--where", "who.name~^[ab]$", "--where", "n>6"], [7, 9]),
        (["--where", "nobody!=1", "--max", "2"], [0, 1]),
    ],
)
def test_records_are_chosen_by_place_time_and_what_they_say(
    broker: Broker, history: str, arguments: list[object], offsets: Any
) -> None:
    assert [row["offset"] for row in consume(broker, f"{history}:1", *arguments)] == list(offsets)


def test_all_partitions_are_read_unless_some_are_named(broker: Broker, history: str) -> None:
    assert len(consume(broker, history)) == 20
    assert {row["partition"] for row in consume(broker, f"{history}:0")} == {0}


def test_forms_show_the_same_bytes(broker: Broker) -> None:
    broker.create_topic("forms", 1)
    produce(broker, "forms", b'k:{"a": 1}\nk:\xff\n', "-K", ":")
    assert values(broker, "forms") == ['{"a": 1}', {"base64": "/w=="}]
    assert values(broker, "forms", "-f", "json") == [{"a": 1}, {"base64": "/w=="}]
    assert values(broker, "forms", "-f", "hex") == ["7b2261223a20317d", "ff"]
    assert consume(broker, "forms", "-f", "base64", "--key-format", "hex")[1]["key"] == "6b"
    assert run(broker, "records", "consume", "forms", "--values").stdout_bytes == b'{"a": 1}\n\xff\n'
    table = run(broker, "records", "consume", "forms", "--max", "1").stdout.splitlines()
    assert table[0].split() == ["TOPIC", "PARTITION", "OFFSET", "TIMESTAMP", "KEY", "VALUE", "HEADERS"]
    assert table[1].split()[:3] == ["forms", "0", "0"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_where_it_was(broker: Broker, protocol: str) -> None:
    broker.create_topic(f"read-{protocol}", 1)
    produce(broker, f"read-{protocol}", "\n".join(map(str, range(10))))
    how = ["--group", f"readers-{protocol}", "-X", f"group.protocol={protocol}"]
    assert values(broker, f"read-{protocol}", *how, "--max", 3) == ["0", "1", "2"]
    assert values(broker, f"read-{protocol}", *how) == [str(number) for number in range(3, 10)]
    assert values(broker, f"read-{protocol}", *how) == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["consume", "nowhere"], 1, "Error: topic nowhere: UNKNOWN_TOPIC_OR_PARTITION"),
        (["consume", "history:9"], 1, "topic history: it has partitions 0 to 1, not 9"),
        (["consume", "history", "--offset", "99"], 1, "partition history-0: offset 99 is after its end offset 10"),
        (["consume", "history", "--offset", "x"], 2, "must be a number"),
        (["consume", "history", "--offset", "1", "--tail", "1"], 2, "--offset and --tail cannot both be given"),
        (["consume", "history", "--from", "never"], 2, "'never' is not a time"),
        (["consume", "history", "--value", "("], 2, "'(' is not a regular expression"),
        (["consume", "history", "--where", "x"], 2, "is not a condition"),
        (["consume", "history", "--where", "n>>3"], 2, "'>' cannot follow '>'; a number is needed\n  n>>3\n    ^"),
        (["consume", "history", "--header", "=x"], 2, "it must be NAME or NAME=VALUE"),
        (["consume", "history", "--offset", "1_0"], 2, "must be a number"),
        (["consume", "history:-1"], 2, "partitions are numbers"),
        (["consume", ":0"], 2, "the name of a topic is missing"),
        (["produce", "history", "-K", ""], 2, "--key-separator must not be empty"),
        (["consume", "history:0", "--group", "g"], 2, "--group cannot be combined with partitions"),
        (["produce", "nowhere", "-X", "max.block.ms=200"], 1, "UNKNOWN_TOPIC_OR_PARTITION: topic nowhere"),
        (
            ["produce", "history", "--format", "json", "-K", ":"],
            2,
            "--key-separator can only be used with --format lines",
        ),
        (["delete", "history"], 2, "Give exactly one of --before-offset, --before and --all"),
        (
            ["delete", "history", "--before-offset", "99", "-y"],
            1,
            "partition history-0: offset 99 is after its end offset 10",
        ),
        (["delete", "nowhere", "--all", "-y"], 1, "topic nowhere: UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_what_cannot_be_is_said_without_a_traceback(
    broker: Broker, history: str, arguments: list[str], code: int, says: str
) -> None:
    result = run(broker, "records", *arguments, stdin="x\n")
    assert (result.exit_code, says in result.stderr) == (code, True), result.output
    assert "Traceback" not in result.output


def test_who_may_not_is_told_which_right_is_missing() -> None:
    with guarded_broker() as guarded:
        for arguments in (["consume", "secret"], ["produce", "secret"], ["delete", "secret", "--all", "-y"]):
            result = run(guarded, "records", *arguments, stdin="x\n")
            assert result.exit_code == 1
            assert "TOPIC_AUTHORIZATION_FAILED" in result.stderr
            assert "User:ANONYMOUS lacks the permission DESCRIBE on topic secret" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "shown", "says"),
    [
        (["--max-scanned", 5], 5, "stopped by --max-scanned 5: 5 shown of 5 records ("),
        (["--max-scanned", 5, "--where", "n>=4"], 1, "about 5 records were not read; continue with --offset 5\n"),
        (["--max-bytes", "1B"], 1, "stopped by --max-bytes 1 B: 1 shown of 1 records (47 B) read; about 9 records"),
        (["--max-bytes", "1kB", "--where", "n>=4"], 6, ""),
        (["--max-scanned", 10], 10, ""),  # everything was read
        (["--max-scanned", 99], 10, ""),
        (["--max-scanned", 5, "--max", 2], 2, ""),
        (["--max-scanned", 5, "--offset", 7], 3, ""),
    ],
)
def test_a_limit_ends_a_search_and_says_so(
    broker: Broker, history: str, arguments: list[object], shown: int, says: str
) -> None:
    result = run(broker, "records", "consume", f"{history}:0", *arguments, "-o", "jsonl", code=0)
    assert len(result.stdout.splitlines()) == shown
    assert says in result.stderr
    assert bool(says) == bool(result.stderr)


@pytest.mark.parametrize("size", ["0", "x", "-1MB"])
def test_a_limit_that_is_no_size_is_rejected(broker: Broker, size: str) -> None:
    assert "--max-bytes" in run(broker, "records", "consume", "history", "--max-bytes", size, code=2).stderr


def test_a_search_shows_its_progress_on_a_terminal(broker: Broker) -> None:
    broker.create_topic("searched", 1)
    produce(broker, "searched", "x\n" * 100_000 + "found\n")
    ours, theirs = pty.openpty()
    search = ["records", "consume", "searched", "--value", "found", "-X", "max.poll.records=1", "-o", "jsonl"]
    command = program(*search, "-b", broker.bootstrap_servers)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=environment()
    ) as process:
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while some := os.read(ours, 10_000):
                said += some
        assert process.stdout is not None
        assert b'"offset":100000,' in process.stdout.read()
    os.close(ours)
    shown = said.decode().strip("\r").split("\r")
    first, last = shown[0], shown[-1]
    assert re.fullmatch(r"reading \[[#.]{20}\] \d+%, .+ left, [\d,]+ records \([\d.]+ k?B\) read, 0 shown *", first), (
        first
    )
    assert last.strip() == ""  # removed at the end


@pytest.mark.parametrize("age", ["1h", "90m", "3600s", "0.5d"])
def test_ages_are_times_in_every_command_of_records_and_offsets(broker: Broker, age: str) -> None:
    topic = f"aged-{age}"
    broker.create_topic(topic, 1)
    now_ms = round(time.time() * 1000)
    lines = [json.dumps({"value": str(ago), "timestamp": now_ms - ago * 86_400_000}) for ago in (2, 1, 0)]
    produce(broker, topic, "\n".join(lines), "--format", "json")
    assert values(broker, topic, "--from", age) == ["0"]
    assert values(broker, topic, "--until", age) == ["2", "1"]
    (row,) = run.rows(broker, "offsets", "list", topic, "--at", age)
    assert row["offsetAt"] == 2
    (row,) = run.rows(broker, "offsets", "find", topic, age)
    assert row["offset"] == 2
    dry = run(broker, "records", "delete", topic, "--before", age, "--dry-run", code=0)
    assert dry.stderr == f"would delete 2 records of {topic}-0: 0 to 1\n"


# --- delete


def test_records_are_deleted_up_to_an_offset_or_a_time_after_a_preview(broker: Broker) -> None:
    broker.create_topic("old", 2)
    lines = [json.dumps({"value": None, "partition": number % 2, "timestamp": T0_MS + number}) for number in range(20)]
    produce(broker, "old", "\n".join(lines), "--format", "json")
    dry = run(broker, "records", "delete", "old:0", "--before-offset", 4, "--dry-run")
    assert (dry.exit_code, dry.stdout) == (0, "")
    assert dry.stderr == "would delete 4 records of old-0: 0 to 3\n"
    unasked = run(broker, "records", "delete", "old:0", "--before-offset", 4)
    assert unasked.exit_code == 1
    assert "pass --yes" in unasked.stderr
    done = run(broker, "records", "delete", "old:0", "--before-offset", 4, "--yes", "-o", "json")
    assert json.loads(done.stdout) == [
        {"topic": "old", "partition": 0, "lowWatermark": 4, "error": None, "message": None}
    ]
    run(broker, "records", "delete", "old:1", "--before", T0_MS + 11, "--yes")
    assert [len(consume(broker, f"old:{partition}")) for partition in range(2)] == [6, 5]
    everything = run(broker, "records", "delete", "old", "--all", "--yes")
    assert "delete 6 records of old-0: 4 to 9, all of them" in everything.stderr
    assert consume(broker, "old") == []
    assert "nothing to delete" in run(broker, "records", "delete", "old", "--all", "--yes").stderr


def test_each_partition_is_deleted_by_itself_up_to_an_offset(broker: Broker) -> None:
    broker.create_topic("uneven", 3)
    produce(broker, "uneven", "a\nb\nc\n", "-p", 0)
    produce(broker, "uneven", "a\n", "-p", 1)
    how = ["records", "delete", "uneven", "--before-offset", 2]
    dry = run(broker, *how, "--dry-run")
    assert (dry.exit_code, dry.stderr) == (
        0,
        "would delete 2 records of uneven-0: 0 to 1\nwould delete 1 records of uneven-1: 0 to 0, all of them\n",
    )
    done = run(broker, *how, "--yes", "-o", "json", code=0)
    assert [(row["partition"], row["lowWatermark"]) for row in json.loads(done.stdout)] == [(0, 2), (1, 1)]
    assert [(row["partition"], row["offset"]) for row in consume(broker, "uneven")] == [(0, 2)]
    beyond = run(broker, "records", "delete", "uneven", "--before-offset", 9, "--yes", code=1)
    assert "partition uneven-0: offset 9 is after its end offset 3" in beyond.stderr
    assert len(consume(broker, "uneven")) == 1
    assert (
        "nothing to delete" in run(broker, "records", "delete", "uneven:2", "--before-offset", 1, "-y", code=0).stderr
    )


def test_a_partition_that_fails_does_not_stop_the_deletion_of_others(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("partly", 2)
    for partition in range(2):
        produce(broker, "partly", "a\n", "-p", partition)
    ask = Records.list_offsets

    async def list_offsets(self: Records, wanted: Any, **how: Any) -> Any:
        found = dict(await ask(self, wanted, **how))
        return {**found, TopicPartition("partly", 0): KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "no leader")}

    monkeypatch.setattr(Records, "list_offsets", list_offsets)
    done = run(broker, "records", "delete", "partly", "--all", "--yes", "-o", "json", code=1)
    rows = {row["partition"]: (row["lowWatermark"], row["error"]) for row in json.loads(done.stdout)}
    assert rows == {0: (None, "LEADER_NOT_AVAILABLE"), 1: (1, None)}
    assert "LEADER_NOT_AVAILABLE" in run(broker, "records", "delete", "partly", "--all", "--dry-run", code=1).stderr


# --- Kafka's console tools


def test_the_console_tools_write_and_show_lines(broker: Broker) -> None:
    broker.create_topic("console", 1)
    written = tool(
        *(broker, "kafka-console-producer", "--topic", "console"),
        *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
        *("--reader-property", "null.marker=NULL", "--timeout", 0),
        stdin="h1:v1,h2:NULL\tkey\tvalue\nNULL\tNULL\tNULL\n",
    )
    assert (written.exit_code, written.output) == (0, "")
    shown = tool(
        *(broker, "kafka-console-consumer", "--topic", "console", "--from-beginning", "--max-messages", 2),
        *(
            each
            for name in ("key", "headers", "offset", "partition")
            for each in ("--formatter-property", f"print.{name}=true")
        ),
    )
    assert shown.exit_code == 0
    assert (
        shown.stdout
        == "Partition:0\tOffset:0\th1:v1,h2:null\tkey\tvalue\nPartition:0\tOffset:1\tNO_HEADERS\tnull\tnull\n"
    )
    assert shown.stderr.endswith("Processed a total of 2 messages\n")


def test_the_console_consumer_reads_a_partition_from_an_offset_until_nothing_comes(broker: Broker) -> None:
    broker.create_topic("placed", 2)
    produce(broker, "placed", "a\nb\nc\n", "-p", 1)
    how = ["--topic", "placed", "--partition", 1, "--timeout-ms", 700]
    assert tool(broker, "kafka-console-consumer", *how, "--offset", 1).stdout == "b\nc\n"
    assert tool(broker, "kafka-console-consumer", *how, "--offset", "earliest").stdout == "a\nb\nc\n"
    late = tool(broker, "kafka-console-consumer", *how)
    assert (late.exit_code, late.stdout) == (0, "")
    assert "TimeoutException" in late.stderr


def test_the_console_consumer_includes_topics_by_pattern_and_keeps_offsets_of_its_group(broker: Broker) -> None:
    broker.create_topic("incl-a", 1)
    broker.create_topic("incl-b", 1)
    produce(broker, "incl-a", "a\n")
    produce(broker, "incl-b", "b\n")
    how = ["--include", "incl-.*", "--group", "including", "--from-beginning"]
    assert sorted(tool(broker, "kafka-console-consumer", *how, "--max-messages", 2).stdout) == ["\n", "\n", "a", "b"]
    assert tool(broker, "kafka-console-consumer", *how, "--timeout-ms", 700).stdout == ""


def test_the_console_consumer_shows_kafkas_own_topics(broker: Broker) -> None:
    broker.create_topic("owned", 1)
    produce(broker, "owned", "a\n", "--transactional-id", "shown")
    consume(broker, "owned", "--group", "shown")
    how = ["--from-beginning", "--timeout-ms", 1_000, "--formatter"]
    name = "org.apache.kafka.tools.consumer."
    offsets = tool(
        broker, "kafka-console-consumer", "--topic", "__consumer_offsets", *how, name + "OffsetsMessageFormatter"
    )
    found = [row for row in _documents(offsets.stdout) if row["key"]["data"]["group"] == "shown"]
    assert found[0]["key"] == {"type": 1, "data": {"group": "shown", "topic": "owned", "partition": 0}}
    assert found[0]["value"]["data"]["offset"] == 2  # the record and its marker
    log = tool(
        broker,
        "kafka-console-consumer",
        "--topic",
        "__transaction_state",
        *how,
        name + "TransactionLogMessageFormatter",
    )
    assert {row["key"]["data"]["transactionalId"] for row in _documents(log.stdout)} >= {"shown"}


def _documents(text: str) -> list[dict[str, Any]]:
    """JSON, one after the other without anything between."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        found.append(document)
    return found


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["kafka-console-producer", "--topic", "t"], "Error while validating the bootstrap address"),
        (["kafka-console-producer", "--bootstrap-server", "x:1"], 'Missing required argument "[topic]"'),
        (["kafka-console-producer", "--topic", "t", "--bootstrap-server", "x"], "Please provide valid host:port"),
        (["kafka-console-consumer", "--bootstrap-server", "x:1"], "Exactly one of the following arguments is required"),
        (["kafka-console-consumer", "--topic", "t"], 'Missing required argument "[bootstrap-server]"'),
        (["kafka-console-consumer", "--topic", "t", "--offset", "1"], "The partition is required when offset"),
        (["kafka-console-consumer", "--nothing"], "nothing is not a recognized option"),
        (
            ["kafka-console-consumer", "--topic", "t", "--bootstrap-server", "x:1", "--formatter", "a.B"],
            "a.B",
        ),
        (
            [
                "kafka-console-consumer",
                "--topic",
                "t",
                "--bootstrap-server",
                "x:1",
                "--partition",
                "0",
                "--offset",
                "-1",
            ],
            "The provided offset value '-1' is incorrect.",
        ),
        (
            ["kafka-console-consumer", "--topic", "t", "--bootstrap-server", "x:1", "--partition", "0", "--group", "g"],
            "Options group and partition cannot be specified together.",
        ),
    ],
)
def test_the_console_tools_refuse_in_kafkas_words(arguments: list[str], says: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0].startswith(says)


def test_lines_that_the_reader_cannot_split_are_numbered() -> None:
    reader = LineReader({"parse.key": "true"})
    with pytest.raises(ToolError, match="No key separator found on line number 2: 'x'"):
        list(reader.records(["a\tb", "x"]))
    assert next(LineReader({"parse.key": "true", "ignore.error": "true"}).records(["x"]))[:2] == (None, b"x")
    with pytest.raises(ToolError, match="No header key separator found in pair 'h' on line number 1"):
        list(LineReader({"parse.headers": "true"}).records(["h\tb"]))
    for properties, says in (
        ({"headers.separator": "\t"}, r"headers.delimiter and headers.separator may not be equal"),
        ({"null.marker": ","}, r"null.marker and headers.separator may not be equal"),
    ):
        with pytest.raises(ToolError, match=says):
            LineReader(properties)


def test_the_formatter_shows_what_it_is_told_to() -> None:
    record = ConsumerRecord("t", 3, 7, 5, (42).to_bytes(4, "big"), None, (("h", b"1"),))
    everything = {f"print.{name}": "true" for name in ("timestamp", "key", "offset", "epoch", "partition", "headers")}
    integers = {"key.deserializer": "org.apache.kafka.common.serialization.IntegerDeserializer"}
    other = {"key.separator": "|", "line.separator": ";\n", "null.literal": "NIL"}
    assert default_formatter({**everything, **integers, **other})(record, "CreateTime") == (
        b"CreateTime:5|Partition:3|Offset:7|Epoch:NOT_PRESENT|h:1|42|NIL;\n"
    )
    assert default_formatter({"print.value": "false"})(record, "CreateTime") == b""
