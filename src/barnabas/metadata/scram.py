"""SCRAM credentials by mechanism and user. Salts and keys never appear in a repr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.metadata.pmap import PMap
from barnabas.metadata.versions import MetadataVersion
from barnabas.security.sasl.scram import ScramCredential
from barnabas.wire.records.metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord

if TYPE_CHECKING:
    from barnabas.metadata.image import Draft

SCRAM_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


class ScramUser(NamedTuple):
    mechanism: int
    name: str


Scram = PMap[ScramUser, ScramCredential]


def replay_user_scram_credential(draft: Draft, record: UserScramCredentialRecord) -> None:
    credential = ScramCredential(
        bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
    )
    draft.scram.set(ScramUser(record.mechanism, record.name), credential)


def replay_remove_user_scram_credential(draft: Draft, record: RemoveUserScramCredentialRecord) -> None:
    draft.scram.remove(ScramUser(record.mechanism, record.name))


def to_records(
    scram: Scram, version: MetadataVersion, lose: Callable[[str], None]
) -> Iterator[tuple[UserScramCredentialRecord, int]]:
    if scram and not version.is_scram_supported:
        lose(f"the SCRAM credentials of {', '.join(sorted({user.name for user in scram}))}")
        return
    for (mechanism, name), (salt, stored_key, server_key, iterations) in sorted(scram.items()):
        record = UserScramCredentialRecord(
            name=name,
            mechanism=mechanism,
            salt=salt,
            stored_key=stored_key,
            server_key=server_key,
            iterations=iterations,
        )
        yield record, 0
