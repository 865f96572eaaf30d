"""DescribeConfigs (32), versions 0 to 4.

Returns settings with value and source, from version 1 on with all places where they are set, from version 3 on with
type and documentation. Resources are topics, groups, client metrics, this node, all brokers (the empty name) and this
node's loggers. Settings come in Kafka's order. With null or empty keys all settings are returned; unknown keys are left
out. Groups and client metrics that do not exist are described by their defaults. Unknown topics are
UNKNOWN_TOPIC_OR_PARTITION, other brokers INVALID_REQUEST. Resources that the caller may not describe come last. An
unknown resource type fails the whole request with INVALID_REQUEST.

Version 0 has a flag in each setting that is true if the setting has its default value.
"""

from __future__ import annotations

from functools import cached_property, partial

from barnabas.broker import logger_levels
from barnabas.broker.context import Context
from barnabas.config import resolve, topic_names
from barnabas.config.resolve import ConfigSource, Entry, Layers
from barnabas.config.resource_type import ConfigResourceType
from barnabas.controller.configs import layers_of, parse_node_id
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.steps import Slices, mapped, stepwise
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

Asked = DescribeConfigsRequest.DescribeConfigsResource
Result = DescribeConfigsResponse.DescribeConfigsResult
Row = DescribeConfigsResponse.DescribeConfigsResourceResult
Synonym = DescribeConfigsResponse.DescribeConfigsSynonym

_TYPES = frozenset(ConfigResourceType)
_OWNERS = {
    ConfigResourceType.TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ConfigResourceType.GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
}


def handle(context: Context, request: DescribeConfigsRequest) -> Slices[DescribeConfigsResponse]:
    for some in stepwise(request.resources):
        if any(asked.resource_type not in _TYPES for asked in some):
            error = KafkaError(ErrorCode.INVALID_REQUEST)
            return DescribeConfigsResponse(
                results=(yield from mapped(partial(_failed, error=error), request.resources))
            )
        yield
    described, hidden = [], []
    describer = _Describer(context, request)
    for asked in request.resources:
        yield
        refusal = _authorization_error(context, asked)
        if refusal is None:
            described.append(describer.describe(asked))
        else:
            hidden.append(_failed(asked, refusal))
    return DescribeConfigsResponse(results=described + hidden)


def _authorization_error(context: Context, asked: Asked) -> KafkaError | None:
    kind = ConfigResourceType(asked.resource_type)
    owner, code = _OWNERS.get(kind, (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    name = CLUSTER_NAME if owner is ResourceType.CLUSTER else asked.resource_name
    return None if context.may(AclOperation.DESCRIBE_CONFIGS, owner, name) else KafkaError(code)


def _failed(asked: Asked, error: KafkaError) -> Result:
    return Result(
        error_code=error.code,
        error_message=error.message,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )


class _Describer:
    """The state of one request. Inherited settings are resolved once for all resources, and shared rows are built once."""

    def __init__(self, context: Context, request: DescribeConfigsRequest) -> None:
        self._context = context
        self._request = request
        self._rows: dict[int, Row] = {}

    @cached_property
    def _layers(self) -> Layers:
        return layers_of(self._context.image, self._context.config)

    @cached_property
    def _topic_defaults(self) -> dict[str, Entry]:
        return resolve.describe_topic_defaults(self._layers)

    def describe(self, asked: Asked) -> Result:
        try:
            rows = self._describe(asked)
        except KafkaError as error:
            return _failed(asked, error)
        return Result(resource_type=asked.resource_type, resource_name=asked.resource_name, configs=rows)

    def _describe(self, asked: Asked) -> list[Row]:
        name, keys = asked.resource_name, frozenset(asked.configuration_keys or ())
        configs = self._context.image.config(asked.resource_type, name)
        match asked.resource_type:
            case ConfigResourceType.TOPIC:
                return self._describe_topic(name, keys)
            case ConfigResourceType.BROKER if not name:
                return [self._row(entry) for entry in resolve.describe_broker_default(self._layers, keys)]
            case ConfigResourceType.BROKER:
                self._check_own_id(name, " or empty string,")
                return [self._row(entry) for entry in resolve.describe_broker(self._layers, keys)]
            case ConfigResourceType.BROKER_LOGGER:
                _refuse_empty(name, "Broker id must not be empty")
                self._check_own_id(name, "")
                return [_logger_row(*each) for each in logger_levels.levels().items() if not keys or each[0] in keys]
            case ConfigResourceType.CLIENT_METRICS:
                _refuse_empty(name, "Client metrics subscription name must not be empty")
                return [self._row(entry) for entry in resolve.describe_client_metrics(configs, keys)]
            case _:
                _refuse_empty(name, "Group name must not be empty")
                return [self._row(entry) for entry in resolve.describe_group(configs, self._layers, keys)]

    def _describe_topic(self, name: str, keys: frozenset[str]) -> list[Row]:
        topic_names.check(name)
        image = self._context.image
        if image.topics.get(name) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        configs, defaults = image.config(ConfigResourceType.TOPIC, name), self._topic_defaults
        rows = []
        for entry in resolve.describe_topic(configs, self._layers, keys, defaults=defaults):
            if entry.name in configs:
                rows.append(self._row(entry))
            else:
                rows.append(self._rows.get(id(entry)) or self._rows.setdefault(id(entry), self._row(entry)))
        return rows

    def _check_own_id(self, name: str, alternative: str) -> None:
        node_id, own_id = parse_node_id(name), self._context.config.node_id
        if node_id is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
        if node_id != own_id:
            why = f"Unexpected broker id, expected {own_id}{alternative} but received {name}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, why)

    def _row(self, entry: Entry) -> Row:
        synonyms = entry.synonyms if self._request.include_synonyms else ()
        return Row(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            is_default=self._context.version == 0 and entry.source is ConfigSource.DEFAULT_CONFIG,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
            synonyms=[Synonym(name=name, value=value, source=source) for name, value, source in synonyms],
            config_type=entry.type,
            documentation=entry.doc if self._request.include_documentation else None,
        )


def _refuse_empty(name: str, why: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, why)


def _logger_row(name: str, level: str) -> Row:
    return Row(name=name, value=level, config_source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG)
