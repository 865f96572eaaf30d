"""ListTransactionsRequest and ListTransactionsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["ListTransactionsRequest", "ListTransactionsResponse"]


class ListTransactionsRequest(Message):
    """ListTransactions request, API key 66, versions 0-2, flexible 0+."""

    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern")

    state_filters: list[str]
    producer_id_filters: list[int]
    duration_filter: int
    transactional_id_pattern: str | None

    def __init__(
        self,
        *,
        state_filters: list[str] = EMPTY,
        producer_id_filters: list[int] = EMPTY,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters = [] if state_filters is EMPTY else state_filters
        self.producer_id_filters = [] if producer_id_filters is EMPTY else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern
        self.unknown_tagged_fields = None

    SCHEMA = """
ListTransactionsRequest request key=66 versions=0-2 flexible=0+ listeners=broker
  state_filters []string
  producer_id_filters []int64
  duration_filter int64 1+ default=-1
  transactional_id_pattern string 2+ nullable default=null
"""


class ListTransactionsResponse(Message):
    """ListTransactions response, API key 66, versions 0-2, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states")

    throttle_time_ms: int
    error_code: int
    unknown_state_filters: list[str]
    transaction_states: list[ListTransactionsResponse.TransactionState]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = EMPTY,
        transaction_states: list[ListTransactionsResponse.TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is EMPTY else unknown_state_filters
        self.transaction_states = [] if transaction_states is EMPTY else transaction_states
        self.unknown_tagged_fields = None

    SCHEMA = """
ListTransactionsResponse response key=66 versions=0-2 flexible=0+
  throttle_time_ms int32
  error_code int16
  unknown_state_filters []string
  transaction_states []TransactionState
    transactional_id string
    producer_id int64
    transaction_state string
"""

    class TransactionState(Struct):
        __slots__ = ("transactional_id", "producer_id", "transaction_state")

        transactional_id: str
        producer_id: int
        transaction_state: str

        def __init__(
            self,
            *,
            transactional_id: str = "",
            producer_id: int = 0,
            transaction_state: str = "",
        ) -> None:
            self.transactional_id = transactional_id
            self.producer_id = producer_id
            self.transaction_state = transaction_state
            self.unknown_tagged_fields = None
