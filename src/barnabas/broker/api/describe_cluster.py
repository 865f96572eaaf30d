"""DescribeCluster (60), versions 0 to 2.

A broker's listener returns the brokers (fenced ones only on request, in version 2). It names any live broker as the
controller, because every broker forwards requests. A controller's listener returns the registered controllers and the
active one. It needs ALTER on the cluster and metadata.version 3.7 or later. `endpoint_type` is the kind of listener
that the caller expects: the wrong kind is MISMATCHED_ENDPOINT_TYPE, an unknown one UNSUPPORTED_ENDPOINT_TYPE
(INVALID_REQUEST in version 0).
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

Row = DescribeClusterResponse.DescribeClusterBroker

_ENDPOINT_TYPES = {1: "BROKER", 2: "CONTROLLER"}


def handle(context: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if context.listener.is_controller:
        _check_caller_of_a_controller(context)
    here = 2 if context.listener.is_controller else 1
    if request.endpoint_type not in _ENDPOINT_TYPES:
        text = f"Unsupported endpoint type {request.endpoint_type}"
        return _refused(context, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, text)
    if request.endpoint_type != here:
        text = (
            f"The request was sent to an endpoint of type {_ENDPOINT_TYPES[here]}, but we wanted an endpoint of type "
            f"{_ENDPOINT_TYPES[request.endpoint_type]}"
        )
        return _refused(context, ErrorCode.MISMATCHED_ENDPOINT_TYPE, text)
    response = DescribeClusterResponse(cluster_id=context.services.cluster_id, endpoint_type=here)
    if request.include_cluster_authorized_operations:
        may_describe = context.is_allowed(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        operations = context.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME) if may_describe else 0
        response.cluster_authorized_operations = operations
    if context.listener.is_controller:
        response.brokers, response.controller_id = _controllers(context)
    else:
        response.brokers, response.controller_id = _brokers(context, request.include_fenced_brokers)
    return response


def _check_caller_of_a_controller(context: Context) -> None:
    version = context.image.metadata_version
    if version is None or not version.is_controller_registration_supported:
        text = "Direct-to-controller communication is not supported with the current MetadataVersion."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
    context.require_on_cluster(AclOperation.ALTER)


def _refused(context: Context, code: ErrorCode, message: str) -> DescribeClusterResponse:
    code = ErrorCode.INVALID_REQUEST if context.version == 0 else code
    return DescribeClusterResponse(error_code=code, error_message=message)


def _brokers(context: Context, include_fenced: bool) -> tuple[list[Row], int]:
    rows = []
    for broker_id, broker in sorted(context.image.brokers.items()):
        endpoint = broker.listeners.get(context.listener.name)
        if endpoint is not None and (include_fenced or not broker.fenced):
            rows.append(
                Row(
                    broker_id=broker_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                    is_fenced=broker.fenced,
                )
            )
    alive = [row.broker_id for row in rows if not row.is_fenced]
    return rows, alive[context.correlation_id % len(alive)] if alive else -1


def _controllers(context: Context) -> tuple[list[Row], int]:
    rows = []
    for controller_id, controller in sorted(context.image.controllers.items()):
        endpoint = controller.listeners.get(context.listener.name)
        if endpoint is not None:
            rows.append(Row(broker_id=controller_id, host=endpoint.host, port=endpoint.port))
    leader = context.services.quorum_leader_id
    return rows, leader if any(row.broker_id == leader for row in rows) else -1
