"""Membership in a share group (KIP-932): heartbeats send the subscription and return the assignment.

Partitions are shared, so no other member waits until this one gives them up, and heartbeats do not report them.
API: ShareGroupHeartbeat.
"""

from __future__ import annotations

from barnabas.client.consuming.heartbeats import JOIN_EPOCH, LEAVE_EPOCH, HeartbeatMembership
from barnabas.client.share_consuming.settings import ShareConsumerSettings
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


class ShareMembership(HeartbeatMembership):
    """A member of a share group."""

    settings: ShareConsumerSettings
    _reports_assignment = False

    def failed(self, code: ErrorCode, message: str | None = None) -> KafkaError:
        if code is ErrorCode.UNSUPPORTED_VERSION:
            message = "the cluster does not have share groups: its feature share.version is 0"
        return super().failed(code, message)

    def _request(self) -> tuple[ShareGroupHeartbeatRequest, str]:
        topics = self.reader.subscribed_topics()
        is_joining = self.generation == JOIN_EPOCH
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.generation
        )
        if is_joining or self._sent_topics is None:
            request.rack_id = self.settings.client_rack or None
        if is_joining or topics != self._sent_topics:
            request.subscribed_topic_names = list(topics)
        self._sent_topics = topics
        return request, "share groups"

    def _leave_request(self) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(group_id=self.group_id, member_id=self.member_id, member_epoch=LEAVE_EPOCH)
