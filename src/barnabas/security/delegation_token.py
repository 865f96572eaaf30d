"""The secret of a delegation token: an HMAC of its id, with the key that all nodes have in `delegation.token.secret.key`.

It is in no record and no image. Whoever knows it may use the token: as a password with SCRAM, and to renew or expire it.
"""

from __future__ import annotations

import base64
import hmac
from typing import Final

SECRET_KEY: Final = "delegation.token.secret.key"


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """Return the HMAC of a token.

    >>> token_hmac("key", "id").hex()[:8]
    '69203b22'
    """
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def token_password(secret_key: str, token_id: str) -> str:
    """Return the password with which a token logs in."""
    return base64.b64encode(token_hmac(secret_key, token_id)).decode()
