"""Limits of what all groups of a node hold in memory: groups, members with what their clients send, regular expressions.

Kafka has no such limits. Their defaults are far above what honest clients need. A member that joins again and a group
that shrinks are never refused, so groups that exist go on when a limit is reached.

A refused member gets GROUP_MAX_SIZE_REACHED, which clients of both protocols raise in `poll` and do not retry silently.
A refused commit, to a group that would be new, gets INVALID_COMMIT_OFFSET_SIZE, which they raise in `commit` too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from barnabas.config.server_config import ServerConfig
from barnabas.groups.classic.members import protocols_bytes
from barnabas.groups.classic.requests import Join, Sync
from barnabas.groups.consumer_group import TOPIC_BYTES, ConsumerGroup
from barnabas.groups.image import MEMBER_BYTES
from barnabas.groups.shard import Shard
from barnabas.groups.share.group import ShareGroup
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.topology import topology_of_request
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

_log = logging.getLogger(__name__)

MAX_GROUPS = "barnabas.groups.max.count"
MAX_BYTES = "barnabas.groups.max.member.bytes"
MAX_PATTERNS = "barnabas.groups.max.regular.expressions"

LOG_INTERVAL_MS = 60_000


class GroupRoom:
    """What the groups of a node hold, and whether there is room for more."""

    def __init__(
        self, config: Callable[[], ServerConfig], shards: Callable[[], Iterable[Shard]], steady_ms: Callable[[], float]
    ) -> None:
        self._config = config
        self._shards = shards
        self._steady_ms = steady_ms
        self._logged_ms = float("-inf")
        self.refused_total = 0

    @property
    def group_count(self) -> int:
        return sum(len(shard.machine.head.groups) for shard in self._shards())

    @property
    def held_bytes(self) -> int:
        """About the memory of all members."""
        return sum(shard.machine.head.held_bytes + shard.classic_bytes for shard in self._shards())

    @property
    def pattern_count(self) -> int:
        return sum(shard.machine.head.pattern_count for shard in self._shards())

    def check_join(self, shard: Shard, group_id: str, request: Join) -> None:
        """Check a member that speaks the classic protocol. Raises GROUP_MAX_SIZE_REACHED."""
        stored = shard.machine.head.groups.get(group_id)
        growth_bytes = protocols_bytes(request.protocols) - _known_bytes(shard, group_id, request)
        self._check(growth_bytes, is_new_group=stored is None)

    def check_sync(self, shard: Shard, group_id: str, request: Sync) -> None:
        """Check the assignments of a leader. Raises GROUP_MAX_SIZE_REACHED."""
        group = shard.classic.get(group_id)
        if group is not None and request.assignments:
            old_bytes = sum(len(member.assignment) for member in group.members)
            self._check(sum(map(len, request.assignments.values())) - old_bytes)

    def check_heartbeat(self, shard: Shard, request: ConsumerGroupHeartbeatRequest) -> None:
        """Check a member that speaks the consumer protocol. Raises GROUP_MAX_SIZE_REACHED."""
        names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
        if names is None and pattern is None:
            return
        stored = shard.machine.head.groups.get(request.group_id)
        group = stored if isinstance(stored, ConsumerGroup) else ConsumerGroup(request.group_id)
        member = group.static_member(request.instance_id) or group.members.get(request.member_id)
        growth_bytes = len(pattern or "") + sum(TOPIC_BYTES + len(name) for name in names or ())
        if member is None:
            growth_bytes += MEMBER_BYTES
        else:
            growth_bytes -= len(member.subscribed_topic_regex or "")
            growth_bytes -= sum(TOPIC_BYTES + len(name) for name in member.subscribed_topic_names)
        is_new_pattern = bool(pattern) and pattern not in group.patterns
        self._check(growth_bytes, is_new_group=stored is None, is_new_pattern=is_new_pattern)

    def check_share_heartbeat(self, shard: Shard, request: ShareGroupHeartbeatRequest) -> None:
        """Check a member of a share group that joins or changes its topics. Raises GROUP_MAX_SIZE_REACHED."""
        names = request.subscribed_topic_names
        if names is None:
            return
        stored = shard.machine.head.groups.get(request.group_id)
        member = stored.members.get(request.member_id) if isinstance(stored, ShareGroup) else None
        growth_bytes = sum(TOPIC_BYTES + len(name) for name in set(names))
        if member is None:
            growth_bytes += MEMBER_BYTES
        else:
            growth_bytes -= sum(TOPIC_BYTES + len(name) for name in member.subscribed_topic_names)
        self._check(growth_bytes, is_new_group=stored is None)

    def check_share_offsets(self, shard: Shard, group_id: str) -> None:
        """Check offsets for a share group. Raises GROUP_MAX_SIZE_REACHED."""
        self._check(0, is_new_group=group_id not in shard.machine.head.groups)

    def check_streams_heartbeat(self, shard: Shard, request: StreamsGroupHeartbeatRequest) -> None:
        """Check a member of a streams group that joins. Raises GROUP_MAX_SIZE_REACHED."""
        if request.topology is None:
            return
        stored = shard.machine.head.groups.get(request.group_id)
        growth_bytes = 0
        if not isinstance(stored, StreamsGroup) or stored.topology is None:
            growth_bytes += topology_of_request(request.topology).held_bytes
        if not isinstance(stored, StreamsGroup) or request.member_id not in stored.members:
            growth_bytes += MEMBER_BYTES + sum(len(tag.key) + len(tag.value) for tag in request.client_tags or ())
        self._check(growth_bytes, is_new_group=stored is None)

    def check_commit(self, shard: Shard, group_id: str) -> None:
        """Check a commit of offsets. Raises INVALID_COMMIT_OFFSET_SIZE."""
        if group_id not in shard.machine.head.groups:
            self._check(0, is_new_group=True, code=ErrorCode.INVALID_COMMIT_OFFSET_SIZE)

    def _check(
        self,
        growth_bytes: int,
        *,
        is_new_group: bool = False,
        is_new_pattern: bool = False,
        code: ErrorCode = ErrorCode.GROUP_MAX_SIZE_REACHED,
    ) -> None:
        config = self._config()
        if is_new_group and self.group_count >= config.get_int(MAX_GROUPS):
            raise self._refused(code, MAX_GROUPS)
        if growth_bytes > 0 and self.held_bytes + growth_bytes > config.get_int(MAX_BYTES):
            raise self._refused(code, MAX_BYTES)
        if is_new_pattern and self.pattern_count >= config.get_int(MAX_PATTERNS):
            raise self._refused(code, MAX_PATTERNS)

    def _refused(self, code: ErrorCode, setting: str) -> KafkaError:
        self.refused_total += 1
        now_ms = self._steady_ms()
        if now_ms - self._logged_ms >= LOG_INTERVAL_MS:
            self._logged_ms = now_ms
            _log.warning(
                "the groups of this node have reached %s=%d, and new ones are refused: %d groups, %d bytes of members, %d"
                " regular expressions. Delete groups that are not needed, or raise the setting.",
                setting,
                self._config().get_int(setting),
                self.group_count,
                self.held_bytes,
                self.pattern_count,
            )
        return KafkaError(code, f"The groups of this broker have reached {setting}.")


def _known_bytes(shard: Shard, group_id: str, request: Join) -> int:
    """What a member that joins again holds already, or less than nothing: what a new one needs beside its protocols."""
    group, instance_id = shard.classic.get(group_id), request.group_instance_id
    if group is not None:
        members = group.members
        known = members.by_id.get(request.member_id) or members.by_id.get(members.static.get(instance_id or "", ""))
        return -MEMBER_BYTES if known is None else protocols_bytes(known.protocols)
    stored = shard.machine.head.groups.get(group_id)
    if isinstance(stored, ConsumerGroup):
        member = stored.static_member(instance_id) or stored.members.get(request.member_id)
        if member is not None:
            return protocols_bytes(request.protocols if member.classic is None else member.classic.protocols)
    return -MEMBER_BYTES
