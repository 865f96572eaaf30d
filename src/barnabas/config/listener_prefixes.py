"""Settings of one listener, `listener.name.NAME.` or `listener.name.NAME.MECHANISM.`, whose prefix or name is wrong. Pure.

Its one rule: as in Kafka, these prefixes are in lower case. With a mistake in it, a setting that was meant to protect a
listener would protect nothing, and nobody would notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.config import broker
from barnabas.config.definitions import ConfigError
from barnabas.config.server_config import ServerConfig
from barnabas.similar_names import did_you_mean

_START: Final = "listener.name."
MECHANISMS: Final = ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer", "gssapi")


class Prefixed(NamedTuple):
    """A setting of one listener: its name as it is given, and the parts of that."""

    name: str
    listener: str
    mechanism: str  # with its dot, or empty
    base: str


def prefixed(config: ServerConfig) -> Iterator[Prefixed]:
    """Yield the settings of a listener, of this node or of others."""
    known = sorted(_listeners(config), key=len, reverse=True)
    for name in config.given:
        if not name.lower().startswith(_START):
            continue
        rest = name[len(_START) :]
        listener = next((each for each in known if rest.lower().startswith(f"{each}.")), rest.split(".", 1)[0])
        rest = rest[len(listener) + 1 :]
        mechanism = next((each for each in MECHANISMS if rest.lower().startswith(f"{each}.")), "")
        size = len(mechanism) + 1 if mechanism else 0
        yield Prefixed(name, name[len(_START) : len(_START) + len(listener)], rest[:size], rest[size:])


def in_upper_case(config: ServerConfig) -> Iterator[ConfigError]:
    """Yield an error for each setting that only its upper case keeps from having an effect on a listener of this node."""
    own = {each.listener_name.lower() for each in config.listeners}
    for name, listener, mechanism, base in prefixed(config):
        right = f"{_START}{listener.lower()}.{mechanism.lower()}{base}"
        if listener.lower() in own and name != right and base in broker.definitions():
            yield ConfigError(
                name,
                f"{name} has no effect, because the prefix has to be in lower case. Write {right}, or remove {name}",
            )


def without_effect(config: ServerConfig) -> list[str]:
    """Return a warning for each setting of a listener that does not exist, and for each name that no setting has."""
    known = _listeners(config)
    warnings = []
    for name, listener, _, base in prefixed(config):
        if listener.lower() not in known:
            hint = did_you_mean(listener, known)
            warnings.append(f"{name} has no effect, because there is no listener {listener.upper()}{hint}")
        elif base not in broker.definitions() and not broker.is_known(base):
            warnings.append(f"{name} is not a known config and is ignored{did_you_mean(base, broker.definitions())}")
    return warnings


def _listeners(config: ServerConfig) -> set[str]:
    """Return the names of listeners in lower case. A broker has settings for that of the controllers too."""
    own = (each.listener_name for each in config.listeners)
    return {each.lower() for each in (*own, *config.controller_listener_names, *config.listener_security_protocol_map)}
