"""`barnabas decode`: hex, files and pipes in, JSON out, and one line of advice when it cannot be."""

from __future__ import annotations

import base64
import json
import random
import struct
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas import batches, wire
from barnabas.cli.protocol.byte_input import InputError, parse_base64, parse_hex
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.messages.header import RequestHeader, ResponseHeader
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.records.group import OffsetCommitKey, OffsetCommitValue
from barnabas.wire.records.metadata import FeatureLevelRecord, TopicRecord
from tests.command_line import invoke, spawn

HELLO = ApiVersionsRequest(client_software_name="me", client_software_version="1")
HELLO_BODY = {"clientSoftwareName": "me", "clientSoftwareVersion": "1"}


decode = partial(invoke, "decode")


def shown(*arguments: str, stdin: bytes = b"") -> Any:
    result = decode(*arguments, stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return json.loads(result.stdout)


def failed(*arguments: str, stdin: bytes = b"") -> str:
    result = decode(*arguments, stdin=stdin)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1, "one line"
    return result.stderr


def refused(*arguments: str, stdin: bytes = b"") -> str:
    result = decode(*arguments, stdin=stdin)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def request_bytes(message: wire.Message, version: int, *, framed: bool = False) -> bytes:
    key = message.schema().key
    assert key is not None
    header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=7, client_id="a client")
    data = wire.encode(header, wire.APIS[key].request_header_version(version)) + wire.encode(message, version)
    return struct.pack(">i", len(data)) + data if framed else data


def response_bytes(message: wire.Message, version: int, correlation_id: int = 7) -> bytes:
    api = wire.APIS[message.schema().key or 0]
    header = wire.encode(ResponseHeader(correlation_id=correlation_id), api.response_header_version(version))
    return header + wire.encode(message, version)


# --- a message alone -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hex",
    [
        "036d65023100",
        "03 6d 65 02 31 00",
        "03:6D:65:02:31:00",
        "0x03 0x6d 0x65 0x02 0x31 0x00",
        "\\x03\\x6d\\x65\\x02\\x31\\x00",
        " 036d\n65023100\n",
    ],
)
def test_hex_of_a_message_is_shown_however_it_is_written(hex: str) -> None:
    assert shown("ApiVersionsRequest", "3", hex) == {"message": "ApiVersionsRequest", "version": 3, "body": HELLO_BODY}


def test_hex_may_be_given_in_several_words() -> None:
    assert shown("ApiVersionsRequest", "3", "03", "6d", "65", "02", "31", "00")["body"] == HELLO_BODY


@pytest.mark.parametrize(
    "name", ["apiversionsrequest", "APIVERSIONSREQUEST", "api_versions_request", "Api-Versions-Request"]
)
def test_names_may_be_written_in_any_case(name: str) -> None:
    assert shown(name, "3", "036d65023100")["message"] == "ApiVersionsRequest"


def test_a_message_without_a_body_is_decoded_from_nothing() -> None:
    assert shown("ListGroupsRequest", "0", "")["body"] == {}


def test_output_is_indented_for_people_and_compact_when_asked() -> None:
    assert decode("ApiVersionsRequest", "3", "036d65023100").stdout.startswith('{\n  "message"')
    assert decode("ApiVersionsRequest", "3", "036d65023100", "--compact").stdout.count("\n") == 1


def test_files_hold_bytes_or_hex(tmp_path: Path) -> None:
    data = wire.encode(HELLO, 3)
    for name, content in (("raw", data), ("hex", data.hex(" ").encode()), ("lines", b"036d65\n023100\n")):
        (tmp_path / name).write_bytes(content)
        assert shown("ApiVersionsRequest", "3", "--file", str(tmp_path / name))["body"] == HELLO_BODY
        assert shown("ApiVersionsRequest", "3", "-f", "-", stdin=content)["body"] == HELLO_BODY
        assert shown("ApiVersionsRequest", "3", "-", stdin=content)["body"] == HELLO_BODY
        assert shown("ApiVersionsRequest", "3", stdin=content)["body"] == HELLO_BODY


def test_the_form_of_the_input_can_be_said() -> None:
    data = wire.encode(HELLO, 3)
    assert shown("ApiVersionsRequest", "3", "--from", "base64", base64.b64encode(data).decode())["body"] == HELLO_BODY
    zeros = b"0" * (2 + 0x3030 + 2 + 0x3030 + 4)  # bytes that could as well be hex
    assert shown("OffsetCommitKey", "0", "--from", "raw", stdin=zeros)["body"]["partition"] == 0x30303030
    failed("OffsetCommitKey", "0", stdin=zeros)


def test_unknown_tagged_fields_are_shown_where_they_stand() -> None:
    topic = MetadataRequest.MetadataRequestTopic(name="t")
    topic.unknown_tagged_fields = {9: b"\xff"}
    request = MetadataRequest(topics=[topic])
    request.unknown_tagged_fields = {5: b"new", 1000: b""}
    body = shown("MetadataRequest", "12", wire.encode(request, 12).hex())["body"]
    assert body["unknownTaggedFields"] == {"5": "bmV3", "1000": ""}
    assert body["topics"][0]["unknownTaggedFields"] == {"9": "/w=="}


def test_error_codes_are_named() -> None:
    topics = [MetadataResponse.MetadataResponseTopic(error_code=code, name="t") for code in (0, 3, 9999)]
    document = shown("MetadataResponse", "9", wire.encode(MetadataResponse(topics=topics), 9).hex())
    assert document["errors"] == {
        "body.topics[1].errorCode": "UNKNOWN_TOPIC_OR_PARTITION",
        "body.topics[2].errorCode": "9999 is not an error code",
    }
    assert document["body"]["topics"][1]["errorCode"] == 3
    assert "errors" not in shown("MetadataResponse", "9", wire.encode(MetadataResponse(), 9).hex())


def test_numbers_that_json_does_not_have_are_text() -> None:
    op = AlterClientQuotasRequest.OpData(key="k", value=float("nan"))
    request = AlterClientQuotasRequest(entries=[AlterClientQuotasRequest.EntryData(ops=[op])])
    [entry] = shown("AlterClientQuotasRequest", "1", wire.encode(request, 1).hex())["body"]["entries"]
    assert entry["ops"][0]["value"] == "nan"


def test_text_is_shown_as_text_and_what_steers_a_terminal_is_escaped() -> None:
    data = wire.encode(ApiVersionsRequest(client_software_name="é\x9b31m\x1b[0m", client_software_version="\x7f"), 3)
    result = decode("ApiVersionsRequest", "3", data.hex())
    assert "é" in result.stdout
    assert not set(result.stdout) & set("\x9b\x1b\x7f")
    assert json.loads(result.stdout)["body"]["clientSoftwareName"] == "é\x9b31m\x1b[0m"


# --- requests and responses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("version", [0, 3])
def test_a_request_is_known_by_its_header(version: int, framed: bool) -> None:
    document = shown("--request", request_bytes(HELLO, version, framed=framed).hex())
    assert (document["message"], document["version"]) == ("ApiVersionsRequest", version)
    assert document["header"] == {
        "requestApiKey": 18,
        "requestApiVersion": version,
        "correlationId": 7,
        "clientId": "a client",
    }
    assert document["body"] == (HELLO_BODY if version == 3 else {})


def test_all_frames_of_a_stream_are_shown_one_after_the_other(tmp_path: Path) -> None:
    stream = b"".join(request_bytes(HELLO, version, framed=True) for version in (0, 3, 4))
    (tmp_path / "stream").write_bytes(stream)
    lines = decode("--request", "--compact", "-f", str(tmp_path / "stream")).stdout.splitlines()
    assert [json.loads(line)["version"] for line in lines] == [0, 3, 4]


def test_frames_can_be_demanded_and_ruled_out() -> None:
    plain, framed = request_bytes(HELLO, 3), request_bytes(HELLO, 3, framed=True)
    assert shown("--request", "--framed", framed.hex())["body"] == HELLO_BODY
    assert shown("--request", "--unframed", plain.hex())["body"] == HELLO_BODY
    assert "frame 0 at byte 0 has a size of 1179651 bytes" in failed("--request", "--framed", plain.hex())
    assert "3 bytes after frame 0 are not a size" in failed("--request", "--framed", framed.hex() + "000000")
    assert f"frame 1 at byte {len(framed)} has a size" in failed("--request", "--framed", framed.hex() + "0000000500")
    assert "there is no API with key 0" not in failed("--request", "--unframed", framed.hex())


@pytest.mark.parametrize("api", ["ApiVersions", "apiversions", "api_versions", "18", "ApiVersionsResponse"])
def test_a_response_is_decoded_by_api_and_version(api: str) -> None:
    data = response_bytes(ApiVersionsResponse(error_code=35), 3)
    expected = shown("--response", api, "3", data.hex())
    assert expected["header"] == {"correlationId": 7}
    assert expected["errors"] == {"body.errorCode": "UNSUPPORTED_VERSION"}
    assert shown("--response", "--api", api, "--version", "3", data.hex()) == expected
    assert shown("--response", "--api", api, "--version", "3", stdin=data) == expected


def test_a_response_header_may_have_tags() -> None:
    header = ResponseHeader(correlation_id=1)
    header.unknown_tagged_fields = {3: b"x"}
    data = wire.encode(header, 1) + wire.encode(MetadataResponse(), 12)
    document = shown("--response", "metadata", "12", data.hex())
    assert document["header"] == {"correlationId": 1, "unknownTaggedFields": {"3": "eA=="}}


def test_a_correlation_id_that_looks_like_a_size_is_none() -> None:
    body_size = len(wire.encode(ApiVersionsResponse(), 0))
    data = response_bytes(ApiVersionsResponse(), 0, correlation_id=body_size)
    assert shown("--response", "ApiVersions", "0", data.hex())["header"] == {"correlationId": body_size}


def test_values_that_look_like_a_row_of_sizes_are_none() -> None:
    # An answer of Kafka's to a Produce request: its first int32 is 46, after which 46 bytes and an int32 of 0 follow.
    answer = (
        "0000002e000000010006642d7769726500000001000000090003ffffffffffffffffffffffffffffffffffffffffffffffff00000000"
    )
    document = shown("--response", "Produce", "7", answer)
    assert document["header"] == {"correlationId": 46}
    assert document["errors"] == {"body.responses[0].partitionResponses[0].errorCode": "UNKNOWN_TOPIC_OR_PARTITION"}


# --- records ---------------------------------------------------------------------------------------------------------


def test_a_metadata_record_is_known_by_its_frame() -> None:
    data = wire.encode_record(TopicRecord(name="orders", topic_id=wire.Uuid(bytes(15) + b"\x01")), 0)
    expected = {
        "message": "TopicRecord",
        "version": 0,
        "body": {"name": "orders", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"},
    }
    assert shown("--record", data.hex(":")) == expected
    assert shown("--record", "metadata", data.hex()) == expected
    assert shown("--record", "TopicRecord", data.hex()) == expected
    assert shown("--record", stdin=data) == expected


def test_records_of_coordinators_are_known_by_group_or_name() -> None:
    key = wire.encode_record(OffsetCommitKey(group="g", topic="t", partition=1), 0)
    value = wire.encode_record(OffsetCommitValue(offset=5), 3)
    assert shown("--record", "group", key.hex())["message"] == "OffsetCommitKey"
    assert shown("--record", "offset_commit_value", value.hex())["body"]["offset"] == 5


def test_bytes_inside_a_message_can_be_decoded_further() -> None:
    data = wire.encode_record(ConsumerProtocolSubscription(topics=["orders"]), 1)
    inner = base64.b64encode(data).decode()
    document = shown("--record", "ConsumerProtocolSubscription", "--from", "base64", inner)
    assert document["body"]["topics"] == ["orders"]


# --- record batches --------------------------------------------------------------------------------------------------


def produce(records: bytes | None) -> str:
    partition = ProduceRequest.PartitionProduceData(index=0, records=records)
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=[partition])
    return request_bytes(ProduceRequest(acks=-1, timeout_ms=100, topic_data=[topic]), 9).hex()


def opened(records: bytes | None) -> Any:
    [topic] = shown("--request", "--records", produce(records))["body"]["topicData"]
    return topic["partitionData"][0]["records"]


def test_batches_stay_base64_unless_they_are_to_be_opened() -> None:
    [topic] = shown("--request", produce(b"bytes"))["body"]["topicData"]
    assert topic["partitionData"][0]["records"] == base64.b64encode(b"bytes").decode()


def test_batches_are_opened_when_asked() -> None:
    record = batches.Record(0, 1_700_000_000_000, b"key", b"\xff", (("header", b"text"), ("empty", None)))
    data = batches.build_batch([record], compression=batches.Compression.GZIP, base_offset=0)
    [first, second] = opened(data + data)
    assert first == second
    assert (first["compression"], first["crcIsValid"], first["isControl"]) == ("gzip", True, False)
    assert first["records"] == [
        {
            "offset": 0,
            "timestamp": 1_700_000_000_000,
            "key": "key",
            "value": {"base64": "/w=="},
            "headers": [{"key": "header", "value": "text"}, {"key": "empty", "value": None}],
        }
    ]


def test_control_records_say_what_they_are() -> None:
    marker = batches.build_end_txn_marker(
        commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=5
    )
    [batch] = opened(marker)
    assert (batch["isControl"], batch["records"][0]["controlType"]) == (True, "COMMIT")


def test_what_is_no_batch_is_shown_with_the_reason() -> None:
    data = batches.build_batch([batches.Record(0, 0, None, b"x")], base_offset=0)
    whole, cut = opened(data + data[:-1])
    assert whole["records"][0]["value"] == "x"
    assert base64.b64decode(cut["base64"]) == data[:-1]
    assert cut["error"]
    [wrong] = opened(b"bytes")
    assert wrong["error"]
    damaged = bytearray(data)
    damaged[-1] ^= 1
    assert opened(bytes(damaged))[0]["crcIsValid"] is False
    assert opened(None) is None


# --- failures --------------------------------------------------------------------------------------------------------


def test_a_misspelt_name_brings_suggestions() -> None:
    assert "there is no message 'MetadataReqest'; did you mean MetadataRequest" in failed("MetadataReqest", "1", "00")
    assert "there is no API 'Metadta'; did you mean Metadata" in failed("--response", "Metadta", "1", "00")
    assert "there is no record 'TopicRecrd'; did you mean TopicRecord" in failed("--record", "TopicRecrd", "00")
    assert "there is no message 'Qqqq'" in failed("Qqqq", "1", "00")
    assert "there is no API with key 999" in failed("--response", "999", "1", "00")


@pytest.mark.parametrize("name", ["Metadata", "metadata", "3"])
def test_an_api_is_no_message(name: str) -> None:
    assert f"{name} is an API: use MetadataRequest or MetadataResponse" in failed(name, "1", "00")


def test_a_version_that_does_not_exist_is_said() -> None:
    assert "ApiVersionsRequest has versions 0-4, not 9" in failed("ApiVersionsRequest", "9", "00")
    assert "ApiVersions has versions 0-4, not 9" in failed("--response", "ApiVersions", "9", "00")
    assert "the header has ApiVersions version 9, which is not in 0-4" in failed("--request", "0012 0009 00000000")


def test_other_versions_that_fit_are_told() -> None:
    assert "as version 3, 4 it can be decoded" in failed("ApiVersionsRequest", "2", wire.encode(HELLO, 3).hex())
    data = response_bytes(ApiVersionsResponse(error_code=35), 0)  # what a broker answers to a version it does not know
    assert "as version 0 it can be decoded" in failed("--response", "ApiVersions", "3", data.hex())


def test_a_header_that_was_not_told_is_found() -> None:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")])
    assert "try --request" in failed("MetadataRequest", "12", request_bytes(request, 12).hex())
    response = MetadataResponse(cluster_id="a cluster of some name")
    assert "try --response" in failed("MetadataResponse", "12", response_bytes(response, 12).hex())


def test_a_header_that_is_missing_is_told() -> None:
    text = failed("--request", "7fff 0003 00")
    assert "there is no API with key 32767" in text
    assert "barnabas decode MESSAGE VERSION HEX" in text
    assert "2 bytes are too few for a request" in failed("--request", "0012")
    assert "in the header before ApiVersionsRequest v3" in failed("--request", "0012 0003 00")


def test_bytes_that_are_missing_or_left_over_are_told() -> None:
    assert "truncated after 5 bytes" in failed("ApiVersionsRequest", "3", "036d650231")
    assert "1 bytes follow the message" in failed("ApiVersionsRequest", "3", "036d6502310000")
    assert "there are no bytes" in failed("ApiVersionsRequest", "3", "")
    assert "there are no bytes" in failed("--request", "--framed", "")
    assert "after a header of" in failed("--request", request_bytes(HELLO, 3)[:-1].hex())


def test_a_record_that_is_none_is_told() -> None:
    assert "does it belong to another group (group, transaction, share, storage)?" in failed("--record", "0001000167")
    frame = wire.encode_record(FeatureLevelRecord(name="f", feature_level=1), 0)
    assert "the frame is that of a FeatureLevelRecord, not a TopicRecord" in failed(
        "--record", "TopicRecord", frame.hex()
    )
    assert "is truncated in its frame" in failed("--record", "01")
    assert "no group record of type 99" in failed("--record", "group", "0063")


def test_hex_that_is_none_is_told() -> None:
    assert "'x' is not a hex digit" in failed("ApiVersionsRequest", "3", "03 xx")
    assert "3 hex digits are not a whole number of bytes" in failed("ApiVersionsRequest", "3", "036")
    assert "not base64" in failed("ApiVersionsRequest", "3", "--from", "base64", "!!!")
    assert "byte 0 is not ASCII" in failed("ApiVersionsRequest", "3", "--from", "hex", stdin=b"\xff")
    assert "is not ASCII" in failed("ApiVersionsRequest", "3", "03 \udcff")


def test_usage_errors_exit_with_2() -> None:
    assert "Only one of --request, --response and --record" in refused("--request", "--response", "00")
    assert "--api and --version can only be used with --response" in refused("--request", "--api", "Metadata", "00")
    assert "--framed and --unframed can only be used with" in refused("ApiVersionsRequest", "3", "--framed", "00")
    assert "is not a version" in refused("ApiVersionsRequest", "three", "00")
    assert "Specify the version" in refused("ApiVersionsRequest")
    assert "Specify the API" in refused("--response")
    assert "Specify what the bytes are" in refused("00120003000000")
    assert "Specify what the bytes are" in refused("--compact", stdin=b"00")
    assert "cannot both be given" in refused("ApiVersionsRequest", "3", "00", "-f", "-", stdin=b"")
    assert "No such file" in refused("ApiVersionsRequest", "3", "--file", "/nonexistent")
    assert "not one of" in refused("ApiVersionsRequest", "3", "--from", "octal", "00")


def test_whatever_the_bytes_are_the_answer_is_json_or_one_line() -> None:
    draw = random.Random("decode")
    batch = batches.build_batch([batches.Record(0, 0, None, b"x")], base_offset=0)
    requests = [request_bytes(HELLO, 3), bytes.fromhex(produce(batch))]
    for _ in range(150):
        data = bytearray(draw.choice(requests))
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(len(data))] = draw.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        result = decode("--request", "--records", bytes(data).hex())
        assert result.exit_code in (0, 1)
        if result.exit_code == 0:
            assert json.loads(result.stdout)["header"]
        else:
            assert result.stderr.startswith("Error: ")
            assert result.stderr.count("\n") == 1


# --- real processes --------------------------------------------------------------------------------------------------


def test_a_pipe_of_bytes_is_decoded_by_a_process() -> None:
    result = spawn("decode", "--request", stdin=request_bytes(HELLO, 3, framed=True))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.json["body"] == HELLO_BODY


def test_a_process_says_in_one_line_what_is_wrong() -> None:
    result = spawn("decode", "ApiVersionsRequest", "3", stdin=b"\xff\xff\xff\xff\xff\xff")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ApiVersionsRequest v3: a varint is longer than five bytes")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr


# --- hex and base64 --------------------------------------------------------------------------------------------------


def test_hex_and_base64_of_any_bytes_are_read_back() -> None:
    data = bytes(range(256))
    for text in (
        data.hex(),
        data.hex(" "),
        data.hex(":", 2),
        data.hex("-").upper(),
        ", ".join(f"0x{b:02x}" for b in data),
    ):
        assert parse_hex(text) == data
    for encoded in (base64.b64encode(data), base64.urlsafe_b64encode(data), base64.b64encode(data).rstrip(b"=")):
        assert parse_base64(encoded.decode()) == data
    assert parse_hex("") == parse_base64("") == b""
    with pytest.raises(InputError):
        parse_base64("A")
