"""What ShareFetch and ShareAcknowledge have in common: who may ask, and what is wrong with acknowledgements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from barnabas.broker.context import Context
from barnabas.replicas.share.in_flight import AcknowledgeType
from barnabas.replicas.share.sessions import MemberKey, PartitionKey
from barnabas.replicas.share.share_partition import Acknowledged
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.share_state.coordinator import supports_share_groups
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError

MAX_MEMBER_ID_LENGTH: Final = 36
FIRST_WITH_RENEWAL: Final = 2


class RowError(NamedTuple):
    """The error of a partition in a response. One that is found before anything is tried has no message, as in Kafka."""

    code: ErrorCode
    message: str | None = None


Errors = dict[PartitionKey, RowError | None]


def row_errors(errors: Mapping[PartitionKey, KafkaError | None]) -> Errors:
    """Return the errors of acknowledgements that were tried."""
    return {key: None if error is None else RowError(error.code, error.message) for key, error in errors.items()}


class Asked(NamedTuple):
    """The acknowledgements of a request: those that are possible, and the errors of other partitions."""

    possible: list[tuple[PartitionKey, list[Acknowledged]]]
    errors: Errors


def member_of(context: Context, group_id: str | None, member_id: str | None) -> MemberKey:
    """Return the member that asks. Raises KafkaError if it may not, or the request is not possible."""
    if not supports_share_groups(context.image):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    if not context.may(AclOperation.READ, ResourceType.GROUP, group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not member_id or len(member_id.encode("utf-16-le")) // 2 > MAX_MEMBER_ID_LENGTH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return MemberKey(group_id, member_id)


class Topics:
    """What is known about the topics of a request, each looked up once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._allowed: dict[str, bool] = {}

    def name(self, key: PartitionKey) -> str:
        """Return the name of a topic. Raises UNKNOWN_TOPIC_ID."""
        topic = self._context.image.topics.by_id.get(key.topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        return topic.name

    def readable(self, key: PartitionKey) -> str:
        """Return the name of a topic whose partition exists and which the caller may read. Raises KafkaError."""
        name = self.name(key)
        may = self._allowed.get(name)
        if may is None:
            may = self._allowed[name] = self._context.may(AclOperation.READ, ResourceType.TOPIC, name)
        if not may:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if self._context.image.topics.partition(key.topic_id, key.partition) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return name


def acknowledgements(context: Context, topics: Topics, asked: Iterable[Any], *, is_renewal: bool) -> Slices[Asked]:
    """Check the acknowledgements in the topics of a request. As in Kafka, a partition without any has no error.

    If nothing else is left, such partitions are not answered at all.
    """
    possible: dict[PartitionKey, list[Acknowledged]] = {}
    errors: Errors = {}
    empty: Errors = {}
    last_type = AcknowledgeType.RENEW if context.version >= FIRST_WITH_RENEWAL else AcknowledgeType.REJECT
    for topic in asked:
        for partition in topic.partitions:
            yield
            key = PartitionKey(topic.topic_id, partition.partition_index)
            try:
                topics.name(key)
                rows = yield from _checked(partition.acknowledgement_batches, last_type, is_renewal=is_renewal)
                topics.readable(key)
            except KafkaError as error:
                errors[key] = RowError(error.code)
                continue
            if rows:
                possible[key] = rows
            else:
                empty[key] = None
    return Asked(list(possible.items()), {**errors, **empty} if possible else errors)


def _checked(batches: Sequence[Any], last_type: int, *, is_renewal: bool) -> Slices[list[Acknowledged]]:
    """Return acknowledgements if they are in order and complete. Raises INVALID_REQUEST otherwise."""
    rows: list[Acknowledged] = []
    before = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        is_complete = len(types) == 1 or last - first + 1 == len(types)
        if first > last or first < before or not types or not is_complete:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if min(types) < 0 or max(types) > last_type or (AcknowledgeType.RENEW in types and not is_renewal):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        before = last
        rows.append(Acknowledged(first, last, types))
        yield
    return rows
