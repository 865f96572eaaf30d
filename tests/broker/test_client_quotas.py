"""Client quotas as requests meet them: produce, fetch, and the time of the event loop."""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import wire
from barnabas.batches import Record, build_batch
from barnabas.broker.context import ClientInformation
from barnabas.client import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.sync import Admin
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.testing import Broker
from barnabas.wire import APIS, ApiKey, ErrorCode, Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.records.metadata import ClientQuotaRecord
from tests.broker.clients import RawClient
from tests.broker.metrics.scraping import Scrape, ask
from tests.broker.reading_node import ReadingNode, fetch, rows, topic_id

STILL_MUTED_S = 0.3


def quota(key: str, value: float, **parts: str | None) -> ClientQuotaRecord:
    entity = [
        ClientQuotaRecord.EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
        for kind, name in (parts or {"user": None}).items()
    ]
    return ClientQuotaRecord(entity=entity, key=key, value=value)


def frame_of(request: Message, version: int, client_id: str = "test") -> bytes:
    key = request.schema().key or 0
    header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=5, client_id=client_id)
    return wire.encode(header, APIS[key].request_header_version(version)) + wire.encode(request, version)


def produce(size: int, acks: int = -1) -> ProduceRequest:
    records = build_batch([Record(0, 1_700_000_000_000, None, b"v" * size)])
    data = [ProduceRequest.PartitionProduceData(index=0, records=records)]
    topic = ProduceRequest.TopicProduceData(name="t", topic_id=topic_id("t"), partition_data=data)
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[topic])


# --- bytes produced


@pytest.mark.parametrize("version", [3, 12, 13])
def test_a_producer_above_its_rate_is_told_how_long_to_wait_and_its_records_are_kept(
    tmp_path: Path, version: int
) -> None:
    node = ReadingNode(tmp_path, t=[[1]], records=[quota("producer_byte_rate", 1000)])
    size = len(frame_of(produce(12_000), version))
    information = ClientInformation()
    response = node.call(produce(12_000), version, information=information)
    assert response.responses[0].partition_responses[0].error_code == 0
    assert response.throttle_time_ms == information.mute_ms == size - 10_000
    assert node.partition().log_end_offset == 1
    assert (node.quotas.produce.throttled, node.quotas.produce.throttled_ms) == (1, size - 10_000)


def test_a_producer_below_its_rate_is_not_throttled(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1]], records=[quota("producer_byte_rate", 1000)])
    for _ in range(10):
        information = ClientInformation()
        assert node.call(produce(800), 13, information=information).throttle_time_ms == information.mute_ms == 0
        node.now_ms += 1000


def test_a_producer_without_answers_is_muted_all_the_same(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1]], records=[quota("producer_byte_rate", 1000)])
    information = ClientInformation()
    frame = frame_of(produce(12_000, acks=0), 13)
    assert node.answer(frame, information=information) is None
    assert information.mute_ms == len(frame) - 10_000


def test_a_quota_of_others_does_not_count(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1]], records=[quota("producer_byte_rate", 1, client_id="other")])
    assert node.call(produce(100_000), 13).throttle_time_ms == 0


# --- bytes fetched


def test_a_consumer_above_its_rate_gets_nothing_but_the_time_to_wait(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1]], records=[quota("consumer_byte_rate", 1000)])
    for _ in range(2):
        node.append(b"v" * 6000)
    times = []
    for offset in (0, 1):
        information = ClientInformation()
        response = node.call(fetch(("t", 0, offset), session_epoch=-1), 17, information=information)
        times.append(response.throttle_time_ms)
        assert response.throttle_time_ms == information.mute_ms
        assert [len(row.records or b"") > 6000 for row in rows(response)] == ([True] if offset == 0 else [])
    assert times[0] == 0
    assert 2000 < times[1] < 2400
    assert node.quotas.fetch.record("ANONYMOUS", "test", 0, node.now_ms) == 0  # what was not sent does not count
    node.now_ms += 11_000
    assert len(rows(node.call(fetch(("t", 0, 1), session_epoch=-1), 17))) == 1


def test_a_fetch_returns_no_more_than_its_quota_can_allow(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1]], records=[quota("consumer_byte_rate", 1000)])
    for _ in range(30):
        node.append(b"v" * 900)
    response: FetchResponse = node.call(fetch(("t", 0, 0)), 17)
    assert (len(rows(response)[0].records or b"") // 900, response.throttle_time_ms) == (10, 0)


def test_a_throttled_fetch_leaves_its_session_as_it_is(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1]], records=[quota("consumer_byte_rate", 1000)])
    session: FetchResponse = node.call(fetch(("t", 0, 0), session_epoch=0), 17)
    assert session.session_id > 0
    node.append(b"v" * 12_000)
    asked = {"session_id": session.session_id}
    throttled: FetchResponse = node.call(fetch(**asked, session_epoch=1), 17)
    assert (throttled.session_id, throttled.error_code, throttled.responses) == (session.session_id, 0, [])
    assert throttled.throttle_time_ms > 2000
    again: FetchResponse = node.call(fetch(**asked, session_epoch=2), 17)
    assert (again.error_code, again.throttle_time_ms) == (0, throttled.throttle_time_ms)


def test_a_throttled_fetch_creates_no_session(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1]], records=[quota("consumer_byte_rate", 10)])
    node.append(b"v" * 12_000)
    response: FetchResponse = node.call(fetch(("t", 0, 0), session_epoch=0), 17)
    assert (response.session_id, response.responses, response.throttle_time_ms > 0) == (0, [], True)
    assert len(node.fetch_sessions) == 0


def test_a_follower_is_never_throttled(tmp_path: Path) -> None:
    limits = [quota("consumer_byte_rate", 1), quota("request_percentage", 0.0001)]
    node = ReadingNode(tmp_path, t=[[1, 2]], records=[*limits])
    slow_clock(node, 10)
    node.append(b"v" * 12_000)
    request = fetch(("t", 0, 0), session_epoch=-1)
    request.replica_state.replica_id = 2
    response: FetchResponse = node.call(request, 17)
    assert (response.throttle_time_ms, len(rows(response)[0].records or b"") > 12_000) == (0, True)


# --- time of the event loop


def slow_clock(node: ReadingNode, step_ms: int) -> Iterator[int]:
    """A clock for durations that advances whenever it is read."""
    ticks = itertools.count(0, step_ms * 1_000_000)
    node.monotonic_ns = lambda: next(ticks)
    return ticks


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (MetadataRequest(topics=None), 13),
        (MetadataRequest(topics=None), 4),
        (ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4),
        (ApiVersionsRequest(), 1),
        (DescribeTopicPartitionsRequest(response_partition_limit=10), 0),
        (ListOffsetsRequest(), 10),
        (fetch(("t", 0, 0)), 17),
        (produce(1), 13),
    ],
)
def test_a_client_that_takes_too_much_time_waits_for_at_most_a_window(
    tmp_path: Path, request_: Message, version: int
) -> None:
    node = ReadingNode(tmp_path, t=[[1]], records=[quota("request_percentage", 1)])
    slow_clock(node, 1000)  # each reading takes a second, so every request takes much more than its 1 % of 10 s
    information = ClientInformation()
    response = node.call(request_, version, information=information)
    assert response.throttle_time_ms == information.mute_ms == 1000
    assert node.quotas.request.throttled == 1


def test_a_version_without_the_field_is_muted_all_the_same(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1]], records=[quota("request_percentage", 1)])
    slow_clock(node, 1000)
    information = ClientInformation()
    response = node.call(MetadataRequest(topics=[]), 1, information=information)
    assert (information.mute_ms, response.throttle_time_ms, len(response.brokers)) == (1000, 0, 2)


def test_a_throttled_response_is_otherwise_the_same(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1]])
    requests: list[tuple[Message, int]] = [(MetadataRequest(topics=None), 13), (ApiVersionsRequest(), 2)]
    plain = [node.call(request, version) for request, version in requests]
    limited = ReadingNode(tmp_path, t=[[1]], records=[quota("request_percentage", 1)])
    slow_clock(limited, 1000)
    for before, (request, version) in zip(plain, requests, strict=True):
        before.throttle_time_ms = 1000
        assert limited.call(request, version) == before


def test_a_throttled_fetch_for_its_time_is_empty_and_its_bytes_do_not_count(tmp_path: Path) -> None:
    limits = [quota("request_percentage", 1), quota("consumer_byte_rate", 10_000)]
    node = ReadingNode(tmp_path, t=[[1]], records=[*limits])
    slow_clock(node, 1000)
    node.append(b"v" * 12_000)
    response: FetchResponse = node.call(fetch(("t", 0, 0)), 17)
    assert (response.throttle_time_ms, response.responses) == (1000, [])
    assert node.quotas.fetch.record("ANONYMOUS", "test", 0, node.now_ms) == 0


def test_the_time_of_a_producer_without_answers_is_not_limited(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1]], records=[quota("request_percentage", 1)])
    slow_clock(node, 1000)
    information = ClientInformation()
    assert node.answer(frame_of(produce(1, acks=0), 13), information=information) is None
    assert information.mute_ms == 0


def test_nodes_do_not_throttle_each_other_but_those_who_only_say_they_are_nodes(tmp_path: Path) -> None:
    for authorizer, throttle_time_ms in ((AuthorizerSettings(), 0), (AuthorizerSettings(enabled=True), 1000)):
        node = ReadingNode(tmp_path, t=[[1]], records=[quota("request_percentage", 1)])
        node.authorizer = authorizer
        slow_clock(node, 1000)
        heartbeat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=101)
        response = node.call(heartbeat, 1, listener="controller")
        is_refused = response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert (response.throttle_time_ms, is_refused) == (throttle_time_ms, throttle_time_ms > 0)


def test_the_longest_of_several_throttle_times_counts(tmp_path: Path) -> None:
    limits = [quota("request_percentage", 1), quota("producer_byte_rate", 1000)]
    node = ReadingNode(tmp_path, t=[[1]], records=[*limits])
    slow_clock(node, 1000)
    assert node.call(produce(12_000), 13).throttle_time_ms > 2000
    assert (node.quotas.produce.throttled, node.quotas.request.throttled) == (1, 0)


# --- a real node


async def call(client: RawClient, request: Message, version: int, client_id: str) -> Any:
    key = ApiKey(request.schema().key or 0)
    answer = await client.call(frame_of(request, version, client_id))
    return wire.decode(APIS[key].response, version, answer[4 + APIS[key].response_header_version(version) :])


@pytest.mark.parametrize(("key", "version"), [("producer_byte_rate", 12), ("request_percentage", 12)])
def test_a_real_node_answers_at_once_and_then_reads_nothing_more(key: str, version: int) -> None:
    with Broker() as broker:
        broker.create_topic("t", 1)
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            entity = (("client-id", "slow"),)
            admin.alter_client_quotas({entity: {key: 100.0 if key == "producer_byte_rate" else 0.000001}})

        async def scenario() -> None:
            client = await RawClient.connect((host, int(port)))
            response = await call(client, produce(100_000), version, "slow")
            assert response.responses[0].partition_responses[0].error_code == 0
            assert response.throttle_time_ms >= 1000
            frame = frame_of(MetadataRequest(topics=[]), 9)
            client.send(struct.pack(">i", len(frame)) + frame)
            assert not await client.is_closed(STILL_MUTED_S)  # and no answer either
            other = await RawClient.connect((host, int(port)))
            assert (await call(other, produce(1), version, "quick")).throttle_time_ms == 0
            await other.close()
            if key == "request_percentage":  # it waits for at most one window
                (correlation_id,) = struct.unpack_from(">i", await client.frame())
                assert correlation_id == 5
            client.transport.abort()

        asyncio.run(scenario())


# --- new connections


def connected(address: tuple[str, int], count: int) -> list[socket.socket]:
    return [socket.create_connection(address) for _ in range(count)]


def is_served(sock: socket.socket) -> bool:
    """Whether a request is answered; False when the connection is closed instead."""
    frame = frame_of(ApiVersionsRequest(), 0)
    try:
        sock.sendall(struct.pack(">i", len(frame)) + frame)
        return sock.recv(1) != b""
    except ConnectionError:
        return False


def test_a_connection_above_the_rate_of_its_address_is_not_served_and_then_closed() -> None:
    with Broker() as broker, Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        quick, slow = (("ip", "127.0.0.1"),), (("ip", None),)
        admin.alter_client_quotas(
            {quick: {"connection_creation_rate": 1000.0}, slow: {"connection_creation_rate": 1.0}}
        )
        socks = connected((broker.host, broker.port), 15)
        assert all(map(is_served, socks))
        admin.alter_client_quotas({quick: {"connection_creation_rate": None}})
        socks += connected(
            (broker.host, broker.port), 15
        )  # the default counts now: ten of all connections are too many
        assert list(map(is_served, socks)) == [True] * 15 + [False] * 15
        admin.alter_client_quotas({slow: {"connection_creation_rate": None}})
        socks += connected((broker.host, broker.port), 5)
        assert all(map(is_served, socks[-5:]))
        for sock in socks:
            sock.close()


def test_connections_above_the_rate_of_the_listener_wait_and_are_served() -> None:
    with Broker(config={"listener.name.plaintext.max.connection.creation.rate": "1"}, metrics=True) as broker:
        socks = connected((broker.host, broker.port), 12)
        assert all(map(is_served, socks))
        assert waits_of(broker) > 0
        for sock in socks:
            sock.close()


def test_the_rate_of_the_node_can_be_changed_while_it_runs() -> None:
    with (
        Broker(metrics=True) as broker,
        Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin,
    ):
        socks = connected((broker.host, broker.port), 30)
        assert all(map(is_served, socks))
        assert waits_of(broker) == 0
        change = AlterConfigOp("max.connection.creation.rate", AlterConfigOpType.SET, "1")
        assert list(admin.incremental_alter_configs({ConfigResource.all_brokers(): [change]}).values()) == [None]
        socks += connected((broker.host, broker.port), 1)  # the earlier ones count as well
        assert is_served(socks[-1])
        assert waits_of(broker) > 0
        for sock in socks:
            sock.close()


def test_a_listener_at_its_own_limit_accepts_the_next_connection_when_one_closes() -> None:
    with Broker(config={"listener.name.plaintext.max.connections": "2"}) as broker:
        first, second, third = connected((broker.host, broker.port), 3)
        assert is_served(first)
        assert is_served(second)
        third.settimeout(STILL_MUTED_S)
        with pytest.raises(TimeoutError):
            is_served(third)
        first.close()
        third.settimeout(None)
        assert third.recv(1)
        second.close()
        third.close()


def waits_of(broker: Broker) -> float:
    seen = Scrape(ask(broker.metrics_url).text)
    return seen("barnabas_connection_accept_waits_total", listener="PLAINTEXT")
