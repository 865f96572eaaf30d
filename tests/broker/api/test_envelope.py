"""Envelope: requests that brokers forward to the active controller, with the principal of their clients."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas import wire
from barnabas.broker.forwarding import decode_principal, encode_address, encode_principal
from barnabas.client.connection import Connection
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.testing import AsyncBroker, AsyncCluster
from barnabas.wire import APIS, ErrorCode, Message
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.metadata import MetadataRequest

ALICE = KafkaPrincipal("User", "alice")
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def frame(request: Message, version: int, correlation_id: int = 7) -> bytes:
    key = request.schema().key
    assert key is not None
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id="c"
    )
    return wire.encode(header, APIS[key].request_header_version(version)) + wire.encode(request, version)


def envelope(data: bytes, principal: bytes | None = None, address: bytes = b"\x7f\0\0\1") -> EnvelopeRequest:
    who = encode_principal(ANONYMOUS) if principal is None else principal
    return EnvelopeRequest(request_data=data, request_principal=who, client_host_address=address)


def create(name: str, **more: Any) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=5000, **more)


async def opened(address: str) -> Connection:
    host, _, port = address.rpartition(":")
    return await Connection.open(host, int(port), "test")


def enclosed(response: EnvelopeResponse, name: str, version: int) -> Any:
    data = bytes(response.response_data or b"")
    header, position = wire.decode_from("ResponseHeader", 1, data, 0)
    assert header.correlation_id == 7
    return wire.decode(name, version, data[position:])


def test_the_answer_is_the_one_to_the_same_request_without_an_envelope() -> None:
    async def main() -> None:
        async with AsyncBroker() as broker:
            to_controller = await opened(broker.listeners["CONTROLLER"])
            direct = await opened(broker.bootstrap_servers)
            request = create("t", validate_only=True)
            forwarded = enclosed(await to_controller.call(envelope(frame(request, 7)), 0), "CreateTopicsResponse", 7)
            answer: CreateTopicsResponse = await direct.call(request, 7)
            for row in (*forwarded.topics, *answer.topics):
                row.topic_id = wire.ZERO_UUID  # a new one each time
            assert forwarded == answer
            to_controller.close()
            direct.close()

    asyncio.run(main())


def test_what_is_not_for_the_controller_or_cannot_be_read_is_refused() -> None:
    async def main() -> None:
        async with AsyncBroker() as broker:
            connection = await opened(broker.listeners["CONTROLLER"])
            good = frame(create("t"), 7)
            for request, code in (
                (envelope(frame(MetadataRequest(), 12)), ErrorCode.INVALID_REQUEST),
                (envelope(b"\0"), ErrorCode.INVALID_REQUEST),
                (envelope(good[:-3]), ErrorCode.INVALID_REQUEST),
                (envelope(good[:2] + b"\x7f\x7f" + good[4:]), ErrorCode.UNSUPPORTED_VERSION),
                (envelope(good, principal=b"\0"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
                (envelope(good, principal=b"\0\0\xff"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
                (envelope(good, address=b"\x01\x02"), ErrorCode.INVALID_REQUEST),
            ):
                response: EnvelopeResponse = await connection.call(request, 0)
                assert (ErrorCode(response.error_code), response.response_data) == (code, None)
            connection.close()

    asyncio.run(main())


def test_the_enclosed_request_has_the_permissions_of_the_client() -> None:
    async def main() -> None:
        async with AsyncBroker(["secret"], config=AUTHORIZER) as broker:
            connection = await opened(broker.listeners["CONTROLLER"])
            topic = DeleteTopicsRequest.DeleteTopicState(name="secret")
            asked = frame(DeleteTopicsRequest(topics=[topic], timeout_ms=5000), 6)
            for principal, code in ((ALICE, ErrorCode.TOPIC_AUTHORIZATION_FAILED), (ANONYMOUS, ErrorCode.NONE)):
                response = await connection.call(envelope(asked, encode_principal(principal)), 0)
                found: DeleteTopicsResponse = enclosed(response, "DeleteTopicsResponse", 6)
                assert found.responses[0].error_code == code
            connection.close()

    asyncio.run(main())


def test_a_controller_that_is_not_active_says_so_on_the_envelope() -> None:
    async def main() -> None:
        async with AsyncCluster(3) as cluster:
            active = await cluster.wait_active_controller()
            other = next(each for each in cluster.node_ids if each != active)
            connection = await opened(cluster.address(other, "CONTROLLER"))
            response: EnvelopeResponse = await connection.call(envelope(frame(create("t"), 7)), 0)
            assert response.error_code == ErrorCode.NOT_CONTROLLER
            connection.close()

    asyncio.run(main())


def test_settings_are_checked_by_the_broker_and_stored_by_the_active_controller() -> None:
    async def main() -> None:
        async with AsyncCluster(3, topics=["t"], config={"default.replication.factor": 1}) as cluster:
            active = await cluster.wait_active_controller()
            other = next(each for each in cluster.node_ids if each != active)
            connection = await opened(cluster.address(other))
            changes = IncrementalAlterConfigsRequest
            request = changes(
                resources=[
                    changes.AlterConfigsResource(
                        resource_type=kind,
                        resource_name=name,
                        configs=[changes.AlterableConfig(name="retention.ms", value="1000")],
                    )
                    for kind, name in ((2, "t"), (2, "unknown"), (4, str(active)))
                ]
            )
            response = await connection.call(request, 1)
            assert [row.error_code for row in response.responses] == [
                ErrorCode.NONE,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.INVALID_REQUEST,
            ]
            connection.close()

    asyncio.run(main())


def test_principals_and_addresses_are_encoded_as_in_kafka() -> None:
    assert encode_principal(ALICE) == b"\0\0\x05User\x06alice\0\0"
    assert decode_principal(encode_principal(ALICE)) == ALICE
    assert encode_address("127.0.0.1") == b"\x7f\0\0\1"
    assert encode_address("0:0:0:0:0:0:0:1") == b"\0" * 15 + b"\1"
