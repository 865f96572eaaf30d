"""Delegation tokens by id. Their secret is in no record: it is derived from the id and the cluster's key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.metadata.errors import ReplayError
from barnabas.metadata.pmap import PMap
from barnabas.metadata.versions import MetadataVersion
from barnabas.wire.records.metadata import DelegationTokenRecord, RemoveDelegationTokenRecord

if TYPE_CHECKING:
    from barnabas.metadata.image import Draft


class DelegationToken(NamedTuple):
    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiration_timestamp_ms: int


Tokens = PMap[str, DelegationToken]


def replay_delegation_token(draft: Draft, record: DelegationTokenRecord) -> None:
    for principal in (record.owner, record.requester, *record.renewers):
        if ":" not in principal:
            raise ReplayError(f"a principal must have the form type:name, not {principal!r}")
    token = DelegationToken(
        record.token_id,
        record.owner,
        record.requester,
        tuple(record.renewers),
        record.issue_timestamp,
        record.max_timestamp,
        record.expiration_timestamp,
    )
    draft.tokens.set(record.token_id, token)


def replay_remove_delegation_token(draft: Draft, record: RemoveDelegationTokenRecord) -> None:
    draft.tokens.remove(record.token_id)


def to_records(
    tokens: Tokens, version: MetadataVersion, lose: Callable[[str], None]
) -> Iterator[tuple[DelegationTokenRecord, int]]:
    if tokens and not version.is_delegation_token_supported:
        lose("delegation tokens")
        return
    for _, token in sorted(tokens.items()):
        yield token_record(token), 0


def token_record(token: DelegationToken) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        expiration_timestamp=token.expiration_timestamp_ms,
        token_id=token.token_id,
    )
