"""Make the changes found by `difference`, in their order.

Its one rule: it stops at the first failure. Changes of one kind are sent together. Each change that was tried has an outcome,
the others have none. With `validate_only` nothing is changed: brokers validate what they can, and all failures are reported.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.client.admin.acls import Acls, only
from barnabas.client.admin.configs import AlterConfigOp, AlterConfigOpType, ConfigResource, Configs
from barnabas.client.admin.part import TimedOutError
from barnabas.client.admin.quotas import Quotas
from barnabas.client.admin.reassignments import Reassignments
from barnabas.client.admin.topics import NewTopic, Topics
from barnabas.client.admin.users import ScramCredentialKey, ScramDeletion, ScramMechanism, ScramUpsertion, Users
from barnabas.client.cluster import Cluster
from barnabas.client.replica_choice import (
    NotEnoughBrokersError,
    PartitionReplicas,
    ReplicaCounts,
    with_replication_factor,
)
from barnabas.declared.difference import (
    AddPartitions,
    Change,
    ChangeConfigs,
    ChangeQuotas,
    ChangeReplicationFactor,
    CreateAcl,
    CreateTopic,
    DeleteAcl,
    DeleteTopic,
    DeleteUser,
    SetUser,
)
from barnabas.declared.document import DEFAULT, Password
from barnabas.wire.errors import KafkaError, UnsupportedVersionError


class Outcome(NamedTuple):
    """The result of a change."""

    change: Change
    error: Exception | None

    @property
    def is_done(self) -> bool:
        return self.error is None or (isinstance(self.error, TimedOutError) and self.error.happened is True)


async def execute(
    cluster: Cluster, changes: Sequence[Change], passwords: Mapping[Password, str], *, validate_only: bool = False
) -> AsyncIterator[Outcome]:
    """Make these changes. If a whole request fails, all changes in it have its error."""
    for kind, group in itertools.groupby(changes, type):
        some = list(group)
        if validate_only and kind not in _VALIDATED:
            continue
        do = _DOING[kind]
        try:
            errors = await do(_Work(cluster, passwords, validate_only), some)
        except (KafkaError, UnsupportedVersionError, OSError, NotEnoughBrokersError) as error:
            errors = [error] * len(some)
        outcomes = [Outcome(change, error) for change, error in zip(some, errors, strict=True)]
        for outcome in outcomes:
            yield outcome
        if not validate_only and not all(outcome.is_done for outcome in outcomes):
            return


def read_passwords(changes: Sequence[Change], variables: Mapping[str, str]) -> dict[Password, str]:
    """Read the passwords that the changes need. Raises ValueError if one is missing."""
    wanted = {change.password: change for change in changes if isinstance(change, SetUser)}
    found = {}
    for password, change in wanted.items():
        what = f"the password of user {change.user}"
        if password.env is not None:
            text = variables.get(password.env)
            if not text:
                raise ValueError(f"{what}: the environment variable {password.env} is not set")
        else:
            path = Path(password.folder) / str(password.file)
            try:
                text = path.read_text("utf-8").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                raise ValueError(f"{what}: {path}: {reason}") from None
            if not text:
                raise ValueError(f"{what}: {path} is empty")
        found[password] = text
    return found


class _Work(NamedTuple):
    """The arguments of every function that makes changes."""

    cluster: Cluster
    passwords: Mapping[Password, str]
    validate_only: bool


_Errors = Sequence[Exception | None]


def _error(result: Any) -> KafkaError | None:
    return result if isinstance(result, KafkaError) else None


async def _create_topics(work: _Work, changes: Sequence[CreateTopic]) -> _Errors:
    topics = [
        NewTopic(change.name, change.topic.partitions, change.topic.replication_factor, change.configs)
        for change in changes
    ]
    results = await Topics(work.cluster).create_topics(topics, validate_only=work.validate_only)
    return [_error(results[change.name]) for change in changes]


async def _add_partitions(work: _Work, changes: Sequence[AddPartitions]) -> _Errors:
    counts = {change.topic: change.after for change in changes}
    results = await Topics(work.cluster).create_partitions(counts, validate_only=work.validate_only)
    return [results[change.topic] for change in changes]


async def _change_replication_factors(work: _Work, changes: Sequence[ChangeReplicationFactor]) -> _Errors:
    state = await work.cluster.metadata([change.topic for change in changes])
    racks = {node.id: node.rack for node in state.nodes.values()}
    found = {
        (name, index): partition
        for name, topic in state.topics.items()
        for index, partition in topic.partitions.items()
    }
    targets = {(change.topic, index): brokers for change in changes for index, brokers in change.replicas.items()}
    counts = ReplicaCounts({key: targets.get(key, partition.replicas) for key, partition in found.items()})
    for change in changes:
        # Partitions that were added a moment ago still have the old replication factor.
        new = {
            key: PartitionReplicas(partition.replicas, partition.isr, partition.leader_id)
            for key, partition in found.items()
            if key[0] == change.topic and key not in targets and len(partition.replicas) != change.after
        }
        targets |= with_replication_factor(new, change.after, racks, counts)
    results = await Reassignments(work.cluster).alter_partition_reassignments(targets)
    errors = {topic: error for (topic, _), error in results.items() if error is not None}
    return [errors.get(change.topic) for change in changes]


async def _change_configs(work: _Work, changes: Sequence[ChangeConfigs]) -> _Errors:
    alterations = config_alterations(changes)
    results = await Configs(work.cluster).incremental_alter_configs(alterations, validate_only=work.validate_only)
    return [results[_resource(change)] for change in changes]


def config_alterations(changes: Iterable[Change]) -> dict[ConfigResource, list[AlterConfigOp]]:
    """Return the alterations of configs among these changes."""
    return {
        _resource(change): [
            AlterConfigOp(name, AlterConfigOpType.DELETE if after is None else AlterConfigOpType.SET, after)
            for name, (_, after) in change.configs.items()
        ]
        for change in changes
        if isinstance(change, ChangeConfigs)
    }


def _resource(change: ChangeConfigs) -> ConfigResource:
    if change.of == "topic":
        return ConfigResource.topic(change.resource)
    return ConfigResource.all_brokers() if change.resource == DEFAULT else ConfigResource.broker(int(change.resource))


async def _change_quotas(work: _Work, changes: Sequence[ChangeQuotas]) -> _Errors:
    alterations = {change.entity: {key: after for key, (_, after) in change.quotas.items()} for change in changes}
    results = await Quotas(work.cluster).alter_client_quotas(alterations, validate_only=work.validate_only)
    return [results[change.entity] for change in changes]


async def _set_users(work: _Work, changes: Sequence[SetUser]) -> _Errors:
    alterations = [
        ScramUpsertion(
            change.user, ScramMechanism.of(change.mechanism), work.passwords[change.password], change.iterations
        )
        for change in changes
    ]
    results = await Users(work.cluster).alter_user_scram_credentials(alterations)
    return [results[ScramCredentialKey(change.user, ScramMechanism.of(change.mechanism))] for change in changes]


async def _delete_users(work: _Work, changes: Sequence[DeleteUser]) -> _Errors:
    deletions = [ScramDeletion(change.user, ScramMechanism.of(change.mechanism)) for change in changes]
    results = await Users(work.cluster).alter_user_scram_credentials(deletions)
    return [results[ScramCredentialKey(change.user, ScramMechanism.of(change.mechanism))] for change in changes]


async def _create_acls(work: _Work, changes: Sequence[CreateAcl]) -> _Errors:
    results = await Acls(work.cluster).create_acls(change.entry for change in changes)
    return [results[change.entry] for change in changes]


async def _delete_acls(work: _Work, changes: Sequence[DeleteAcl]) -> _Errors:
    results = await Acls(work.cluster).delete_acls(only(change.entry) for change in changes)
    return [_error(results[only(change.entry)]) for change in changes]


async def _delete_topics(work: _Work, changes: Sequence[DeleteTopic]) -> _Errors:
    results = await Topics(work.cluster).delete_topics(change.topic for change in changes)
    return [results[change.topic] for change in changes]


_DOING: Mapping[type[Change], Callable[[_Work, Any], Awaitable[_Errors]]] = {
    CreateTopic: _create_topics,
    AddPartitions: _add_partitions,
    ChangeReplicationFactor: _change_replication_factors,
    ChangeConfigs: _change_configs,
    ChangeQuotas: _change_quotas,
    SetUser: _set_users,
    CreateAcl: _create_acls,
    DeleteAcl: _delete_acls,
    DeleteUser: _delete_users,
    DeleteTopic: _delete_topics,
}
_VALIDATED = (CreateTopic, AddPartitions, ChangeConfigs, ChangeQuotas)
