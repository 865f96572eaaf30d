"""Kafka's tools for records, groups and transactions: about barnabas they print what they print about Apache Kafka."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Producer
from tools.apache_kafka import Barnabas, run_tool

from tests.interop.conftest import jars
from tests.interop.side_by_side import SideBySide, ok, run, sorted_lines

pytestmark = pytest.mark.interop

LINES = "h1:a,h2:b\tkey one\tvalue one\nh1:NULL\tNULL\tvalue two\nNULL\tkey three\tNULL\n"
FULL = " ".join(
    f"--formatter-property print.{part}=true"
    for part in ("partition", "offset", "timestamp", "headers", "key", "value")
)


def words(text: str) -> str:
    """Without the times, and however wide the columns are."""
    text = re.sub(r'"timestamp":\d+|CreateTime:\d+|\b1[678]\d{11}\b', "TIME", text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


def sorted_words(text: str) -> str:
    return sorted_lines(words(text))


def produced(both: SideBySide, topic: str, count: int, partitions: int = 1) -> None:
    """The same records in both, without a JVM."""
    both.same(f"kafka-topics {{server}} --create --topic {topic} --partitions {partitions}")
    for node in (both.kafka, both.barnabas):
        producer = Producer({"bootstrap.servers": node.bootstrap})
        for number in range(count):
            producer.produce(topic, f"value {number}", f"key {number}", number % partitions, timestamp=1000 + number)
        assert producer.flush(30) == 0


def transactional(node_address: str, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": node_address, "transactional.id": name})
    producer.init_transactions()
    producer.begin_transaction()
    return producer


# ---- records


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_console_producer_and_consumer_carry_keys_headers_and_nulls(both: SideBySide, protocol: str) -> None:
    topic = f"console-{protocol}"
    both.same(f"kafka-topics {{server}} --create --topic {topic}")
    parse = " ".join(
        f"--reader-property {each}" for each in ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    )
    both.same(f"kafka-console-producer {{server}} --topic {topic} {parse}", stdin=LINES)
    read = both.same(
        f"kafka-console-consumer {{server}} --topic {topic} --from-beginning --max-messages 3 --timeout-ms 30000 {FULL}"
        f" --group of-{topic} --command-property group.protocol={protocol}",
        order=words,
    )
    assert "h1:a,h2:b\tkey one\tvalue one" in read
    assert "h1:null\tnull\tvalue two" in read
    described = both.same(f"kafka-consumer-groups {{server}} --describe --group of-{topic}", order=words)
    assert f"of-{topic} {topic} 0 3 3 0 - - -" in words(described)


def test_the_console_consumer_keeps_to_its_isolation_level(both: SideBySide) -> None:
    both.same("kafka-topics {server} --create --topic isolated")
    still_open = []
    for node in (both.kafka, both.barnabas):
        for word in ("aborted", "committed", "open"):
            producer = transactional(node.bootstrap, f"isolated-{word}")
            producer.produce("isolated", f"{word} one")
            producer.produce("isolated", f"{word} two")
            producer.flush()
            if word == "committed":
                producer.commit_transaction()
            elif word == "aborted":
                producer.abort_transaction()
            else:
                still_open.append(producer)
    read = "kafka-console-consumer {server} --topic isolated --formatter-property print.offset=true --isolation-level"
    until = "--from-beginning --timeout-ms 60000 --max-messages"
    theirs, ours = both.each(f"{read} read_committed {until} 2")
    assert ours.out == theirs.out == "Offset:3\tcommitted one\nOffset:4\tcommitted two\n"
    theirs, ours = both.each(f"{read} read_committed --partition 0 --offset 5 --timeout-ms 4000")
    assert ours.out == theirs.out == ""
    theirs, ours = both.each(f"{read} read_uncommitted {until} 6")
    assert ours.out == theirs.out
    assert ours.out.count("\n") == 6
    for producer in still_open:
        producer.abort_transaction()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_verifiable_tools_lose_nothing(both: SideBySide, protocol: str) -> None:
    topic = f"verified-{protocol}"
    both.same(f"kafka-topics {{server}} --create --topic {topic}")
    sent = ok(both.each(f"kafka-verifiable-producer {{server}} --topic {topic} --max-messages 500 --acks -1")[1])
    assert '"sent":500,"acked":500' in sent
    consume = (
        f"kafka-verifiable-consumer {{server}} --topic {topic} --group-id of-{topic} --max-messages 500"
        f" --reset-policy earliest --group-protocol {protocol}"
    )
    theirs, ours = both.each(consume)
    count = re.compile(r'"name":"records_consumed","count":(\d+)')
    for each in (theirs, ours):
        assert sum(map(int, count.findall(ok(each)))) == 500
        assert f'"offsets":[{{"topic":"{topic}","partition":0,"offset":500}}],"success":true' in each.out


def test_the_performance_tools_run_to_the_end(both: SideBySide) -> None:
    node = both.barnabas
    ok(run(node, "kafka-topics {server} --create --topic performed --partitions 2"))
    perf = "kafka-producer-perf-test {server} --topic performed --num-records 20000 --record-size 500 --throughput -1"
    for codec in ("none", "lz4"):
        sent = ok(run(node, f"{perf} --command-property compression.type={codec}"))
        assert re.search(r"^20000 records sent", sent, re.MULTILINE)
    sent = ok(run(node, f"{perf} --transactional-id performed --transaction-duration-ms 50"))
    assert re.search(r"^20000 records sent", sent, re.MULTILINE)
    read = ok(run(node, "kafka-consumer-perf-test {server} --topic performed --num-records 60000"))
    assert int(read.splitlines()[1].split(", ")[4]) >= 60000
    ok(run(node, "kafka-topics {server} --create --topic late"))
    late = "kafka-e2e-latency {server} --topic late --num-records 50 --producer-acks all --record-size 100"
    assert "Percentiles" in ok(run(node, late))


# ---- offsets and groups


def test_kafka_get_offsets_and_kafka_delete_records(both: SideBySide, tmp_path: Path) -> None:
    produced(both, "measured", 30, partitions=3)
    for time_spec in ("earliest", "latest", "max-timestamp", "1015", "earliest-local"):
        both.same(f"kafka-get-offsets {{server}} --topic measured --time {time_spec}")
    request = tmp_path / "deleted.json"
    request.write_text('{"version": 1, "partitions": [{"topic": "measured", "partition": 1, "offset": 4}]}')
    deleted = both.same(f"kafka-delete-records {{server}} --offset-json-file {request}")
    assert "partition: measured-1\tlow_watermark: 4" in deleted
    assert "measured:1:4" in both.same("kafka-get-offsets {server} --topic measured --time earliest")
    request.write_text('{"version": 1, "partitions": [{"topic": "measured", "partition": 1, "offset": 400}]}')
    both.same(f"kafka-delete-records {{server}} --offset-json-file {request}", code=0)
    dirs = both.same("kafka-log-dirs {server} --describe --topic-list measured", order=lambda text: "")
    assert '"partition":"measured-2","size":' in dirs


def test_kafka_consumer_groups_shows_resets_and_deletes(both: SideBySide) -> None:
    produced(both, "grouped", 20, partitions=2)
    groups = "kafka-consumer-groups {server}"
    reset = f"{groups} --group reset --topic grouped --reset-offsets"
    both.same(f"{reset} --to-earliest --execute", order=words)
    both.same(f"{reset} --shift-by 7 --execute", order=words)
    both.same(f"{reset} --to-datetime 1970-01-01T00:00:01.005Z --dry-run", order=words)
    assert "reset grouped 1 7" in words(both.same(f"{groups} --describe --group reset", order=sorted_words))
    both.same(f"{groups} --describe --group reset --state", order=words)
    both.same(f"{groups} --describe --group reset --members --verbose", order=words)
    both.same(f"{groups} --describe --group no-such-group", order=words)
    both.same(f"{groups} --delete-offsets --group reset --topic grouped:0", order=words)
    described = words(both.same(f"{groups} --describe --group reset", order=words))
    assert "grouped 0 " not in described
    both.same(f"{groups} --delete --group reset")
    both.same(f"{groups} --delete --group reset", order=words)
    assert "reset" not in both.same("kafka-groups {server} --list", order=lambda text: "").split()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_kafka_consumer_groups_shows_a_member_at_work(both: SideBySide, protocol: str) -> None:
    group = f"working-{protocol}"
    produced(both, group, 10, partitions=2)
    consume = (
        f"kafka-console-consumer {{server}} --topic {group} --group {group} --from-beginning --timeout-ms 90000"
        f" --max-messages 11 --command-property group.protocol={protocol} --command-property client.id=worker"
    )

    def shown(options: str) -> str:
        """With a member id cut out, which is random."""
        return re.sub(r"(worker-|consumer-)?[\w-]{22,36}(?=\s)", "MEMBER", words(ok(run(both.barnabas, options))))

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(both.each, consume)
        describe = f"kafka-consumer-groups {{server}} --describe --group {group}"
        deadline = time.monotonic() + 60
        while f"{group} 1 5 5 0 MEMBER" not in shown(describe):
            assert time.monotonic() < deadline, shown(describe)
        assert " Stable " in shown(f"{describe} --state")
        assert "worker 2" in shown(f"{describe} --members")
        refused = run(both.barnabas, f"kafka-consumer-groups {{server}} --delete --group {group}")
        assert "GroupNotEmptyException" in refused.out + refused.err
        for node in (both.kafka, both.barnabas):
            producer = Producer({"bootstrap.servers": node.bootstrap})
            producer.produce(group, "the last value")
            assert producer.flush(30) == 0
        for each in working.result():
            assert each.out.count("value") == 11


# ---- transactions


def test_kafka_transactions_lists_describes_and_aborts(both: SideBySide) -> None:
    produced(both, "transacted", 1)
    open_ones = [transactional(node.bootstrap, "listed") for node in (both.kafka, both.barnabas)]
    for producer in open_ones:
        producer.produce("transacted", "in the open")
        producer.flush()

    def listed(text: str) -> str:
        return "\n".join(line for line in words(text).splitlines() if line.startswith(("TransactionalId", "listed ")))

    tool = "kafka-transactions {server}"
    ids = re.compile(r"(?<=listed 1 )\d+|(?<=1 listed )\d+")
    both.same(f"{tool} list", order=lambda text: ids.sub("ID", listed(text)))
    described = ok(both.each(f"{tool} describe --transactional-id listed")[1])
    assert re.search(r"1 listed \d+ 0 Ongoing 60000 TIME \d+ transacted-0", words(described))
    both.same(f"{tool} describe --transactional-id never-seen", code=1, order=words)
    producers = words(ok(both.each(f"{tool} describe-producers --topic transacted --partition 0")[1]))
    assert re.search(r"^\d+ 0 -1 0 TIME 2$|^\d+ 0 \S+ 0 TIME 1$", producers, re.MULTILINE), producers
    hanging = f"{tool} find-hanging --broker-id 1 --max-transaction-timeout 0"
    theirs, ours = both.each(hanging)
    assert words(ok(ours)).splitlines()[0] == words(ok(theirs)).splitlines()[0]
    for result in both.each(f"{tool} abort --topic transacted --partition 0 --start-offset 1"):
        assert result.code == 0, result
    both.same("kafka-get-offsets {server} --topic transacted --time latest")
    both.same(f"{tool} forceTerminateTransaction --transactionalId listed", order=words)


# ---- what lies on the disk


CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with segments, indexes, aborted transactions and snapshots of producers; its log dir."""
    jars("4.3.1")
    directory = tmp_path_factory.mktemp("written")
    random = Random(5)
    settings = {"num.partitions": "1", "log.index.interval.bytes": "200", "log.segment.bytes": "1048576"}
    with Barnabas(settings, directory=directory) as node:
        for codec in CODECS:
            producer = Producer({"bootstrap.servers": node.bootstrap, "compression.type": codec, "linger.ms": 5})
            for number in range(2000):
                producer.produce(
                    "dumped",
                    f"{codec} {number} {random.randbytes(200).hex()}",
                    f"key {number}",
                    headers={"codec": codec},
                )
                producer.poll(0)
            assert producer.flush(30) == 0
            transaction = transactional(node.bootstrap, f"dumped-{codec}")
            transaction.produce("dumped", f"aborted {codec}")
            transaction.flush()
            transaction.abort_transaction()
        for protocol in ("classic", "consumer"):
            ok(
                run(
                    node,
                    f"kafka-console-consumer {{server}} --topic dumped --group dumped-{protocol} --max-messages 10"
                    f" --from-beginning --timeout-ms 30000 --command-property group.protocol={protocol}",
                )
            )
        assert node.stop() == 0
    return directory / "data"


def test_kafka_dump_log_finds_no_fault_in_what_barnabas_wrote(log_dir: Path) -> None:
    partition = log_dir / "dumped-0"
    kinds = {
        kind: sorted(partition.glob(f"*.{kind}")) for kind in ("log", "index", "timeindex", "txnindex", "snapshot")
    }
    assert len(kinds["log"]) > 1
    assert all(kinds.values()), kinds
    files = ",".join(str(file) for each in kinds.values() for file in each)
    done = run_tool("kafka-dump-log", "--deep-iteration", "--print-data-log", "--files", files, timeout_s=120)
    dumped = ok(done)
    # The tool takes a segment to begin after -1.
    assert re.sub(r"Non-consecutive offsets in .*\n +-1 is followed by \d+\n", "", done.stderr) == ""
    assert "isvalid: false" not in dumped.lower()
    assert not re.search(r"(?i)mismatch|non-?consecutive|not found|could not|exception|failed", dumped)
    for codec in CODECS:
        assert f"compresscodec: {codec}" in dumped
        assert f"payload: {codec} 1999 " in dumped
    assert dumped.count("endTxnMarker: ABORT") == len(CODECS)
    assert len(re.findall(r"version: 0 producerId: \d+ firstOffset: \d+ lastOffset: \d+", dumped)) == len(CODECS)
    assert re.search(
        r"producerId: \d+ producerEpoch: \d+ coordinatorEpoch: \d+ currentTxnFirstOffset: OptionalLong.empty", dumped
    )


def test_kafka_dump_log_decodes_our_groups_and_transactions(log_dir: Path) -> None:
    for topic, decoder, wanted in (
        ("__consumer_offsets", "--offsets-decoder", ('"group":"dumped-classic"', '"groupId":"dumped-consumer"')),
        (
            "__transaction_state",
            "--transaction-log-decoder",
            ('"transactionalId":"dumped-zstd"', '"transactionStatus":5'),
        ),
    ):
        files = [str(file) for file in sorted(log_dir.glob(f"{topic}-*/*.log")) if file.stat().st_size]
        dumped = ok(run_tool("kafka-dump-log", decoder, "--files", ",".join(files), timeout_s=120))
        for text in wanted:
            assert text in dumped, (text, dumped[:3000])
        assert "isvalid: false" not in dumped
        assert not re.search(r"(?i)error|exception|unknown", dumped), dumped
