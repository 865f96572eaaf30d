"""Kafka's tools about three nodes of barnabas print what they print about three of Apache Kafka in the same state.

Commands of barnabas with the same names print the same too, about either cluster, where nothing is changed. A node that
is not the active controller of any dies in between, and returns.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
from tools.apache_kafka import HOST

from barnabas.client import Admin
from tests.command_line import invoke
from tests.interop.conftest import jars
from tests.interop.test_three_nodes import IDS, Addresses, of_apache, of_barnabas
from tests.interop.tool_process import Done, ToolProcess

pytestmark = pytest.mark.interop

SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "6000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "8000",  # nobody else is elected while JVMs work
    "group.initial.rebalance.delay.ms": "0",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
}
PATIENCE_S = 90.0
DIFFERENT = (
    (re.compile(r"(TopicId: |ClusterId: +|Cluster ID: |\"directoryId\": \")[\w-]{22}"), r"\1..."),
    (re.compile(r"(Epoch: )\d+"), r"\1..."),
    (re.compile(r"(Isr: )([\d,]+)"), lambda found: found[1] + ",".join(sorted(found[2].split(",")))),
    (re.compile(r"/[\w./-]*(?:node-\d|data)\b(?!/)"), "DIRECTORY"),
    (re.compile(r"\d{13}"), "TIME"),
)


def common(text: str, where: Addresses) -> str:
    for node_id in IDS:
        text = text.replace(f":{where.clients[node_id]}", f":client-{node_id}")
        text = text.replace(f":{where.controllers[node_id]}", f":controller-{node_id}")
        text = re.sub(rf"\b{where.clients[node_id]}\b", f"client-{node_id}", text)
        text = re.sub(rf"\b{where.controllers[node_id]}\b", f"controller-{node_id}", text)
    for pattern, instead in DIFFERENT:
        text = pattern.sub(instead, text)
    return re.sub(r" +", " ", text)


class Both:
    """Two clusters in the same state, because all that changes something is done to both."""

    def __init__(self, barnabas: Addresses, kafka: Addresses, tools: ToolProcess) -> None:
        self.clusters = {"barnabas": barnabas, "kafka": kafka}
        self.tools = tools

    def line(self, where: Addresses, command: str) -> list[str]:
        servers = ",".join(f"{HOST}:{port}" for port in where.clients.values())
        controllers = ",".join(f"{HOST}:{port}" for port in where.controllers.values())
        words = command.split()
        options = {"{server}": ("--bootstrap-server", servers), "{controller}": ("--bootstrap-controller", controllers)}
        return [each for word in words for each in options.get(word, (word,))]

    def run(self, command: str) -> dict[str, Done]:
        found = {}
        for name, where in self.clusters.items():
            done = self.tools.run(*self.line(where, command))
            found[name] = done._replace(out=common(done.out, where), err=common(done.err, where))
        return found

    def same(self, command: str, *, code: int | None = 0, order: Callable[[str], object] = str) -> str:
        """What Kafka's tool prints about both, which is the same. So is its exit code, which is `code` unless that is None."""
        found = self.run(command)
        assert (command, order(found["barnabas"].out)) == (command, order(found["kafka"].out))
        first, second = (each.code for each in found.values())
        assert first == second and code in (None, first), found
        return found["barnabas"].out

    def shown(self, command: str, *, order: Callable[[str], object] = str) -> str:
        """The same, of a command that changes nothing; the command of barnabas prints it too, about both clusters."""
        text = self.same(command, order=order)
        for name, where in self.clusters.items():
            ours = invoke(*self.line(where, command), code=0).stdout
            assert (command, name, order(common(ours, where))) == (command, name, order(text))
        return text

    def until_same(self, command: str, wanted: Callable[[str], bool]) -> str:
        """Wait until both print what is wanted, and then the same."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not all(wanted(each.out) for each in self.run(command).values()):
            assert time.monotonic() < deadline_s, self.run(command)
            time.sleep(0.5)
        return self.shown(command)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Runs in a thread: the nodes of barnabas are in it, while the test waits for tools."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture(scope="module")
def both(loop: asyncio.AbstractEventLoop) -> Iterator[Both]:
    jars("4.3.1")
    own, theirs = of_barnabas(SETTINGS), of_apache(SETTINGS)

    def wait(work: object) -> Addresses:
        return asyncio.run_coroutine_threadsafe(work, loop).result(300)  # type: ignore[arg-type]

    with ToolProcess() as tools:
        barnabas = wait(own.__aenter__())
        try:
            kafka = wait(theirs.__aenter__())
            try:
                yield Both(barnabas, kafka, tools)
            finally:
                wait(theirs.__aexit__(None, None, None))
        finally:
            wait(own.__aexit__(None, None, None))


def sorted_lines(text: str) -> list[str]:
    return sorted(text.splitlines())


def test_topics_and_their_settings(both: Both) -> None:
    both.same(
        "kafka-topics {server} --create --topic m --replica-assignment 1:2:3,2:3:1,3:1:2 --config retention.ms=5000000"
    )
    both.same("kafka-topics {server} --create --topic wide --partitions 1 --replication-factor 4", code=1)
    both.same("kafka-topics {server} --create --topic m --replica-assignment 1:2:3", code=1)
    both.same("kafka-topics {server} --alter --topic m --partitions 4 --replica-assignment 1:2:3,2:3:1,3:1:2,3:2:1")
    text = both.until_same("kafka-topics {server} --describe --topic m", lambda text: text.count("Partition: ") == 4)
    assert "Leader: 3 Replicas: 3,2,1" in text.replace("\t", " ")
    for option in ("--under-replicated-partitions", "--at-min-isr-partitions", "--unavailable-partitions"):
        assert both.shown(f"kafka-topics {{server}} --describe {option}") == ""
    both.same("kafka-configs {server} --entity-type topics --entity-name m --alter --add-config segment.bytes=2000000")
    both.shown("kafka-configs {server} --entity-type topics --entity-name m --describe")
    both.same("kafka-configs {server} --entity-type brokers --entity-name 2 --alter --add-config log.cleaner.threads=2")
    both.same("kafka-configs {server} --entity-type brokers --entity-default --alter --add-config max.connections=900")
    for entity in ("--entity-name 2", "--entity-default"):
        both.shown(f"kafka-configs {{server}} --entity-type brokers {entity} --describe", order=sorted_lines)


def test_the_cluster_and_its_quorum(both: Both) -> None:
    for where in ("{server}", "{controller}"):
        both.shown(f"kafka-cluster list-endpoints {where}", order=sorted_lines)
        both.shown(f"kafka-features {where} describe")

    def quorum(text: str) -> list[str]:
        words = re.sub(r"(LeaderId|HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs):\s+-?\d+", r"\1: N", text)
        return sorted(re.sub(r"\b\d{3,}\b", "N", words).split())

    status = both.same("kafka-metadata-quorum {controller} describe --status", order=quorum)
    assert status.count("controller-") == 3


def test_replicas_move_and_leaders_are_elected(both: Both, tmp_path: Path) -> None:
    both.same("kafka-topics {server} --create --topic moved --replica-assignment 1,2")
    plan = tmp_path / "plan.json"
    rows = [{"topic": "moved", "partition": index, "replicas": [3, 1 + index]} for index in range(2)]
    plan.write_text(json.dumps({"version": 1, "partitions": rows}))
    command = f"kafka-reassign-partitions {{server}} --reassignment-json-file {plan}"
    both.same(f"{command} --execute --throttle 50000000")
    both.until_same("kafka-reassign-partitions {server} --list", lambda text: "No partition reassignments" in text)
    both.same(f"{command} --verify")
    both.until_same(
        "kafka-topics {server} --describe --topic moved", lambda text: "Replicas: 3,2" in text.replace("\t", " ")
    )
    both.same(f"{command} --cancel")
    both.same("kafka-leader-election {server} --election-type preferred --topic moved --partition 1")
    both.same("kafka-leader-election {server} --election-type preferred --all-topic-partitions")
    both.same("kafka-leader-election {server} --election-type unclean --topic m --partition 0")
    both.shown("kafka-topics {server} --describe --topic moved")


def test_records_and_groups(both: Both) -> None:
    for where in both.clusters.values():
        servers = ",".join(f"{HOST}:{port}" for port in where.clients.values())
        lines = "\n".join(f"k{number}:v{number}" for number in range(60))
        invoke(
            *("kafka-console-producer", "--bootstrap-server", servers, "--topic", "m", "--property", "parse.key=true"),
            *("--property", "key.separator=:"),
            stdin=lines,
            code=0,
        )
    offsets = both.shown("kafka-get-offsets {server} --topic m")
    assert sum(int(line.rpartition(":")[2]) for line in offsets.split()) == 60
    read = "kafka-console-consumer {server} --topic m --group readers --from-beginning --max-messages 60"
    assert sorted(both.same(read, order=sorted_lines).split()) == sorted(f"v{number}" for number in range(60))
    described = both.shown("kafka-consumer-groups {server} --describe --group readers", order=sorted_lines)
    assert described.count("readers") == 4
    both.shown("kafka-consumer-groups {server} --list")
    both.same("kafka-consumer-groups {server} --group readers --topic m:0 --reset-offsets --to-earliest --execute")
    both.shown("kafka-consumer-groups {server} --describe --group readers", order=sorted_lines)


def test_quotas_users_features_and_log_dirs(both: Both) -> None:
    configs = "kafka-configs {server}"
    both.same(f"{configs} --alter --entity-type clients --entity-name app --add-config producer_byte_rate=9000000")
    both.same(
        f"{configs} --alter --entity-type users --entity-name ann --entity-type clients --entity-default "
        "--add-config controller_mutation_rate=5"
    )
    both.same(f"{configs} --alter --entity-type users --entity-name ann --add-config SCRAM-SHA-256=[password=secret]")
    both.same(f"{configs} --alter --entity-type groups --entity-name g --add-config consumer.session.timeout.ms=50000")
    for entity in ("clients --entity-name app", "users --entity-name ann", "groups --entity-name g"):
        both.until_same(f"{configs} --describe --entity-type {entity}", lambda text: "=" in text)
    both.same("kafka-features {server} downgrade --feature group.version=0 --dry-run")
    both.same("kafka-features {server} upgrade --feature metadata.version=99", code=None, order=of_any_controller)
    both.same("kafka-cluster unregister {server} --id 9", code=None, order=first_line)
    both.same(
        "kafka-metadata-quorum {controller} remove-controller --controller-id 9 --controller-directory-id "
        "AAAAAAAAAAEAAAAAAAAAQQ",
        code=None,
        order=first_line,
    )
    found = both.run("kafka-log-dirs {server} --describe --topic-list m")
    places = [replicas_in(each.out) for each in found.values()]
    assert places[0] == places[1] and len(places[0]) == 12
    for tool in (
        "kafka-transactions {server} list",
        "kafka-groups {server} --list",
        "kafka-share-groups {server} --list",
    ):
        both.shown(tool, order=sorted_lines)


def of_any_controller(text: str) -> list[str]:
    """What a tool says, whichever controller is active."""
    return sorted(re.sub(r"controller \d+", "controller", text).splitlines())


def first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


def replicas_in(text: str) -> list[tuple[int, str, bool]]:
    """What kafka-log-dirs tells, without sizes and paths."""
    (line,) = (each for each in text.splitlines() if each.startswith("{"))
    return sorted(
        (broker["broker"], partition["partition"], partition["isFuture"])
        for broker in json.loads(line)["brokers"]
        for log_dir in broker["logDirs"]
        for partition in log_dir["partitions"]
    )


def test_what_is_seen_while_a_node_is_away(both: Both) -> None:
    async def active(where: Addresses) -> int:
        servers = ",".join(f"{HOST}:{port}" for port in where.clients.values())
        async with Admin({"bootstrap.servers": servers}) as admin:
            return (await admin.describe_quorum()).leader_id

    leaders = {asyncio.run(active(where)) for where in both.clusters.values()}
    victim = next(each for each in IDS if each not in leaders)
    for where in both.clusters.values():
        away(where, victim, where.kill)
    describe = "kafka-topics {server} --describe --topic m"
    gone = both.until_same(describe, lambda text: all(len(isr(row)) == 2 for row in rows_of(text)))
    assert f"Leader: {victim}" not in gone.replace("\t", " ")
    assert (
        both.shown("kafka-topics {server} --describe --under-replicated-partitions --topic m").count("Partition: ") == 4
    )
    assert both.shown("kafka-topics {server} --describe --at-min-isr-partitions --topic m").count("Partition: ") == 4
    both.same(f"kafka-leader-election {{server}} --election-type preferred --topic m --partition {victim - 1}", code=1)
    for where in both.clusters.values():
        away(where, victim, where.start)
    both.until_same(describe, lambda text: all(len(isr(row)) == 3 for row in rows_of(text)))
    both.same("kafka-leader-election {server} --election-type preferred --topic m --partition " + str(victim - 1))
    assert f"Leader: {victim}" in both.shown(describe).replace("\t", " ")


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if "Partition: " in line]


def isr(row: str) -> list[str]:
    found = re.search(r"Isr: ([\d,]+)", row)
    assert found is not None, row
    return found[1].split(",")


def away(where: Addresses, node_id: int, what: Callable[[int], object]) -> None:
    """Run it where the cluster runs."""
    if where.cluster is None:
        asyncio.run(what(node_id))  # type: ignore[arg-type]
    else:
        loop = next(iter(where.cluster.nodes.values())).failed.get_loop()
        asyncio.run_coroutine_threadsafe(what(node_id), loop).result(PATIENCE_S)  # type: ignore[arg-type]
