"""What the four APIs of delegation tokens share: who may ask, and which token belongs to an HMAC."""

from __future__ import annotations

from collections.abc import Callable
from hmac import compare_digest

from barnabas.broker.context import Context
from barnabas.controller.situation import Situation
from barnabas.replicated.decision import Result
from barnabas.security.delegation_token import SECRET_KEY, token_hmac
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.slices import in_slices
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError

NO_TIME = -1

Decision = Callable[[Situation, str, KafkaPrincipal, int], Result[int]]


def is_allowed(context: Context) -> bool:
    """Return True if the caller is authenticated, and not by a token: a token must not create or prolong tokens.

    The broker that forwards a request has checked this. It knows the connection; its envelope has the principal alone.
    """
    peer = context.peer
    if peer.principal.token_authenticated:
        return False
    has_login = peer.information is not None and peer.information.login is not None
    return peer.is_forwarded or has_login or peer.principal != ANONYMOUS


def secret_key(context: Context) -> str:
    """Return the key of all tokens. Raises DELEGATION_TOKEN_AUTH_DISABLED without one."""
    key = context.config.get_str(SECRET_KEY)
    if not key:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return key


async def changed(context: Context, decision: Decision, hmac: bytes, period_ms: int) -> tuple[ErrorCode, int]:
    """Renew or expire the token with an HMAC, and return the error and the time at which it now expires."""
    if not is_allowed(context):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NO_TIME
    try:
        token_id = await in_slices(_token_id_of(context, hmac))
        return ErrorCode.NONE, await context.controller.write(decision, token_id, context.peer.principal, period_ms)
    except KafkaError as error:
        return error.code, 0


def _token_id_of(context: Context, wanted: bytes) -> Slices[str]:
    """Return the id of the token with an HMAC. Raises DELEGATION_TOKEN_NOT_FOUND."""
    key = secret_key(context)
    for token_id in context.image.tokens:
        yield
        if compare_digest(token_hmac(key, token_id), wanted):
            return token_id
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
