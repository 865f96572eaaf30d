"""ShareAcknowledge (79), versions 1 and 2.

Accepts, releases, rejects and (version 2, KIP-1222) renews records that a member of a share group has acquired. Continues
the member's share session, which ShareFetch begins; epoch -1 ends it and releases what else the member has acquired.
The answer comes after the changes were stored. Each partition has its own error; one that is led elsewhere names the leader
(KIP-951). Needs READ on the group and on each topic.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.current_leader import LED_ELSEWHERE, tell_leader
from barnabas.broker.share_requests import Errors, Topics, acknowledgements, member_of, row_errors
from barnabas.replicas.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, MemberKey
from barnabas.slices import in_slices
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse

Topic = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
Row = ShareAcknowledgeResponse.PartitionData


async def handle(context: Context, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    member = member_of(context, request.group_id, request.member_id)
    shares = context.services.share_partitions
    await in_slices(_continued(context, member, request.share_session_epoch))
    topics = Topics(context)
    asked = await in_slices(acknowledgements(context, topics, request.topics, is_renewal=request.is_renew_ack))
    errors = asked.errors | row_errors(await shares.acknowledge(member, asked.possible))
    if request.share_session_epoch == FINAL_EPOCH:
        shares.close(member)
    response = await in_slices(_response(context, errors))
    response.acquisition_lock_timeout_ms = shares.settings(member.group_id).record_lock_duration_ms
    return response


def _continued(context: Context, member: MemberKey, epoch: int) -> Slices[None]:
    sessions = context.services.share_partitions.sessions
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    if epoch == FINAL_EPOCH:
        sessions.get(member)
    else:
        yield from sessions.go_on(member, epoch)


def _response(context: Context, errors: Errors) -> Slices[ShareAcknowledgeResponse]:
    response = ShareAcknowledgeResponse()
    topics: dict[Uuid, Topic] = {}
    for key, error in errors.items():
        yield
        row = Row(partition_index=key.partition)
        if error is not None:
            row.error_code, row.error_message = error.code, error.message
            topic = context.image.topics.by_id.get(key.topic_id)
            if error.code in LED_ELSEWHERE and topic is not None:
                tell_leader(context, topic.name, key.partition, row, response)
        topics.setdefault(key.topic_id, Topic(topic_id=key.topic_id)).partitions.append(row)
    response.responses = list(topics.values())
    return response
