"""Configs of topics, brokers, groups and client metrics: changed one by one, or replaced per resource.

The one rule: the changes of a resource are applied all or not at all, independent of the other resources. A broker
checks first whether it can apply a change while running (`broker.dynamic_config`). Log levels are never passed to this
module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Final

from barnabas.config import broker, client_metrics, group, topic, topic_names
from barnabas.config.definitions import ConfigError, ConfigType, Definition, Value
from barnabas.config.resolve import Layers, broker_value, topic_defaults
from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.server_config import ServerConfig
from barnabas.config.values import split_list
from barnabas.controller.situation import Situation
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.image import MetadataImage
from barnabas.replicated.decision import Records, Result
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.records.metadata import ClearElrRecord, ConfigRecord

MAX_RECORDS: Final = 10_000
TOO_MANY: Final = "Unable to perform excessively large batch operation."
MAX_VALUE_LENGTH: Final = 0x7FFF
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"


class AlterOperation(IntEnum):
    """The operation on a config. APPEND and SUBTRACT apply to lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


Outcome = dict[ConfigResource, KafkaError | None]
Operations = Mapping[str, tuple[AlterOperation, str | None]]
Texts = Mapping[str, str | None]


def layers_of(image: MetadataImage, config: ServerConfig) -> Layers:
    """Return the dynamic and static configs of a node, without those that a running node cannot apply."""
    own = image.config(ConfigResourceType.BROKER, str(config.node_id))
    shared = image.config(ConfigResourceType.BROKER, "")
    return Layers(broker.effective(own, cluster_wide=False), broker.effective(shared, cluster_wide=True), config.given)


def alter(
    situation: Situation, resources: Mapping[ConfigResource, Texts], validate_only: bool, forwarded: bool
) -> Slices[Result[Outcome]]:
    """Replace all configs of each resource. `forwarded` means that a broker has validated the changes to itself."""

    def texts_of(resource: ConfigResource) -> Texts:
        given = resources[resource]
        kept = situation.image.config(*resource)
        return {**given, **{name: None for name in kept if name not in given}}

    return _alter_each(situation, resources, texts_of, validate_only, forwarded)


def alter_incrementally(
    situation: Situation, resources: Mapping[ConfigResource, Operations], validate_only: bool, forwarded: bool
) -> Slices[Result[Outcome]]:
    """Change only these configs of each resource. `forwarded` is the same as for `alter`."""

    def texts_of(resource: ConfigResource) -> Texts:
        old = situation.image.config(*resource)
        return {
            name: _new_text(resource, name, old.get(name), *operation)
            for name, operation in resources[resource].items()
        }

    return _alter_each(situation, resources, texts_of, validate_only, forwarded)


def _alter_each(
    situation: Situation,
    resources: Iterable[ConfigResource],
    texts_of: Callable[[ConfigResource], Texts],
    validate_only: bool,
    forwarded: bool,
) -> Slices[Result[Outcome]]:
    records: list[tuple[Message, int]] = []
    outcome: Outcome = {}
    layers = layers_of(situation.image, situation.config)
    inherited = topic_defaults(layers)
    for resource in resources:
        yield
        try:
            changes = _changes(situation.image, resource, texts_of(resource))
            _check(situation, layers, inherited, resource, changes, forwarded)
        except KafkaError as error:
            outcome[resource] = error
            continue
        outcome[resource] = None
        records += ((_record(resource, name, text), 0) for name, text in changes.items())
    if situation.image.is_elr_enabled:
        records += _clear_elr(records)
    if len(records) > MAX_RECORDS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_MANY)
    return Result([] if validate_only else records, outcome)


def _record(resource: ConfigResource, name: str, text: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=text)


def _clear_elr(records: Records) -> Records:
    """Clear the eligible leader replicas, because they were chosen with the old min.insync.replicas."""
    changed = [
        record for record, _ in records if isinstance(record, ConfigRecord) and record.name == MIN_INSYNC_REPLICAS
    ]
    return [
        (ClearElrRecord(topic_name=record.resource_name if record.resource_type == ConfigResourceType.TOPIC else ""), 0)
        for record in changed
    ]


def _changes(image: MetadataImage, resource: ConfigResource, texts: Texts) -> Texts:
    """Return the configs that change.

    For a broker return all, because setting the same value again triggers a reload.
    """
    if resource.type == ConfigResourceType.BROKER:
        return texts
    old = image.config(*resource)
    return {name: text for name, text in texts.items() if old.get(name) != text}


def _new_text(
    resource: ConfigResource, name: str, old: str | None, operation: AlterOperation, operand: str | None
) -> str | None:
    if operation is AlterOperation.SET:
        return operand
    if operation is AlterOperation.DELETE:
        return None
    definition = _lists_of(resource.type).get(name)
    if definition is None or definition.type is not ConfigType.LIST:
        why = f"Can't {operation.name} to key {name} because its type is not LIST."
        raise ConfigError(name, why)
    text = definition.default if old is None else old
    entries = [entry for entry in (text or "").split(",") if entry]
    return ",".join(changed_list(entries, operation, operand or ""))


def _lists_of(resource_type: int) -> Mapping[str, Definition]:
    tables = {ConfigResourceType.TOPIC: topic.definitions, ConfigResourceType.BROKER: broker.definitions}
    return tables[ConfigResourceType(resource_type)]() if resource_type in tables else {}


def changed_list(entries: Iterable[str], operation: AlterOperation, operand: str) -> list[str]:
    """Return a list after APPEND or SUBTRACT of a comma-separated value. Empty entries at its end are ignored."""
    changed = list(entries)
    trimmed = operand.rstrip(",")
    for entry in trimmed.split(",") if trimmed or not operand else ():
        if operation is AlterOperation.SUBTRACT:
            if entry in changed:
                changed.remove(entry)
        elif entry not in changed:
            changed.append(entry)
    return changed


# --- checks, in Kafka's order


def _check(
    situation: Situation,
    layers: Layers,
    inherited: Mapping[str, Value],
    resource: ConfigResource,
    changes: Texts,
    forwarded: bool,
) -> None:
    """Raise KafkaError if a resource cannot have these configs."""
    image = situation.image
    old = image.config(*resource)
    for name, text in changes.items():
        if resource.type == ConfigResourceType.BROKER:
            _check_guarded(situation, resource.name, name, text, old, forwarded)
        if text is not None and len(text) > MAX_VALUE_LENGTH:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{MAX_VALUE_LENGTH} bytes.",
            )
    merged = {**old, **changes}
    texts = {name: text for name, text in merged.items() if text is not None}
    match resource.type:
        case ConfigResourceType.TOPIC:
            _check_topic(situation, inherited, resource.name, texts, old)
        case ConfigResourceType.BROKER:
            _check_broker(situation, resource.name)
        case ConfigResourceType.CLIENT_METRICS:
            if not resource.name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
            client_metrics.validate(texts)
        case ConfigResourceType.GROUP:
            if not resource.name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
            group.validate(texts, lambda name: broker_value(name, layers))


def _check_guarded(
    situation: Situation, broker_name: str, name: str, text: str | None, old: Mapping[str, str], forwarded: bool
) -> None:
    """Check broker configs that other parts of the cluster depend on."""
    if name == MIN_INSYNC_REPLICAS and situation.image.is_elr_enabled:
        if broker_name:
            why = f"Broker-level {name} cannot be altered while ELR is enabled."
            raise KafkaError(ErrorCode.INVALID_CONFIG, why)
        if text is None:
            why = f"Cluster-level {name} cannot be removed while ELR is enabled."
            raise KafkaError(ErrorCode.INVALID_CONFIG, why)
    if name == CORDONED_LOG_DIRS:
        if not situation.metadata_version.is_cordoned_log_dirs_supported:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"The {name} configuration value cannot be set because it requires metadata.version >= 4.3-IV0",
            )
        # A controller does not know the paths of a broker's directories: without the broker it only allows removals.
        if not forwarded and not set(split_list(text or "")) <= set(split_list(old.get(name, ""))):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"When updating {name} via controllers,  the new value must be a subset of the current configuration "
                "value.",
            )


def _check_topic(
    situation: Situation, inherited: Mapping[str, Value], name: str, texts: Mapping[str, str], old: Mapping[str, str]
) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    topic_names.check(name)
    enabled = situation.config.get_bool("remote.log.storage.system.enable")
    topic.validate(texts, inherited, existing=old, remote_storage_system_enabled=enabled)
    if situation.image.topics.get(name) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _check_broker(situation: Situation, name: str) -> None:
    if not name:
        return
    node_id = parse_node_id(name)
    if node_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
    if node_id < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")
    image = situation.image
    voters = {voter.id for voter in situation.config.controller_quorum_voters}
    if node_id not in image.brokers and node_id not in voters and node_id not in image.controllers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")


def parse_node_id(text: str) -> int | None:
    """Parse a node id, or return None if the text is not one."""
    number = int(text) if re.fullmatch(r"[+-]?\d+", text) else None
    return number if number is not None and -(1 << 31) <= number < 1 << 31 else None
