"""Log dirs, reassignments and elections against Apache Kafka: a cluster of three brokers, and one node of an old release.

Commands with the names of Kafka's scripts are run beside those, on the same cluster; what they print must be the same.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from tools.apache_kafka import VERSION, ApacheKafka, run_tool

from barnabas.client import Cluster, UnsupportedByNodeError
from barnabas.client.admin.elections import Elections, ElectionType
from barnabas.client.admin.log_dirs import LogDirs, Replica, ReplicaLogDir
from barnabas.client.admin.part import checked
from barnabas.client.admin.reassignments import Reassignments
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from tests.command_line import Command, Script, invoke
from tests.interop.conftest import jars
from tests.interop.tool_process import ToolProcess

T = TypeVar("T")

REASSIGN, ELECTION, LOG_DIRS = "kafka-reassign-partitions", "kafka-leader-election", "kafka-log-dirs"


class Printed(NamedTuple):
    code: int
    out: str
    err: str


class Three:
    """Three brokers of Kafka, in three racks, each with two log dirs."""

    def __init__(self, nodes: list[ApacheKafka], tools: ToolProcess) -> None:
        self.nodes = nodes
        self.tools = tools
        self.bootstrap = nodes[0].bootstrap
        self.controller = nodes[0].controller

    def theirs(self, tool: str, *args: str) -> Printed:
        return Printed(*self.tools.run(tool, *args))

    def ours(self, *args: str) -> Printed:
        return Printed(*invoke(*args)[:3])

    def both(self, tool: str, *args: str) -> tuple[Printed, Printed]:
        line = [arg.format(server=self.bootstrap, controller=self.controller) for arg in args]
        return self.theirs(tool, *line), self.ours(tool, *line)

    def same(self, tool: str, *args: str, code: int = 0) -> str:
        """What both print, which is the same; of an error, the first line of it."""
        theirs, ours = self.both(tool, *args)
        assert (args, ours.code) == (args, theirs.code)
        assert ours.code == code, ours
        if code == 0:
            assert ours.out == theirs.out
        else:
            assert first_line(ours) == first_line(theirs)
        return ours.out if code == 0 else first_line(ours)

    def ask(self, work: Callable[[Cluster], Coroutine[Any, Any, T]]) -> T:
        return ask(self.bootstrap, work)

    def command(self, *args: str) -> Printed:
        """A command for people, with its cluster."""
        done = self.ours(*args, "-b", self.bootstrap)
        assert done.code == 0, done
        return done


def first_line(printed: Printed) -> str:
    """Of what an error says, wherever it says it; logging is left out, and so is what went well before it."""
    lines = [line for line in (printed.out + printed.err).splitlines() if not line.startswith("[")]
    return lines[0] if lines else ""


def ask(bootstrap: str, work: Callable[[Cluster], Coroutine[Any, Any, T]]) -> T:
    async def main() -> T:
        async with Cluster({"bootstrap.servers": bootstrap}) as cluster:
            return await work(cluster)

    return asyncio.run(main())


@pytest.fixture(scope="module")
def three() -> Iterator[Three]:
    jars(VERSION)
    with ExitStack() as stack:
        first = ApacheKafka({"broker.rack": "a", "auto.create.topics.enable": "false"})
        first.properties["log.dirs"] = f"{first.directory}/data,{first.directory}/more"
        stack.enter_context(first)
        others = [
            ApacheKafka(
                {
                    "process.roles": "broker",
                    "node.id": str(node_id),
                    "controller.quorum.bootstrap.servers": first.controller,
                    "broker.rack": rack,
                },
                cluster_id=first.cluster_id,
            )
            for node_id, rack in ((2, "b"), (3, "c"))
        ]
        with ThreadPoolExecutor(2) as pool:
            for node in pool.map(stack.enter_context, others):
                assert node.pid
        yield Three([first, *others], stack.enter_context(ToolProcess()))


async def where(cluster: Cluster, replicas: list[Replica]) -> list[ReplicaLogDir | KafkaError]:
    return list((await LogDirs(cluster).describe_replica_log_dirs(replicas)).values())


def create(bootstrap: str, name: str, *assignments: list[int]) -> None:
    async def work(cluster: Cluster) -> None:
        of = CreateTopicsRequest
        rows = [
            of.CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
            for index, ids in enumerate(assignments)
        ]
        topic = of.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=rows)
        response = await cluster.call(of(topics=[topic], timeout_ms=30_000))
        assert response.topics[0].error_code == 0, response.topics[0].error_message
        wanted = [Replica(name, index, each) for index, ids in enumerate(assignments) for each in ids]
        while any(isinstance(each, KafkaError) or each.log_dir is None for each in await where(cluster, wanted)):
            await asyncio.sleep(0.05)

    ask(bootstrap, work)


def fill(three: Three, topic: str, records: int = 3000) -> None:
    """About three megabytes."""
    args = ["--topic", topic, "--num-records", str(records), "--record-size", "1000", "--throughput", "-1"]
    done = run_tool("kafka-producer-perf-test", *args, "--bootstrap-server", three.bootstrap)
    assert done.returncode == 0, done.stderr


def replicas_of(three: Three, *topics: str) -> dict[tuple[str, int], tuple[int, ...]]:
    async def work(cluster: Cluster) -> dict[tuple[str, int], tuple[int, ...]]:
        state = await cluster.metadata(topics)
        return {
            (name, index): each.replicas for name in topics for index, each in state.topics[name].partitions.items()
        }

    return three.ask(work)


def plan_file(path: Path, *rows: tuple[str, int, list[int]], **more: Any) -> str:
    partitions = [{"topic": topic, "partition": index, "replicas": ids, **more} for topic, index, ids in rows]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


# --- the parts of Admin


def test_the_parts_of_admin_against_kafka(three: Three) -> None:
    create(three.bootstrap, "parts", [1, 2], [2, 3])

    async def work(cluster: Cluster) -> None:
        log_dirs, part = LogDirs(cluster), Reassignments(cluster)
        found = checked(await log_dirs.describe_log_dirs())
        assert sorted(found) == [1, 2, 3]
        assert len(found[1]) == 2
        one = next(iter(found[2].values()))
        assert one.total_bytes is not None
        assert {(each.topic, each.partition) for each in one.replicas} >= {("parts", 0), ("parts", 1)}
        places = await log_dirs.describe_replica_log_dirs([Replica("parts", 0, 1), Replica("parts", 1, 1)])
        here, nowhere = places.values()
        assert isinstance(here, ReplicaLogDir)
        assert here.log_dir in found[1]
        assert nowhere == ReplicaLogDir()
        refused = await log_dirs.alter_replica_log_dirs({Replica("parts", 0, 1): "/no/such/dir"})
        assert _code(refused[Replica("parts", 0, 1)]) is ErrorCode.LOG_DIR_NOT_FOUND
        results = await part.alter_partition_reassignments(
            {("parts", 0): (3, 1), ("parts", 9): (1,), ("none", 0): (1,)}
        )
        assert results["parts", 0] is None
        assert _code(results["parts", 9]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert _code(results["none", 0]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        while await part.list_partition_reassignments([("parts", 0)]):
            await asyncio.sleep(0.05)
        while (await cluster.metadata(["parts"])).topics["parts"].partitions[0].replicas != (3, 1):
            await asyncio.sleep(0.05)
        kept = await part.alter_partition_reassignments({("parts", 1): (2,)}, allow_replication_factor_change=False)
        assert _code(kept["parts", 1]) is ErrorCode.INVALID_REPLICATION_FACTOR
        cancelled = await part.alter_partition_reassignments({("parts", 1): None})
        assert _code(cancelled["parts", 1]) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        elected = await Elections(cluster).elect_leaders(ElectionType.UNCLEAN, [("parts", 1), ("none", 0)])
        assert _code(elected["parts", 1]) is ErrorCode.ELECTION_NOT_NEEDED
        assert _code(elected["none", 0]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    three.ask(work)


def test_the_parts_of_admin_against_an_old_kafka(old_kafka: ApacheKafka) -> None:
    create(old_kafka.bootstrap, "old-parts", [1], [1])

    async def work(cluster: Cluster) -> None:
        found = checked(await LogDirs(cluster).describe_log_dirs())
        (log_dir,) = found[1].values()
        assert ("old-parts", 1) in {(each.topic, each.partition) for each in log_dir.replicas}
        part = Reassignments(cluster)
        assert await part.list_partition_reassignments() == {}
        assert checked(await part.alter_partition_reassignments({("old-parts", 0): [1]})) == {("old-parts", 0): None}
        with pytest.raises(UnsupportedByNodeError, match="allow_replication_factor_change=False"):
            await part.alter_partition_reassignments({("old-parts", 0): [1]}, allow_replication_factor_change=False)
        assert await Elections(cluster).elect_leaders() == {}

    ask(old_kafka.bootstrap, work)
    for line in ("log-dirs describe", "log-dirs describe old-parts", "reassign status", "elect-leaders --all"):
        Command().split(old_kafka, line, code=0)
    for tool, *args in ((LOG_DIRS, "--describe", "--topic-list", "old-parts"), (REASSIGN, "--list")):
        theirs = run_tool(tool, "--bootstrap-server", old_kafka.bootstrap, *args)
        ours = Script(tool)(old_kafka, *args)
        assert (ours.exit_code, ours.stdout) == (theirs.returncode, theirs.stdout)


def _code(result: object) -> ErrorCode:
    assert isinstance(result, KafkaError), result
    return result.code


# --- Kafka's scripts beside ours


def test_kafka_log_dirs_prints_the_same(three: Three) -> None:
    create(three.bootstrap, "stored", [1, 2], [2, 3], [3, 1], [1, 2])
    create(three.bootstrap, "stored-more", *[[1]] * 17)
    server = ("--bootstrap-server", "{server}")
    described = three.same(LOG_DIRS, *server, "--describe", "--topic-list", "stored,stored-more")
    assert '"partition":"stored-1"' in described
    three.same(LOG_DIRS, *server, "--describe", "--broker-list", "3,1", "--topic-list", "stored")
    assert "do not exist" in three.same(LOG_DIRS, *server, "--describe", "--broker-list", "1,8,9", code=1)
    three.same(LOG_DIRS, *server, "--describe", "--broker-list", "one", code=1)
    three.same(LOG_DIRS, *server, code=1)
    three.same(LOG_DIRS, *server, "--describe", "--nonsense", code=1)


def test_kafka_leader_election_prints_the_same(three: Three, tmp_path: Path) -> None:
    names = ["elected", "elected-more"]
    for name in names:
        create(three.bootstrap, name, [1, 2], [2, 1], [3, 1])
    server = ("--bootstrap-server", "{server}")
    preferred, unclean = ("--election-type", "preferred"), ("--election-type", "UNCLEAN")
    three.same(ELECTION, *server, *preferred, "--topic", "elected", "--partition", "0")
    three.same(ELECTION, *server, *unclean, "--topic", "elected", "--partition", "0")
    missing = three.same(ELECTION, *server, *preferred, "--topic", "missing", "--partition", "0", code=1)
    assert missing.startswith("Error completing leader election (PREFERRED) for partition: missing-0: org.apache.kafka")
    partitions = tmp_path / "partitions.json"
    rows = [{"topic": name, "partition": index} for index in (2, 0, 1) for name in names]
    partitions.write_text(json.dumps({"partitions": rows}))
    three.same(ELECTION, *server, *preferred, "--path-to-json-file", str(partitions))
    partitions.write_text(json.dumps({"partitions": [*rows, rows[0]]}))
    three.same(ELECTION, *server, *preferred, "--path-to-json-file", str(partitions), code=1)
    for text in ("nonsense", "{}", '{"partitions": [{"topic": "elected"}]}', '{"partitions": 1}', "[]"):
        partitions.write_text(text)
        three.same(ELECTION, *server, *preferred, "--path-to-json-file", str(partitions), code=1)
    three.same(ELECTION, *server, *preferred, "--path-to-json-file", str(tmp_path / "none.json"), code=1)
    three.same(ELECTION, *server, *preferred, "--topic", "elected", "--partition", "one", code=1)
    three.same(ELECTION, *server, code=1)
    three.same(ELECTION, *server, *preferred, code=1)
    three.same(ELECTION, *server, *preferred, "--topic", "elected", code=1)
    three.same(ELECTION, *server, "--election-type", "other", "--all-topic-partitions", code=1)


async def _turn(name: str, cluster: Cluster) -> None:
    """Let broker 2 be the preferred leader."""
    await Reassignments(cluster).alter_partition_reassignments({(name, 0): (2, 1)})


def test_kafka_leader_election_elects(three: Three) -> None:
    printed = []
    for name, run in (("turned", three.theirs), ("turned2", three.ours)):
        create(three.bootstrap, name, [1, 2])
        three.ask(partial(_turn, name))
        args = ("--bootstrap-server", three.bootstrap, "--election-type", "preferred")
        printed.append(run(ELECTION, *args, "--topic", name, "--partition", "0")[:2])
    assert printed[0][0] == printed[1][0] == 0
    assert printed[0][1].replace("turned-", "turned2-") == printed[1][1]
    assert "Successfully completed leader election (PREFERRED)" in printed[1][1]
    three.command("elect-leaders", "--all")
    three.same(ELECTION, *("--bootstrap-server", "{server}", "--election-type", "preferred", "--all-topic-partitions"))


def test_kafka_reassign_partitions_prints_the_same_of_what_is_settled(three: Three, tmp_path: Path) -> None:
    create(three.bootstrap, "settled", [1, 2], [2, 3])
    create(three.bootstrap, "settled-too", [3, 1])
    file = plan_file(tmp_path / "plan.json", ("settled", 0, [1, 2]), ("settled-too", 0, [3, 1]), ("settled", 1, [2, 3]))
    server, plan = ("--bootstrap-server", "{server}"), ("--reassignment-json-file", file)
    three.same(REASSIGN, *server, "--list")
    three.same(REASSIGN, "--bootstrap-controller", "{controller}", "--list")
    three.same(REASSIGN, *server, *plan, "--execute")
    three.same(REASSIGN, *server, *plan, "--execute", "--throttle", "1000000")
    assert "Clearing topic-level throttles on topics" in three.same(REASSIGN, *server, *plan, "--verify")
    three.same(REASSIGN, *server, *plan, "--verify", "--preserve-throttles")
    three.same(REASSIGN, *server, *plan, "--cancel")
    three.same(REASSIGN, *server, *plan, "--cancel", "--preserve-throttles", "--timeout", "5")
    three.same(REASSIGN, "--bootstrap-controller", "{controller}", *plan, "--cancel", "--preserve-throttles")
    other = plan_file(tmp_path / "other.json", ("settled", 0, [2, 1]), ("gone", 0, [1]))
    three.same(REASSIGN, *server, "--reassignment-json-file", other, "--verify", "--preserve-throttles")


def test_kafka_reassign_partitions_refuses_the_same(three: Three, tmp_path: Path) -> None:
    create(three.bootstrap, "refused", [1, 2])
    server = ("--bootstrap-server", "{server}")
    texts: dict[str, list[tuple[str, int, list[int]]]] = {
        "unknown broker": [("refused", 0, [1, 9])],
        "unknown topic": [("missing", 0, [1])],
        "unknown partition": [("refused", 5, [1])],
        "twice": [("refused", 0, [1]), ("refused", 0, [2])],
        "a broker twice": [("refused", 0, [1, 1])],
        "nobody": [("refused", 0, [])],
        "nothing": [],
    }
    for name, rows in texts.items():
        file = plan_file(tmp_path / f"{name}.json", *rows)
        three.same(REASSIGN, *server, "--reassignment-json-file", file, "--execute", code=1)
    odd = plan_file(tmp_path / "odd.json", ("refused", 0, [1, 2]), log_dirs=["any"])
    three.same(REASSIGN, *server, "--reassignment-json-file", odd, "--execute", code=1)
    good = plan_file(tmp_path / "good.json", ("refused", 0, [2]))
    three.same(
        *(REASSIGN, *server, "--reassignment-json-file", good, "--execute", "--disallow-replication-factor-change"),
        code=1,
    )
    three.same(REASSIGN, *server, "--reassignment-json-file", good, "--list", code=1)
    three.same(REASSIGN, *server, "--execute", code=1)
    three.same(REASSIGN, *server, "--execute", "--verify", code=1)
    three.same(REASSIGN, "--list", code=1)
    three.same(REASSIGN, "--bootstrap-controller", "{controller}", "--reassignment-json-file", good, "--verify", code=1)
    three.same(REASSIGN, *server, "--reassignment-json-file", good, "--execute", "--throttle", "fast", code=1)
    three.same(REASSIGN, *server, "--reassignment-json-file", str(tmp_path / "none.json"), "--verify", code=1)
    three.same(REASSIGN, *server, "--nonsense", code=1)


def test_kafka_reassign_partitions_generates(three: Three, tmp_path: Path) -> None:
    create(three.bootstrap, "generated", [1, 2], [2, 3], [1, 3])
    file = tmp_path / "topics.json"
    file.write_text('{"topics": [{"topic": "generated"}], "version": 1}')
    server, topics = ("--bootstrap-server", "{server}"), ("--topics-to-move-json-file", str(file))
    theirs, ours = three.both(REASSIGN, *server, *topics, "--broker-list", "1,3", "--generate")
    assert (ours.code, ours.out.splitlines()[:4]) == (theirs.code, theirs.out.splitlines()[:4])
    for printed in (theirs, ours):
        rows = json.loads(printed.out.splitlines()[4])["partitions"]
        assert [(row["topic"], row["partition"], sorted(row["replicas"])) for row in rows] == [
            ("generated", index, [1, 3]) for index in range(3)
        ]
    three.same(REASSIGN, *server, *topics, "--broker-list", "1,1", "--generate", code=1)
    three.same(REASSIGN, *server, *topics, "--broker-list", "1", "--generate", code=1)
    three.same(REASSIGN, *server, *topics, "--generate", code=1)
    file.write_text('{"topics": [{"topic": "missing"}], "version": 1}')
    three.same(REASSIGN, *server, *topics, "--broker-list", "1", "--generate", code=1)
    file.write_text("nonsense")
    three.same(REASSIGN, *server, *topics, "--broker-list", "1", "--generate", code=1)


def test_a_reassignment_that_goes_on_is_shown_and_cancelled_the_same(three: Three, tmp_path: Path) -> None:
    create(three.bootstrap, "slow", [1, 2])
    fill(three, "slow")
    file = plan_file(tmp_path / "plan.json", ("slow", 0, [3, 1]))
    server, plan = ("--bootstrap-server", "{server}"), ("--reassignment-json-file", file)
    began = three.ours(REASSIGN, "--bootstrap-server", three.bootstrap, *plan, "--execute", "--throttle", "1000")
    assert "Successfully started partition reassignment for slow-0" in began.out
    listed = three.same(REASSIGN, *server, "--list")
    assert re.search(r"slow-0: replicas: [\d,]+\. adding: 3\. removing: 2\.", listed)
    assert "is still in progress" in three.same(REASSIGN, *server, *plan, "--verify")
    three.same(REASSIGN, *server, *plan, "--execute", code=1)
    status = json.loads(three.command("reassign", "status", "-o", "json").out)
    assert [(row["topic"], row["adding"], row["removing"]) for row in status] == [("slow", [3], [2])]
    assert status[0]["bytesLeft"] > 1_000_000
    assert status[0]["percent"] < 100
    cancelled = [three.ours(REASSIGN, "--bootstrap-server", three.bootstrap, *plan, "--cancel")]
    again = three.theirs(*(REASSIGN, "--bootstrap-server", three.bootstrap, *plan, "--execute", "--throttle", "1000"))
    assert again.out == began.out
    cancelled.append(three.theirs(REASSIGN, "--bootstrap-server", three.bootstrap, *plan, "--cancel"))
    assert cancelled[0][:2] == cancelled[1][:2]
    assert cancelled[0].out.startswith("Successfully cancelled partition reassignment for: slow-0")


async def _log_dir(replica: Replica, cluster: Cluster) -> str | None:
    found = await LogDirs(cluster).describe_replica_log_dirs([replica])
    return checked(found)[replica].log_dir


def test_kafka_reassign_partitions_moves_log_dirs(three: Three, tmp_path: Path) -> None:
    printed = []
    for name, run in (("housed", three.theirs), ("housed2", three.ours)):
        create(three.bootstrap, name, [1])
        now = three.ask(partial(_log_dir, Replica(name, 0, 1)))
        other = next(
            str(three.nodes[0].directory / each) for each in ("data", "more") if not (now or "").endswith(each)
        )
        file = plan_file(tmp_path / f"{name}.json", (name, 0, [1]), log_dirs=[other])
        args = ("--bootstrap-server", three.bootstrap, "--reassignment-json-file", file)
        began = run(REASSIGN, *args, "--execute", "--replica-alter-log-dirs-throttle", "100000000")
        assert began.code == 0, began
        for _ in range(20):
            verified = three.ours(REASSIGN, *args, "--verify")
            if "completed successfully" in verified.out:
                break
        theirs = run(REASSIGN, *args, "--verify")
        assert theirs[:2] == verified[:2]
        text = began.out.replace(other, "OTHER").replace(now or "", "NOW").replace("housed2", "housed")
        printed.append(text)
    assert printed[0] == printed[1]


# --- commands for people


def test_a_broker_is_drained_and_gets_its_share_again(three: Three, tmp_path: Path) -> None:
    create(three.bootstrap, "drained", *[[1, 2], [2, 3], [3, 1]] * 2)
    fill(three, "drained", 300)
    plan = tmp_path / "plan.json"
    planned = json.loads(
        three.command("reassign", "plan", "drained", "--drain", "3", "--save", str(plan), "-o", "json").out
    )
    assert {row["partition"] for row in planned} == {1, 2, 4, 5}
    assert sum(row["bytes"] for row in planned) > 0
    done = three.command("reassign", "run", str(plan), "--yes", "--wait", "--throttle", "50MB")
    assert "reassign 4 partitions" in done.err
    after = replicas_of(three, "drained")
    assert all(sorted(replicas) == [1, 2] for replicas in after.values())
    described = three.command("log-dirs", "describe", "drained", "--by", "broker", "-o", "json")
    assert {row["broker"]: row["replicas"] for row in json.loads(described.out)} == {1: 6, 2: 6, 3: 0}
    three.command("reassign", "run", "drained", "--add", "3", "--yes", "--wait")
    counts = [sum(each in replicas for replicas in replicas_of(three, "drained").values()) for each in (1, 2, 3)]
    assert counts == [4, 4, 4]
    three.command("elect-leaders", "drained")
    throttled = three.ours(
        "kafka-configs", "--bootstrap-server", three.bootstrap, "--entity-type", "brokers", "--describe"
    )
    assert "throttled.rate" not in throttled.out


def test_another_number_of_replicas(three: Three) -> None:
    # Ties are decided by the replicas of all topics: whatever other tests have left, broker 1 has the fewest.
    create(three.bootstrap, "ballast", *[[2, 3]] * 40)
    create(three.bootstrap, "factor", [1], [2], [3])
    three.command("reassign", "run", "factor", "--replication-factor", "3", "--yes", "--wait")
    assert all(sorted(replicas) == [1, 2, 3] for replicas in replicas_of(three, "factor").values())
    three.command("reassign", "run", "factor", "--replication-factor", "2", "--yes", "--wait")
    found = replicas_of(three, "factor")
    assert [sum(each in replicas for replicas in found.values()) for each in (1, 2, 3)] == [2, 2, 2]
    assert [replicas[0] for replicas in found.values()] == [1, 2, 3]
    three.command("topics", "delete", "ballast", "--yes")


def test_replicas_move_between_log_dirs(three: Three) -> None:
    create(three.bootstrap, "moved", [1], [1], [1])
    to = str(three.nodes[0].directory / "more")
    three.command("log-dirs", "move", "moved", "--broker", "1", "--to", to, "--wait", "--throttle", "100MB")
    rows = json.loads(three.command("log-dirs", "describe", "moved", "-o", "json", "--broker", "1").out)
    assert [(row["partition"], row["logDir"], row["isFuture"]) for row in rows] == [(i, to, False) for i in range(3)]
    refused = three.ours(*("log-dirs", "move", "moved", "--broker", "1", "--to", "/nowhere", "-b", three.bootstrap))
    assert refused.code == 1
    assert "no log dir /nowhere; its log dirs are" in refused.err
