"""What the client decides, as values: versions, waits, destinations, and what is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import barnabas.client
from barnabas.client.backoff import Backoff
from barnabas.client.errors import (
    AuthenticationError,
    CallTimeoutError,
    ConnectionLostError,
    NoAnswerError,
    NotConnectedError,
    NotKafkaError,
    TlsError,
    UnsupportedByNodeError,
)
from barnabas.client.retry import is_repeatable, may_retry, maybe_done, rows_not_done, whole_error
from barnabas.client.routing import (
    Coordinator,
    CoordinatorType,
    Load,
    Missing,
    any_broker,
    controller,
    coordinator,
    leader,
    least_loaded,
    node,
    resolve,
)
from barnabas.client.state import EMPTY_STATE, ClusterState, Node, Partition, Topic
from barnabas.client.versions import RELEASES, NodeVersions, encode_best, versions_of
from barnabas.wire import APIS, ZERO_UUID, ApiKey, EncodeError, ErrorCode, KafkaError, decode, message_class
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.list_offsets import ListOffsetsResponse
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.schema import Versions
from tests.client.peers import ranges


def test_every_name_of_the_package_can_be_imported() -> None:
    assert all(getattr(barnabas.client, name) is not None for name in barnabas.client.__all__)


# --- versions


def offering(key: ApiKey, first: int, last: int) -> NodeVersions:
    return NodeVersions({key: Versions(first, last)})


def test_the_newest_common_version_is_spoken() -> None:
    request = MetadataRequest(topics=None)
    assert encode_best(request, offering(ApiKey.METADATA, 0, 99))[0] == 13
    assert encode_best(request, offering(ApiKey.METADATA, 3, 7))[0] == 7


@settings(deadline=None)
@given(st.sampled_from(sorted(APIS)), st.integers(0, 20), st.integers(0, 20))
def test_whatever_a_node_offers_the_chosen_version_is_one_that_both_know(key: int, first: int, last: int) -> None:
    request = message_class(APIS[key].request)()
    try:
        version, body = encode_best(request, NodeVersions({key: Versions(first, last)}))
    except UnsupportedByNodeError:
        ours = APIS[key].versions
        assert not any(first <= version <= last for version in range(ours.first, ours.last + 1))
        return
    assert first <= version <= last
    assert version in APIS[key].versions
    decode(APIS[key].request, version, body)


def test_a_field_that_went_away_takes_the_newest_version_that_has_it() -> None:
    request = MetadataRequest(topics=None, include_cluster_authorized_operations=True)
    assert encode_best(request, offering(ApiKey.METADATA, 0, 13))[0] == 10
    assert encode_best(FindCoordinatorRequest(key="g"), offering(ApiKey.FIND_COORDINATOR, 0, 6))[0] == 3


def test_what_an_old_node_cannot_be_told_names_the_version_that_could() -> None:
    request = DescribeClusterRequest(include_fenced_brokers=True)
    with pytest.raises(UnsupportedByNodeError) as refused:
        encode_best(request, offering(ApiKey.DESCRIBE_CLUSTER, 0, 1), "old:9092", feature="showing fenced brokers")
    text = str(refused.value)
    assert text.startswith("old:9092 serves DescribeCluster in versions 0-1; showing fenced brokers needs version 2 (")
    assert "include_fenced_brokers" in text


def test_an_api_that_is_not_served_names_the_kafka_it_came_with() -> None:
    with pytest.raises(UnsupportedByNodeError, match=r"is not served by old:9092\. It came with Kafka 3\.8\."):
        encode_best(DescribeTopicPartitionsRequest(), NodeVersions({}), "old:9092")
    assert set(RELEASES) <= {api.name for api in APIS.values()}


def test_a_version_that_a_feature_needs_is_asked_for_by_name() -> None:
    with pytest.raises(UnsupportedByNodeError, match="versions 0-5; topic ids needs version 12"):
        encode_best(MetadataRequest(), offering(ApiKey.METADATA, 0, 5), least=12, feature="topic ids")


def test_a_node_that_is_too_new_is_said_to_be() -> None:
    with pytest.raises(UnsupportedByNodeError, match="in versions 50-60; this client supports 0-13"):
        encode_best(MetadataRequest(), offering(ApiKey.METADATA, 50, 60))


def test_a_value_that_no_version_can_hold_is_the_callers_fault() -> None:
    with pytest.raises(EncodeError, match="timeout_ms"):
        encode_best(CreateTopicsRequest(timeout_ms=1 << 40), offering(ApiKey.CREATE_TOPICS, 2, 7))


def test_a_node_is_asked_whether_it_serves() -> None:
    versions = versions_of(ranges(Metadata=(0, 9)))
    assert versions.serves("Metadata")
    assert versions.serves("Metadata", 9)
    assert not versions.serves("Metadata", 10)
    assert not versions.serves("DescribeTopicPartitions")
    with pytest.raises(KeyError, match="Metadate"):
        versions.serves("Metadate")


# --- waits


@given(st.floats(1, 1e6), st.floats(1, 1e6), st.integers(0, 10_000), st.floats(0, 1))
def test_a_wait_is_never_longer_than_a_fifth_above_the_limit(
    first_ms: float, max_ms: float, attempt: int, random: float
) -> None:
    backoff = Backoff(first_ms, max_ms)
    assert 0.79 * first_ms <= backoff.delay_ms(attempt, random) <= 1.21 * max(first_ms, max_ms)
    assert backoff.delay_ms(attempt, random) <= backoff.delay_ms(attempt + 1, random)


# --- destinations

STATE = ClusterState(
    controller_id=2,
    nodes={1: Node(1, "one", 9092), 2: Node(2, "two", 9092)},
    topics={"orders": Topic("orders", ZERO_UUID, False, {0: Partition(0, 1), 1: Partition(1, -1), 2: Partition(2, 9)})},
)
GROUP = Coordinator("g", CoordinatorType.GROUP)


def test_destinations_become_nodes() -> None:
    assert resolve(any_broker(), STATE, {}) is None
    assert resolve(controller(), STATE, {}) == 2
    assert resolve(node(1), STATE, {}) == 1
    assert resolve(leader("orders", 0), STATE, {}) == 1
    assert resolve(coordinator("g"), STATE, {GROUP: 1}) == 1


def test_what_is_missing_is_named() -> None:
    assert resolve(controller(), EMPTY_STATE, {}) is Missing.NODE
    assert resolve(node(7), STATE, {}) is Missing.NODE
    assert resolve(leader("orders", 1), STATE, {}) is Missing.LEADER
    assert resolve(leader("orders", 2), STATE, {}) is Missing.LEADER
    assert resolve(leader("orders", 3), STATE, {}) is Missing.LEADER
    assert resolve(leader("nope", 0), STATE, {}) is Missing.LEADER
    assert resolve(coordinator("g", CoordinatorType.TRANSACTION), STATE, {GROUP: 1}) is Missing.COORDINATOR
    assert resolve(coordinator("g"), STATE, {GROUP: 9}) is Missing.NODE


def test_chance_decides_among_equals_only() -> None:
    numbers = iter([0.9, 0.1, 0.5])
    assert least_loaded([Load(1, True), Load(2, True), Load(3, True, 1)], lambda: next(numbers)) == [2, 1, 3]


# --- what is tried again


@pytest.mark.parametrize(
    ("error", "read", "write"),
    [
        (NotConnectedError("refused"), True, True),
        (ConnectionLostError("reset"), True, False),
        (NoAnswerError("silence"), True, False),
        (NotKafkaError("http"), False, False),
        (TlsError("not trusted"), False, False),
        (AuthenticationError(ErrorCode.SASL_AUTHENTICATION_FAILED), False, False),
        (KafkaError(ErrorCode.NOT_CONTROLLER), True, True),
        (KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER), True, True),
        (KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), True, True),
        (KafkaError(ErrorCode.REQUEST_TIMED_OUT), True, False),
        (KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), False, False),
        (KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED), False, False),
        (UnsupportedByNodeError("old"), False, False),
        (ValueError("a bug"), False, False),
    ],
)
def test_what_may_have_been_done_is_repeated_only_if_that_is_harmless(
    error: Exception, read: bool, write: bool
) -> None:
    assert may_retry(error, repeatable=True) is read
    assert may_retry(error, repeatable=False) is write


def test_a_caller_can_give_up_on_a_code() -> None:
    error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert may_retry(error, repeatable=True)
    assert not may_retry(error, repeatable=True, give_up_on={ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


def test_reads_are_repeatable_and_what_makes_or_removes_is_not() -> None:
    repeatable = {api.name for api in APIS.values() if is_repeatable(message_class(api.request)())}
    assert {"Metadata", "Fetch", "DescribeConfigs", "ListOffsets", "FindCoordinator", "OffsetFetch"} <= repeatable
    assert not repeatable & {"CreateTopics", "DeleteTopics", "CreatePartitions", "Produce", "DeleteGroups", "JoinGroup"}


def test_whether_it_may_have_happened() -> None:
    assert maybe_done(ConnectionLostError())
    assert maybe_done(NoAnswerError())
    assert maybe_done(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    assert maybe_done(CallTimeoutError("", maybe_done=True))
    assert not maybe_done(CallTimeoutError(""))
    assert not maybe_done(NotConnectedError())
    assert not maybe_done(KafkaError(ErrorCode.NOT_CONTROLLER))


def created(*codes: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreateTopicsResponse.CreatableTopicResult(error_code=code) for code in codes])


def test_rows_that_all_say_wrong_node_are_an_answer_to_try_again() -> None:
    assert rows_not_done(created(41, 41)) is ErrorCode.NOT_CONTROLLER
    assert rows_not_done(created(41, 0)) is None
    assert rows_not_done(created(36)) is None
    assert rows_not_done(created()) is None
    partitions = [ListOffsetsResponse.ListOffsetsPartitionResponse(error_code=code) for code in (6, 74)]
    nested = ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(partitions=partitions)])
    assert rows_not_done(nested) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_code_that_nobody_knows_is_an_unknown_server_error() -> None:
    response = DescribeClusterResponse(error_code=9999, error_message="from the future")
    error = whole_error(response)
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, "from the future")
    assert whole_error(created(3)) is None
