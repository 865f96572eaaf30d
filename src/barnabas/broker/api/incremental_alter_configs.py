"""IncrementalAlterConfigs (44), versions 0 and 1.

Sets and unsets single settings of topics, brokers, groups and client metrics. APPEND and SUBTRACT change list settings
of topics and brokers. The rules for a single broker are those of AlterConfigs. A resource is changed as a whole or not
at all. Log levels of this node are set and reset at once and are not stored. An unknown operation fails every resource
that goes to the controller with UNKNOWN_SERVER_ERROR, as in Apache Kafka.
"""

from __future__ import annotations

from barnabas.broker import config_changes
from barnabas.broker.config_changes import Asked, Operation
from barnabas.broker.context import Context
from barnabas.metadata.configs import ConfigResource
from barnabas.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Row = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


async def handle(context: Context, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    asked = [
        Asked(
            ConfigResource(resource.resource_type, resource.resource_name),
            [Operation(each.name, each.config_operation, each.value) for each in resource.configs],
        )
        for resource in request.resources
    ]
    answers = await config_changes.alter(context, asked, incremental=True, validate_only=request.validate_only)
    rows = [
        Row(error_code=code, error_message=message, resource_type=resource.type, resource_name=resource.name)
        for resource, code, message in answers
    ]
    return IncrementalAlterConfigsResponse(responses=rows)
