"""Changes of users' SCRAM credentials and of quotas. Each is checked first and returned as a `Proposal`.

Its one rule: a password is never part of a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.admin.quotas import QuotaEntity, QuotaFilter, Quotas, entity_text
from barnabas.client.admin.users import (
    ScramCredentialInfo,
    ScramCredentialKey,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    Users,
)
from barnabas.client.cluster import Cluster
from barnabas.operations.errors import OperationError
from barnabas.operations.proposal import Proposal
from barnabas.operations.quota_sentences import quota_sentence
from barnabas.similar_names import did_you_mean
from barnabas.wire.errors import KafkaError

# --- users


async def propose_credential(
    cluster: Cluster, upsertion: ScramUpsertion
) -> Proposal[ScramCredentialKey, KafkaError | None]:
    """Propose to create or replace a credential."""
    users, name = Users(cluster), upsertion.user
    present = await _credentials(users, name)
    done = "replace" if any(info.mechanism == upsertion.mechanism for info in present) else "create"
    mechanism = upsertion.mechanism.sasl_name

    async def carry_out() -> dict[ScramCredentialKey, KafkaError | None]:
        return await users.alter_user_scram_credentials([upsertion])

    return Proposal(
        {ScramCredentialKey(name, upsertion.mechanism): None},
        (f"{done} the {mechanism} credential of user {name}, {upsertion.iterations} iterations",),
        carry_out=carry_out,
    )


async def propose_credential_deletion(
    cluster: Cluster, name: str, mechanism: ScramMechanism | None
) -> Proposal[ScramCredentialKey, KafkaError | None]:
    """Propose to delete one credential of a user, or all. Raises OperationError if the user has none."""
    users = Users(cluster)
    present = [info.mechanism for info in await _credentials(users, name)]
    wanted = present if mechanism is None else [mechanism]
    if not present:
        hint = did_you_mean(name, await users.describe_user_scram_credentials())
        raise OperationError(
            f"has no credentials{hint}", resource=f"user {name}", advice="list users with: barnabas users list"
        )

    async def carry_out() -> dict[ScramCredentialKey, KafkaError | None]:
        return await users.alter_user_scram_credentials([ScramDeletion(name, each) for each in wanted])

    return Proposal(
        {ScramCredentialKey(name, each): None for each in wanted},
        tuple(f"delete the {each.sasl_name} credential of user {name}" for each in wanted),
        question=f"Delete {len(wanted)} of {len(present)} credentials of user {name}?",
        carry_out=carry_out,
    )


async def _credentials(users: Users, name: str) -> tuple[ScramCredentialInfo, ...]:
    found = (await users.describe_user_scram_credentials([name])).get(name)
    return () if found is None or isinstance(found, KafkaError) else found


# --- quotas


async def propose_quotas(
    cluster: Cluster, entity: QuotaEntity, values: Mapping[str, float | None]
) -> Proposal[QuotaEntity, KafkaError | None]:
    """Propose to set quotas of an entity, and to remove those that are None."""
    quotas = Quotas(cluster)
    before = (await quotas.describe_client_quotas(QuotaFilter.of(entity), strict=True)).get(entity, {})
    checks = await quotas.alter_client_quotas({entity: values}, validate_only=True)
    if checks[entity] is not None:
        return Proposal(expected=checks)

    async def carry_out() -> dict[QuotaEntity, KafkaError | None]:
        return await quotas.alter_client_quotas({entity: values})

    return Proposal(
        checks,
        tuple(quota_sentence(entity_text(entity), key, value, before) for key, value in values.items()),
        carry_out=carry_out,
    )
