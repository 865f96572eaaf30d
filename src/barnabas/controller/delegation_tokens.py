"""Creates, renews, expires and removes delegation tokens.

A token ends at its maximal age, and earlier unless it is renewed. Its owner and its renewers may renew and expire it; they have
proved that they know its HMAC, which the caller has checked. As in Kafka, an expired token stays until it is swept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.controller.situation import Situation
from barnabas.metadata.tokens import DelegationToken, token_record
from barnabas.replicated.decision import Result
from barnabas.security.principal import KafkaPrincipal
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.records.metadata import RemoveDelegationTokenRecord

MAX_REMOVED_AT_ONCE: Final = 1000
_MAX_INT64: Final = 2**63 - 1


class Wanted(NamedTuple):
    """A token to create. `max_lifetime_ms` counts if it is positive."""

    owner: KafkaPrincipal
    requester: KafkaPrincipal
    renewers: Sequence[KafkaPrincipal]
    max_lifetime_ms: int


def create(situation: Situation, wanted: Wanted) -> Result[DelegationToken]:
    """Return the new token. Raises `KafkaError`."""
    _check_version(situation)
    max_lifetime_ms = situation.config.get_int("delegation.token.max.lifetime.ms")
    if wanted.max_lifetime_ms > 0:
        max_lifetime_ms = min(max_lifetime_ms, wanted.max_lifetime_ms)
    max_timestamp_ms = _later(situation, max_lifetime_ms)
    expires_ms = _later(situation, situation.config.get_int("delegation.token.expiry.time.ms"))
    token = DelegationToken(
        str(situation.new_uuid()),
        str(wanted.owner),
        str(wanted.requester),
        tuple(str(renewer) for renewer in wanted.renewers),
        situation.now_ms,
        max_timestamp_ms,
        min(max_timestamp_ms, expires_ms),
    )
    return Result([(token_record(token), 0)], token)


def renew(situation: Situation, token_id: str, caller: KafkaPrincipal, period_ms: int) -> Result[int]:
    """Return the time at which the token now expires. Raises `KafkaError`."""
    token = _token_of(situation, token_id)
    _check_life(situation, token)
    _check_caller(token, caller)
    default_ms = situation.config.get_int("delegation.token.expiry.time.ms")
    return _expiring(token, _later(situation, min(default_ms, period_ms) if period_ms > 0 else default_ms))


def expire(situation: Situation, token_id: str, caller: KafkaPrincipal, period_ms: int) -> Result[int]:
    """Return the time at which the token now expires; a negative period removes it at once. Raises `KafkaError`."""
    token = _token_of(situation, token_id)
    _check_caller(token, caller)
    if period_ms < 0:
        return Result([(RemoveDelegationTokenRecord(token_id=token_id), 0)], situation.now_ms)
    _check_life(situation, token)
    return _expiring(token, _later(situation, period_ms))


def remove_expired(situation: Situation) -> Slices[Result[bool]]:
    """Remove tokens that have expired, and return whether there are more."""
    expired: list[str] = []
    for token_id, token in situation.image.tokens.items():
        yield
        if _has_expired(situation, token):
            expired.append(token_id)
            if len(expired) == MAX_REMOVED_AT_ONCE:
                break
    records: list[tuple[Message, int]] = [(RemoveDelegationTokenRecord(token_id=each), 0) for each in sorted(expired)]
    return Result(records, len(expired) == MAX_REMOVED_AT_ONCE)


def _check_version(situation: Situation) -> None:
    if not situation.metadata_version.is_delegation_token_supported:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _token_of(situation: Situation, token_id: str) -> DelegationToken:
    _check_version(situation)
    token = situation.image.tokens.get(token_id)
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token


def _check_caller(token: DelegationToken, caller: KafkaPrincipal) -> None:
    if str(caller) not in (token.owner, *token.renewers):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _check_life(situation: Situation, token: DelegationToken) -> None:
    if _has_expired(situation, token):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _has_expired(situation: Situation, token: DelegationToken) -> bool:
    return min(token.max_timestamp_ms, token.expiration_timestamp_ms) < situation.now_ms


def _expiring(token: DelegationToken, expires_ms: int) -> Result[int]:
    expires_ms = min(token.max_timestamp_ms, expires_ms)
    return Result([(token_record(token._replace(expiration_timestamp_ms=expires_ms)), 0)], expires_ms)


def _later(situation: Situation, duration_ms: int) -> int:
    return min(situation.now_ms + duration_ms, _MAX_INT64)
