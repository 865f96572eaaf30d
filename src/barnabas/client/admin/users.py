"""SCRAM credentials of users: DescribeUserScramCredentials, AlterUserScramCredentials.

    upsertion = ScramUpsertion("alice", ScramMechanism.SCRAM_SHA_512, password)
    checked(await users.alter_user_scram_credentials([upsertion]))

Its one rule: passwords never leave the client. They are salted and hashed before they are sent, and appear in no message.
Brokers return only the mechanism and the number of iterations.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from barnabas.client.admin.part import Part, change, failed, pieces
from barnabas.client.routing import any_broker, controller
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

DEFAULT_ITERATIONS: Final = 4096
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
"""Kafka's maximum."""

_SALT_BYTES: Final = 32
_ALTERED_AT_ONCE: Final = 200


class ScramMechanism(IntEnum):
    """A mechanism, by its number in the protocol.

    >>> ScramMechanism.of("SCRAM-SHA-256").sasl_name
    'SCRAM-SHA-256'
    """

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        return self.name.replace("_", "-")

    @classmethod
    def of(cls, sasl_name: str) -> ScramMechanism:
        """Return the mechanism with this name. Raises ValueError if there is none."""
        for mechanism in cls:
            if mechanism.sasl_name == sasl_name:
                return mechanism
        raise ValueError(f"{sasl_name!r} is none of {', '.join(each.sasl_name for each in cls)}")


class ScramCredentialInfo(NamedTuple):
    """Mechanism and iterations of a credential."""

    mechanism: ScramMechanism
    iterations: int


class ScramCredentialKey(NamedTuple):
    """User and mechanism of an alteration."""

    user: str
    mechanism: ScramMechanism


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """A credential to create or replace. The default salt is random.

    >>> ScramUpsertion("alice", ScramMechanism.SCRAM_SHA_256, "secret")
    ScramUpsertion(user='alice', mechanism=<ScramMechanism.SCRAM_SHA_256: 1>, iterations=4096)
    """

    user: str
    mechanism: ScramMechanism
    password: str | bytes = field(repr=False)
    iterations: int = DEFAULT_ITERATIONS
    salt: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ScramDeletion:
    """A credential to delete."""

    user: str
    mechanism: ScramMechanism


ScramAlteration: TypeAlias = ScramUpsertion | ScramDeletion


class Users(Part):
    """SCRAM credentials and their alteration.

    >>> from barnabas.client.admin.part import checked
    >>> from barnabas.client.cluster import Cluster
    >>> from barnabas.testing import Broker
    >>> async def main() -> None:
    ...     async with Broker() as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
    ...         users = Users(cluster)
    ...         alice = ScramUpsertion("alice", ScramMechanism.SCRAM_SHA_512, "wonderland", iterations=8192)
    ...         checked(await users.alter_user_scram_credentials([alice]))
    ...         (info,) = checked(await users.describe_user_scram_credentials(["alice"]))["alice"]
    ...         print(info.mechanism.sasl_name, info.iterations)
    >>> asyncio.run(main())
    SCRAM-SHA-512 8192
    """

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout_ms: float | None = None
    ) -> dict[str, tuple[ScramCredentialInfo, ...] | KafkaError]:
        """Return the mechanisms and iterations of these users, or of all that have credentials (None).

        The result of a user without credentials is RESOURCE_NOT_FOUND, of one named twice DUPLICATE_RESOURCE.
        """
        names = None if users is None else list(users)
        if names == []:
            return {}  # brokers take an empty list for all users
        user_name = DescribeUserScramCredentialsRequest.UserName
        request = DescribeUserScramCredentialsRequest(
            users=None if names is None else [user_name(name=name) for name in names]
        )
        to = controller() if self.cluster.settings.bootstrap_controllers else any_broker()
        response: DescribeUserScramCredentialsResponse = await self.cluster.call(
            request, to, feature="describing SCRAM credentials", timeout_ms=timeout_ms
        )
        return {row.user: failed(row.error_code, row.error_message) or _infos(row) for row in response.results}

    async def alter_user_scram_credentials(
        self, alterations: Iterable[ScramAlteration], *, timeout_ms: float | None = None
    ) -> dict[ScramCredentialKey, KafkaError | None]:
        """Create, replace and delete credentials. A user with alterations of both mechanisms is altered in two requests.

        The result of deleting a missing credential is RESOURCE_NOT_FOUND.
        """
        results: dict[ScramCredentialKey, KafkaError | None] = {}
        given = list(alterations)
        for each in given:
            key = _key(each)
            if key in results:
                results[key] = KafkaError(ErrorCode.DUPLICATE_RESOURCE, f"{_credential_of(key)} is given twice")
            else:
                results[key] = _refusal(each)
        sent = [each for each in given if results[_key(each)] is None]
        for users in _rounds(sent):
            for some in pieces(users, _ALTERED_AT_ONCE):
                results.update(await _alter(self, some, timeout_ms))
        return results


def salted_password(mechanism: ScramMechanism, password: str | bytes, salt: bytes, iterations: int) -> bytes:
    """Return the SaltedPassword of RFC 5802, which is sent instead of the password. As in Kafka, text is not normalized.

    >>> salted_password(ScramMechanism.SCRAM_SHA_256, "secret", b"salt", 4096).hex()[:16]
    '609a62b5b687ba65'
    """
    digest = mechanism.name.removeprefix("SCRAM_").replace("_", "").lower()
    secret = password.encode() if isinstance(password, str) else password
    return hashlib.pbkdf2_hmac(digest, secret, salt, iterations)


def _key(alteration: ScramAlteration) -> ScramCredentialKey:
    return ScramCredentialKey(alteration.user, alteration.mechanism)


def _credential_of(key: ScramCredentialKey) -> str:
    return f"the {key.mechanism.sasl_name} credential of user {key.user}"


def _refusal(alteration: ScramAlteration) -> KafkaError | None:
    """Return the error of an alteration that is not sent at all, as in Kafka's client. Limits iterations, which cost time."""
    if not alteration.user:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if isinstance(alteration, ScramDeletion):
        return None
    if not alteration.password:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Password must not be empty")
    if alteration.iterations < MIN_ITERATIONS:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if alteration.iterations > MAX_ITERATIONS:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None


def _rounds(alterations: Sequence[ScramAlteration]) -> list[list[ScramAlteration]]:
    """Split alterations into requests in which each user appears once, as brokers require."""
    rounds: list[dict[str, ScramAlteration]] = []
    for each in alterations:
        place = next((found for found in rounds if each.user not in found), None)
        if place is None:
            rounds.append(place := {})
        place[each.user] = each
    return [list(found.values()) for found in rounds]


async def _alter(
    users: Users, alterations: Sequence[ScramAlteration], timeout_ms: float | None
) -> dict[ScramCredentialKey, KafkaError | None]:
    upsertions = [each for each in alterations if isinstance(each, ScramUpsertion)]
    request = AlterUserScramCredentialsRequest(
        deletions=[
            AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=each.user, mechanism=each.mechanism)
            for each in alterations
            if isinstance(each, ScramDeletion)
        ],
        upsertions=await asyncio.to_thread(
            lambda: list(map(salted_upsertion, upsertions))
        ),  # hashing takes milliseconds each
    )
    by_user = {each.user: each for each in alterations}

    async def ask() -> dict[ScramCredentialKey, KafkaError | None]:
        response: AlterUserScramCredentialsResponse = await users.cluster.call(
            request, controller(), feature="changing SCRAM credentials", timeout_ms=timeout_ms
        )
        return {_key(by_user[row.user]): failed(row.error_code, row.error_message) for row in response.results}

    async def look(late: list[ScramCredentialKey]) -> dict[ScramCredentialKey, bool]:
        found = await users.describe_user_scram_credentials([key.user for key in late])
        return {key: state for key in late if (state := _is_done(by_user[key.user], found.get(key.user))) is not None}

    return await change([_key(each) for each in alterations], ask, look, lambda key: f"altering {_credential_of(key)}")


def _is_done(alteration: ScramAlteration, found: tuple[ScramCredentialInfo, ...] | KafkaError | None) -> bool | None:
    """Return whether an alteration is in effect; None if the credential exists, because its password cannot be read."""
    if isinstance(found, KafkaError):
        if found.code is not ErrorCode.RESOURCE_NOT_FOUND:
            return None
        found = ()
    present = {info.mechanism: info.iterations for info in found or ()}
    if isinstance(alteration, ScramDeletion):
        return alteration.mechanism not in present
    return None if present.get(alteration.mechanism) == alteration.iterations else False


def salted_upsertion(given: ScramUpsertion) -> AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    salt = secrets.token_bytes(_SALT_BYTES) if given.salt is None else given.salt
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=given.user,
        mechanism=given.mechanism,
        iterations=given.iterations,
        salt=salt,
        salted_password=salted_password(given.mechanism, given.password, salt, given.iterations),
    )


def _infos(
    row: DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult,
) -> tuple[ScramCredentialInfo, ...]:
    known = ScramMechanism._value2member_map_
    return tuple(
        ScramCredentialInfo(ScramMechanism(info.mechanism), info.iterations)
        for info in row.credential_infos
        if info.mechanism in known
    )
