"""ControllerRegistration (70), version 0; on the controller's listener.

A starting controller registers its listeners and supported features. UNSUPPORTED_VERSION below metadata.version
3.7-IV0, which has no record for it. Errors have the default text of their code. Needs CLUSTER_ACTION.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.controller import brokers
from barnabas.security.acl import AclOperation
from barnabas.wire import KafkaError
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse


async def handle(context: Context, request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
    try:
        context.require_on_cluster(AclOperation.CLUSTER_ACTION)
        await context.controller.write(brokers.register_controller, request)
    except KafkaError as error:
        return ControllerRegistrationResponse(error_code=error.code, error_message=error.code.message)
    return ControllerRegistrationResponse(error_message="")
