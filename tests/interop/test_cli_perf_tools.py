"""kafka-cluster, kafka-groups, kafka-client-metrics and the performance tools beside Kafka's own, on one node of Apache Kafka.

Numbers that are measured differ in each run: they are compared in their form.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.apache_kafka import VERSION, ApacheKafka, run_tool

from tests.command_line import invoke
from tests.interop.conftest import jars
from tests.interop.side_by_side import IN_A_HURRY
from tests.interop.tool_process import ToolProcess

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def node() -> Iterator[ApacheKafka]:
    jars(VERSION)
    with ApacheKafka(IN_A_HURRY) as started:
        started.tool("kafka-topics", "--create", "--topic", "perf", "--partitions", "2")
        yield started


@pytest.fixture(scope="module")
def tools() -> Iterator[ToolProcess]:
    with ToolProcess() as process:
        yield process


def filled(line: str, node: ApacheKafka) -> list[str]:
    servers = {
        "{s}": f"--bootstrap-server {node.bootstrap}",
        "{c}": f"--bootstrap-controller {node.controller}",
        "{server}": node.bootstrap,
    }
    for name, value in servers.items():
        line = line.replace(name, value)
    return shlex.split(line)


def first_error(text: str) -> str:
    """The first line. Of argparse4j, the error behind the usage, which it justifies, and wraps behind any hyphen."""
    if not text.startswith("usage: "):
        return text.partition("\n")[0]
    return re.sub(r"-\s+", "-", re.sub(r"\s+", " ", text).partition(": error: ")[2]).strip()


def form(text: str) -> str:
    """Without measured numbers; the number of records is kept."""
    text = re.sub(r"(\d+)(?=( steady state)? records sent)", lambda found: "N" * len(found[1]), text)
    text = re.sub(r"\d+\.\d+|\b\d+(?= ms\b)|(?<== )\d+", "X", text)
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", "TIME", text)


def same(node: ApacheKafka, theirs: tuple[int, str, str], line: str) -> None:
    code, out, err = theirs
    ours = invoke(*filled(line, node))
    assert (line, ours.exit_code, ours.stdout, first_error(ours.stderr)) == (line, code, out, first_error(err))


# argparse4j ends the JVM after these.
WRONG_USAGE = [
    "kafka-cluster unregister {s}",
    "kafka-cluster unregister {s} --id x",
    "kafka-cluster cluster-id",
    "kafka-cluster cluster-id {s} {c}",
    "kafka-cluster",
    "kafka-cluster nonsense",
    "kafka-cluster cluster-id --nonsense",
]
PERF = "kafka-producer-perf-test {s} --topic perf --throughput -1"
CASES = [
    "kafka-cluster cluster-id {s}",
    "kafka-cluster cluster-id {c}",
    "kafka-cluster list-endpoints {s}",
    "kafka-cluster list-endpoints {c}",
    "kafka-cluster list-endpoints {s} --include-fenced-brokers",
    "kafka-cluster list-endpoints {c} --include-fenced-brokers",
    "kafka-cluster unregister {s} --id 77",
    "kafka-cluster unregister {c} --id 77",
    "kafka-cluster cluster-id {s} --config /nowhere/x",
    "kafka-cluster cluster-id {s} --command-config /nowhere/x",
    "kafka-cluster cluster-id {s} --config /nowhere/x --command-config /nowhere/y",
    "kafka-groups {s} --list",
    "kafka-groups {s} --list --consumer",
    "kafka-groups {s} --list --share",
    "kafka-groups {s} --list --streams",
    "kafka-groups {s} --list --group-type Classic --protocol consumer",
    "kafka-groups {s} --list --group-type consumer",
    "kafka-groups {s} --list --protocol consumer",
    "kafka-groups {s}",
    "kafka-groups --list",
    "kafka-groups {s} --list --group-type nonsense",
    "kafka-groups {s} --list --consumer --share",
    "kafka-groups {s} --list --consumer --protocol x",
    "kafka-groups {s} --list --streams --group-type share",
    "kafka-groups {s} --list --nonsense",
    "kafka-groups --bootstrap-server",
    "kafka-groups {s} --list --command-config /nowhere/x",
    "kafka-client-metrics {s} --alter --name watched --interval 1000 --metrics org.apache --match client_id=a",
    "kafka-client-metrics {s} --list",
    "kafka-client-metrics {s} --describe",
    "kafka-client-metrics {s} --describe --name missing",
    'kafka-client-metrics {s} --alter --name watched --interval ""',
    "kafka-client-metrics {s} --describe --name watched",
    "kafka-client-metrics {s} --alter --name x --match nonsense",
    "kafka-client-metrics {s} --delete --name watched",
    "kafka-client-metrics {s} --delete",
    "kafka-client-metrics {s} --alter --interval 5000",
    "kafka-client-metrics {s} --alter --name x --interval abc",
    "kafka-client-metrics {s}",
    "kafka-client-metrics --list",
    "kafka-client-metrics {s} --list --name x",
    "kafka-client-metrics {s} --describe --interval 3",
    "kafka-client-metrics {s} --delete --name x --interval 3",
    f"{PERF} --num-records 10 --record-size 10 --command-config /nowhere/x",
    f"{PERF} --num-records 10 --record-size 10 --producer-props nonsense",
    f"{PERF} --num-records 10 --record-size 10 --producer-props acks=7",
    f"{PERF} --num-records 10 --payload-file /nowhere/x",
    f"{PERF} --num-records 0 --record-size 10",
    f"{PERF} --num-records 10 --record-size 0",
    f"{PERF} --num-records 10 --record-size 10 --warmup-records 10",
    f"{PERF} --num-records 10 --record-size 10 --payload-monotonic",
    f"{PERF} --num-records 10 --payload-monotonic --record-size 10",
    f"{PERF} --num-records 10",
    f"{PERF} --num-records x --record-size 10",
    f"{PERF} --record-size 10",
    f"{PERF} --num-records 10 --record-size 10 --producer-props acks=1 --command-property acks=1",
    f"{PERF} --num-records 10 --record-size 10 --producer.config x --command-config y",
    f"{PERF} --num-records 10 --record-size 10 --transaction-duration-ms 0",
    f"{PERF} --num-records 10 --record-size 10 --reporting-interval 0",
    f"{PERF} --num-records 10 --record-size 10 --nonsense",
    "kafka-producer-perf-test --topic perf --num-records 10 --throughput -1 --record-size 10",
    "kafka-producer-perf-test {s} --topic perf --num-records 10 --throughput x --record-size 10",
    "kafka-consumer-perf-test {s} --topic perf",
    "kafka-consumer-perf-test {s} --num-records 1",
    "kafka-consumer-perf-test {s} --num-records 1 --topic a --include b",
    "kafka-consumer-perf-test {s} --num-records 1 --messages 1 --topic a",
    "kafka-consumer-perf-test --num-records 1 --topic a",
    "kafka-consumer-perf-test {s} --num-records x --topic a",
    "kafka-consumer-perf-test {s} --num-records 1 --topic perf --reporting-interval 0",
    "kafka-consumer-perf-test {s} --num-records 1 --topic perf --reporting-interval x",
    "kafka-consumer-perf-test {s} --num-records 1 --topic perf --command-config /nowhere/x",
    "kafka-consumer-perf-test {s} --num-records 1 --topic perf --consumer.config x --command-config x",
    "kafka-consumer-perf-test {s} --num-records 1 --topic perf --date-format bogus",
    "kafka-consumer-perf-test {s} --num-records 1 --topic perf --fetch-size x",
    "kafka-consumer-perf-test {s} --num-records 1 --topic perf --nonsense",
    "kafka-e2e-latency {server} lat 3 0 10",
    "kafka-e2e-latency {server} lat x 1 10",
    "kafka-e2e-latency {server} lat 3 1 x",
    "kafka-e2e-latency {server} lat 3 1",
    "kafka-e2e-latency {server} lat 0 1 10",
    "kafka-e2e-latency {server} lat 3 1 10 /nowhere/x",
    "kafka-e2e-latency {s} --topic lat",
    "kafka-e2e-latency {s} --topic lat --num-records x --producer-acks 1 --record-size 10",
    "kafka-e2e-latency {s} --topic lat --num-records 3 --producer-acks 0 --record-size 10",
    "kafka-e2e-latency {s} --topic lat --num-records 3 --producer-acks 1 --record-size 10 --num-headers -1",
    "kafka-e2e-latency {s} --topic lat --num-records 3 --producer-acks 1 --record-size 10 --nonsense",
    "kafka-e2e-latency --bootstrap-server",
]
MEASURED = [
    f"{PERF} --num-records 1000 --record-size 100",
    f"{PERF} --num-records 1000 --payload-file {{payloads}}",
    f"{PERF} --num-records 1000 --payload-monotonic --warmup-records 100",
    f"{PERF} --num-records 100 --record-size 10 --transaction-duration-ms 100",
    "kafka-producer-perf-test --topic perf --num-records 10 --throughput -1 --record-size 10"
    " --producer-props bootstrap.servers={server} acks=1",
    "kafka-consumer-perf-test {s} --topic perf --num-records 100 --hide-header",
    "kafka-consumer-perf-test {s} --topic perf --num-records 100000 --timeout 1000",
    "kafka-consumer-perf-test {s} --topic perf --num-records 10 --timeout",
    "kafka-consumer-perf-test {s} --include per.* --messages 10",
    "kafka-consumer-perf-test {s} --num-records 0 --topic perf --date-format yyyy",
    "kafka-consumer-perf-test {s} --num-records 1 --topic perf --from-latest --timeout 500",
    "kafka-e2e-latency {s} --topic perf --num-records 3 --producer-acks 1 --record-size 10",
    "kafka-e2e-latency {server} perf 3 all 10",
    "kafka-e2e-latency {s} --topic perf --num-records 2 --producer-acks all --record-size 10 --num-headers 2"
    " --record-key-size 4 --record-header-size 3 --record-header-key-size 5",
]


@pytest.mark.parametrize("line", CASES)
def test_a_tool_prints_what_kafkas_tool_prints(node: ApacheKafka, tools: ToolProcess, line: str) -> None:
    same(node, tools.run(*filled(line, node)), line)


@pytest.mark.parametrize("line", WRONG_USAGE)
def test_wrong_usage_is_refused_as_by_kafkas_tool(node: ApacheKafka, line: str) -> None:
    done = run_tool(*filled(line, node))
    same(node, (done.returncode, done.stdout, done.stderr), line)


@pytest.mark.parametrize("line", MEASURED)
def test_a_measurement_has_the_form_of_kafkas(node: ApacheKafka, tools: ToolProcess, line: str, tmp_path: Path) -> None:
    (tmp_path / "payloads").write_text("one\ntwo\nthree\n")
    line = line.replace("{payloads}", str(tmp_path / "payloads"))
    theirs, ours = tools.run(*filled(line, node)), invoke(*filled(line, node))
    cells = re.compile(r"(?<=, )\d+(?=, |$)", re.MULTILINE)  # times, and how many records one poll returned
    shown = [cells.sub("X", form(text)) for text in (theirs.out, ours.stdout)]
    assert (line, ours.exit_code, shown[1]) == (line, theirs.code, shown[0])


def test_intervals_are_reported_while_kafka_does(node: ApacheKafka, tools: ToolProcess) -> None:
    line = "kafka-producer-perf-test {s} --topic perf --num-records 600 --throughput 300 --record-size 10"
    line += " --reporting-interval 400 --warmup-records 200"
    theirs, ours = tools.run(*filled(line, node)), invoke(*filled(line, node))

    def lines(text: str) -> set[str]:
        """Each form of line once: how many intervals there are depends on the time."""
        return {re.sub("^N+", "N", each) for each in form(text).splitlines()}

    assert (ours.exit_code, lines(ours.stdout)) == (theirs.code, lines(theirs.out))
    assert "In steady state." in ours.stdout
