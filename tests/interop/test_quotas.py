"""Client quotas: the same requests to Apache Kafka and to barnabas are throttled for the same time.

With two windows of a second, a client without any history has a rate of its bytes per second. So the first throttle time
of a client is known exactly. For later ones, the time between the requests counts, which the test measures.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, NamedTuple

import pytest
from tools.apache_kafka import VERSION, ApacheKafka, Barnabas, Node, run_tool

from barnabas import wire
from barnabas.batches import Record, build_batch
from barnabas.wire import APIS, Message
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.broker.clients import RawClient
from tests.interop.conftest import jars
from tests.interop.side_by_side import ok
from tests.quotas.entities import LEVELS, Parts

pytestmark = pytest.mark.interop

WINDOWS = {"quota.window.num": "2"}
APPLIED_S = 1.0  # until Kafka has applied a quota that it shows already
FORGOTTEN_S = 2.1  # both windows
PRODUCE, FETCH = 12, 12
THROTTLING_QUOTA_EXCEEDED = 89
_EXACT, _DEFAULT = 0, 1  # how an entity is asked for
NAMES = (f"client-{number}" for number in count())


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[Node]]:
    """Apache Kafka and barnabas, with a topic."""
    jars(VERSION)
    with ApacheKafka(WINDOWS) as kafka, Barnabas(WINDOWS) as barnabas:
        topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        for node in (kafka, barnabas):
            (created,) = asyncio.run(asked(node, CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)).topics
            assert created.error_code == 0
        yield [kafka, barnabas]


class Exchange(NamedTuple):
    response: Any
    size: int  # of the request, without its length
    answer_size: int
    sent_s: float
    received_s: float


async def exchange(node: Node, request: Message, version: int, client_id: str = "test") -> Exchange:
    """One request on a connection of its own, which may be muted afterwards."""
    key = request.schema().key or 0
    header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=1, client_id=client_id)
    frame = wire.encode(header, APIS[key].request_header_version(version)) + wire.encode(request, version)
    client = await RawClient.connect(node.address)
    try:
        sent_s = time.monotonic()
        answer = await client.call(frame)
        received_s = time.monotonic()
    finally:
        client.transport.abort()
    body = answer[4 + APIS[key].response_header_version(version) :]
    return Exchange(wire.decode(APIS[key].response, version, body), len(frame), 4 + len(body), sent_s, received_s)


async def asked(node: Node, request: Message, version: int, client_id: str = "test") -> Any:
    return (await exchange(node, request, version, client_id)).response


def set_quotas(nodes: list[Node], key: str, *values: tuple[Parts, float | None]) -> None:
    """Set quotas on both, or remove those without a value."""
    row, op = AlterClientQuotasRequest.EntryData, AlterClientQuotasRequest.OpData
    entries = [
        row(
            entity=[AlterClientQuotasRequest.EntityData(entity_type=k, entity_name=v) for k, v in parts.items()],
            ops=[op(key=key, value=value or 0.0, remove=value is None)],
        )
        for parts, value in values
    ]
    for node in nodes:
        response = asyncio.run(asked(node, AlterClientQuotasRequest(entries=entries), 1))
        assert [entry.error_code for entry in response.entries] == [0] * len(entries)
    for node in nodes:
        for parts, value in values:
            _until_shown(node, key, parts, value)
    time.sleep(APPLIED_S)


def _until_shown(node: Node, key: str, parts: Parts, value: float | None) -> None:
    """A busy machine may take longer than a moment to read the quota from the metadata log."""
    component = DescribeClientQuotasRequest.ComponentData
    asked_for = [
        component(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
        for kind, name in parts.items()
    ]
    deadline_s = time.monotonic() + 30
    while True:
        request = DescribeClientQuotasRequest(components=asked_for, strict=True)
        entries = asyncio.run(asked(node, request, 1)).entries or []
        shown = {each.key: each.value for entry in entries for each in entry.values}
        if shown.get(key) == value:
            return
        assert time.monotonic() < deadline_s, (shown, parts, value)
        time.sleep(0.05)


def produce(size: int, acks: int = -1) -> ProduceRequest:
    records = build_batch([Record(0, 1_700_000_000_000, None, b"v" * size)])
    data = [ProduceRequest.PartitionProduceData(index=0, records=records)]
    return ProduceRequest(
        acks=acks, timeout_ms=5000, topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=data)]
    )


def fetch(offset: int, max_bytes: int = 1 << 20, session_epoch: int = -1) -> FetchRequest:
    row = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    topic = FetchRequest.FetchTopic(topic="t", partitions=[row])
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic], session_epoch=session_epoch)


def first_throttle_time_ms(size: int, bound: float) -> int:
    """Of a client without any history: its rate is its bytes per second."""
    return max(round((size - bound) / bound * 1000), 0)


def test_the_first_throttle_time_of_a_producer_is_exactly_that_of_the_formula(nodes: list[Node]) -> None:
    name = next(NAMES)
    set_quotas(nodes, "producer_byte_rate", ({"client-id": name}, 20_000))
    for node in nodes:
        seen = asyncio.run(exchange(node, produce(50_000), PRODUCE, name))
        assert seen.response.throttle_time_ms == first_throttle_time_ms(seen.size, 20_000) > 1500
        assert seen.response.responses[0].partition_responses[0].error_code == 0


def test_later_throttle_times_of_a_producer_are_within_the_time_that_the_requests_took(nodes: list[Node]) -> None:
    name, bound = next(NAMES), 10_000
    set_quotas(nodes, "producer_byte_rate", ({"client-id": name}, bound))

    async def several(node: Node) -> list[Exchange]:
        return [await exchange(node, produce(8000), PRODUCE, name) for _ in range(5)]

    for node in nodes:
        seen = asyncio.run(several(node))
        assert seen[-1].received_s - seen[0].sent_s < 1, "too slow for the formula of a single window"
        for number, each in enumerate(seen):
            total = sum(one.size for one in seen[: number + 1])
            least_ms, most_ms = (
                0 if number == 0 else 1000 * (each.sent_s - seen[0].received_s),
                0 if number == 0 else 1000 * (each.received_s - seen[0].sent_s),
            )
            low, high = (max(total / bound * 1000 - (1000 + passed), 0) for passed in (most_ms, least_ms))
            assert low - 2 <= each.response.throttle_time_ms <= high + 2, (node.command[0], number)


def test_a_throttled_fetch_has_the_same_time_and_structure(nodes: list[Node]) -> None:
    name, bound = next(NAMES), 40_000
    set_quotas(nodes, "consumer_byte_rate", ({"client-id": name}, bound))
    for node in nodes:
        first = asyncio.run(asked(node, produce(30_000), PRODUCE)).responses[0].partition_responses[0].base_offset
        asyncio.run(asked(node, produce(30_000), PRODUCE))
        allowed = asyncio.run(exchange(node, fetch(first, 30_100), FETCH, name))
        throttled = asyncio.run(exchange(node, fetch(first, 30_100), FETCH, name))
        assert (allowed.response.throttle_time_ms, len(allowed.response.responses)) == (0, 1)
        response = throttled.response
        assert (response.error_code, response.session_id, response.responses) == (0, 0, [])
        passed_ms = [
            1000 * (throttled.sent_s - allowed.received_s),
            1000 * (throttled.received_s - allowed.sent_s),
        ]
        high, low = (2 * allowed.answer_size / bound * 1000 - (1000 + each) for each in passed_ms)
        assert low - 2 <= response.throttle_time_ms <= high + 2, node.command[0]


def test_a_fetch_returns_no_more_than_its_quota_allows_in_a_window(nodes: list[Node]) -> None:
    name = next(NAMES)
    set_quotas(nodes, "consumer_byte_rate", ({"client-id": name}, 10_000))
    for node in nodes:
        offsets = [
            asyncio.run(asked(node, produce(3000), PRODUCE)).responses[0].partition_responses[0].base_offset
            for _ in range(6)
        ]
        seen = asyncio.run(asked(node, fetch(offsets[0]), FETCH, name))
        while not seen.responses:  # Kafka fills it with a part of a batch, which is a few bytes too much at first
            assert 0 < seen.throttle_time_ms < 100
            time.sleep(seen.throttle_time_ms / 1000)
            seen = asyncio.run(asked(node, fetch(offsets[0]), FETCH, name))
        assert 9000 < len(seen.responses[0].partitions[0].records) <= 10_000


def test_a_throttled_session_is_kept_and_a_new_one_is_not_created(nodes: list[Node]) -> None:
    name = next(NAMES)
    set_quotas(nodes, "consumer_byte_rate", ({"client-id": name}, 5000))
    seen = []
    for node in nodes:
        rows = asyncio.run(asked(node, produce(30_000), PRODUCE)).responses[0].partition_responses
        offset = rows[0].base_offset
        created = asyncio.run(asked(node, fetch(offset, session_epoch=0), FETCH, name))
        begun = asyncio.run(asked(node, fetch(offset + 1, session_epoch=0), FETCH, name))
        asyncio.run(asked(node, produce(30_000), PRODUCE))
        throttled = [
            FetchRequest(max_wait_ms=0, min_bytes=0, session_id=begun.session_id, session_epoch=epoch, topics=[])
            for epoch in (1, 2)
        ]
        answers = [asyncio.run(asked(node, request, FETCH, name)) for request in throttled]
        seen.append(
            [
                (created.error_code, created.session_id, created.throttle_time_ms > 0),
                (begun.error_code, begun.session_id > 0, begun.throttle_time_ms > 0),
                *(
                    (each.error_code, each.session_id == begun.session_id, each.throttle_time_ms > 0, each.responses)
                    for each in answers
                ),
            ]
        )
    assert seen[0] == seen[1]
    assert seen[1] == [(0, 0, True), (0, True, False), (0, True, True, []), (0, True, True, [])]


REQUESTS: list[tuple[Message, int]] = [
    (MetadataRequest(topics=[]), 9),
    (MetadataRequest(topics=None), 12),
    (ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3),
    (ApiVersionsRequest(), 1),
    (ListOffsetsRequest(replica_id=-1), 7),
    (FindCoordinatorRequest(coordinator_keys=["g"]), 4),
    (ListGroupsRequest(), 4),
    (DescribeClusterRequest(), 0),
    (produce(10), PRODUCE),
    (fetch(0), FETCH),
]


def test_every_request_above_the_quota_on_time_is_throttled_for_a_window(nodes: list[Node]) -> None:
    name = next(NAMES)
    set_quotas(nodes, "request_percentage", ({"client-id": name}, 0.000001))
    times = [
        [asyncio.run(asked(node, request, version, name)).throttle_time_ms for request, version in REQUESTS]
        for node in nodes
    ]
    assert times == [[1000] * len(REQUESTS)] * 2


def test_old_versions_are_answered_at_once_and_muted_too(nodes: list[Node]) -> None:
    name = next(NAMES)
    set_quotas(nodes, "request_percentage", ({"client-id": name}, 0.000001))

    async def twice(node: Node) -> tuple[float, float]:
        """When both of two requests on one connection are answered."""
        header = RequestHeader(request_api_key=3, request_api_version=1, correlation_id=1, client_id=name)
        frame = wire.encode(header, 1) + wire.encode(MetadataRequest(topics=[]), 1)
        client = await RawClient.connect(node.address)
        began_s = time.monotonic()
        answer = await client.call(frame)
        first_s = time.monotonic() - began_s
        assert await client.call(frame) == answer
        client.transport.abort()
        return first_s, time.monotonic() - began_s

    times = []
    for node in nodes:
        assert asyncio.run(asked(node, MetadataRequest(topics=[]), 9, name)).throttle_time_ms == 1000
        times.append(asyncio.run(twice(node)))
    assert [(first < 0.9, both > 0.9) for first, both in times] == [(True, True)] * 2, times


@pytest.mark.parametrize("first", range(8))
def test_the_same_of_eight_quotas_applies(nodes: list[Node], first: int) -> None:
    named = {"u": "ANONYMOUS", "c": next(NAMES)}
    levels: list[Parts] = [
        {kind: None if name is None else named[name] for kind, name in parts.items()} for parts in LEVELS
    ]
    values: list[tuple[Parts, float | None]] = [
        (parts, 1000.0 * (level + 1)) for level, parts in enumerate(levels) if level >= first
    ]
    set_quotas(nodes, "producer_byte_rate", *values)
    time.sleep(FORGOTTEN_S)  # what earlier tests produced as the same user
    seen = [asyncio.run(exchange(node, produce(20_000), PRODUCE, named["c"])) for node in nodes]
    set_quotas(nodes, "producer_byte_rate", *((parts, None) for parts, _ in values))
    expected = first_throttle_time_ms(seen[0].size, 1000 * (first + 1))
    assert [each.response.throttle_time_ms for each in seen] == [expected] * 2


def test_clients_of_a_user_share_its_quota(nodes: list[Node]) -> None:
    set_quotas(nodes, "producer_byte_rate", ({"user": "ANONYMOUS"}, 20_000))
    times = []
    for node in nodes:
        seen = [asyncio.run(asked(node, produce(15_000), PRODUCE, name)) for name in ("one", "other")]
        times.append([each.throttle_time_ms > 0 for each in seen])
    set_quotas(nodes, "producer_byte_rate", ({"user": "ANONYMOUS"}, None))
    assert times == [[False, True]] * 2


def mutation(kind: str, name: str, partitions: int) -> tuple[Message, int]:
    """A request that counts as so many mutations, in the oldest version that may be refused."""
    if kind == "create":
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        return CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 6
    if kind == "grow":
        more = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        return CreatePartitionsRequest(topics=[more], timeout_ms=60_000), 3
    return DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000), 5


async def outcome(node: Node, name: str, *wanted: Any) -> tuple[int, int]:
    """The error code of the only row, and the throttle time."""
    request, version = mutation(*wanted)
    found = (await asked(node, request, version, name)).to_json(version)
    (row,) = found.get("topics") or found.get("results") or found["responses"]
    return row["errorCode"], found["throttleTimeMs"]


@pytest.mark.parametrize("refused", ["create", "grow", "delete"])
def test_changes_above_the_rate_of_mutations_are_refused_for_the_same_time(nodes: list[Node], refused: str) -> None:
    """The bucket holds eleven seconds (`controller.quota.window.num`), and one request may overdraw it, here by three."""
    name = next(NAMES)
    set_quotas(nodes, "controller_mutation_rate", ({"client-id": name}, 1.0))

    async def run(node: Node) -> list[tuple[int, int]]:
        begun_s = time.monotonic()
        first = await outcome(node, name, "create", f"many-{name}", 14)
        of = f"one-{name}" if refused == "create" else f"many-{name}"
        code, time_ms = await outcome(node, name, refused, of, 15 if refused == "grow" else 1)
        passed_ms = (time.monotonic() - begun_s) * 1000 + 1  # of the three seconds
        return [first, (code, 3000 if 3000 - passed_ms <= time_ms <= 3000 else time_ms)]

    expected = [(0, 0), (THROTTLING_QUOTA_EXCEEDED, 3000)]
    assert [asyncio.run(run(node)) for node in nodes] == [expected] * 2


def test_connections_above_the_rate_of_their_address_are_closed_unserved(nodes: list[Node]) -> None:
    host = "127.0.0.7"
    set_quotas(nodes, "connection_creation_rate", ({"ip": host}, 3))
    frame = struct.pack(">ihhih", 10, 18, 0, 1, -1)
    seen = []
    for node in nodes:
        socks = [socket.create_connection(node.address, source_address=(host, 0)) for _ in range(6)]
        served = []
        for sock in socks:
            sock.settimeout(10)
            sock.sendall(frame)
        for sock in socks:
            try:
                served.append(sock.recv(1) != b"")
            except ConnectionError:
                served.append(False)
            sock.close()
        seen.append(served)
    assert seen == [[True] * 3 + [False] * 3] * 2


def test_the_java_producer_sees_throttle_times(nodes: list[Node]) -> None:
    name = next(NAMES)
    set_quotas(nodes, "producer_byte_rate", ({"client-id": name}, 200_000))

    def most_ms(node: Node) -> float:
        props = f"bootstrap.servers={node.bootstrap} client.id={name} linger.ms=0 batch.size=50000".split()
        sizes = ["--num-records", "40", "--record-size", "20000", "--throughput", "-1"]
        args = ["--topic", "t", *sizes, "--print-metrics", "--producer-props"]
        out = ok(run_tool("kafka-producer-perf-test", *args, *props, timeout_s=120))
        found = re.search(r"produce-throttle-time-max\S*\s+: ([\d.]+)", out)
        assert found is not None, out
        return float(found[1])

    with ThreadPoolExecutor(2) as pool:
        times = list(pool.map(most_ms, nodes))
    assert min(times) > 100, times
