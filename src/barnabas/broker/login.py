"""The login on one connection to a SASL listener: which frames are accepted before it, and when it has to be renewed.

Every frame of such a connection passes `Login.receive`. Before the login, only ApiVersions, SaslHandshake and
SaslAuthenticate are dispatched; their handlers call `exchange`, the pure state machine. After SaslHandshake v0 the frames are
bare messages of the mechanism. As in Kafka, a failure is reported only after `connection.failed.authentication.delay.ms`,
and then the connection is closed; the audit log has a line at once. A session ends after `connections.max.reauth.ms`, and
when its token expires: SaslHandshake begins another login, and any other request after the end closes the connection
(KIP-368).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, NoReturn

from barnabas.broker.audit.audited import Asked
from barnabas.broker.context import Peer, Services
from barnabas.broker.counters import ListenerCounters
from barnabas.broker.dispatch import Answer, Refused, dispatch, error_answer
from barnabas.security.sasl import SaslError
from barnabas.security.sasl.exchange import Mechanisms, SaslExchange, Session, State
from barnabas.wire import APIS, ApiKey, KafkaError
from barnabas.wire.frame import Frame, FrameBuffer

MIN_REAUTH_INTERVAL_MS = 1000
TIMEOUT_S = 60.0  # of a first login; a real one takes a few milliseconds of its client's time

_KEY = struct.Struct(">h")
_SIZE = struct.Struct(">i")
_SUCCESS = b"\0\0"
_HEADER = struct.Struct(">hhih")
_RAW_TOKEN = Asked("SaslAuthenticate")


class SaslSettings(NamedTuple):
    """What a listener's logins are checked against. Times in milliseconds."""

    mechanisms: Mechanisms
    max_reauth_ms: Mapping[str, int]
    max_receive_bytes: int
    failed_delay_ms: int
    now_ms: Callable[[], int]  # the time of day, in which tokens expire


class Login:
    """The login of one connection. `peer` has the principal once it is complete."""

    def __init__(
        self, settings: SaslSettings, services: Services, peer: Peer, buffer: FrameBuffer, counters: ListenerCounters
    ) -> None:
        self.settings = settings
        self.peer = peer
        self.exchange = SaslExchange(settings.mechanisms)
        self.session: Session | None = None
        self._services = services
        self._buffer = buffer
        self._counters = counters
        self._request_max_bytes = buffer.max_size
        self._expires_at_ms: int | None = None
        self._renewed_at_ms: int | None = None
        self._is_under_way = True
        buffer.max_size = settings.max_receive_bytes

    @property
    def is_under_way(self) -> bool:
        """True while the client has to log in, for the first time or again."""
        return self._is_under_way

    @property
    def session_lifetime_ms(self) -> int:
        """The time after which a session that begins now has to be renewed; 0 if never."""
        session = self.exchange.session
        if session is None:
            return 0
        max_reauth_ms = max(0, self.settings.max_reauth_ms.get(session.mechanism, 0))
        if session.expires_at_ms is None:
            return max_reauth_ms
        left_ms = max(0, session.expires_at_ms - self.settings.now_ms())
        return min(left_ms, max_reauth_ms) if max_reauth_ms else left_ms

    def receive(self, frame: Frame) -> Answer | Awaitable[Answer]:
        """Answer a frame like `dispatch`. Raises Refused if the connection has to be closed."""
        if not self._is_under_way:
            if self._expires_at_ms is None:
                return dispatch(frame, self._services, self.peer)
            if not self._begins_renewal(frame):
                if self._services.monotonic_ms() > self._expires_at_ms:
                    self._counters.expired_sessions += 1
                    raise Refused(f"the session of {self.peer.principal} has expired, and it did not log in again")
                return dispatch(frame, self._services, self.peer)
        return self._step(frame)

    def _begins_renewal(self, frame: Frame) -> bool:
        if _key(frame) != ApiKey.SASL_HANDSHAKE:
            return False
        now_ms, before_ms = self._services.monotonic_ms(), self._renewed_at_ms
        if before_ms is not None and now_ms - before_ms < MIN_REAUTH_INTERVAL_MS:
            return False
        self._renewed_at_ms = now_ms
        self._is_under_way = True
        self._buffer.max_size = self.settings.max_receive_bytes
        self.exchange = SaslExchange(self.settings.mechanisms, self.session)
        return True

    def _step(self, frame: Frame) -> Answer | Awaitable[Answer]:
        exchange = self.exchange
        answer: Answer | Awaitable[Answer] = None  # until there is one
        asked = _RAW_TOKEN if exchange.expects_raw_token else _asked(frame)
        try:
            if exchange.expects_raw_token:
                token = bytes(frame)
                work = exchange.work_before(token)
                answer = self._evaluated(token) if work is None else self._evaluated_after(work, token)
            else:
                is_token, key = exchange.state is State.TOKEN, _key(frame)
                try:
                    exchange.check(key, _name(key))
                except KafkaError as error:
                    if is_token:  # Kafka answers in this state alone
                        answer = error_answer(frame, self._services, self.peer, error)
                    raise
                answer = dispatch(frame, self._services, self.peer)
        except KafkaError as error:
            exchange.fail(error)
        if answer is None or isinstance(answer, list):
            return self._after(asked, answer)
        return self._later(asked, answer)

    def _evaluated(self, token: bytes) -> Answer:
        answer = self.exchange.evaluate(token)
        return [_SIZE.pack(len(answer)), answer]

    async def _evaluated_after(self, work: Callable[[], object], token: bytes) -> Answer:
        await asyncio.to_thread(work)
        try:
            return self._evaluated(token)
        except KafkaError as error:
            self.exchange.fail(error)
            return None

    async def _later(self, asked: Asked, answer: Awaitable[Answer]) -> Answer:
        after = self._after(asked, await answer)
        return after if after is None or isinstance(after, list) else await after

    def _after(self, asked: Asked, answer: Answer) -> Answer | Awaitable[Answer]:
        """Draw the conclusions from a step that was answered, and return the answer, or one that comes later."""
        exchange = self.exchange
        if exchange.failure is not None:
            if self.session is None:
                self._counters.failed_logins += 1
            else:
                self._counters.failed_renewals += 1
            if self._services.audit is not None:
                self._services.audit.failed_login(self.peer, asked, exchange.claimed_name, exchange.failure.code)
            return self._refuse_later(answer, exchange.failure)
        if exchange.state is State.VERSIONS_OR_HANDSHAKE and answer is not None and answer[1][:2] == _SUCCESS:
            exchange.versions_sent()
        elif exchange.state is State.COMPLETE:
            self._complete()
        return answer

    def _complete(self) -> None:
        if self.session is None:
            self._counters.successful_logins += 1
        else:
            self._counters.successful_renewals += 1
        self.session = self.exchange.session
        assert self.session is not None
        self.peer = self.peer._replace(principal=self.session.principal)
        lifetime_ms = self.session_lifetime_ms
        has_end = bool(lifetime_ms) or self.session.expires_at_ms is not None
        self._expires_at_ms = self._services.monotonic_ms() + lifetime_ms if has_end else None
        self._is_under_way = False
        self._buffer.max_size = self._request_max_bytes

    async def _refuse_later(self, answer: Answer, failure: KafkaError) -> NoReturn:
        await asyncio.sleep(self.settings.failed_delay_ms / 1000)
        kind = "authentication" if self.session is None else "re-authentication"
        reason = f" ({failure.reason})" if isinstance(failure, SaslError) and failure.reason else ""
        raise Refused(f"failed {kind}: {failure.message}{reason}", answer)


def _asked(frame: Frame) -> Asked:
    """Return what the header of a request says, for the audit log; nothing if it is too short."""
    if len(frame) < _HEADER.size:
        return Asked("")
    key, version, correlation_id, length = _HEADER.unpack_from(frame)
    client_id = bytes(frame[_HEADER.size : _HEADER.size + max(0, length)]).decode(errors="replace")
    return Asked(APIS[key].name if key in APIS else str(key), version, correlation_id, client_id)


def _key(frame: Frame) -> int:
    key: int = _KEY.unpack_from(frame)[0] if len(frame) >= 2 else -1
    return key


def _name(key: int) -> str:
    return ApiKey(key).name if key in APIS else f"with key {key}"
