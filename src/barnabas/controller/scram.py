"""Sets and removes SCRAM credentials.

A user may appear only once in a request, whatever the mechanism. An invalid user fails alone. Passwords are never
received: a client sends them salted, and what is stored cannot be used to log in. Nothing here authenticates.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

from barnabas.config.hash_order import hash_order_in_slices
from barnabas.controller.situation import Situation
from barnabas.metadata.scram import SCRAM_MECHANISMS, ScramUser
from barnabas.replicated.decision import Result
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.records.metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord

Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384

_HASHES: Final = {1: hashlib.sha256, 2: hashlib.sha512}


def alter(
    situation: Situation, deletions: Iterable[Deletion], upsertions: Iterable[Upsertion]
) -> Slices[Result[dict[str, KafkaError | None]]]:
    """Return the error or None for each user: first deletions, then upsertions, then errors."""
    accepted, errors = yield from _judge(situation, chain(deletions, upsertions))
    records: list[tuple[Message, int]] = []
    rows: dict[str, KafkaError | None] = {}
    for kind in (Deletion, Upsertion):
        names = yield from hash_order_in_slices(name for name, each in accepted.items() if isinstance(each, kind))
        for name in names:
            yield
            try:
                records.append((_record(accepted[name]), 0))
                rows[name] = None
            except KafkaError as error:
                errors[name] = error
    failed = yield from hash_order_in_slices(errors)
    return Result(records, rows | {name: errors[name] for name in failed})


def _judge(
    situation: Situation, alterations: Iterable[Deletion | Upsertion]
) -> Slices[tuple[Mapping[str, Deletion | Upsertion], dict[str, KafkaError]]]:
    accepted: dict[str, Deletion | Upsertion] = {}
    errors: dict[str, KafkaError] = {}
    for each in alterations:
        yield
        if each.name in errors:
            continue
        if accepted.pop(each.name, None) is not None:
            text = "A user credential cannot be altered twice in the same request"
            errors[each.name] = KafkaError(ErrorCode.DUPLICATE_RESOURCE, text)
            continue
        error = _refusal(situation, each)
        if error is None:
            accepted[each.name] = each
        else:
            errors[each.name] = error
    return accepted, errors


def _refusal(situation: Situation, alteration: Deletion | Upsertion) -> KafkaError | None:
    if not situation.metadata_version.is_scram_supported:
        return KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
    if not alteration.name:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if alteration.mechanism not in SCRAM_MECHANISMS:
        return KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(alteration, Upsertion):
        if alteration.iterations < MIN_ITERATIONS:
            return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if alteration.iterations > MAX_ITERATIONS:
            return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    elif ScramUser(alteration.mechanism, alteration.name) not in situation.image.scram:
        return KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    return None


def _record(alteration: Deletion | Upsertion) -> Message:
    if isinstance(alteration, Deletion):
        return RemoveUserScramCredentialRecord(name=alteration.name, mechanism=alteration.mechanism)
    if not alteration.salted_password:
        # Kafka fails to create a key from an empty password.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    digest, salted_password = _HASHES[alteration.mechanism], bytes(alteration.salted_password)
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    return UserScramCredentialRecord(
        name=alteration.name,
        mechanism=alteration.mechanism,
        salt=bytes(alteration.salt),
        stored_key=digest(client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", digest),
        iterations=alteration.iterations,
    )
