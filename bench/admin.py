"""The administrative APIs of a node of barnabas and of a node of Apache Kafka: creating, changing, describing, starting.

The same client asks both, in turns, with requests made beforehand; what is measured is the time until the whole answer is
there, undecoded. Kafka has the JVM settings of its own scripts, and every question is warmed up first. Two things to know:
barnabas does not begin a data log when a partition is created, and Kafka does. And no node holds the large numbers of
partitions itself, see `big_cluster`; up to 10,000, the nodes hold them all.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tools.apache_kafka import KAFKA_JVM, VERSION, ApacheKafka, Barnabas, Node

from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from bench import big_cluster
from bench.connection import Client
from bench.table import Row, from_rounds
from bench.timing import alternating

SECTION = "admin"
PEER = f"Apache Kafka {VERSION}"
OWN_PEER = "barnabas at 1,000"

TOPICS, PARTITIONS = 200, 10
CREATE_STARTS = 3
CREATE_ROUNDS = 5  # which together leave the partitions that are described next; Kafka's first is many times its last
CONFIG_CHANGES, CONFIG_ROUNDS = 100, 3
DESCRIBE_ROUNDS = 7
STARTS = 2
SIZES = (1_000, 10_000, 100_000)
OPERATION_ROUNDS = 5
REPEATS = 8

A_TENTH = 10.0
NOT_SLOWER = 1.0
NOT_GROWING = 0.67  # of one third, noise is the likelier reason

CREATE_VERSION, DELETE_VERSION, METADATA_VERSION, CONFIGS_VERSION, PARTITIONS_VERSION = 7, 6, 12, 1, 0
TOPIC_RESOURCE = 2
LOG_DIRS_VERSION = 4
TIMEOUT_MS = 100_000
POLL_S = 0.002
TICK_S = 0.01  # the kernel counts processor time in these


def run() -> list[Row]:
    first = first_topics()
    with Barnabas() as ours, ApacheKafka(jvm=KAFKA_JVM) as theirs, Client(ours) as our_client, Client(theirs) as their:
        base = (ours.rss_bytes(), theirs.rss_bytes())
        rows = [*first, *create_topics(our_client, their), change_configs(our_client, their)]
        rows += describe_everything(our_client, their, TOPICS * PARTITIONS * CREATE_ROUNDS)
        theirs.kill()
    return rows + at_every_size(base)


# --- beside Kafka, partitions held by the node


def first_topics() -> list[Row]:
    """What a test suite or a new cluster meets: nodes that were just started, and nothing was asked of them before."""
    at_once: tuple[list[float], list[float]] = ([], [])
    one_by_one: tuple[list[float], list[float]] = ([], [])
    for number in range(CREATE_STARTS):
        for side in alternating([0, 1], number):  # not both at once: a JVM that starts takes all cores
            with _new_node(side) as node, Client(node) as client:
                at_once[side].append(_create(client, "at-once", TOPICS))
                _wait_logs(client, TOPICS * PARTITIONS)
                one_by_one[side].append(sum(_create(client, f"one-{each}", 1) for each in range(TOPICS)))
    question = f"create {TOPICS} topics of {PARTITIONS} partitions until visible with leaders"
    return [
        from_rounds(SECTION, f"{question}, node just started", at_once[0], PEER, at_once[1], "s", A_TENTH),
        from_rounds(SECTION, f"{question}, one by one", one_by_one[0], PEER, one_by_one[1], "s", A_TENTH),
    ]


def _new_node(side: int) -> Barnabas | ApacheKafka:
    return ApacheKafka(jvm=KAFKA_JVM) if side else Barnabas()


def create_topics(ours: Client, theirs: Client) -> list[Row]:
    """All topics in one request, then Metadata until each partition has a leader, again and again on the same nodes."""
    times: tuple[list[float], list[float]] = ([], [])
    cpu: tuple[list[float], list[float]] = ([], [])
    for number in range(CREATE_ROUNDS):
        for client, seen, used in alternating([(ours, times[0], cpu[0]), (theirs, times[1], cpu[1])], number):
            before = client.node.cpu_s()
            seen.append(_create(client, f"round-{number}", TOPICS))
            used.append(max(client.node.cpu_s() - before, TICK_S))
            _wait_logs(client, TOPICS * PARTITIONS * (number + 1))
    question = f"create {TOPICS} topics of {PARTITIONS} partitions until visible with leaders, again and again"
    return [
        from_rounds(SECTION, question, times[0][1:], PEER, times[1][1:], "s", None),
        from_rounds(SECTION, f"{question}, server CPU", cpu[0][1:], PEER, cpu[1][1:], "s", None),
    ]


def change_configs(ours: Client, theirs: Client) -> Row:
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(CONFIG_ROUNDS + 1):
        for client, seen in alternating([(ours, times[0]), (theirs, times[1])], number):
            seen.append(sum(_change_config(client, "round-0-0", each) for each in range(CONFIG_CHANGES)))
    question = f"{CONFIG_CHANGES} config changes of a topic, one after another"
    return from_rounds(SECTION, question, times[0][1:], PEER, times[1][1:], "s", A_TENTH)


def describe_everything(ours: Client, theirs: Client, partitions: int) -> list[Row]:
    rows = []
    questions: dict[str, Callable[[Client], float]] = {"Metadata": _all_metadata, "DescribeTopicPartitions": _all_pages}
    for name, ask in questions.items():
        times: tuple[list[float], list[float]] = ([], [])
        for number in range(DESCRIBE_ROUNDS + 2):
            for client, seen in alternating([(ours, times[0]), (theirs, times[1])], number):
                seen.append(ask(client) * 1000)
        question = f"{name} of everything, {partitions:,} partitions"
        rows.append(from_rounds(SECTION, question, times[0][2:], PEER, times[1][2:], "ms", NOT_SLOWER))
    return rows


# --- beside Kafka and beside itself, partitions in the metadata log


def at_every_size(base: tuple[int, int]) -> list[Row]:
    """Kafka at the largest size, and barnabas at every one: all of them at once, asked in turns."""
    largest = SIZES[-1]
    with contextlib.ExitStack() as stack:
        ours = {size: stack.enter_context(_written(_barnabas, size)) for size in SIZES}
        theirs = stack.enter_context(_written(_kafka, largest))
        rows = starts(ours[largest], theirs, largest, base)
        for size in SIZES[:-1]:
            ours[size].start()
        clients = {size: stack.enter_context(Client(node)) for size, node in ours.items()}
        their_client = stack.enter_context(Client(theirs))
        rows += describe_everything(clients[largest], their_client, largest)
        return rows + single_operations(clients, their_client)


def starts(ours: Node, theirs: Node, size: int, base: tuple[int, int]) -> list[Row]:
    """Time to the first answer; both run in the end, and what they use more than empty ones is for the partitions."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(STARTS):
        for node, seen in alternating([(ours, times[0]), (theirs, times[1])], number):
            node.stop()  # a broker that did not say goodbye cannot come back before its session ends
            node.start(timeout_s=TIMEOUT_MS / 1000)
            seen.append(node.started_s)
    memory = [(node.rss_bytes() - least) / size for node, least in zip((ours, theirs), base, strict=True)]
    what = f"on a metadata log of {size:,} partitions"
    return [
        from_rounds(SECTION, f"start {what}", times[0], PEER, times[1], "s", NOT_SLOWER),
        from_rounds(SECTION, f"memory per partition {what}", memory[:1], PEER, memory[1:], "bytes", None),
    ]


def single_operations(clients: Mapping[int, Client], their_client: Client) -> list[Row]:
    """What one thing costs, beside Kafka and beside a small cluster; of each round the best of a few: disks have moods."""
    rows = []
    everyone = [*clients.values(), their_client]
    for question, measure in OPERATIONS.items():
        seen: dict[Client, list[float]] = {client: [] for client in everyone}
        for number in range(OPERATION_ROUNDS + 1):
            for client in alternating(everyone, number):
                costs = [measure(client, number * REPEATS + repeat) for repeat in range(REPEATS)]
                seen[client].append(min(costs) * 1000)
        times = {client: costs[1:] for client, costs in seen.items()}
        largest, least = clients[SIZES[-1]], clients[SIZES[0]]
        what = f"{question}, {SIZES[-1]:,} partitions"
        rows.append(from_rounds(SECTION, what, times[largest], PEER, times[their_client], "ms", NOT_SLOWER))
        for size in SIZES[1:]:
            what = f"{question}, {size:,} partitions"
            rows.append(from_rounds(SECTION, what, times[clients[size]], OWN_PEER, times[least], "ms", NOT_GROWING))
    return rows


def create_one(client: Client, number: int) -> float:
    seconds = _create(client, f"one-{number}", 1)
    _delete(client, [f"one-{number}-0"])
    return seconds


def change_one(client: Client, number: int) -> float:
    return _change_config(client, big_cluster.topic_name(7), number)


def describe_one(client: Client, number: int) -> float:
    topic = MetadataRequest.MetadataRequestTopic(name=big_cluster.topic_name(number % TOPICS // 2))
    return client.ask(MetadataRequest(topics=[topic]), METADATA_VERSION)[1]


def describe_a_page(client: Client, number: int) -> float:
    topic_name = big_cluster.topic_name(number % TOPICS // 4)
    cursor = DescribeTopicPartitionsRequest.Cursor(topic_name=topic_name, partition_index=0)
    return client.ask(DescribeTopicPartitionsRequest(response_partition_limit=100, cursor=cursor), PARTITIONS_VERSION)[
        1
    ]


OPERATIONS: dict[str, Callable[[Client, int], float]] = {
    "create a topic until visible": create_one,
    "change a config": change_one,
    "Metadata of one topic": describe_one,
    "DescribeTopicPartitions, a page of 100": describe_a_page,
}


@contextlib.contextmanager
def _written(make: Callable[[Path], Barnabas | ApacheKafka], partitions: int) -> Iterator[Node]:
    """A node that will find its log dir written; nobody needs its data in the end."""
    with tempfile.TemporaryDirectory(prefix="bench-admin-") as folder:
        node = make(Path(folder))
        big_cluster.write(Path(folder) / "data", node.controller, partitions)
        try:
            yield node
        finally:
            node.kill()


def _barnabas(directory: Path) -> Barnabas:
    return Barnabas(big_cluster.SETTINGS, directory=directory)


def _kafka(directory: Path) -> ApacheKafka:
    return ApacheKafka(big_cluster.SETTINGS, directory=directory, jvm=KAFKA_JVM)


# --- requests


def _create(client: Client, prefix: str, count: int) -> float:
    """Seconds from the request until every partition has a leader."""
    names = [f"{prefix}-{number}" for number in range(count)]
    topic = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[topic(name=name, num_partitions=PARTITIONS, replication_factor=1) for name in names],
        timeout_ms=TIMEOUT_MS,
    )
    asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names])
    response, seconds = client.call(request, CREATE_VERSION)
    _check(each.error_code for each in response.topics)
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while time.monotonic() < deadline:
        response, more = client.call(asked, METADATA_VERSION)
        seconds += more + POLL_S
        partitions = [partition for each in response.topics for partition in each.partitions]
        if len(partitions) == count * PARTITIONS and all(each.leader_id >= 0 for each in partitions):
            return seconds - POLL_S
        time.sleep(POLL_S)
    raise RuntimeError(f"{prefix} has not become visible")


def _wait_logs(client: Client, count: int) -> None:
    """Kafka shows a topic before it has begun its logs, and nothing newer until it has."""
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while time.monotonic() < deadline:
        response, _ = client.call(DescribeLogDirsRequest(topics=None), LOG_DIRS_VERSION)
        if sum(len(topic.partitions) for row in response.results for topic in row.topics) >= count:
            return
        time.sleep(0.25)
    raise RuntimeError(f"{count} logs were not begun in time")


def _delete(client: Client, names: list[str]) -> None:
    topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]
    response, _ = client.call(DeleteTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), DELETE_VERSION)
    _check(each.error_code for each in response.responses)


def _change_config(client: Client, name: str, number: int) -> float:
    change = IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", value=str(1_000_000 + number))
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=name, configs=[change]
    )
    response, seconds = client.call(IncrementalAlterConfigsRequest(resources=[resource]), CONFIGS_VERSION)
    _check(each.error_code for each in response.responses)
    return seconds


def _all_metadata(client: Client) -> float:
    return client.ask(MetadataRequest(topics=None), METADATA_VERSION)[1]


def _all_pages(client: Client) -> float:
    """Page after page; the client's decoding, by which it finds the next one, is not in the time."""
    request = DescribeTopicPartitionsRequest()
    seconds = 0.0
    while True:
        response, more = client.call(request, PARTITIONS_VERSION)
        seconds += more
        if response.next_cursor is None:
            return seconds
        cursor = response.next_cursor
        request.cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=cursor.topic_name, partition_index=cursor.partition_index
        )


def _check(codes: Iterable[int]) -> None:
    failed = [code for code in codes if code]
    if failed:
        raise RuntimeError(f"refused with {failed[0]}")
