"""Brokers that cannot be reached: soon reported at the start, with the reason of each address, and retried later."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from barnabas.client import Admin, CallTimeoutError, Cluster, NoNodesError, load_settings, sync
from barnabas.testing import Broker
from barnabas.wire.messages.metadata import MetadataResponse
from tests.client.test_misbehaving_nodes import ScriptedNode, against, in_turn

PATIENT = {"default.api.timeout.ms": 600_000, "request.timeout.ms": 300_000}
"""With these, a test that waits for them fails by its own timeout."""


@pytest.fixture
def silent() -> Iterator[list[str]]:
    """Addresses that accept connections and never answer."""
    with ExitStack() as stack:
        found = []
        for _ in range(3):
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            found.append(f"127.0.0.1:{listening.getsockname()[1]}")
        yield found


def refusing() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"127.0.0.1:{listening.getsockname()[1]}"


def test_the_default_is_five_seconds() -> None:
    assert load_settings({"bootstrap.servers": "localhost:9092"}).get_int("bootstrap.timeout.ms") == 5_000


def test_the_error_names_every_address_and_its_reason(silent: list[str]) -> None:
    closed = refusing()
    servers = [closed, *silent, "no-such-host.invalid:9092"]

    async def main() -> None:
        async with asyncio.timeout(60):
            with pytest.raises(CallTimeoutError) as raised:
                await Admin({"bootstrap.servers": servers, "bootstrap.timeout.ms": 1_000, **PATIENT}).start()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        text = str(raised.value)
        assert text.startswith("no broker could be reached within 1000 ms: ")
        assert f"{closed} cannot be reached: Connection refused" in text
        assert "no-such-host.invalid:9092: the name cannot be resolved" in text
        for address in silent:
            assert f"{address} did not answer" in text
        assert isinstance(raised.value.last_error, NoNodesError)
        assert set(raised.value.last_error.reasons) == set(servers)
        assert not raised.value.maybe_done

    asyncio.run(main())


def test_controllers_are_called_controllers() -> None:
    with pytest.raises(CallTimeoutError, match=r"no controller could be reached within 200 ms: .* refused"):
        sync.Admin({"bootstrap.controllers": refusing(), "bootstrap.timeout.ms": 200, **PATIENT})


def test_silent_servers_do_not_use_up_the_time_of_the_others(silent: list[str]) -> None:
    with Broker() as broker:
        servers = [*silent, broker.bootstrap_servers]
        for _ in range(4):  # they are tried in a random order
            with sync.Admin({"bootstrap.servers": servers, "bootstrap.timeout.ms": 2_000, **PATIENT}) as admin:
                assert admin.describe_cluster().cluster_id == broker.cluster_id


def test_an_explicit_timeout_replaces_the_setting() -> None:
    async def main() -> None:
        with Broker() as broker:
            broker.stop()
            settings = {"bootstrap.servers": broker.bootstrap_servers, "bootstrap.timeout.ms": 1, **PATIENT}
            starting = asyncio.create_task(Cluster(settings).start(timeout_ms=50_000))
            await asyncio.sleep(0.3)
            assert not starting.done()
            await asyncio.to_thread(broker.start)
            await (await starting).close()
            with pytest.raises(CallTimeoutError, match="within 1 ms"):
                await Cluster({**settings, "bootstrap.servers": refusing()}).start()

    asyncio.run(main())


def test_a_broker_that_is_there_but_not_ready_is_waited_for() -> None:
    async def scenario(cluster: Cluster, scripted: ScriptedNode) -> None:
        assert scripted.asked["Metadata"] > 10

    knows_no_brokers = [MetadataResponse() for _ in range(10)]
    against(in_turn("Metadata", *knows_no_brokers, None), scenario, bootstrap_timeout_ms=100, retry_backoff_max_ms=50)


def test_a_running_client_retries_until_the_timeout_of_the_call() -> None:
    async def main() -> None:
        with Broker(["orders"]) as broker:
            settings = {"bootstrap.servers": broker.bootstrap_servers, "bootstrap.timeout.ms": 100, **PATIENT}
            async with asyncio.timeout(60), Admin(settings) as admin:
                await asyncio.to_thread(broker.stop)
                with pytest.raises(CallTimeoutError, match="timed out after 500 ms"):
                    await admin.list_topics(timeout_ms=500)
                asked = asyncio.create_task(admin.list_topics())
                await asyncio.sleep(0.5)
                assert not asked.done()
                await asyncio.to_thread(broker.start)
                assert [topic.name for topic in await asked] == ["orders"]

    asyncio.run(main())
