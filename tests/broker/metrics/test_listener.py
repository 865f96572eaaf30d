"""The HTTP listener: what it answers, and what it does with those who ask wrongly, slowly or too often."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from barnabas.broker import http_listener
from barnabas.broker.http_listener import MAX_CONNECTIONS, MAX_HEAD_BYTES
from barnabas.broker.metrics import listener
from barnabas.broker.node import Node, NodeError
from barnabas.client.sync import Admin
from barnabas.config import server
from barnabas.config.definitions import ConfigError
from barnabas.config.server import METRICS
from barnabas.storage import Log
from barnabas.storage.log_dirs import CLEAN_SHUTDOWN_FILE
from barnabas.testing import Broker, BrokerError
from tests.broker.metrics.scraping import ask, scrape

TIMEOUT_S = 30
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "barnabas.metrics.listener": ":0",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(["t"], metrics=True) as running:
        yield running


def connect(broker: Broker) -> socket.socket:
    url = urlsplit(broker.metrics_url)
    return socket.create_connection((url.hostname or "", url.port or 0), timeout=TIMEOUT_S)


def received(client: socket.socket) -> bytes:
    """Everything until the listener closes the connection."""
    found = b""
    try:
        while data := client.recv(1 << 16):
            found += data
    except ConnectionError:
        pass
    return found


def answer_to(broker: Broker, request: bytes) -> bytes:
    with connect(broker) as client:
        client.sendall(request)
        return received(client)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ")[1])


def require_unharmed(broker: Broker) -> None:
    """Raise unless clients are served and metrics are answered."""
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        assert [each.name for each in admin.list_topics()] == ["t"]
    assert scrape(broker.metrics_url)("barnabas_ready") == 1


def beside(broker: Broker, path: str) -> str:
    return broker.metrics_url.replace("/metrics", path)


def test_a_ready_node_is_alive_and_ready(broker: Broker) -> None:
    assert ask(beside(broker, "/healthz"))[:2] == (200, "ok\n")
    assert ask(beside(broker, "/readyz"))[:2] == (200, "ok\n")


def test_a_path_that_does_not_exist_is_answered_with_those_that_do(broker: Broker) -> None:
    assert ask(beside(broker, "/"))[:2] == (404, "there are /metrics, /healthz and /readyz\n")


def test_a_query_is_ignored(broker: Broker) -> None:
    assert ask(f"{broker.metrics_url}?name[]=up").status == 200


def test_head_has_the_size_of_the_answer_and_no_body(broker: Broker) -> None:
    answer = answer_to(broker, b"HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert status_of(answer) == 200
    assert b"Content-Length: 3" in head
    assert body == b""


def test_a_request_may_come_in_pieces(broker: Broker) -> None:
    with connect(broker) as client:
        for piece in (b"GET /hea", b"lthz HT", b"TP/1.0\r\n", b"\r", b"\n"):
            client.sendall(piece)
        assert received(client).endswith(b"ok\n")


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"DELETE", b"OPTIONS", b"get"])
def test_only_get_and_head_are_served(broker: Broker, method: bytes) -> None:
    answer = answer_to(broker, method + b" /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello")
    assert status_of(answer) == 405
    assert b"Allow: GET, HEAD" in answer
    require_unharmed(broker)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x00\x00\x10\x00\x12\x00\x00\x00\x00\x00\x01\r\n\r\n",
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /metrics\r\n\r\n",
        b"GET metrics HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/2\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
    ],
)
def test_garbage_is_a_bad_request(broker: Broker, garbage: bytes) -> None:
    assert status_of(answer_to(broker, garbage)) == 400
    require_unharmed(broker)


def test_a_head_that_is_too_large_is_refused(broker: Broker) -> None:
    answer = answer_to(broker, b"GET /metrics HTTP/1.1\r\nX: " + b"x" * MAX_HEAD_BYTES)
    assert status_of(answer) == 431
    require_unharmed(broker)


def test_no_more_than_the_first_bytes_of_an_endless_head_are_kept(broker: Broker) -> None:
    with connect(broker) as client:
        try:
            for _ in range(200):
                client.sendall(b"x" * (1 << 16))
        except ConnectionError:
            pass
        else:
            received(client)
    require_unharmed(broker)


def test_who_does_not_finish_a_request_in_time_is_disconnected(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_listener, "REQUEST_S", 0.2)
    with connect(broker) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n")
        assert received(client) == b""
    require_unharmed(broker)


def test_who_does_not_take_the_answer_in_time_is_disconnected(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    page = http_listener.Page(200, b"x" * (64 << 20))

    async def large(self: object, request: http_listener.HttpRequest) -> http_listener.Page:
        return page

    monkeypatch.setattr(listener.MetricsListener, "page", large)
    monkeypatch.setattr(http_listener, "RESPONSE_S", 0.3)
    with connect(broker) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        threading.Event().wait(1)
        assert len(received(client)) < len(page.body)
    monkeypatch.undo()
    require_unharmed(broker)


def test_connections_above_the_limit_are_closed_and_there_is_room_again_afterwards(broker: Broker) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(connect(broker)) for _ in range(MAX_CONNECTIONS)]
        with connect(broker) as one_more:
            assert received(one_more) == b""
        held[0].sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert status_of(received(held[0])) == 200
    for _ in range(1000):
        try:
            if ask(broker.metrics_url).status == 200:
                break
        except OSError:
            continue
    require_unharmed(broker)


def test_hundreds_of_connections_at_once_do_not_harm_the_node(broker: Broker) -> None:
    with ExitStack() as stack:
        for _ in range(300):
            client = stack.enter_context(connect(broker))
            try:
                client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            except ConnectionError:
                continue
        with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            assert [each.name for each in admin.list_topics()] == ["t"]
    require_unharmed(broker)


def test_those_who_ask_at_the_same_time_get_the_same_metrics(broker: Broker) -> None:
    first = scrape(broker.metrics_url)("barnabas_metrics_scrapes_total")
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(broker)) for _ in range(8)]
        for client in clients:
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        bodies = [received(client).partition(b"\r\n\r\n")[2] for client in clients]
    assert all(bodies)
    assert scrape(broker.metrics_url)("barnabas_metrics_scrapes_total") <= first + 8 + 1


def test_metrics_are_off_unless_they_are_asked_for() -> None:
    with Broker() as broker, pytest.raises(BrokerError, match="metrics=True"):
        _ = broker.metrics_url


# --- health and readiness


def run(settings: dict[str, str], scenario: Any) -> Any:
    async def main() -> Any:
        node = Node(server.load(None, {**SETTINGS, **settings}))
        try:
            return await scenario(node)
        finally:
            await node.stop()
            node.failed.cancel()

    return asyncio.run(main())


def url_of(node: Node, path: str) -> str:
    host, port = node.addresses[METRICS]
    return f"http://{host}:{port}{path}"


async def get(node: Node, path: str) -> tuple[int, str]:
    return (await asyncio.to_thread(ask, url_of(node, path)))[:2]


def test_a_node_is_not_ready_until_it_is_registered_and_says_so_while_it_starts(tmp_path: Path) -> None:
    seen: list[tuple[int, str]] = []

    async def scenario(node: Node) -> None:
        begin = node._start_broker

        async def ask_first() -> None:
            seen.append(await get(node, "/readyz"))
            seen.append(await get(node, "/healthz"))
            assert (await get(node, "/metrics"))[0] == 200
            await begin()

        node._start_broker = ask_first  # type: ignore[method-assign]
        await node.start()
        seen.append(await get(node, "/readyz"))

    run({"log.dirs": str(tmp_path)}, scenario)
    assert seen == [
        (503, "the broker is not registered with the controller yet\n"),
        (200, "ok\n"),
        (200, "ok\n"),
    ]


def test_a_node_that_recovers_logs_is_not_ready_and_shows_its_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker({"t": 3}, data_dir=tmp_path) as broker:
        broker.records("t")
    (tmp_path / CLEAN_SHUTDOWN_FILE).unlink()
    gate = threading.Event()
    opened = Log.open

    def slow(*arguments: Any, **more: Any) -> Any:
        gate.wait(TIMEOUT_S)
        return opened(*arguments, **more)

    monkeypatch.setattr(Log, "open", slow)

    async def scenario(node: Node) -> tuple[tuple[int, str], float, float]:
        try:
            await node.start()
            before = await get(node, "/readyz")
            waiting = (await asyncio.to_thread(scrape, url_of(node, "/metrics")))(
                "kafka_log_logmanager_remaininglogstorecover"
            )
        finally:
            gate.set()
        while (await get(node, "/readyz"))[0] != 200:
            await asyncio.sleep(0.01)
        after = await asyncio.to_thread(scrape, url_of(node, "/metrics"))
        assert after("barnabas_recovery_logs") == 3
        return before, waiting, after("kafka_log_logmanager_remaininglogstorecover")

    assert run({"log.dirs": str(tmp_path)}, scenario) == (
        (503, "logs are being recovered after an unclean shutdown: 0 of 3 are done\n"),
        3,
        0,
    )


def test_a_fenced_broker_is_alive_and_not_ready(tmp_path: Path) -> None:
    async def scenario(node: Node) -> tuple[tuple[int, str], tuple[int, str]]:
        await node.start()
        assert node._lifecycle is not None and node._lifecycle._beating is not None
        node._lifecycle._beating.cancel()
        while not node.image.brokers[1].fenced:
            await asyncio.sleep(0.01)
        node._lifecycle._beating = None
        return await get(node, "/readyz"), await get(node, "/healthz")

    settings = {"log.dirs": str(tmp_path), "broker.session.timeout.ms": "300", "broker.heartbeat.interval.ms": "50"}
    assert run(settings, scenario) == (
        (503, "the broker is fenced: the controller has not seen its heartbeats\n"),
        (200, "ok\n"),
    )


def test_a_node_that_stops_is_not_ready(tmp_path: Path) -> None:
    seen: list[tuple[int, str]] = []

    async def scenario(node: Node) -> None:
        await node.start()
        stop = node.replicas.stop

        async def ask_first(broker_epoch: int) -> None:
            seen.append(await get(node, "/readyz"))
            seen.append(await get(node, "/healthz"))
            await stop(broker_epoch)

        node.replicas.stop = ask_first  # type: ignore[assignment,method-assign]

    run({"log.dirs": str(tmp_path)}, scenario)
    assert seen == [(503, "the node is stopping\n"), (200, "ok\n")]


def test_a_node_that_has_failed_is_neither_alive_nor_ready(tmp_path: Path) -> None:
    async def scenario(node: Node) -> list[tuple[int, str]]:
        await node.start()
        node._fail(OSError("the disk is gone"))
        found = [await get(node, "/healthz"), await get(node, "/readyz")]
        assert node.failed.exception() is not None
        return found

    failed = (503, "the node has failed: the disk is gone\n")
    assert run({"log.dirs": str(tmp_path)}, scenario) == [failed, failed]


# --- settings


def test_a_port_that_is_in_use_stops_the_node_with_the_name_of_the_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"

        async def scenario(node: Node) -> str:
            with pytest.raises(NodeError) as error:
                await node.start()
            return str(error.value)

        text = run({"log.dirs": str(tmp_path), "barnabas.metrics.listener": address}, scenario)
    assert text.startswith(f"cannot listen on {address} for metrics: ")
    assert "barnabas.metrics.listener" in text


@pytest.mark.parametrize("text", ["9404", "localhost", "http://localhost:9404", ":70000", "a b:1"])
def test_an_address_that_is_none_is_refused_with_the_name_of_the_setting(text: str) -> None:
    with pytest.raises(ConfigError, match=r"barnabas\.metrics\.listener|port out of range"):
        server.load(None, {"barnabas.metrics.listener": text})
