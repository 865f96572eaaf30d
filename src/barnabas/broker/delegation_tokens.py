"""What the four APIs of delegation tokens share: who may ask, and which token belongs to an HMAC."""

from __future__ import annotations

import hmac

from barnabas.broker.context import Context
from barnabas.security.delegation_token import SECRET_KEY, token_hmac
from barnabas.security.principal import ANONYMOUS
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError

NO_TIME = -1


def is_allowed(context: Context) -> bool:
    """Return True if the caller is authenticated, and not by a token: a token must not create or prolong tokens."""
    information = context.peer.information
    login = None if information is None else information.login
    if login is not None and login.session is not None:
        return not login.session.is_token
    return context.peer.principal != ANONYMOUS


def secret_key(context: Context) -> str:
    """Return the key of all tokens. Raises DELEGATION_TOKEN_AUTH_DISABLED without one."""
    key = context.config.get_str(SECRET_KEY)
    if not key:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return key


def token_id_of(context: Context, wanted: bytes) -> Slices[str]:
    """Return the id of the token with an HMAC. Raises DELEGATION_TOKEN_NOT_FOUND."""
    key = secret_key(context)
    for token_id in context.image.tokens:
        yield
        if hmac.compare_digest(token_hmac(key, token_id), wanted):
            return token_id
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
