"""Quotas on created and deleted partitions (KIP-599, `controller_mutation_rate`): a token bucket per client.

This is soft state of one node, lost on failover by design. A bucket fills at the client's rate and holds at most what
accumulates in all windows; a request may take it below zero. While it is below zero, a strict quota rejects requests. A
permissive one, for API versions without THROTTLING_QUOTA_EXCEEDED, accepts them and throttles the client. `quotas.bounds`
chooses the quota of a client.

Its one rule: a decision sees a quota as a value and returns its `Charge`. The caller takes the charge from the bucket
once the decision is accepted, so a decision that raises takes nothing.
"""

from __future__ import annotations

from math import floor, inf
from typing import Final, Generic, NamedTuple, TypeVar

from barnabas.quotas.bounds import Bounds, Client
from barnabas.recent import Recent
from barnabas.wire import ErrorCode, KafkaError

R_co = TypeVar("R_co", covariant=True)

MAX_BUCKETS: Final = 16384
BUCKET_BYTES: Final = 500  # without its names, as measured


class MutationQuota(NamedTuple):
    """The quota of one request: the tokens in the client's bucket and the rate per second that fills it."""

    client: Client | None
    tokens: float
    rate: float
    strict: bool = True


UNBOUNDED: Final = MutationQuota(None, inf, inf)
"""The quota of a client that has none."""


class Charge(NamedTuple):
    """The partitions that a decision counted against a quota, and how long the client must wait afterwards."""

    partitions: int = 0
    throttle_time_ms: int = 0

    def remaining_ms(self, elapsed_ms: int) -> int:
        """Return the rest of the throttle time, `elapsed_ms` after the decision."""
        return max(self.throttle_time_ms - elapsed_ms, 0) if self.throttle_time_ms else 0


class Charged(NamedTuple, Generic[R_co]):
    """The response of a decision that creates or deletes partitions, with its charge."""

    answers: R_co
    charge: Charge


class ChargeCounter:
    """Counts the partitions of one decision against a quota; the result is `charge`. The bucket is not changed."""

    __slots__ = ("_quota", "charge")

    def __init__(self, quota: MutationQuota) -> None:
        self._quota = quota
        self.charge = Charge()

    def count(self, partitions: int) -> None:
        """Count partitions to create or delete. Raises THROTTLING_QUOTA_EXCEEDED if a strict quota is exhausted."""
        quota, charge = self._quota, self.charge
        tokens = quota.tokens - charge.partitions
        if quota.strict and tokens < 0:
            self.charge = charge._replace(throttle_time_ms=self._throttle_time_ms(tokens))
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        tokens -= partitions
        throttle_time_ms = self._throttle_time_ms(tokens) if not quota.strict and tokens < 0 else 0
        self.charge = Charge(charge.partitions + partitions, throttle_time_ms or charge.throttle_time_ms)

    def _throttle_time_ms(self, tokens: float) -> int:
        return floor(-tokens / self._quota.rate * 1000 + 0.5)


class _Bucket:
    __slots__ = ("tokens", "updated_ms")

    def __init__(self, tokens: float, updated_ms: int) -> None:
        self.tokens = tokens
        self.updated_ms = updated_ms


class MutationQuotas:
    """The buckets of a node, with the values of controller.quota.window.num and controller.quota.window.size.seconds.

    `max_bytes` limits their memory: a client names itself.
    """

    def __init__(self, bounds: Bounds, window_num: int, window_size_seconds: int, max_bytes: int) -> None:
        self.throttled = 0  # requests
        self.throttled_ms = 0
        self.buckets: Recent[Client, _Bucket] = Recent(MAX_BUCKETS, max_bytes)
        self._bounds = bounds
        self._window_seconds = window_num * window_size_seconds

    def __len__(self) -> int:
        """The number of clients that are remembered."""
        return len(self.buckets)

    def quota(self, user: str, client_id: str | None, now_ms: int, *, strict: bool) -> MutationQuota:
        """Fill the bucket of `user` (the principal's name) and this client id, and return the quota of a request."""
        client = self._bounds.client(user, client_id)
        rate = None if client is None else self._bounds.of(client)
        if client is None or rate is None:
            return UNBOUNDED
        burst = rate * self._window_seconds
        bucket = self.buckets.use(client)
        if bucket is None:
            bucket = _Bucket(burst, now_ms)
            self.buckets.put(client, bucket, BUCKET_BYTES + sum(map(len, client)))
        bucket.tokens = min(burst, bucket.tokens + rate * max(now_ms - bucket.updated_ms, 0) / 1000)
        bucket.updated_ms = now_ms
        return MutationQuota(client, bucket.tokens, rate, strict)

    def count(self, throttle_time_ms: int) -> None:
        """Count a request that is throttled because of this quota."""
        self.throttled += 1
        self.throttled_ms += throttle_time_ms

    def take(self, quota: MutationQuota, charge: Charge) -> None:
        """Take the charge of an accepted decision from the bucket."""
        bucket = None if quota.client is None else self.buckets.get(quota.client)
        if bucket is not None:
            bucket.tokens -= charge.partitions
