"""The part that AlterConfigs and IncrementalAlterConfigs share: authorization, checks on this node, forwarding.

A broker checks the whole request first: duplicate resources and keys, null values, levels of its loggers, and its own
settings. It forwards the rest to the controller. The response has the order of the request. On a controller's listener
these checks are not made, so fewer requests are refused there, and with other errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import compress
from typing import Any, Final, NamedTuple

from barnabas.broker import dynamic_config, logger_levels
from barnabas.broker.context import Context
from barnabas.config import broker
from barnabas.config.definitions import ConfigType
from barnabas.config.resource_type import ConfigResourceType
from barnabas.controller import configs
from barnabas.controller.configs import AlterOperation
from barnabas.metadata.configs import ConfigResource
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.slices import Breather, Slices, in_slices
from barnabas.steps import counted, mapped
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

WAIT_MS: Final = 60_000
"""Timeout of a forwarded request. These requests have no timeout field of their own."""

_OWNERS: Final = {
    ConfigResourceType.TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ConfigResourceType.GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
}


_OPERATIONS = frozenset(AlterOperation)
MAX_OPERATIONS: Final = 20_000  # on one resource. Any request of as many records is refused, so they are not looked at.


class Operation(NamedTuple):
    name: str
    operation: int
    value: str | None


class Asked(NamedTuple):
    """A resource of the request."""

    resource: ConfigResource
    operations: Sequence[Operation]


class Answer(NamedTuple):
    """A resource of the response."""

    resource: ConfigResource
    error_code: int = 0
    error_message: str | None = None


def asked_for(
    resources: Iterable[AlterConfigsRequest.AlterConfigsResource | IncrementalAlterConfigsRequest.AlterConfigsResource],
    operation_of: Callable[[Any], Operation],
) -> Slices[list[Asked]]:
    """Return the resources of a request. `operation_of` converts one of their settings."""
    asked = []
    for each in resources:
        yield
        operations = yield from mapped(operation_of, each.configs)
        asked.append(Asked(ConfigResource(each.resource_type, each.resource_name), operations))
    return asked


async def alter(context: Context, asked: Sequence[Asked], *, incremental: bool, validate_only: bool) -> list[Answer]:
    """Change settings. With `incremental` only the named ones change, otherwise all settings of each resource."""
    if context.listener.is_controller:
        return await _alter_on_controller(context, asked, incremental, validate_only)
    answers: dict[int, Answer] = {}
    counts = await in_slices(counted(each.resource for each in asked))
    others_first = Breather()
    for at, each in enumerate(asked):
        await others_first()
        try:
            if counts[each.resource] > 1:
                raise _invalid("Each resource must appear at most once.")
            if _prepare(context, each, incremental, validate_only):
                answers[at] = Answer(each.resource)
        except KafkaError as error:
            answers[at] = Answer(each.resource, error.code, _without_the_generic(error))
    is_left = await in_slices(mapped(lambda at: at not in answers, range(len(asked))))
    remaining = list(compress(asked, is_left))
    try:
        stored = await _store_by_active_controller(context, remaining, incremental, validate_only)
    except KafkaError as error:
        failed = partial(_failed, error.code, _without_the_generic(error))
        stored = await in_slices(mapped(failed, remaining))
    by_resource = dict(await in_slices(mapped(lambda answer: (answer.resource, answer), stored)))
    return await in_slices(
        mapped(lambda at: answers[at] if at in answers else by_resource[asked[at].resource], range(len(asked)))
    )


def _failed(code: ErrorCode, message: str | None, asked: Asked) -> Answer:
    return Answer(asked.resource, code, message)


async def _alter_on_controller(
    context: Context, asked: Sequence[Asked], incremental: bool, validate_only: bool
) -> list[Answer]:
    answers, levels = [], []
    once: dict[ConfigResource, Asked] = {}
    twice: set[ConfigResource] = set()
    others_first = Breather()
    for each in asked:
        await others_first()
        resource = each.resource
        if len(each.operations) > MAX_OPERATIONS:
            answers.append(Answer(resource, ErrorCode.POLICY_VIOLATION, configs.TOO_MANY))
        elif resource.type == ConfigResourceType.BROKER_LOGGER and incremental:
            levels.append(_alter_levels_on_controller(context, each, validate_only))
        elif resource.type not in set(ConfigResourceType):
            message = f"Unknown resource type {resource.type}."
            answers.append(Answer(resource, ErrorCode.UNSUPPORTED_VERSION, message))
        elif resource in once:
            del once[resource]
            twice.add(resource)
            answers.append(Answer(resource, ErrorCode.INVALID_REQUEST, "Duplicate resource."))
        elif resource not in twice:
            once[resource] = each
    for resource, each in list(once.items()):
        await others_first()
        if (error := _protection_error(context, each, incremental)) is not None:
            del once[resource]
            answers.append(Answer(resource, error.code, error.message))
    try:
        return answers + await _store(context, list(once.values()), incremental, validate_only) + levels
    except KafkaError as error:
        failed = partial(_failed, error.code, _without_the_generic(error))
        return await in_slices(mapped(failed, asked))


def _alter_levels_on_controller(context: Context, asked: Asked, validate_only: bool) -> Answer:
    try:
        _alter_levels(context, asked, AclOperation.CLUSTER_ACTION, validate_only)
    except KafkaError as error:
        return Answer(asked.resource, error.code, error.message)
    return Answer(asked.resource)


def _protection_error(context: Context, asked: Asked, incremental: bool) -> KafkaError | None:
    """Return the error for settings of this node that protect something and that it would ignore."""
    kind, name = asked.resource
    if kind != ConfigResourceType.BROKER or name not in ("", str(context.config.node_id)):
        return None
    texts = dict(context.image.config(kind, name)) if incremental else {}
    texts |= {each.name: each.value or "" for each in asked.operations if each.operation == AlterOperation.SET}
    try:
        dynamic_config.check_protection(context.config, context.image, texts, cluster_wide=not name)
    except KafkaError as error:
        return error
    return None


# --- checks on the broker


def _prepare(context: Context, asked: Asked, incremental: bool, validate_only: bool) -> bool:
    """Return True if the resource is done and need not be forwarded. Raises KafkaError if it is refused."""
    resource, operations = asked
    if len(operations) > MAX_OPERATIONS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, configs.TOO_MANY)
    if len({each.name for each in operations}) < len(operations):
        raise _invalid("Error due to duplicate config keys")
    nulls = [
        each.name
        for each in operations
        if each.value is None and not (incremental and each.operation == AlterOperation.DELETE)
    ]
    if nulls:
        raise _invalid(f"Null value not supported for : {', '.join(nulls)}")
    match resource.type:
        case ConfigResourceType.BROKER_LOGGER if incremental:
            _alter_levels(context, asked, AclOperation.ALTER_CONFIGS, validate_only)
            return True
        case ConfigResourceType.BROKER:
            _check_broker(context, asked, incremental)
        case ConfigResourceType.TOPIC | ConfigResourceType.CLIENT_METRICS | ConfigResourceType.GROUP:
            pass
        case _:
            raise _invalid(f"Unknown resource type {resource.type}")
    return False


def _alter_levels(context: Context, asked: Asked, needed: AclOperation, validate_only: bool) -> None:
    if not context.may(needed, ResourceType.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    operations = {each.name: (each.operation, each.value) for each in asked.operations}
    logger_levels.alter(context.config.node_id, asked.resource.name, operations, validate_only)


def _check_broker(context: Context, asked: Asked, incremental: bool) -> None:
    """Raise KafkaError if this broker cannot run with the settings, or if they are another broker's."""
    name, cluster_wide = asked.resource.name, not asked.resource.name
    if not cluster_wide:
        node_id = configs.parse_node_id(name)
        if node_id is None:
            raise _invalid(f"Node id must be an integer, but it is: {name}")
        if node_id != context.config.node_id:
            raise _invalid(f"Unexpected broker id, expected {context.config.node_id}, but received {name}")
    texts = {}
    if incremental:
        kept = context.image.config(ConfigResourceType.BROKER, name)
        texts = _changed(broker.effective(kept, cluster_wide=cluster_wide), asked.operations)
    else:
        texts = {each.name: each.value or "" for each in asked.operations}
    dynamic_config.check(context.config, context.image, texts, cluster_wide=cluster_wide)


def _changed(texts: dict[str, str], operations: Sequence[Operation]) -> dict[str, str]:
    for each in operations:
        if each.operation not in _OPERATIONS:
            raise _invalid(f"Unknown operations type {each.operation}")
    for each in operations:
        operation, value = AlterOperation(each.operation), each.value or ""
        if operation is AlterOperation.SET:
            texts[each.name] = value
        elif operation is AlterOperation.DELETE:
            texts.pop(each.name, None)
        else:
            texts[each.name] = _changed_list(texts.get(each.name), each.name, operation, value)
    return texts


def _changed_list(text: str | None, name: str, operation: AlterOperation, value: str) -> str:
    definition = broker.definitions().get(name)
    if definition is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
    if definition.type is not ConfigType.LIST:
        why = f"Config value {operation.name.lower()} is not allowed for config key: {name}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, why)
    entries = (definition.default if text is None else text) or ""
    return ",".join(configs.changed_list(filter(None, entries.split(",")), operation, value))


# --- the controller's part


async def _store_by_active_controller(
    context: Context, asked: Sequence[Asked], incremental: bool, validate_only: bool
) -> list[Answer]:
    """Do the controller's part here if this node is the active controller, or forward it."""
    forwarding = context.services.forwarding
    if forwarding is None or not asked:
        return await _store(context, asked, incremental, validate_only)
    if not forwarding.is_needed:
        try:
            return await _store(context, asked, incremental, validate_only)
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise
    response = await forwarding.forward_message(context, _request(asked, incremental, validate_only))
    return [
        Answer(ConfigResource(row.resource_type, row.resource_name), row.error_code, row.error_message)
        for row in response.responses
    ]


def _request(asked: Sequence[Asked], incremental: bool, validate_only: bool) -> Message:
    if incremental:
        changes = IncrementalAlterConfigsRequest
        return changes(
            resources=[
                changes.AlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        changes.AlterableConfig(name=name, config_operation=operation, value=value)
                        for name, operation, value in operations
                    ],
                )
                for resource, operations in asked
            ],
            validate_only=validate_only,
        )
    whole = AlterConfigsRequest
    return whole(
        resources=[
            whole.AlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[whole.AlterableConfig(name=name, value=value) for name, _, value in operations],
            )
            for resource, operations in asked
        ],
        validate_only=validate_only,
    )


async def _store(context: Context, asked: Sequence[Asked], incremental: bool, validate_only: bool) -> list[Answer]:
    """Return one answer for each resource. Raises KafkaError if all of them fail together."""
    answers, allowed = [], []
    others_first = Breather()
    for each in asked:
        await others_first()
        error = _authorization_error(context, each.resource)
        if error is None:
            allowed.append(each)
        else:
            answers.append(Answer(each.resource, error.code, error.message))
    if not allowed:
        return answers
    for each in allowed:
        await others_first()
        if any(operation.operation not in _OPERATIONS for operation in each.operations):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    forwarded = context.peer.is_forwarded or not context.listener.is_controller
    if incremental:
        changes: dict[ConfigResource, configs.Operations] = {}
        for each in allowed:
            await others_first()
            changes[each.resource] = {name: (AlterOperation(code), value) for name, code, value in each.operations}
        outcome = await context.controller.write(
            configs.alter_incrementally, changes, validate_only, forwarded, timeout_ms=WAIT_MS
        )
    else:
        texts: dict[ConfigResource, configs.Texts] = {}
        for each in allowed:
            await others_first()
            texts[each.resource] = {name: value for name, _, value in each.operations}
        outcome = await context.controller.write(configs.alter, texts, validate_only, forwarded, timeout_ms=WAIT_MS)
    for resource, error in outcome.items():
        await others_first()
        answers.append(Answer(resource) if error is None else Answer(resource, error.code, error.message))
    return answers


def _authorization_error(context: Context, resource: ConfigResource) -> KafkaError | None:
    if resource.type == ConfigResourceType.BROKER_LOGGER:
        return _invalid("Unexpected resource type BROKER_LOGGER.")
    kind = ConfigResourceType(resource.type)
    owner, code = _OWNERS.get(kind, (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    name = CLUSTER_NAME if owner is ResourceType.CLUSTER else resource.name
    return None if context.may(AclOperation.ALTER_CONFIGS, owner, name) else KafkaError(code)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _without_the_generic(error: KafkaError) -> str | None:
    """Return the error's message, or None if it only repeats the code."""
    generic = error.code is ErrorCode.UNKNOWN_SERVER_ERROR or error.message == error.code.message
    return None if generic else error.message
