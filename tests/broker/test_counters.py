"""Error codes of responses are counted wherever they are in the message, in slices."""

from __future__ import annotations

from barnabas.broker.counters import ROWS_AT_ONCE, RequestCounters
from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.find_coordinator import FindCoordinatorResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.wire.messages.produce import ProduceResponse

TIMED_OUT, TOO_LARGE = ErrorCode.REQUEST_TIMED_OUT, ErrorCode.MESSAGE_TOO_LARGE


def counted(response: Message) -> dict[int, int]:
    """The errors by code, which are the same with and without pauses."""
    at_once, in_slices = RequestCounters("Any", 0), RequestCounters("Any", 0)
    at_once.count_errors(response)
    for _ in in_slices.count_errors_in_slices(response):
        pass
    assert at_once.errors == in_slices.errors
    return dict(at_once.errors)


def produced(*codes: int) -> ProduceResponse.TopicProduceResponse:
    row = ProduceResponse.PartitionProduceResponse
    return ProduceResponse.TopicProduceResponse(partition_responses=[row(error_code=code) for code in codes])


def test_errors_of_rows_are_counted_one_by_one_and_rows_without_are_not() -> None:
    response = ProduceResponse(responses=[produced(0, TIMED_OUT), produced(TOO_LARGE, TIMED_OUT, 0)])
    assert counted(response) == {TIMED_OUT: 2, TOO_LARGE: 1}


def test_an_error_at_the_top_level_and_one_in_a_row_are_both_counted() -> None:
    row = FindCoordinatorResponse.Coordinator(error_code=TOO_LARGE)
    response = FindCoordinatorResponse(error_code=TIMED_OUT, coordinators=[row])
    assert counted(response) == {TIMED_OUT: 1, TOO_LARGE: 1}


def test_an_array_that_is_null_has_no_errors() -> None:
    response = ProduceResponse()
    response.responses = None  # type: ignore[assignment]
    assert counted(response) == {}


def test_a_message_without_error_codes_has_none() -> None:
    assert counted(ListOffsetsRequest()) == {}


def test_counting_pauses_in_a_response_with_very_many_rows() -> None:
    row = ListOffsetsResponse.ListOffsetsPartitionResponse(error_code=TIMED_OUT)
    topic = ListOffsetsResponse.ListOffsetsTopicResponse(partitions=[row] * (3 * ROWS_AT_ONCE))
    counters = RequestCounters("ListOffsets", 0)
    pauses = sum(1 for _ in counters.count_errors_in_slices(ListOffsetsResponse(topics=[topic])))
    assert counters.errors == {TIMED_OUT: 3 * ROWS_AT_ONCE}
    assert pauses >= 3
