"""Who may do what: ACLs, users, quotas, delegation tokens, and the settings of the authorizer, as far as they may be seen.

Its one rule: each is asked for by itself. What is refused is an `Unknown` with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.operations.doctor.cluster_facts import Unknown
from barnabas.security import acl_text
from barnabas.security.acl_index import AclIndex
from barnabas.security.authorizer import AuthorizerSettings, Explanation, explain, parse_super_users
from barnabas.security.principal import parse_principal
from barnabas.wire.errors import KafkaError, UnsupportedVersionError

if TYPE_CHECKING:
    from barnabas.client.admin.quotas import QuotaEntity
    from barnabas.client.admin.users import ScramCredentialInfo
    from barnabas.client.cluster import Cluster
    from barnabas.security.acl import AclEntry

T = TypeVar("T")
_SETTINGS = ("super.users", "allow.everyone.if.no.acl.found", "authorizer.class.name")


class DelegationToken(NamedTuple):
    """A delegation token without its secret."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int


class Access(NamedTuple):
    """What is known about access to a cluster."""

    acls: list[AclEntry] | Unknown
    users: Mapping[str, tuple[ScramCredentialInfo, ...] | KafkaError] | Unknown
    quotas: Mapping[QuotaEntity, Mapping[str, float]] | Unknown
    tokens: list[DelegationToken] | Unknown
    settings: AuthorizerSettings | Unknown
    topics: list[str] | None
    groups: list[str] | None


async def look_at_access(cluster: Cluster) -> Access:
    """Ask for everything at once."""
    from barnabas.client.admin.acls import Acls
    from barnabas.client.admin.groups import Groups
    from barnabas.client.admin.quotas import Quotas
    from barnabas.client.admin.users import Users

    async with asyncio.TaskGroup() as tasks:
        ask = tasks.create_task
        acls = ask(_asked(Acls(cluster).describe_acls()))
        users = ask(_asked(Users(cluster).describe_user_scram_credentials()))
        quotas = ask(_asked(Quotas(cluster).describe_client_quotas()))
        tokens = ask(_asked(_tokens(cluster)))
        settings = ask(_asked(_settings(cluster)))
        state = ask(_asked(cluster.metadata(None)))
        listed = ask(_asked(Groups(cluster).list_groups()))
    entries, topics, groups = acls.result(), state.result(), listed.result()
    return Access(
        entries if isinstance(entries, Unknown) else sorted(entries, key=acl_text.entry_order),
        users.result(),
        quotas.result(),
        tokens.result(),
        settings.result(),
        None if isinstance(topics, Unknown) else sorted(topics.topics),
        None if isinstance(groups, Unknown) else sorted(each.group_id for each in groups),
    )


async def _asked(work: Coroutine[Any, Any, T]) -> T | Unknown:
    try:
        return await work
    except KafkaError as error:
        return Unknown(f"{error.code.name}: {error.message}")
    except UnsupportedVersionError as error:
        return Unknown(str(error))


async def _settings(cluster: Cluster) -> AuthorizerSettings:
    """Read the settings of the authorizer from a broker."""
    from barnabas.client.admin.config_values import ConfigResource
    from barnabas.client.admin.configs import Configs

    resource = ConfigResource.broker(min(cluster.state.brokers))
    config = (await Configs(cluster).describe_configs([resource], keys=_SETTINGS))[resource]
    if isinstance(config, KafkaError):
        raise config
    values = {name: entry.value or "" for name, entry in config.items()}
    try:
        super_users = parse_super_users(values.get("super.users", ""))
    except ValueError:
        super_users = frozenset()
    return AuthorizerSettings(
        bool(values.get("authorizer.class.name")),
        super_users,
        values.get("allow.everyone.if.no.acl.found", "false") == "true",
    )


async def _tokens(cluster: Cluster) -> list[DelegationToken]:
    from barnabas.client.admin.part import failed
    from barnabas.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest

    response = await cluster.call(DescribeDelegationTokenRequest(owners=None))
    if error := failed(response.error_code):
        raise error
    return [
        DelegationToken(
            row.token_id,
            f"{row.principal_type}:{row.principal_name}",
            f"{row.token_requester_principal_type}:{row.token_requester_principal_name}",
            tuple(f"{each.principal_type}:{each.principal_name}" for each in row.renewers),
            row.issue_timestamp,
            row.expiry_timestamp,
            row.max_timestamp,
        )
        for row in response.tokens
    ]


def explain_access(
    access: Access, principal: str, operation: str, resource: str, host: str
) -> tuple[Explanation, AuthorizerSettings]:
    """Explain one decision, with the settings that were assumed. Raises ValueError for a wrong word. Pure."""
    resource_type, name = acl_text.parse_resource(resource)
    settings = AuthorizerSettings(True) if isinstance(access.settings, Unknown) else access.settings
    found = explain(
        AclIndex([] if isinstance(access.acls, Unknown) else access.acls),
        settings,
        parse_principal(acl_text.parse_principal_text(principal)),
        acl_text.parse_host(host or "*"),
        acl_text.parse_operation(operation, resource_type),
        resource_type,
        name,
    )
    return found, settings
