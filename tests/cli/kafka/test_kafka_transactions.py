"""`barnabas kafka-transactions` against a node, and what it says of options: the lines are those of Kafka 4.3.1's script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import pytest

from barnabas.testing import Broker
from tests.client.admin.group_scenes import WITHOUT_VERIFICATION, hang, transaction
from tests.command_line import Script


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"paid": 2, "hung": 1}, config=WITHOUT_VERIFICATION) as running:
        yield running


run = Script("kafka-transactions")
tool = partial(run, None)


def test_a_transaction_is_listed_described_and_terminated(broker: Broker) -> None:
    producer = transaction(broker.bootstrap_servers, "a-transactional-id", ("paid", 0), ("paid", 1))
    listed = run(broker, "list").stdout
    assert listed.startswith(
        "TransactionalId   \tCoordinator\tProducerId\tTransactionState\t\na-transactional-id\t1          \t"
    )
    assert listed.endswith("\tOngoing         \t\n")
    assert run(broker, "list", "--transactional-id-pattern", "b.*").stdout.count("\n") == 1
    header, row = run(broker, "describe", "--transactional-id", "a-transactional-id").stdout.splitlines()
    assert header.split("\t")[-2].strip() == "TopicPartitions"
    cells = [cell.strip() for cell in row.split("\t")]
    assert (cells[1], cells[4], cells[5], cells[8]) == ("a-transactional-id", "Ongoing", "60000", "paid-0,paid-1")
    states = run(broker, "describe-producers", "--topic", "paid", "--partition", "0").stdout.splitlines()
    assert re.fullmatch(r"\d+ +\t0 +\t-1 +\t0 +\t\d{13}\t0 +\t", states[1])
    done = run(broker, "forceTerminateTransaction", "--transactionalId", "a-transactional-id")
    assert (done.exit_code, done.output) == (0, "")
    states = run(
        broker, "describe-producers", "--topic", "paid", "--partition", "0", "--broker-id", "1"
    ).stdout.splitlines()
    assert states[1].rstrip("\t").endswith("None".ljust(len("CurrentTransactionStartOffset")))
    del producer


def test_a_hanging_transaction_is_found_and_aborted(broker: Broker) -> None:
    offset = hang(broker.bootstrap_servers, "hung", 0, producer_id=4711, age_s=3600)
    found = run(broker, "find-hanging", "--topic", "hung").stdout.splitlines()
    assert [cell.strip() for cell in found[1].split("\t")][:6] == ["hung", "0", "4711", "0", "-1", str(offset)]
    assert found[1].split("\t")[7].strip() == "60"
    assert run(broker, "find-hanging", "--broker-id", "1").stdout.splitlines() == found
    done = run(broker, "abort", "--topic", "hung", "--partition", "0", "--start-offset", offset)
    assert (done.exit_code, done.output) == (0, "")
    assert run(broker, "find-hanging", "--topic", "hung", "--partition", "0").stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["describe", "--transactional-id", "nobody"],
            "Failed to describe transaction state of transactional-id `nobody`: DescribeTransactions request for "
            "transactionalId `nobody` failed because the ID could not be found. Enable debug logging for additional detail.",
        ),
        (
            ["find-hanging"],
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search",
        ),
        (
            ["find-hanging", "--broker-id", "1", "--partition", "0"],
            "The --partition argument requires --topic to be provided",
        ),
        (
            ["abort", "--topic", "paid", "--partition", "0"],
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or with "
            "--producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)",
        ),
        (
            ["abort", "--topic", "paid", "--partition", "0", "--producer-id", "1"],
            "Missing required argument --producer-epoch",
        ),
        (
            ["abort", "--topic", "paid", "--partition", "0", "--start-offset", "99"],
            "Could not find any open transactions starting at offset 99 on partition paid-0",
        ),
        (
            ["list", "--transactional-id-pattern", "("],
            "Failed to list transactions: ListTransactions request sent to broker 1 failed with an unexpected exception. "
            "Enable debug logging for additional detail.",
        ),
    ],
)
def test_what_fails_is_said_and_ends_with_1(broker: Broker, arguments: list[str], says: str) -> None:
    result = run(broker, *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", says + "\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "too few arguments"),
        (["list"], "argument --bootstrap-server is required"),
        (["-s"], "too few arguments"),
        (["-s", "nope"], "invalid choice: 'nope' (choose from 'list', 'describe', "),
        (["-s", "abort", "--topic", "x"], "argument --partition is required"),
        (
            ["-s", "abort", "--topic", "x", "--partition", "a"],
            "argument --partition: could not convert 'a' to Integer (For input string: \"a\")",
        ),
        (["-s", "list", "--bogus"], "unrecognized arguments: '--bogus'"),
    ],
)
def test_what_is_not_understood_is_refused_after_the_usage(arguments: list[str], says: str) -> None:
    server = ["--bootstrap-server", "127.0.0.1:1"]
    result = tool(*(server if "-s" in arguments else []), *(each for each in arguments if each != "-s"))
    assert result.exit_code == 1
    usage, *_, error = result.stderr.splitlines()
    assert usage.startswith("usage: kafka-transactions.sh ")
    assert error.startswith(f"kafka-transactions.sh: error: {says}")


def test_its_version_is_kafkas() -> None:
    assert tool("--version").stdout.startswith("4.3.1")
