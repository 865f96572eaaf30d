"""Quotas on partitions created and deleted (KIP-599, `controller_mutation_rate`): a bucket of tokens for each client.

Soft state of one node, lost on failover by design. A bucket fills at the client's rate and holds what the rate gives in
all windows together; a request may empty it below zero. A strict quota refuses what comes while it is below zero, a
permissive one, for versions that cannot tell, lets it pass and makes the client wait. Which of several quotas is a
client's is decided as in Kafka: the most specific of user and client id, users before client ids.
"""

from __future__ import annotations

from collections import OrderedDict
from math import floor
from typing import Final

from barnabas.metadata.pmap import PMap
from barnabas.metadata.quotas import QuotaEntity, Quotas
from barnabas.wire import ErrorCode, KafkaError

CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
BUCKETS_MAX: Final = 16384

_USER, _CLIENT_ID = "user", "client-id"
_DEFAULT: Final = None
_ABSENT: Final = ""

Client = tuple[str, str]
"""User and client id that share a bucket; an empty one does not matter."""


class _Bucket:
    __slots__ = ("tokens", "updated_ms")

    def __init__(self, tokens: float, updated_ms: int) -> None:
        self.tokens = tokens
        self.updated_ms = updated_ms


class MutationQuota:
    """The quota of one request. Without a bucket there is none."""

    __slots__ = ("_bucket", "_burst", "_rate", "_recorded_ms", "_strict", "_throttle_time_ms")

    def __init__(self, bucket: _Bucket | None = None, rate: float = 0, burst: float = 0, strict: bool = True) -> None:
        self._bucket = bucket
        self._rate = rate
        self._burst = burst
        self._strict = strict
        self._throttle_time_ms = 0
        self._recorded_ms = 0

    def record(self, partitions: int, now_ms: int) -> None:
        """Count partitions that are to be created or deleted; a strict quota that is used up raises KafkaError."""
        bucket = self._bucket
        if bucket is None:
            return
        bucket.tokens = min(self._burst, bucket.tokens + self._rate * max(now_ms - bucket.updated_ms, 0) / 1000)
        bucket.updated_ms = now_ms
        if self._strict and bucket.tokens < 0:
            self._throttle(bucket, now_ms)
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        bucket.tokens -= partitions
        if not self._strict and bucket.tokens < 0:
            self._throttle(bucket, now_ms)

    def _throttle(self, bucket: _Bucket, now_ms: int) -> None:
        self._throttle_time_ms = floor(-bucket.tokens / self._rate * 1000 + 0.5)
        self._recorded_ms = now_ms

    def throttle_time_ms(self, now_ms: int) -> int:
        """How long the client shall wait, from now."""
        return max(self._throttle_time_ms - (now_ms - self._recorded_ms), 0) if self._throttle_time_ms else 0


UNBOUNDED: Final = MutationQuota()


class MutationQuotas:
    """The buckets of a node. The numbers are those of controller.quota.window.num and .size.seconds."""

    def __init__(self, window_num: int, window_size_seconds: int) -> None:
        self._window_seconds = window_num * window_size_seconds
        self._buckets: OrderedDict[Client, _Bucket] = OrderedDict()
        self._quotas: Quotas = PMap()
        self._rates: dict[QuotaEntity, float] = {}
        self._types: set[tuple[str, ...]] = set()

    def quota(self, quotas: Quotas, user: str, client_id: str | None, now_ms: int, *, strict: bool) -> MutationQuota:
        """The quota of a request that `user` (the name of the principal) sends with this client id."""
        if quotas is not self._quotas:
            self._read(quotas)
        client = self._client(user, client_id)
        rate = None if client is None else self._rate(*client)
        if client is None or rate is None:
            return UNBOUNDED
        burst = rate * self._window_seconds
        bucket = self._buckets.get(client)
        if bucket is None:
            bucket = self._buckets[client] = _Bucket(burst, now_ms)
            while len(self._buckets) > BUCKETS_MAX:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(client)
        return MutationQuota(bucket, rate, burst, strict)

    def _read(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._rates = {e: rate for e, v in quotas.items() if (rate := v.get(CONTROLLER_MUTATION_RATE)) is not None}
        self._types = {tuple(kind for kind, _ in entity) for entity in self._rates}

    def _client(self, user: str, client_id: str | None) -> Client | None:
        """Whose bucket counts; None for nobody's."""
        if not self._types:
            return None
        by_user, by_client_id = (user, _ABSENT), None if client_id is None else (_ABSENT, client_id)
        by_both = None if client_id is None else (user, client_id)
        if len(self._types) == 1:
            alone: dict[tuple[str, ...], Client | None] = {(_USER,): by_user, (_CLIENT_ID,): by_client_id}
            return alone.get(next(iter(self._types)), by_both)
        for entity, client in (
            (_both(user, client_id or _ABSENT), by_both),
            (_both(user, _DEFAULT), by_both),
            (((_USER, user),), by_user),
            (_both(_DEFAULT, client_id or _ABSENT), by_both),
            (_both(_DEFAULT, _DEFAULT), by_both),
            (((_USER, _DEFAULT),), by_user),
        ):
            if entity in self._rates:
                return client
        return by_client_id

    def _rate(self, user: str, client_id: str) -> float | None:
        entities: tuple[QuotaEntity, ...] = ()
        if user and client_id:
            entities = tuple(_both(u, c) for u in (user, _DEFAULT) for c in (client_id, _DEFAULT))
        elif user or client_id:
            kind = _USER if user else _CLIENT_ID
            entities = (((kind, user or client_id),), ((kind, _DEFAULT),))
        return next((self._rates[entity] for entity in entities if entity in self._rates), None)


def _both(user: str | None, client_id: str | None) -> QuotaEntity:
    return (_CLIENT_ID, client_id), (_USER, user)
