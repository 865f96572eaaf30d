"""AlterConfigs (33), versions 0 to 2.

Replaces all settings of topics, brokers, groups and client metrics: settings that are not named are unset. The settings
of a single broker can only be changed through that broker (INVALID_REQUEST elsewhere), and only to values that it can
run with. The empty name means all brokers. A resource is changed as a whole or not at all. Log levels cannot be changed
with this API; use IncrementalAlterConfigs. A duplicate resource is INVALID_REQUEST in both rows; Apache Kafka never
answers such a request.
"""

from __future__ import annotations

from barnabas.broker import config_changes
from barnabas.broker.context import Context
from barnabas.controller.configs import AlterOperation
from barnabas.slices import in_slices
from barnabas.steps import mapped
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

Row = AlterConfigsResponse.AlterConfigsResourceResponse


async def handle(context: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    asked = await in_slices(config_changes.asked_for(request.resources, _operation))
    answers = await config_changes.alter(context, asked, incremental=False, validate_only=request.validate_only)
    rows = await in_slices(mapped(_row, answers))
    return AlterConfigsResponse(responses=rows)


def _operation(config: AlterConfigsRequest.AlterableConfig) -> config_changes.Operation:
    return config_changes.Operation(config.name, AlterOperation.SET, config.value)


def _row(answer: config_changes.Answer) -> Row:
    resource, code, message = answer
    return Row(error_code=code, error_message=message, resource_type=resource.type, resource_name=resource.name)
