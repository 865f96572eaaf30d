"""GetTelemetrySubscriptions (71) and PushTelemetry (72)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from barnabas import wire
from barnabas.broker import client_metrics
from barnabas.broker.client_metrics import MAX_INSTANCES
from barnabas.broker.context import ClientInformation, Context, Listener, Peer
from barnabas.metadata.image import Provenance
from barnabas.metadata.replay import replay
from barnabas.security.principal import ANONYMOUS
from barnabas.wire import ZERO_UUID, Message, Uuid
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest
from barnabas.wire.records.metadata import ConfigRecord
from tests.broker.clients import RawClient, running_server
from tests.broker.harness import MemoryNode
from tests.counting import counted

ID = Uuid.parse("vKg5dgnRQ4yxvxLH4Qh7bA")
RECEIVED = {"barnabas.telemetry.receiver": "log"}
THROTTLED, UNKNOWN_SUBSCRIPTION, TOO_LARGE, INVALID, UNKNOWN_CODEC = 89, 117, 118, 42, 76


def subscription(name: str, **settings: str) -> list[Message]:
    return [
        ConfigRecord(resource_type=16, resource_name=name, name=key.replace("_", "."), value=value)
        for key, value in settings.items()
    ]


def node(*records: list[Message], properties: dict[str, str] | None = None) -> MemoryNode:
    return MemoryNode(properties or RECEIVED, records=[record for part in records for record in part])


def change(memory: MemoryNode, records: list[Message]) -> None:
    image = memory.controller.loop.image
    provenance = Provenance(image.offset + len(records), 1, 1)
    memory.controller.loop.advance(replay(image, records, provenance), provenance.last_contained_offset)


def get(memory: MemoryNode, instance_id: Uuid = ID, **peer: Any) -> Any:
    return memory.call(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0, **peer)


def push(memory: MemoryNode, subscription_id: int, instance_id: Uuid = ID, **fields: Any) -> int:
    given = {"compression_type": 4, "metrics": b"metrics", **fields}
    request = PushTelemetryRequest(client_instance_id=instance_id, subscription_id=subscription_id, **given)
    code: int = memory.call(request, 0).error_code
    return code


def test_a_client_without_subscriptions_pushes_nothing_every_five_minutes() -> None:
    response = get(node())
    assert (response.error_code, response.client_instance_id, response.requested_metrics) == (0, ID, [])
    assert (response.push_interval_ms, response.telemetry_max_bytes, response.delta_temporality) == (
        300_000,
        1 << 20,
        True,
    )
    assert response.accepted_compression_types == [4, 3, 1, 2]
    assert response.subscription_id == 822691983


def test_a_client_without_an_id_gets_one() -> None:
    memory = node()
    ids = [get(memory, ZERO_UUID).client_instance_id for _ in range(2)]
    assert ZERO_UUID not in ids and ids[0] != ids[1]
    assert get(memory, ids[0]).error_code == THROTTLED


def test_the_subscriptions_that_fit_a_client_are_put_together() -> None:
    names = "org.apache.kafka.producer.,org.apache.kafka.consumer.coordinator.,org.apache.kafka.consumer."
    memory = node(
        subscription("one", metrics=names, interval_ms="60000"),
        subscription("two", metrics="b,org.apache.kafka.consumer.", interval_ms="5000", match="client_id=te.*"),
        subscription("three", metrics="not.me", interval_ms="100", match="client_id=tes"),
    )
    response = get(memory, Uuid((2).to_bytes(16)))
    assert response.requested_metrics == [*names.split(","), "b"]
    assert (response.push_interval_ms, response.subscription_id) == (5000, -1678400258)


def test_a_star_is_everything() -> None:
    memory = node(subscription("a", metrics="a.,*", interval_ms="1000"), subscription("b", metrics="b."))
    response = get(memory)
    assert (response.requested_metrics, response.subscription_id) == (["*"], -683302424)


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ("client_software_name=lib.*,client_software_version=2\\.[0-9]", True),
        ("client_software_name=lib.*,client_software_version=3.*", False),
        ("client_source_address=10\\.0\\.0\\.1,client_source_port=5000", True),
        (f"client_instance_id={ID}", True),
        ("client_instance_id=AAAA", False),
    ],
)
def test_clients_are_chosen_by_what_is_known_of_them(match: str, fits: bool) -> None:
    memory = node(subscription("a", metrics="a.", match=match))
    information = ClientInformation()
    information.port = 5000
    software = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.8")
    memory.call(software, 3, information=information)
    assert get(memory, host="10.0.0.1", information=information).requested_metrics == (["a."] if fits else [])


def test_who_asks_too_early_is_throttled_until_subscriptions_change() -> None:
    memory = node(subscription("a", metrics="a.", interval_ms="1000"))
    first = get(memory)
    memory.now_ms += 999
    assert get(memory).error_code == THROTTLED
    change(memory, subscription("b", metrics="b."))
    second = get(memory)
    assert second.error_code == 0 and sorted(second.requested_metrics) == ["a.", "b."]
    assert second.subscription_id != first.subscription_id
    change(memory, [ConfigRecord(resource_type=2, resource_name="topic", name="retention.ms", value="1")])
    assert get(memory).error_code == THROTTLED
    memory.now_ms += 1000
    assert get(memory).error_code == 0


def test_metrics_are_received_in_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    memory = node(subscription("a", metrics="*", interval_ms="1000"))
    subscription_id = get(memory).subscription_id
    with caplog.at_level(logging.INFO, client_metrics.__name__):
        assert push(memory, subscription_id, metrics=b"x" * 123) == 0
        assert push(memory, subscription_id, metrics=b"", terminating=True) == 0
    (line,) = caplog.messages
    assert "'test'" in line and str(ID) in line and "123 bytes" in line and "zstd" in line


def test_a_receiver_that_fails_makes_the_metrics_invalid(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("no room")

    monkeypatch.setitem(client_metrics.RECEIVERS, "log", fail)
    memory = node()
    assert push(memory, get(memory).subscription_id) == 87
    assert "no room" in caplog.text


def test_pushes_come_once_in_an_interval_and_the_first_at_once() -> None:
    memory = node(subscription("a", metrics="*", interval_ms="1000"))
    subscription_id = get(memory).subscription_id
    memory.now_ms += 1
    assert push(memory, subscription_id) == 0
    memory.now_ms += 999
    assert push(memory, subscription_id) == THROTTLED
    memory.now_ms += 1
    assert push(memory, subscription_id) == 0


def test_the_last_push_may_come_early_and_is_the_last() -> None:
    memory = node(subscription("a", metrics="*", interval_ms="1000"))
    subscription_id = get(memory).subscription_id
    memory.now_ms += 1
    assert push(memory, subscription_id) == 0
    assert push(memory, subscription_id, terminating=True) == 0
    assert push(memory, subscription_id, terminating=True) == INVALID


def test_an_unknown_subscription_may_be_asked_for_at_once() -> None:
    memory = node(subscription("a", metrics="*", interval_ms="1000"))
    subscription_id = get(memory).subscription_id
    memory.now_ms += 1
    assert push(memory, subscription_id + 1) == UNKNOWN_SUBSCRIPTION
    assert get(memory).error_code == 0
    assert get(memory).error_code == THROTTLED


def test_a_push_with_a_bad_codec_or_too_many_bytes_or_without_an_id_is_refused() -> None:
    memory = node(properties={**RECEIVED, "telemetry.max.bytes": "10"})
    pushes: list[tuple[dict[str, Any], int]] = [
        ({"compression_type": 5}, UNKNOWN_CODEC),
        ({"metrics": b"x" * 11}, TOO_LARGE),
        ({"metrics": b"x" * 10}, 0),
    ]
    for number, (fields, code) in enumerate(pushes, 2):
        instance_id = Uuid(number.to_bytes(16))
        assert push(memory, get(memory, instance_id).subscription_id, instance_id, **fields) == code
    for reserved in (ZERO_UUID, Uuid((1).to_bytes(16))):
        assert push(memory, 0, reserved) == INVALID


def test_a_client_is_forgotten_when_it_leaves_or_is_silent() -> None:
    memory = node(subscription("a", metrics="*", interval_ms="30000"))
    information = ClientInformation()
    assert get(memory, information=information).error_code == 0
    assert get(memory).error_code == THROTTLED
    information.closed = True
    assert get(memory).error_code == 0
    subscription_id = get(memory).subscription_id
    assert push(memory, subscription_id, terminating=True) == UNKNOWN_SUBSCRIPTION  # of an answer that was throttled
    assert push(memory, subscription_id) == INVALID
    memory.now_ms += 90_000
    assert push(memory, subscription_id) == UNKNOWN_SUBSCRIPTION


def test_no_more_clients_are_known_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_INSTANCES == 16384
    monkeypatch.setattr(client_metrics, "MAX_INSTANCES", 3)
    memory = node()
    ids = [Uuid(number.to_bytes(16)) for number in range(2, 6)]
    for each in ids[:3]:
        get(memory, each)
    assert get(memory, ids[0]).error_code == THROTTLED  # and so it is not the one that was heard of least
    get(memory, ids[3])
    assert [get(memory, each).error_code for each in (ids[0], ids[2], ids[3], ids[1])] == [THROTTLED] * 3 + [0]


def test_clients_with_long_names_are_forgotten_when_their_names_need_too_much_memory() -> None:
    memory = node(properties={**RECEIVED, "barnabas.telemetry.memory.max.bytes": "100000"})
    for number in range(50):
        information = ClientInformation()
        information.software_name = f"{number:020000}"
        assert get(memory, Uuid((number + 2).to_bytes(16)), information=information).error_code == 0
        assert memory.client_metrics.instances.held_bytes <= 100_000
    assert (len(memory.client_metrics), memory.client_metrics.instances.forgotten_total) == (4, 46)


@pytest.mark.parametrize(("receiver", "shown"), [("", False), ("log", True)])
def test_telemetry_is_answered_everywhere_and_shown_where_it_is_received(receiver: str, shown: bool) -> None:
    memory = MemoryNode({"barnabas.telemetry.receiver": receiver})
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    keys = {row.api_key for row in memory.call(request, 4).api_keys}
    assert (71 in keys, 72 in keys) == (shown, shown)
    assert push(memory, get(memory).subscription_id) == 0


def test_a_connection_knows_its_client_until_it_ends() -> None:
    async def scenario() -> None:
        header = RequestHeader(request_api_key=18, request_api_version=3, correlation_id=1, client_id="a")
        software = ApiVersionsRequest(client_software_name="kafka-clients", client_software_version="4.3.1")
        async with running_server() as (server, broker, _):
            client = await RawClient.connect(broker)
            port = client.writer.get_extra_info("sockname")[1]
            await client.call(wire.encode(header, 2) + wire.encode(software, 3))
            (connection,) = server.connections
            known = connection.peer.information
            assert known is not None
            assert (known.port, known.software_name, known.software_version) == (port, "kafka-clients", "4.3.1")
            assert not known.closed
            await client.close()
            while server.connections:
                await asyncio.sleep(0.01)
            assert known.closed

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_many_subscriptions_are_read_and_matched_with_pauses() -> None:
    memory = node(*[subscription(f"s{number:03}", metrics=f"m{number}", match="client_id=.*") for number in range(200)])
    context = Context(memory, Peer("127.0.0.1", ANONYMOUS, Listener("PLAINTEXT", False)), 0, 1, "x")
    (_, instance), pauses = counted(memory.client_metrics.get(context, ID))
    assert len(instance.metrics) == 200
    assert pauses >= 400, "each is parsed, and matched with the client"
