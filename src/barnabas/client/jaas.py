"""Parser of `sasl.jaas.config`, the line with the credentials of a Java client or server. Pure.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="alice's secret";

Only the options are used. The module must belong to the mechanism; another one is an error. Error messages never show the text,
which has a password.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from barnabas.config.values import ConfigError

KEY = "sasl.jaas.config"
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_FLAGS = ("required", "requisite", "sufficient", "optional")
# A quoted text may have any characters, with a backslash before quotes; a bare word ends at a blank, `=` or `;`.
_TOKEN = r"""\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([=;])|([^\s"'=;]+))"""


class Credentials(NamedTuple):
    """User name and password. If `is_token`, they are the id and the key of a delegation token."""

    username: str
    password: str
    is_token: bool = False

    def __repr__(self) -> str:
        return f"Credentials(username={self.username!r})"


def parse_jaas(text: str, mechanism: str) -> Credentials:
    """Return the credentials in a line. Raises `ConfigError`.

    >>> line = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="a;b=c";'
    >>> parse_jaas(line, "PLAIN").password
    'a;b=c'
    """
    options = parse_options(text, mechanism)
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise ConfigError(KEY, f"{KEY}: {' and '.join(missing)} must be given")
    return Credentials(options["username"], options["password"], options.get("tokenauth", "").lower() == "true")


def parse_options(text: str, mechanism: str) -> dict[str, str]:
    """Return the options in a line: those of a client, and `user_NAME="password"` for each user of a server with PLAIN.

    Raises `ConfigError`.
    """
    tokens = _tokens(text)
    module = tokens[0].text
    if module.rpartition(".")[2] != MODULES[mechanism].rpartition(".")[2]:
        raise ConfigError(KEY, f"{KEY}: {mechanism} needs the login module {MODULES[mechanism]}, not {module}")
    if len(tokens) < 2 or tokens[1].text.lower() not in _FLAGS:
        raise ConfigError(KEY, f"{KEY}: the login module must be followed by a flag, such as required")
    return _options(tokens[2:])


class _Token(NamedTuple):
    text: str
    is_sign: bool = False


_EQUALS, _END = _Token("=", True), _Token(";", True)


def _options(tokens: list[_Token]) -> dict[str, str]:
    if not tokens or tokens[-1] != _END:
        raise ConfigError(KEY, f"{KEY}: the last option must be followed by a semicolon")
    options: dict[str, str] = {}
    rest = tokens[:-1]
    for at in range(0, len(rest), 3):
        name, equals, value = (*rest[at : at + 3], _END, _END)[:3]
        if name.is_sign or equals != _EQUALS or value.is_sign:
            raise ConfigError(KEY, f"{KEY}: option {at // 3 + 1} is not of the form name=value")
        options[name.text] = value.text
    return options


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    pattern, position, end = re.compile(_TOKEN, re.DOTALL), 0, len(text.rstrip())
    while position < end:
        match = pattern.match(text, position)
        if match is None:
            raise ConfigError(KEY, f"{KEY}: a quote is not closed")
        double, single, sign, word = match.groups()
        quoted = double if double is not None else single
        if quoted is not None:
            tokens.append(_Token(re.sub(r"(?s)\\(.)", r"\1", quoted)))
        else:
            tokens.append(_Token(sign, True) if sign else _Token(word))
        position = match.end()
    if not tokens:
        raise ConfigError(KEY, f"{KEY} is empty")
    return tokens
