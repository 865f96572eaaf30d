"""StreamsGroupHeartbeat (88), version 0: the only request of members of streams groups (KIP-1071).

A member joins with epoch 0 and the topology of its application, stays with the epoch of the last response, and leaves
with -1. The response has its tasks if they have changed, and statuses that say why it has none. Internal topics that are
missing are created in the background; a failed creation is shown in the status of later heartbeats. Needs READ on the
group, DESCRIBE on the topics of the topology, and CREATE on the cluster or on each internal topic that is missing.
UNSUPPORTED_VERSION while `streams.version` is 0 or the protocol is not in `group.coordinator.rebalance.protocols`.

As in Kafka 4.3, static members, offsets of tasks, warm-up tasks, regular expressions of source topics, and changes of the
topology are INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from barnabas.broker.context import Context
from barnabas.config import topic_names
from barnabas.config.internal_topics import INTERNAL_TOPICS
from barnabas.groups.consumer_decision import Asker
from barnabas.groups.streams.internal_topics import InternalTopic, Status
from barnabas.groups.streams.settings import is_streams_protocol_enabled
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.slices import in_slices
from barnabas.steps import Slices, stepwise
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

MAX_ERRORS = 3  # of topics that could not be created, in a status
DEFAULT_REPLICATION_FACTOR = -1


async def handle(context: Context, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
    if not is_streams_protocol_enabled(context.config, context.image):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if not context.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.topology is not None:
        await in_slices(_check_topics(context, request.topology))
    streams = context.services.groups.streams
    response, missing = await streams.heartbeat(request, Asker(context.client_id or "", f"/{context.peer.host}"))
    if missing:
        interval_ms = streams.settings(request.group_id).heartbeat_interval_ms
        await in_slices(_create(context, response, missing, 2 * interval_ms))
    return response


def _check_topics(context: Context, topology: StreamsGroupHeartbeatRequest.Topology) -> Slices[None]:
    names: dict[str, None] = {}
    for each in topology.subtopologies:
        yield
        infos = chain(each.repartition_source_topics, each.state_changelog_topics)
        for some in stepwise(chain(each.source_topics, each.repartition_sink_topics, (info.name for info in infos))):
            names.update(dict.fromkeys(some))
            yield
    prohibited: list[str] = []
    invalid: list[str] = []
    for some in stepwise(names):
        prohibited += [name for name in some if name in INTERNAL_TOPICS]
        invalid += [name for name in some if not topic_names.is_valid(name)]
        yield
    if prohibited:
        message = f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited."
        raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    if invalid:
        message = f"Topic names {','.join(invalid)} are not valid topic names."
        raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    for name in names:
        yield
        if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _create(
    context: Context, response: StreamsGroupHeartbeatResponse, missing: Mapping[str, InternalTopic], remember_ms: int
) -> Slices[None]:
    """Start to create internal topics, and add to the status why they cannot be created."""
    refused = []
    if not context.is_allowed(AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        for name in missing:
            yield
            if not context.may(AclOperation.CREATE, ResourceType.TOPIC, name):
                refused.append(name)
    if refused:
        _add_detail(response, f"; Unauthorized to CREATE on topics {', '.join(refused)}.")
        return
    creation = context.services.topic_creation
    creation.begin_topics([_creatable(topic) for topic in missing.values()], context, remember_ms)
    errors = creation.errors(missing, context)
    if errors:
        shown = ", ".join(f"{name} ({error})" for name, error in list(errors.items())[:MAX_ERRORS])
        more = f" and {len(errors) - MAX_ERRORS} more" if len(errors) > MAX_ERRORS else ""
        _add_detail(response, f"; Creation failed: {shown}{more}.")


def _add_detail(response: StreamsGroupHeartbeatResponse, text: str) -> None:
    for status in response.status or ():
        if status.status_code == Status.MISSING_INTERNAL_TOPICS:
            status.status_detail += text


def _creatable(topic: InternalTopic) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or DEFAULT_REPLICATION_FACTOR,
        configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=text) for key, text in topic.configs.items()],
    )
