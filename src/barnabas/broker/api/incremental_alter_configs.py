"""IncrementalAlterConfigs (44), versions 0 and 1.

Sets and unsets single settings of topics, brokers, groups and client metrics. APPEND and SUBTRACT change list settings
of topics and brokers. The rules for a single broker are those of AlterConfigs. A resource is changed as a whole or not
at all. Log levels of this node are set and reset at once and are not stored. An unknown operation fails every resource
that goes to the controller with UNKNOWN_SERVER_ERROR, as in Apache Kafka.
"""

from __future__ import annotations

from barnabas.broker import config_changes
from barnabas.broker.context import Context
from barnabas.slices import in_slices
from barnabas.steps import mapped
from barnabas.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Row = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


async def handle(context: Context, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    asked = await in_slices(config_changes.asked_for(request.resources, _operation))
    answers = await config_changes.alter(context, asked, incremental=True, validate_only=request.validate_only)
    rows = await in_slices(mapped(_row, answers))
    return IncrementalAlterConfigsResponse(responses=rows)


def _operation(config: IncrementalAlterConfigsRequest.AlterableConfig) -> config_changes.Operation:
    return config_changes.Operation(config.name, config.config_operation, config.value)


def _row(answer: config_changes.Answer) -> Row:
    resource, code, message = answer
    return Row(error_code=code, error_message=message, resource_type=resource.type, resource_name=resource.name)
