"""The order of messages in a SASL login, server side: versions, handshake, the mechanism's own messages, done. Pure.

Its one rule: a step that the state does not allow fails the login, and after a failure there is no further step. Texts
are Kafka's. A re-authentication is a second exchange on the same connection; it may change neither mechanism nor
principal. The user of this module transports the bytes, waits before it reports a failure, and closes the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from barnabas.security.principal import USER_TYPE, KafkaPrincipal
from barnabas.security.sasl import InvalidCredentialsError, SaslError, ServerMechanism
from barnabas.wire import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError

Mechanisms = Mapping[str, Callable[[], ServerMechanism]]
"""The enabled mechanisms by name; each login needs a new object."""


class State(Enum):
    """What is expected next from the client."""

    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    TOKEN = auto()  # of the mechanism, in SaslAuthenticate or, after SaslHandshake v0, without any header
    COMPLETE = auto()
    FAILED = auto()


ALLOWED: Final[Mapping[State, frozenset[int]]] = {
    State.VERSIONS_OR_HANDSHAKE: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    State.HANDSHAKE: frozenset({ApiKey.SASL_HANDSHAKE}),
    State.TOKEN: frozenset({ApiKey.SASL_AUTHENTICATE}),
    State.COMPLETE: frozenset(),
    State.FAILED: frozenset(),
}
"""The requests that each state accepts."""


class Session(NamedTuple):
    """A completed login."""

    principal: KafkaPrincipal
    mechanism: str
    expires_at_ms: int | None = None  # of the credential


class SaslExchange:
    """One login. `renewed` is the session that a re-authentication continues."""

    def __init__(self, mechanisms: Mechanisms, renewed: Session | None = None) -> None:
        self.mechanisms = mechanisms
        self.state = State.VERSIONS_OR_HANDSHAKE if renewed is None else State.HANDSHAKE
        self.failure: KafkaError | None = None
        self.session: Session | None = None
        self._renewed = renewed
        self._mechanism_name = ""
        self._mechanism: ServerMechanism | None = None
        self._has_headers = False

    @property
    def expects_raw_token(self) -> bool:
        """True if the next frame is a message of the mechanism, without a request header."""
        return self.state is State.TOKEN and not self._has_headers

    def check(self, key: int, name: str) -> None:
        """Fail unless a request is allowed now. Raises `KafkaError`."""
        if key not in ALLOWED[self.state]:
            during = "authentication" if self.state is State.TOKEN else "handshake"
            text = f"Unexpected Kafka request of type {name} during SASL {during}."
            raise self.fail(KafkaError(ErrorCode.ILLEGAL_SASL_STATE, text))

    def versions_sent(self) -> None:
        """Note that the client knows the versions: the handshake is next."""
        if self.state is State.VERSIONS_OR_HANDSHAKE:
            self.state = State.HANDSHAKE

    def handshake(self, mechanism: str, version: int) -> None:
        """Choose the mechanism. Raises `KafkaError` if it is not enabled."""
        self.check(ApiKey.SASL_HANDSHAKE, "SASL_HANDSHAKE")
        self._has_headers = version >= 1
        if mechanism not in self.mechanisms:
            text = f"Unsupported SASL mechanism {mechanism}"
            raise self.fail(KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, text))
        self._mechanism_name = mechanism
        self._mechanism = self.mechanisms[mechanism]()
        self.state = State.TOKEN

    @property
    def claimed_name(self) -> str:
        """The user that the client has named in this login, true or not; empty if none is known."""
        return "" if self._mechanism is None else self._mechanism.claimed_name

    def work_before(self, token: bytes) -> Callable[[], object] | None:
        """Return slow work to be done before this message is evaluated, or None."""
        return self._mechanism.work_before(token) if self.state is State.TOKEN and self._mechanism else None

    def evaluate(self, token: bytes) -> bytes:
        """Return the mechanism's answer to a message of the client. Raises `KafkaError` if the login fails."""
        self.check(ApiKey.SASL_AUTHENTICATE, "SASL_AUTHENTICATE")
        mechanism, renewed = self._mechanism, self._renewed
        assert mechanism is not None
        if renewed is not None and self._mechanism_name != renewed.mechanism:
            raise self.fail(
                SaslError(
                    f"SASL mechanism '{self._mechanism_name}' requested by client is not supported for "
                    f"re-authentication of mechanism '{renewed.mechanism}'"
                )
            )
        try:
            answer = mechanism.evaluate(token)
        except SaslError as error:
            raise self.fail(error) from None
        except InvalidCredentialsError:
            what = "authentication" if renewed is None else "re-authentication"
            text = f"Authentication failed during {what} due to invalid credentials with SASL mechanism "
            raise self.fail(SaslError(text + self._mechanism_name)) from None
        if mechanism.is_complete:
            self._complete(mechanism)
        return answer

    def _complete(self, mechanism: ServerMechanism) -> None:
        principal = KafkaPrincipal(USER_TYPE, mechanism.authorization_id, mechanism.is_token)
        before = None if self._renewed is None else self._renewed.principal
        if before not in (None, principal):
            raise self.fail(
                SaslError(
                    "Cannot change principals during re-authentication from "
                    f"{before.type}.{before.name}: {principal.type}.{principal.name}"
                )
            )
        self.session = Session(principal, self._mechanism_name, mechanism.expires_at_ms)
        self.state = State.COMPLETE

    def fail(self, error: KafkaError) -> KafkaError:
        """End the login, and return the error."""
        self.state, self.failure = State.FAILED, error
        return error
