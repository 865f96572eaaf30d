"""BrokerHeartbeatRequest and BrokerHeartbeatResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message
from barnabas.wire.primitives import Uuid

__all__ = ["BrokerHeartbeatRequest", "BrokerHeartbeatResponse"]


class BrokerHeartbeatRequest(Message):
    """BrokerHeartbeat request, API key 63, versions 0-2, flexible 0+."""

    __slots__ = ("broker_id", "broker_epoch", "current_metadata_offset", "want_fence", "want_shut_down", "offline_log_dirs", "cordoned_log_dirs")

    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: list[Uuid]
    cordoned_log_dirs: list[Uuid] | None

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: list[Uuid] = EMPTY,
        cordoned_log_dirs: list[Uuid] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.current_metadata_offset = current_metadata_offset
        self.want_fence = want_fence
        self.want_shut_down = want_shut_down
        self.offline_log_dirs = [] if offline_log_dirs is EMPTY else offline_log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
        self.unknown_tagged_fields = None

    SCHEMA = """
BrokerHeartbeatRequest request key=63 versions=0-2 flexible=0+ listeners=controller
  broker_id int32
  broker_epoch int64 default=-1
  current_metadata_offset int64
  want_fence bool
  want_shut_down bool
  offline_log_dirs []uuid 1+ tag=0
  cordoned_log_dirs []uuid 2+ nullable tag=1 default=null
"""


class BrokerHeartbeatResponse(Message):
    """BrokerHeartbeat response, API key 63, versions 0-2, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "is_caught_up", "is_fenced", "should_shut_down")

    throttle_time_ms: int
    error_code: int
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_caught_up: bool = False,
        is_fenced: bool = True,
        should_shut_down: bool = False,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.is_caught_up = is_caught_up
        self.is_fenced = is_fenced
        self.should_shut_down = should_shut_down
        self.unknown_tagged_fields = None

    SCHEMA = """
BrokerHeartbeatResponse response key=63 versions=0-2 flexible=0+
  throttle_time_ms int32
  error_code int16
  is_caught_up bool
  is_fenced bool default=true
  should_shut_down bool
"""
