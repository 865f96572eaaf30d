"""The performance tools against a node: lines, counts and errors. tests/interop compares them with Kafka's own."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from barnabas.cli.kafka.java_dates import date_format
from barnabas.cli.kafka.perf_statistics import ConsumerStatistics, ProducerStatistics
from barnabas.testing import Broker
from tests.command_line import Done, Process, Script, invoke

PRODUCER, CONSUMER, LATENCY = "kafka-producer-perf-test", "kafka-consumer-perf-test", "kafka-e2e-latency"
run = Script()

NUMBER = r"[\d.]+"
TOTAL = (
    rf"(\d+) records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), {NUMBER} ms avg latency, {NUMBER} ms max latency, "
    r"\d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)
INTERVAL = (
    rf"\d+ records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), {NUMBER} ms avg latency, {NUMBER} ms max latency\."
)
HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    topics = ("sized", "counted", "chosen", "slow", "warm", "paid", "read")
    with Broker(dict.fromkeys(topics, 2)) as started:
        lines = "".join(f"record {number:03d}\n" for number in range(300))
        invoke("records", "produce", "read", "-b", started.bootstrap_servers, stdin=lines, code=0)
        yield started


def produce(broker: Broker, topic: str, *more: str, records: int = 200, code: int = 0) -> Done:
    line = (PRODUCER, "--topic", topic, "--num-records", str(records), "--throughput", "-1", *more)
    return run(broker, *line, code=code)


def test_a_producer_writes_records_of_a_size_and_prints_one_line(broker: Broker) -> None:
    done = produce(broker, "sized", "--record-size", "50")
    assert re.fullmatch(TOTAL + "\n", done.stdout), done.stdout
    values = [record.value for record in broker.records("sized", 200)]
    assert {len(value or b"") for value in values} == {50}
    assert all(re.fullmatch(b"[A-Z]{50}", value or b"") for value in values)


def test_payloads_count_upwards(broker: Broker) -> None:
    produce(broker, "counted", "--payload-monotonic")
    values = [record.value for record in broker.records("counted", 200)]
    assert sorted(int(value or b"-1") for value in values) == list(range(200))


def test_payloads_come_from_a_file(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_text("one;two;three")
    done = produce(broker, "chosen", "--payload-file", str(file), "--payload-delimiter", ";")
    assert done.stdout.splitlines()[:2] == [f"Reading payloads from: {file}", "Number of records read: 3"]
    assert {record.value for record in broker.records("chosen", 200)} == {b"one", b"two", b"three"}
    file.write_text("")
    empty = produce(broker, "chosen", "--payload-file", str(file), code=1)
    assert empty.stderr == (
        'Exception in thread "main" java.lang.IllegalArgumentException: File does not exist or empty file provided.\n'
    )


def test_a_slow_producer_reports_each_interval(broker: Broker) -> None:
    line = (PRODUCER, "--topic", "slow", "--num-records", "100", "--throughput", "400", "--record-size", "10")
    lines = run(broker, *line, "--reporting-interval", "50", code=0).stdout.splitlines()
    assert len(lines) > 2
    assert all(re.fullmatch(INTERVAL, each) for each in lines[:-1]), lines
    assert re.fullmatch(TOTAL, lines[-1])


def test_records_to_warm_up_are_left_out_of_the_second_summary(broker: Broker) -> None:
    lines = produce(broker, "warm", "--record-size", "10", "--warmup-records", "50").stdout.splitlines()
    assert lines[0] == "Warmup first 50 records. Steady state results will print after the complete test summary."
    assert lines[1].startswith("200 records sent, ")
    assert lines[2].startswith("150 steady state records sent, ")


def test_transactions_are_committed(broker: Broker) -> None:
    produce(broker, "paid", "--record-size", "10", "--transaction-duration-ms", "1")
    listed = run(broker, "kafka-transactions", "list", code=0).stdout
    assert re.search(r"performance-producer-\S+\s+\d+\s+\d+\s+CompleteCommit", listed), listed
    produce(broker, "paid", "--record-size", "10", "--transactional-id", "mine", records=10)
    assert "mine" in run(broker, "kafka-transactions", "list", code=0).stdout


def test_settings_come_from_a_file_and_from_words(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "producer.properties"
    file.write_text(f"bootstrap.servers={broker.bootstrap_servers}\n")
    line = (PRODUCER, "--topic", "sized", "--num-records", "5", "--throughput", "-1", "--record-size", "1")
    invoke(*line, "--command-config", file, "--command-property", "acks=1", "linger.ms=0", code=0)
    old = invoke(*line, "--producer-props", f"bootstrap.servers={broker.bootstrap_servers}", code=0)
    assert old.stdout.startswith("Option --producer-props has been deprecated")
    wrong = invoke(*line, "--command-config", file, "--command-property", "acks=7", code=1)
    assert "ConfigException: Invalid value 7 for configuration acks" in wrong.stderr
    odd = invoke(*line, "--command-config", file, "--command-property", "nonsense", code=1)
    assert odd.stderr.endswith("java.lang.IllegalArgumentException: Invalid property: nonsense\n")
    missing = invoke(*line, "--command-config", "/nowhere/x", code=1)
    assert missing.stderr == 'Exception in thread "main" java.nio.file.NoSuchFileException: /nowhere/x\n'


def test_records_that_are_refused_are_not_counted(broker: Broker) -> None:
    done = produce(broker, "sized", "--record-size", "2000000", records=2)
    assert done.stdout.startswith("0 records sent, 0.000000 records/sec (0.00 MB/sec), NaN ms avg latency")
    assert done.stderr.count("RecordTooLargeException") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--num-records 0 --record-size 1", "--num-records should be greater than zero."),
        ("--num-records 1 --record-size 0", "--record-size should be greater than zero."),
        ("--num-records 1", "one of the arguments --record-size --payload-file --payload-monotonic is required"),
        (
            "--num-records 1 --payload-monotonic --record-size 1",
            "argument --record-size: not allowed with argument --payload-monotonic",
        ),
        (
            "--num-records 1 --record-size 1 --payload-monotonic",
            "argument --payload-monotonic: not allowed with argument --record-size",
        ),
        (
            "--num-records 5 --record-size 1 --warmup-records 5",
            "The value for --warmup-records must be strictly fewer than the number of records in the test, --num-records.",
        ),
        (
            "--num-records x --record-size 1",
            "argument --num-records: could not convert 'x' to Long (For input string: \"x\")",
        ),
        (
            "--num-records 1 --record-size 1 --command-property a=1 --producer-props b=1",
            "--command-property and --producer-props cannot be specified together.",
        ),
        ("--num-records 1 --record-size 1 --reporting-interval 0", "--reporting-interval should be greater than zero."),
        (
            "--num-records 1 --record-size 1 --transaction-duration-ms 0",
            "--transaction-duration-ms should be greater than zero.",
        ),
        ("--num-records 1 --record-size 1 --nonsense", "unrecognized arguments: '--nonsense'"),
    ],
)
def test_wrong_usage_of_the_producer(arguments: str, message: str) -> None:
    line = ("--bootstrap-server", "a:1", "--topic", "t", "--throughput", "-1", *arguments.split())
    done = invoke(PRODUCER, *line, code=1)
    assert (done.stdout, done.stderr.splitlines()[-1]) == ("", f"{PRODUCER}: error: {message}")


def test_a_producer_needs_a_server_and_shows_its_help_without_arguments() -> None:
    line = ("--topic", "t", "--throughput", "-1", "--num-records", "1", "--record-size", "1")
    assert "At least one of --bootstrap-server" in invoke(PRODUCER, *line, code=1).stderr
    assert "--num-records" in invoke(PRODUCER, code=0).stdout


def test_an_interrupted_producer_ends(broker: Broker) -> None:
    line = (PRODUCER, "--bootstrap-server", broker.bootstrap_servers, "--topic", "slow", "--num-records", "100000")
    with Process(*line, "--throughput", "200", "--record-size", "10", "--reporting-interval", "20") as process:
        process.until("records sent")
        done = process.stop(signal.SIGINT)
    assert done.exit_code != 0
    assert "Traceback" not in done.stderr


# --- consumer


def consume(broker: Broker, *more: str, code: int = 0) -> Done:
    return run(broker, CONSUMER, "--topic", "read", *more, code=code)


def test_a_consumer_reads_and_prints_one_line(broker: Broker) -> None:
    header, line = consume(broker, "--num-records", "300").stdout.splitlines()
    assert header == HEADER
    cells = line.split(", ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", cells[0])
    assert (cells[2], cells[4], len(cells)) == ("0.0029", "300", 10)


def test_each_interval_is_a_line(broker: Broker) -> None:
    done = consume(broker, "--messages", "300", "--show-detailed-stats", "--reporting-interval", "1")
    warning, header, *lines = done.stdout.splitlines()
    assert warning == "Warning: --messages is deprecated. Use --num-records instead."
    assert header.startswith("time, threadId, data.consumed.in.MB")
    assert lines and all(line.split(", ")[1] == "0" and len(line.split(", ")) == 10 for line in lines)


def test_a_consumer_gives_up_after_the_timeout(broker: Broker) -> None:
    lines = consume(broker, "--num-records", "1000", "--timeout", "300", "--hide-header").stdout.splitlines()
    assert lines[0] == (
        "WARNING: Exiting before consuming the expected number of records: timeout (300 ms) exceeded. "
        "You can use the --timeout option to increase the timeout."
    )
    assert lines[1].split(", ")[4] == "300"


def test_topics_are_chosen_by_a_pattern_and_dates_have_a_form(broker: Broker) -> None:
    done = run(broker, CONSUMER, "--include", "rea.", "--num-records", "10", "--date-format", "yyyy", code=0)
    assert done.stdout.splitlines()[1].startswith(f"{datetime.now().year}, ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "Exactly one of the following arguments is required: [messages], [num-records]"),
        (
            "--num-records 1 --messages 1",
            "Exactly one of the following arguments is required: [messages], [num-records]",
        ),
        ("--num-records 1 --include x", "Exactly one of the following arguments is required: [topic], [include]"),
        ("--num-records x", "Cannot parse argument 'x' of option num-records"),
        ("--num-records 1 --fetch-size x", "Cannot parse argument 'x' of option fetch-size"),
        ("--num-records 1 --reporting-interval 0", "Reporting interval must be greater than 0."),
        ("--num-records 1 --date-format bogus", "Illegal pattern character 'b'"),
        ("--num-records 1 --command-config /nowhere/x", "/nowhere/x"),
        (
            "--num-records 1 --consumer.config x --command-config y",
            'Option "[consumer.config]" can\'t be used with option "[command-config]"',
        ),
    ],
)
def test_wrong_usage_of_the_consumer(broker: Broker, arguments: str, message: str) -> None:
    assert consume(broker, *arguments.split(), code=1).stderr.splitlines()[0] == message


# --- latency


def test_the_latency_is_measured_and_the_topic_created(broker: Broker) -> None:
    line = (LATENCY, "--topic", "fresh", "--num-records", "3", "--producer-acks", "1", "--record-size", "10")
    created, first, average, percentiles = run(broker, *line, code=0).stdout.splitlines()
    assert created == 'Topic "fresh" does not exist. Will create topic with 1 partition(s) and replication factor = 1'
    assert re.fullmatch(r"0\t\d+\.\d+", first)
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", percentiles)


def test_keys_and_headers_have_the_sizes_asked_for(broker: Broker) -> None:
    sizes = (
        "--record-key-size",
        "4",
        "--num-headers",
        "2",
        "--record-header-key-size",
        "5",
        "--record-header-size",
        "3",
    )
    line = (LATENCY, "--topic", "headed", "--num-records", "1", "--producer-acks", "all", "--record-size", "10")
    run(broker, *line, *sizes, code=0)
    (record,) = broker.records("headed", 1)
    assert (len(record.key or b""), len(record.value or b"")) == (4, 10)
    assert [(len(name), len(value or b"")) for name, value in record.headers] == [(5, 3), (5, 3)]


def test_the_old_form_without_names_still_works(broker: Broker) -> None:
    done = invoke(LATENCY, broker.bootstrap_servers, "old", "2", "all", "10", code=0)
    assert done.stdout.startswith("WARNING: Positional argument usage is deprecated")
    refused = invoke(LATENCY, "a:1", "old", "2", "all", code=1)
    assert refused.stderr.startswith("Invalid number of arguments. Expected 5 or 6 positional arguments, but got 4.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--topic t", 'Missing required argument "[num-records]"'),
        (
            "--topic t --num-records 0 --producer-acks 1 --record-size 1",
            "Value for --num-records must be a positive integer.",
        ),
        (
            "--topic t --num-records 1 --producer-acks 1 --record-size 1 --num-headers -1",
            "Value for --num-headers must be a non-negative integer.",
        ),
        (
            "--topic t --num-records 1 --producer-acks 0 --record-size 1",
            "Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. "
            "Please use '1' or 'all'.",
        ),
        (
            "--topic t --num-records x --producer-acks 1 --record-size 1",
            "Cannot parse argument 'x' of option num-records",
        ),
    ],
)
def test_wrong_usage_of_the_latency_tool(broker: Broker, arguments: str, message: str) -> None:
    assert run(broker, LATENCY, *arguments.split(), code=1).stderr.splitlines()[0] == message


# --- statistics and dates, as values


def test_an_interval_ends_when_its_time_is_over() -> None:
    statistics = ProducerStatistics(10, 0, 100)
    assert statistics.record(5, 1024, 50) == []
    assert statistics.record(15, 1024, 100) == [
        "2 records sent, 20.0 records/sec (0.02 MB/sec), 10.0 ms avg latency, 15.0 ms max latency."
    ]
    assert statistics.record(1, 1024, 150) == []
    assert statistics.total_line(200) == (
        "3 records sent, 15.000000 records/sec (0.01 MB/sec), 7.00 ms avg latency, 15.00 ms max latency, "
        "5 ms 50th, 15 ms 95th, 15 ms 99th, 15 ms 99.9th."
    )


def test_a_steady_state_is_announced_once_and_no_time_is_no_rate() -> None:
    statistics = ProducerStatistics(10, 0, 10, is_steady_state=True)
    assert statistics.record(1, 1, 20)[0] == "In steady state."
    assert len(statistics.record(1, 1, 40)) == 1
    assert "0 records sent, NaN records/sec (NaN MB/sec), NaN ms avg" in ProducerStatistics(1, 5, 9).total_line(5)


def test_latencies_of_long_runs_are_sampled() -> None:
    statistics = ProducerStatistics(2_000_000, 0, 1_000_000)
    for latency_ms in range(4000):
        statistics.record(latency_ms, 1, 0)
    assert len(statistics._latencies) == 1000


def test_time_to_join_is_not_time_to_fetch() -> None:
    statistics = ConsumerStatistics(1000)
    statistics.assigned(1400)
    statistics.messages, statistics.bytes = 10, 1024 * 1024
    assert statistics.interval_cells(2000) == ["1.0000", "1.0000", "10", "10.0000", "400", "600", "1.6667", "16.6667"]
    statistics.messages, statistics.bytes = 20, 2 * 1024 * 1024
    assert statistics.interval_cells(2500) == ["2.0000", "2.0000", "20", "20.0000", "0", "500", "2.0000", "20.0000"]
    assert statistics.total_cells(3000) == ["2.0000", "1.0000", "20", "10.0000", "400", "1600", "1.2500", "12.5000"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd HH:mm:ss:SSS", "2026-03-04 17:06:07:089"),
        ("yy/M/d", "26/3/4"),
        ("d MMM yyyy, h:mm a", "4 Mar 2026, 5:06 PM"),
        ("EEE EEEE MMMM D", "Wed Wednesday March 63"),
        ("'on' dd''s", "on 04'7"),
    ],
)
def test_dates_have_the_forms_of_java(pattern: str, expected: str) -> None:
    assert date_format(pattern)(datetime(2026, 3, 4, 17, 6, 7, 89_000)) == expected


def test_a_quote_has_an_end() -> None:
    with pytest.raises(ValueError, match="Unterminated quote"):
        date_format("yyyy 'at")
