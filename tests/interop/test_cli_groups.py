"""Groups, transactions and producers: the client and the commands against Apache Kafka, and Kafka's tools beside ours."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as Committed
from confluent_kafka.admin import AdminClient, NewTopic
from tools.apache_kafka import VERSION, ApacheKafka, run_tool

from barnabas.client import Cluster
from barnabas.client.admin.groups import GroupDescription, Groups, MemberToRemove
from barnabas.client.admin.part import checked
from barnabas.client.admin.producers import Producers
from barnabas.client.admin.transactions import Transactions
from barnabas.client.records import TopicPartition
from barnabas.wire import ErrorCode, KafkaError
from tests.client.admin.group_scenes import (
    WAIT_S,
    WITHOUT_VERIFICATION,
    asked,
    commit,
    committed,
    fill,
    hang,
    member,
    transaction,
)
from tests.command_line import invoke
from tests.interop.conftest import jars
from tests.interop.side_by_side import IN_A_HURRY

pytestmark = pytest.mark.interop

HUGE = 6  # partitions; enough that the order of Java's maps is not that of numbers


@pytest.fixture(scope="module")
def node() -> Iterator[ApacheKafka]:
    """One node of the reference version, for this file alone: it is full of groups."""
    jars(VERSION)
    with ApacheKafka({**IN_A_HURRY, **WITHOUT_VERIFICATION}) as node:
        yield node


def create(bootstrap: str, **topics: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()]).values():
        future.result(WAIT_S)


ours = invoke


def rows(*arguments: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = invoke(*arguments, "-o", "json", code=0).json
    return found


class Compared:
    """Kafka's tools and ours against the same node: the same output and exit code, and on an error the same first line.

    What differs is kept until the end, because each of Kafka's tools takes its time.
    """

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.differences: list[tuple[Any, Any]] = []

    def __call__(self, tool: str, *args: str, normal: Callable[[str], str] = str, code: int = 0) -> str:
        theirs = run_tool(tool, "--bootstrap-server", self.bootstrap, *args, timeout_s=120)
        mine = ours(tool, "--bootstrap-server", self.bootstrap, *args)
        self._note((args, normal(mine.stdout), mine.exit_code), (args, normal(theirs.stdout), theirs.returncode))
        self._note((args, mine.exit_code), (args, code))
        if code:
            self._note((args, _first_line(mine.stderr)), (args, _first_line(theirs.stderr)))
        return mine.stdout

    def _note(self, mine: Any, theirs: Any) -> None:
        if mine != theirs:
            self.differences.append((mine, theirs))


def _first_line(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith(("WARN", "usage:", "[", "--"))), "")


@pytest.fixture
def compare(node: ApacheKafka) -> Iterator[Compared]:
    compared = Compared(node.bootstrap)
    yield compared
    mine, theirs = ([each[at] for each in compared.differences] for at in (0, 1))
    assert mine == theirs


# --- Kafka's tools beside ours


def test_kafka_consumer_groups_lists_and_describes(compare: Compared) -> None:
    server = compare.bootstrap
    create(server, listed=HUGE, second=1)
    for partition in range(HUGE):
        fill(server, "listed", partition, 3)
    commit(server, "empty-group", {("listed", number): number % 3 for number in range(HUGE)})
    commit(server, "another-group-with-a-long-name", {("second", 0): 0})
    with (
        member(server, "classic-group", ["listed", "second"], HUGE + 1, client_id="one") as classic,
        member(server, "consumer-group", ["listed"], HUGE, group_protocol="consumer", group_instance_id="fixed"),
    ):
        classic.commit(offsets=[Committed("listed", 2, 1)], asynchronous=False)
        groups = "kafka-consumer-groups"
        named = {"empty-group", "another-group-with-a-long-name", "classic-group", "consumer-group"}
        assert named <= set(compare(groups, "--list").split())
        compare(groups, "--list", "--state", "--type")
        compare(groups, "--list", "--state", "stable,Empty")
        described = compare(groups, "--describe", "--all-groups")
        assert "another-group-with-a-long-name second" in described
        compare(groups, "--describe", "--group", "classic-group", "--group", "empty-group", "--verbose")
        assert "listed:0,1,2,3,4,5" in compare(groups, "--describe", "--all-groups", "--members", "--verbose")
        compare(groups, "--describe", "--all-groups", "--state", "--verbose")
        compare(groups, "--describe", "--group", "no-such-group")
        compare(
            groups, "--reset-offsets", "--group", "classic-group", "--topic", "listed", "--to-earliest", "--dry-run"
        )
        compare(groups, "--delete-offsets", "--group", "consumer-group", "--topic", "listed:0,1")
        compare(groups, "--delete", "--group", "classic-group", "--group", "consumer-group")
        compare(groups, "--list", "--group", "classic-group", code=1)
        compare(groups, "--validate-regex", "a(")


def test_kafka_consumer_groups_resets_and_deletes(compare: Compared, tmp_path: Path) -> None:
    server = compare.bootstrap
    create(server, **{"reset": HUGE, "of-a-name-longer-than-others": 2, "nothing": 1})
    for partition in range(HUGE):
        fill(server, "reset", partition, 5, age_s=3600)
    commit(server, "resets", {("reset", number): 2 for number in range(HUGE - 1)})
    groups, group = "kafka-consumer-groups", ("--reset-offsets", "--group", "resets")

    def dry(*args: str, code: int = 0) -> str:
        return compare(groups, *group, *args, "--dry-run", code=code)

    assert "resets          reset           3          0" in dry("--all-topics", "--to-earliest")
    dry("--topic", "reset", "--topic", "of-a-name-longer-than-others:1", "--to-latest")
    dry("--topic", "reset:0,5,1", "--to-offset", "100")
    dry("--topic", "reset:0,1", "--shift-by", "-1")
    dry("--topic", "reset:5", "--shift-by", "1", code=1)
    dry("--topic", "reset", "--to-current")
    assert "Warn: Partition 0 from topic nothing" in dry(
        "--topic", "reset", "--topic", "nothing", "--by-duration", "PT2H"
    )
    dry("--topic", "reset", "--by-duration", "PT30M")
    dry("--topic", "reset:0", "--to-datetime", "2020-01-01T00:00:00.000")
    dry("--topic", "reset:9", "--to-latest")
    dry("--topic", "no-such-topic", "--to-latest")
    dry("--topic", "no-such-topic:0", "--to-latest")
    exported = dry("--topic", "reset", "--topic", "of-a-name-longer-than-others", "--to-latest", "--export")
    (tmp_path / "offsets.csv").write_text(exported)
    dry("--from-file", str(tmp_path / "offsets.csv"))
    compare(groups, *group, "--group", "others", "--topic", "reset", "--to-latest", "--dry-run", "--export")
    (tmp_path / "other.csv").write_text("others,reset,0,3\n")
    dry("--from-file", str(tmp_path / "other.csv"))
    assert "NEW-OFFSET" in compare(groups, *group, "--topic", "reset", "--to-offset", "4", "--execute")
    assert committed(server, "resets") == {("reset", number): 4 for number in range(HUGE)}

    delete = ("--delete-offsets", "--group")
    compare(groups, *delete, "resets", "--topic", "reset:0,10", "--topic", "no-such-topic", "--topic", "nothing")
    compare(groups, *delete, "no-such-group", "--topic", "reset")
    for name in ("gone-1", "gone-2", "gone-3"):
        commit(server, name, {("reset", 0): 1})
    theirs = run_tool(
        groups, "--bootstrap-server", server, "--delete", "--group", "gone-1", "--group", "nope", timeout_s=120
    )
    mine = ours(groups, "--bootstrap-server", server, "--delete", "--group", "gone-2", "--group", "nope")
    assert mine.stdout == theirs.stdout.replace("gone-1", "gone-2")
    assert ours(groups, "--bootstrap-server", server, "--delete", "--group", "gone-3").stdout == (
        "Deletion of requested consumer groups ('gone-3') was successful.\n"
    )


def without_times(text: str) -> str:
    """A transaction runs on between two questions."""
    return re.sub(r"(\t\d{13} *\t)\d+ *\t", r"\1N\t", text)


def test_kafka_transactions_lists_describes_and_aborts(compare: Compared) -> None:
    server, tool = compare.bootstrap, "kafka-transactions"
    create(server, paid=2, hung=2)
    first = transaction(server, "first", ("paid", 0), ("paid", 1))
    second = transaction(server, "second-of-a-long-name", ("paid", 0))
    second.commit_transaction(WAIT_S)
    listed = compare(tool, "list")
    states = {cells[0].strip(): cells[3].strip() for cells in (line.split("\t") for line in listed.splitlines()[1:])}
    assert (states["first"], states["second-of-a-long-name"]) == ("Ongoing", "CompleteCommit")
    compare(tool, "list", "--transactional-id-pattern", "sec.*")
    compare(tool, "list", "--transactional-id-pattern", "sec[", code=1)
    compare(tool, "list", "--duration-filter", "3600000")
    compare(tool, "describe", "--transactional-id", "first", normal=without_times)
    compare(tool, "describe", "--transactional-id", "second-of-a-long-name", normal=without_times)
    compare(tool, "describe", "--transactional-id", "nobody", code=1)
    compare(tool, "describe-producers", "--topic", "paid", "--partition", "0")
    compare(tool, "describe-producers", "--topic", "paid", "--partition", "1", "--broker-id", "1")
    compare(tool, "find-hanging", "--topic", "paid")
    compare(tool, "find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0")
    abort = ("--bootstrap-server", server, "abort", "--topic", "hung", "--partition")
    offsets = [str(hang(server, "hung", each, producer_id=4711 + each, age_s=3600)) for each in (0, 1)]
    assert "4711" in compare(tool, "find-hanging", "--topic", "hung")
    theirs = run_tool(tool, *abort, "0", "--start-offset", offsets[0], timeout_s=120)
    mine = ours(tool, *abort, "1", "--start-offset", offsets[1])
    assert (mine.exit_code, mine.stdout) == (theirs.returncode, theirs.stdout) == (0, "")
    assert compare(tool, "find-hanging", "--topic", "hung").count("\n") == 1
    compare(tool, "abort", "--topic", "paid", "--partition", "0", "--start-offset", "4711", code=1)
    compare(tool, "forceTerminateTransaction", "--transactionalId", "first")
    assert re.search(
        r"^first +\t1 +\t\d+ +\tEmpty", ours(tool, "--bootstrap-server", server, "list").stdout, re.MULTILINE
    )
    del first


# --- the client and the commands, against this version and an old one


@pytest.mark.parametrize("which", ["node", "old_kafka"])
def test_groups_are_listed_described_and_changed(which: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue(which).bootstrap
    create(server, admin=2)
    last_ms = fill(server, "admin", 0, 5, age_s=600)
    commit(server, "idle", {("admin", 0): 2})
    with member(server, "busy", ["admin"], 2) as consumer:
        consumer.commit(offsets=[Committed("admin", 0, 3)], asynchronous=False)
        listed = {row["groupId"]: row for row in rows("groups", "list", "-b", server)}
        assert (listed["idle"]["state"], listed["busy"]["state"]) == ("Empty", "Stable")
        stable = {row["groupId"] for row in rows("groups", "list", "-b", server, "--state", "stable")}
        assert stable & {"busy", "idle"} == {"busy"}
        before_ms = int(time.time() * 1000)
        (at_0, at_1) = rows("groups", "describe", "busy", "-b", server)
        assert (at_0["currentOffset"], at_0["logEndOffset"], at_0["lag"]) == (3, 5, 2)
        assert before_ms <= last_ms - 1000 + at_0["lagMs"] <= time.time() * 1000
        assert (at_1["currentOffset"], at_1["lag"], at_1["lagMs"]) == (None, None, None)
        (found,) = rows("groups", "members", "busy", "-b", server)
        assert found["assignment"] == [{"topic": "admin", "partitions": [0, 1]}]
        refused = ours("groups", "reset", "busy", "--topic", "admin", "--to-latest", "--yes", "-b", server)
        assert (refused.exit_code, "is Stable, with 1 member" in refused.stderr) == (1, True)
        removed = rows("groups", "remove-members", "busy", "--all", "--yes", "-b", server)
        assert [row["error"] for row in removed] == [None]
    (reset,) = rows(
        "groups", "reset", "idle", "--all-topics", "--to-datetime", str(last_ms - 500), "--yes", "-b", server
    )
    assert (reset["oldOffset"], reset["newOffset"], reset["error"]) == (2, 4, None)
    (deleted,) = rows("groups", "delete-offsets", "idle", "--topic", "admin", "--yes", "-b", server)
    assert deleted["error"] is None
    commit(server, "ended", {("admin", 0): 2})
    done = ours("groups", "delete", "ended", "nobody", "--yes", "-b", server, "-o", "tsv")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (1, "ended\t\t")
    assert done.stdout.splitlines()[1].startswith("nobody\tGROUP_ID_NOT_FOUND\t")
    assert ours("groups", "describe", "ended", "-b", server).stderr.startswith("Error: group ended: GROUP_ID_NOT_FOUND")


@pytest.mark.parametrize("which", ["node", "old_kafka"])
def test_transactions_are_found_and_ended(which: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue(which).bootstrap
    create(server, ledger=2)
    open_one = transaction(server, "ledger-1", ("ledger", 0))
    (listed,) = rows("transactions", "list", "--transactional-id-pattern", "ledger.*", "-b", server)
    assert (listed["transactionalId"], listed["transactionState"]) == ("ledger-1", "Ongoing")
    (described,) = rows("transactions", "describe", "ledger-1", "-b", server)
    assert described["topicPartitions"] == ["ledger-0"]
    (state,) = rows("producers", "list", "ledger", "--open", "-b", server)
    assert (state["partition"], state["currentTxnStartOffset"]) == (0, 0)
    assert (
        rows("transactions", "find-hanging", "--topic", "ledger", "--max-transaction-timeout", "0s", "-b", server) == []
    )
    done = ours(
        "transactions", "abort", "--topic", "ledger", "--partition", "0", "--start-offset", "0", "--yes", "-b", server
    )
    assert done.exit_code == 0, done
    assert rows("producers", "list", "ledger", "--open", "-b", server) == []
    assert ours("transactions", "abort", "--transactional-id", "ledger-1", "--yes", "-b", server).exit_code == 0
    (listed,) = rows("transactions", "list", "--transactional-id-pattern", "ledger.*", "-b", server)
    assert listed["transactionState"] == "Empty"
    del open_one


def test_a_group_of_the_new_protocol_shows_its_epochs(node: ApacheKafka) -> None:
    server = node.bootstrap
    create(server, newer=2)

    async def described(cluster: Cluster) -> GroupDescription:
        return checked(await Groups(cluster).describe_consumer_groups(["new-protocol"]))["new-protocol"]

    with member(server, "new-protocol", ["newer"], 2, group_protocol="consumer", group_instance_id="i-1"):
        group = asked(server, described)
        assert (group.type, group.state, group.assignor) == ("Consumer", "Stable", "uniform")
        assert group.group_epoch == group.assignment_epoch == group.members[0].member_epoch
        assert group.members[0].target_assignment == (TopicPartition("newer", 0), TopicPartition("newer", 1))

        async def remove(cluster: Cluster) -> Any:
            return await Groups(cluster).remove_members("new-protocol", [MemberToRemove("", "i-1")])

        assert asked(server, remove) == {MemberToRemove("", "i-1"): None}


def test_a_producer_that_is_not_there_is_refused_by_the_leader(node: ApacheKafka) -> None:
    create(node.bootstrap, refused=1)

    async def work(cluster: Cluster) -> ErrorCode:
        assert await Producers(cluster).describe_producers([TopicPartition("refused", 0)]) == {("refused", 0): []}
        with pytest.raises(KafkaError) as error:
            await Transactions(cluster).abort_transaction("refused", 7, producer_id=1, producer_epoch=0)
        return error.value.code

    assert asked(node.bootstrap, work) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
