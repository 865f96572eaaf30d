"""Which URLs settings of OAuth may name.

As in Kafka, each must be on a list outside the settings, the Java system property named in `ALLOWED_URLS`. Kafka's scripts
take system properties from the environment variable KAFKA_OPTS, and so does this module. There is no default, so that whoever
can change a setting cannot make a node or a client call any address.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from barnabas.config.values import ConfigError

ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
ENVIRONMENT: Final = "KAFKA_OPTS"
_SCHEMES: Final = ("http", "https", "file")


def checked_url(name: str, text: str | None) -> str:
    """Return a URL that may be used. Raises `ConfigError` with Kafka's texts."""
    url = (text or "").strip()
    if not url:
        raise ConfigError(name, f"The OAuth configuration option {name} value is required")
    option = f"The OAuth configuration option {name} contains a URL ({url}) that"
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port >= 0
    except ValueError as error:
        raise ConfigError(name, f"{option} is malformed: {error}") from None
    if parts.scheme.lower() not in _SCHEMES or not has_port:
        raise ConfigError(
            name,
            f"{option} contains an invalid protocol ({parts.scheme}); only "
            '"http", "https", and "file" protocol are supported',
        )
    if url not in _allowed():
        raise ConfigError(
            name,
            f"Invalid value {url} for configuration {name}: The URL cannot be accessed due to restrictions. Update the "
            f"system property '{ALLOWED_URLS}' to allow the URL to be accessed: set {ENVIRONMENT}=-D{ALLOWED_URLS}={url}",
        )
    if is_file(url):
        checked_file(name, url)
    return url


def is_file(url: str) -> bool:
    return urlsplit(url).scheme.lower() == "file"


def checked_file(name: str, url: str) -> Path:
    """Return the file that a URL names. Raises `ConfigError`."""
    path = Path(unquote(urlsplit(url).path))
    start = f"The OAuth configuration option {name}"
    if not path.exists():
        raise ConfigError(name, f"{start} contains a file ({path}) that doesn't exist")
    if path.is_dir():
        raise ConfigError(name, f"{start} references a directory ({path}), not a file")
    if not os.access(path, os.R_OK):
        raise ConfigError(name, f"{start} contains a file ({path}) that doesn't have read permission")
    return path


def _allowed() -> frozenset[str]:
    start = f"-D{ALLOWED_URLS}="
    try:
        words = shlex.split(os.environ.get(ENVIRONMENT, ""))
    except ValueError:  # a quote is not closed
        words = []
    texts = [word.removeprefix(start) for word in words if word.startswith(start)]
    return frozenset(url.strip() for url in (texts[-1].split(",") if texts else ()))
