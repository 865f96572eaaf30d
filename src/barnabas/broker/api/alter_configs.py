"""AlterConfigs (33), versions 0 to 2.

Gives topics, brokers, groups and client metrics exactly these settings: what is not named is unset. One broker's are
only changed by that broker (INVALID_REQUEST elsewhere), and only to what it could run with; the empty name stands for
all brokers. A resource is changed whole or not at all. Levels of loggers are not changed here, but one by one
(IncrementalAlterConfigs). The same resource twice is INVALID_REQUEST on both rows; Apache Kafka never answers that.
"""

from __future__ import annotations

from barnabas.broker import config_changes
from barnabas.broker.config_changes import Asked, Operation
from barnabas.broker.context import Context
from barnabas.controller.configs import AlterOperation
from barnabas.metadata.configs import ConfigResource
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

Row = AlterConfigsResponse.AlterConfigsResourceResponse


async def handle(context: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    asked = [
        Asked(
            ConfigResource(resource.resource_type, resource.resource_name),
            [Operation(each.name, AlterOperation.SET, each.value) for each in resource.configs],
        )
        for resource in request.resources
    ]
    answers = await config_changes.alter(context, asked, incremental=False, validate_only=request.validate_only)
    rows = [
        Row(error_code=code, error_message=message, resource_type=resource.type, resource_name=resource.name)
        for resource, code, message in answers
    ]
    return AlterConfigsResponse(responses=rows)
