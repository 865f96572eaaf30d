"""Whatever the request: its error response can be made and written, so that a fault in a handler is always answered."""

from __future__ import annotations

import pytest

from barnabas import wire
from barnabas.broker.errors import error_response
from barnabas.broker.served import served_apis, served_versions
from barnabas.wire import APIS, ApiKey, ErrorCode
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from tests.broker.harness import MemoryNode
from tests.broker.reading_node import fetch
from tests.wire.golden import vectors_of

KEYS = sorted({*served_apis("broker"), *served_apis("controller")})


@pytest.mark.parametrize("key", [pytest.param(key, id=APIS[key].name) for key in KEYS])
def test_every_request_has_an_error_response_that_carries_the_code(key: int) -> None:
    api = APIS[key]
    for vector in vectors_of(api.request):
        if vector.version not in served_versions(key):
            continue
        request = wire.decode(api.request, vector.version, vector.data)
        response = error_response(api, vector.version, request, ErrorCode.UNKNOWN_SERVER_ERROR)
        data = wire.encode(response, vector.version)
        assert wire.decode(api.response, vector.version, data) == response


@pytest.mark.parametrize("version", served_versions(ApiKey.FETCH))
def test_a_fetch_that_failed_says_so_on_every_partition_while_topics_have_names(version: int) -> None:
    response = error_response(APIS[1], version, fetch(("t", 3, 7), session_id=9), ErrorCode.UNKNOWN_SERVER_ERROR)
    assert (response.error_code, response.session_id) == (-1 if version >= 7 else 0, 9)  # type: ignore[attr-defined]
    found = [
        (topic.topic, row.partition_index, row.error_code, row.high_watermark, row.log_start_offset, row.records)
        for topic in response.responses  # type: ignore[attr-defined]
        for row in topic.partitions
    ]
    assert found == ([("t", 3, -1, -1, -1, b"")] if version < 13 else [])


def test_what_is_not_known_of_a_log_is_minus_one_beside_an_error() -> None:
    failed = ErrorCode.UNKNOWN_SERVER_ERROR
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=3, timestamp=5)
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[asked])])
    row = error_response(APIS[2], 4, request, failed).topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (row.partition_index, row.timestamp, row.offset, row.leader_epoch) == (3, -1, -1, -1)
    epoch = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=3, leader_epoch=5)
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic="t", partitions=[epoch])
    epochs = OffsetForLeaderEpochRequest(topics=[topic])
    row = error_response(APIS[23], 4, epochs, failed).topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (row.partition, row.leader_epoch, row.end_offset) == (3, -1, -1)
    deleted = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=3, offset=5)
    deletion = DeleteRecordsRequest(topics=[DeleteRecordsRequest.DeleteRecordsTopic(name="t", partitions=[deleted])])
    row = error_response(APIS[21], 2, deletion, failed).topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (row.partition_index, row.low_watermark, row.error_code) == (3, -1, -1)


def test_an_error_message_that_is_too_long_for_a_response_is_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    user = DescribeUserScramCredentialsRequest.UserName(name="x" * 32767)
    response = MemoryNode().call(DescribeUserScramCredentialsRequest(users=[user]), 0)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR  # as in Kafka
    (record,) = caplog.records
    assert "cannot be written: a string of 32826 bytes is too long" in record.getMessage()
    assert record.exc_info is None
