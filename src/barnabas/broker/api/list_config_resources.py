"""ListConfigResources (74), versions 0 and 1.

Lists the resources that have settings: groups and client metrics with at least one, live brokers and their loggers, and
topics, in Kafka's order. Version 0 lists client metrics only. An unknown resource type is UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.config.hash_order import hash_order, tree_order
from barnabas.config.resource_type import ConfigResourceType
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.steps import Slices, counted
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

ORDER = (
    ConfigResourceType.GROUP,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.BROKER,
    ConfigResourceType.TOPIC,
)


def handle(context: Context, request: ListConfigResourcesRequest) -> Slices[ListConfigResourcesResponse]:
    if not context.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    supported = ORDER if context.version >= 1 else (ConfigResourceType.CLIENT_METRICS,)
    wanted = (yield from counted(request.resource_types)) or supported
    if any(kind not in supported for kind in wanted):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    rows = [
        ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
        for kind in ORDER
        if kind in wanted
        for name in _names(context, kind)
    ]
    return ListConfigResourcesResponse(config_resources=rows)


def _names(context: Context, kind: ConfigResourceType) -> list[str]:
    image = context.image
    if kind is ConfigResourceType.TOPIC:
        return tree_order(image.topics.names)
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        alive = (
            broker_id
            for broker_id, broker in image.brokers.items()
            if not broker.fenced and context.listener.name in broker.listeners
        )
        return [str(broker_id) for broker_id in sorted(alive)]
    return hash_order(sorted(resource.name for resource in image.configs if resource.type == kind))
