"""Every API that a broker serves: many small requests at once, and one request for each array with very many rows."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from itertools import islice

from tools.apache_kafka import Node

from barnabas.broker.served import served_apis, served_versions
from barnabas.wire import message_class
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.produce import ProduceRequest
from bench.connection import Client, frame
from bench.stall_causes import cause
from bench.stall_causes.preparing import ask, asking, create_topics, settled_coordinators
from bench.wide_requests import LOGIN, wide_arrays

ROWS = 20_000
PIPELINED = 200
ANSWER_S = 30.0
CLIENTS = 300
ANNOUNCED_BYTES, SENT_BYTES = 100_000_000, 1 << 16
CLIENT_METRICS = 16
LETTERS = 22  # each more would take twice as long in a pattern that is searched by trying
CLOSED = (ConnectionError, TimeoutError)


def _prepared(node: Node) -> None:
    create_topics(node, ["name-0"], 1)
    settled_coordinators(node)


@cause(f"one request with {ROWS:,} rows for each array of each API")
def wide(node: Node) -> Iterator[None]:
    _prepared(node)
    yield
    for each in wide_arrays("broker"):
        request = each.request(ROWS)
        if isinstance(request, ProduceRequest):
            request.acks = 1  # so that it is answered
        data = frame(request, each.version)
        with Client(node, ANSWER_S) as client, contextlib.suppress(*CLOSED):
            ask(client, data)


@cause(f"{PIPELINED} small requests of each API, pipelined on one connection")
def pipelined(node: Node) -> Iterator[None]:
    _prepared(node)
    yield
    for key, api in served_apis("broker").items():
        if api.name in LOGIN:
            continue
        request = message_class(api.request)()
        if isinstance(request, ProduceRequest):
            request.acks = 1
        data = frame(request, max(served_versions(key)))
        with Client(node, ANSWER_S) as client, contextlib.suppress(*CLOSED):
            client.send(data * PIPELINED)
            for _ in range(PIPELINED):
                client.receive()


@cause("20 topics of 50 partitions: each partition gets its first leader")
def leaders(node: Node) -> Iterator[None]:
    yield
    for number in islice(_numbers(), 20):
        create_topics(node, [f"led-{number}"], 50)


def _numbers() -> Iterator[int]:
    """Numbers that no other round has had."""
    while True:
        yield time.time_ns()


@cause("a subscription of client metrics whose pattern is (a+)+b, and a client of many a")
def pattern(node: Node) -> Iterator[None]:
    changes = IncrementalAlterConfigsRequest
    values = {"metrics": "*", "interval.ms": "100", "match": "client_software_name=(a+)+b"}
    configs = [changes.AlterableConfig(name=name, config_operation=0, value=value) for name, value in values.items()]
    row = changes.AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name="slow", configs=configs)
    with asking(node) as client:
        client.call(changes(resources=[row]), 1)
    named = ApiVersionsRequest(client_software_name="a" * LETTERS, client_software_version="1")
    with asking(node) as client:
        client.call(named, 3)
        yield
        for _ in range(10):
            client.call(GetTelemetrySubscriptionsRequest(), 0)


@cause(f"{CLIENTS} connections announce a frame of 100 MB each", has_peer=False)
def announced(node: Node) -> Iterator[None]:
    start = ANNOUNCED_BYTES.to_bytes(4) + bytes(SENT_BYTES)
    with contextlib.ExitStack() as stack:
        yield
        for _ in range(CLIENTS):
            stack.enter_context(Client(node, ANSWER_S)).send(start)
        time.sleep(1)
