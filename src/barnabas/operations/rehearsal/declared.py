"""A declared cluster in a rehearsal: the file is compared with the image, and the requests of `apply` are decided.

Its one rule: the difference is the one that `plan` finds. Passwords are not read; credentials of new users have random keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from barnabas.client.replica_choice import PartitionReplicas, ReplicaCounts, with_replication_factor
from barnabas.config.internal_topics import INTERNAL_TOPICS
from barnabas.config.resource_type import ConfigResourceType
from barnabas.controller import acls, configs, quotas, scram, topics
from barnabas.controller.configs import AlterOperation
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
    difference,
)
from barnabas.declared.document import DEFAULT, Document
from barnabas.declared.observed import Observed, ObservedTopic
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.masking import is_hidden
from barnabas.metadata.scram import SCRAM_MECHANISMS
from barnabas.operations.rehearsal.happenings import delete_topics, reassign
from barnabas.operations.rehearsal.stage import Stage, Step
from barnabas.security.acl import validate_new
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest


@dataclass(frozen=True, slots=True)
class Apply:
    """The cluster is changed to what a file declares."""

    document: Document
    delete: bool = False

    def carry_out(self, stage: Stage) -> None:
        plan = difference(self.document, observed_of(stage.image), prune=self.delete)
        with stage.step(f"{self.document.file or 'the declared cluster'} is applied") as step:
            if plan.problems:
                step.refusals.extend(map(str, plan.problems))
                return
            for kind, changes in groupby(plan.changes, type):
                _DOING[kind](stage, step, list(changes))


def observed_of(image: MetadataImage) -> Observed:
    """Return an image as `declared.observe` finds a live cluster."""
    settings = {resource: _visible(resource, found) for resource, found in image.configs.items()}
    return Observed(
        topics={
            name: ObservedTopic(
                name,
                {
                    i: tuple(r for r in p.replicas if r not in p.removing_replicas)
                    for i, p in enumerate(topic.partitions)
                },
                {index: partition.isr for index, partition in enumerate(topic.partitions)},
                settings.get(ConfigResource(ConfigResourceType.TOPIC, name), {}),
                name in INTERNAL_TOPICS,
                {index: partition.leader for index, partition in enumerate(topic.partitions)},
            )
            for name in sorted(image.topics.names)
            for topic in (image.topics.by_id[image.topics.ids[name]],)
        },
        acls=frozenset(entry for entry in image.acls.by_id.values() if validate_new(entry) is None),
        quotas={entity: dict(values) for entity, values in image.quotas.items()},
        users={
            (user.name, SCRAM_MECHANISMS[user.mechanism]): credential.iterations
            for user, credential in image.scram.items()
        },
        brokers={
            name: settings.get(ConfigResource(ConfigResourceType.BROKER, "" if name == DEFAULT else name), {})
            for name in (DEFAULT, *map(str, sorted(image.brokers)))
        },
        racks={broker_id: broker.rack for broker_id, broker in image.brokers.items() if not broker.fenced},
    )


def _visible(resource: ConfigResource, found: Mapping[str, str]) -> dict[str, str | None]:
    return {name: None if is_hidden(resource.type, name, value) else value for name, value in sorted(found.items())}


# --- the requests of `declared.execute`


def _create_topics(stage: Stage, step: Step, changes: Sequence[CreateTopic]) -> None:
    row = CreateTopicsRequest.CreatableTopic
    rows = [
        row(
            name=change.name,
            num_partitions=-1 if change.topic.partitions is None else change.topic.partitions,
            replication_factor=-1 if change.topic.replication_factor is None else change.topic.replication_factor,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                for name, value in change.configs.items()
            ],
        )
        for change in changes
    ]
    for answer in stage.decide(topics.create, rows).answers:
        if answer.error_code:
            step.refusals.append(f"{answer.name}: {ErrorCode(answer.error_code).name}: {answer.error_message}")


def _add_partitions(stage: Stage, step: Step, changes: Sequence[AddPartitions]) -> None:
    row = CreatePartitionsRequest.CreatePartitionsTopic
    rows = [row(name=each.topic, count=each.after, assignments=None) for each in changes]
    for answer in stage.decide(topics.create_partitions, rows).answers:
        if answer.error_code:
            step.refusals.append(f"{answer.name}: {ErrorCode(answer.error_code).name}: {answer.error_message}")


def _change_replication_factors(stage: Stage, step: Step, changes: Sequence[ChangeReplicationFactor]) -> None:
    image = stage.image
    targets = {(change.topic, index): tuple(found) for change in changes for index, found in change.replicas.items()}
    racks = {broker_id: broker.rack for broker_id, broker in image.brokers.items() if not broker.fenced}
    present = {
        (name, index): partition
        for name in (change.topic for change in changes)
        if (topic := image.topics.get(name)) is not None
        for index, partition in enumerate(topic.partitions)
    }
    counts = ReplicaCounts({key: targets.get(key, partition.replicas) for key, partition in present.items()})
    for change in changes:
        new = {
            key: PartitionReplicas(partition.replicas, partition.isr, partition.leader)
            for key, partition in present.items()
            if key[0] == change.topic and key not in targets and len(partition.replicas) != change.after
        }
        targets |= with_replication_factor(new, change.after, racks, counts)
    reassign(stage, step, targets)


def _change_configs(stage: Stage, step: Step, changes: Sequence[ChangeConfigs]) -> None:
    wanted = {
        _resource(change): {
            name: (AlterOperation.DELETE if after is None else AlterOperation.SET, after)
            for name, (_, after) in change.configs.items()
        }
        for change in changes
    }
    outcome = stage.decide(configs.alter_incrementally, wanted, False, True)
    _note(step, ((resource.name or DEFAULT, error) for resource, error in outcome.items()))


def _resource(change: ChangeConfigs) -> ConfigResource:
    if change.of == "topic":
        return ConfigResource(ConfigResourceType.TOPIC, change.resource)
    return ConfigResource(ConfigResourceType.BROKER, "" if change.resource == DEFAULT else change.resource)


def _change_quotas(stage: Stage, step: Step, changes: Sequence[ChangeQuotas]) -> None:
    wanted = [
        quotas.QuotaAlteration(dict(change.entity), [(key, after) for key, (_, after) in change.quotas.items()])
        for change in changes
    ]
    _note(step, stage.decide(quotas.alter, wanted))


def _set_users(stage: Stage, step: Step, changes: Sequence[SetUser]) -> None:
    rows = [
        AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=change.user,
            mechanism=_number_of(change.mechanism),
            iterations=change.iterations,
            salt=stage.random.randbytes(32),
            salted_password=stage.random.randbytes(32),
        )
        for change in changes
    ]
    _note(step, stage.decide(scram.alter, [], rows).items())


def _delete_users(stage: Stage, step: Step, changes: Sequence[DeleteUser]) -> None:
    row = AlterUserScramCredentialsRequest.ScramCredentialDeletion
    rows = [row(name=change.user, mechanism=_number_of(change.mechanism)) for change in changes]
    _note(step, stage.decide(scram.alter, rows, []).items())


def _number_of(mechanism: str) -> int:
    return next(number for number, name in SCRAM_MECHANISMS.items() if name == mechanism)


def _create_acls(stage: Stage, step: Step, changes: Sequence[CreateAcl]) -> None:
    errors = stage.decide(acls.create, [change.entry for change in changes])
    _note(step, zip((change.name for change in changes), errors, strict=True))


def _delete_acls(stage: Stage, step: Step, changes: Sequence[DeleteAcl]) -> None:
    from barnabas.client.admin.acls import only

    found = stage.decide(acls.delete, [only(change.entry) for change in changes])
    _note(step, ((c.name, f if isinstance(f, KafkaError) else None) for c, f in zip(changes, found, strict=True)))


def _delete_topics(stage: Stage, step: Step, changes: Sequence[DeleteTopic]) -> None:
    delete_topics(stage, step, [change.topic for change in changes])


def _note(step: Step, results: Any) -> None:
    for what, error in results:
        if error is not None:
            step.refusals.append(f"{what}: {error.code.name}: {error.message}")


_DOING: Mapping[type[Change], Callable[[Stage, Step, Any], None]] = {
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
