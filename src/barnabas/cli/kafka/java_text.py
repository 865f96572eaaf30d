"""Java's traits in the output of Kafka's tools: the order of hash maps, the names of exceptions, padding, CSV. Pure.

Its one rule: only what is visible in the output of a tool is imitated. Used by the commands named like Kafka's scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from barnabas.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")

_MIN_BUCKETS = 16


def string_hash(text: str) -> int:
    """Return Java's `String.hashCode`, over UTF-16.

    >>> string_hash("orders"), string_hash("")
    (-1008770331, 0)
    """
    data = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for at in range(0, len(data), 2):
        found = (31 * found + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    return found - (1 << 32) if found >= 1 << 31 else found


def partition_hash(partition: tuple[str, int]) -> int:
    """`TopicPartition.hashCode`."""
    topic, number = partition
    return (31 * (31 + number) + string_hash(topic)) & 0xFFFFFFFF


def hash_order(keys: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Return the keys in the iteration order of a `HashMap` that they were inserted into one by one.

    >>> hash_order(["b", "a", "group-2", "group-1"], string_hash)
    ['a', 'b', 'group-2', 'group-1']
    """
    wanted = list(dict.fromkeys(keys))
    buckets = _MIN_BUCKETS
    while len(wanted) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: T) -> int:
        number = hash_of(key) & 0xFFFFFFFF
        return (number ^ number >> 16) & (buckets - 1)

    return sorted(wanted, key=bucket)


_EXCEPTIONS = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.MESSAGE_TOO_LARGE: "RecordTooLargeException",
    ErrorCode.STALE_CONTROLLER_EPOCH: "ControllerMovedException",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
    ErrorCode.NETWORK_EXCEPTION: "NetworkException",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    ErrorCode.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
    ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "DuplicateSequenceException",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "InvalidPidMappingException",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "InvalidTxnTimeoutException",
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "PrincipalDeserializationException",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "FetchSessionTopicIdException",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "InvalidRegularExpression",
}
_FAILED = ("_AUTHORIZATION_FAILED", "_AUTHENTICATION_FAILED")


def exception_name(code: ErrorCode) -> str:
    """Return the class name of the exception that Kafka's clients have for a code.

    >>> exception_name(ErrorCode.GROUP_ID_NOT_FOUND), exception_name(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    ('GroupIdNotFoundException', 'TopicAuthorizationException')
    """
    name = code.name.removesuffix("_FAILED") if code.name.endswith(_FAILED) else code.name
    return _EXCEPTIONS.get(code) or "".join(map(str.capitalize, name.split("_"))) + "Exception"


def exception_text(error: KafkaError) -> str:
    """Format an exception as Java does: its class and its message.

    >>> exception_text(KafkaError(ErrorCode.NON_EMPTY_GROUP))
    'org.apache.kafka.common.errors.GroupNotEmptyException: The group is not empty.'
    """
    return f"org.apache.kafka.common.errors.{exception_name(error.code)}: {error.message}"


def padded(cells: Sequence[object], widths: Sequence[int]) -> str:
    """Format columns as `printf` does: left-aligned, one space apart; width 0 does not pad.

    >>> padded(["GROUP", "TOPIC"], [8, 0])
    'GROUP    TOPIC'
    """
    return " ".join(f"{cell!s:<{width}}" if width else str(cell) for cell, width in zip(cells, widths, strict=True))


_MAX_UNQUOTED = 24
_FIRST_UNQUOTED = "-"


def csv_line(cells: Iterable[object]) -> str:
    """Format a line of CSV as Kafka's tools do: long texts, and those with special characters, in quotes.

    >>> csv_line(["a group", "orders", 0, 7])
    '"a group",orders,0,7'
    """
    return ",".join(_csv_cell(cell) if isinstance(cell, str) else str(cell) for cell in cells)


def _csv_cell(text: str) -> str:
    if len(text) > _MAX_UNQUOTED or any(char < _FIRST_UNQUOTED for char in text):
        return '"' + text.replace('"', '""') + '"'
    return text
