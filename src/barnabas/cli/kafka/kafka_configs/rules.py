"""The options and the output of kafka-configs: which options can be combined, their values, and the lines. Pure.

Its one rule: the same mistake results in the same message, and checks are in Kafka's order. One difference is intended: no
message contains passwords, while Kafka repeats the whole command line after an error.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.client.admin.config_values import ConfigEntry, ConfigResource
from barnabas.config import quotas, topic_names
from barnabas.config.hash_order import hash_order, text_hash
from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.values import ConfigError, ConfigType, format_value, parse_value
from barnabas.wire import KafkaError

TOPICS, CLIENTS, USERS, BROKERS, IPS = "topics", "clients", "users", "brokers", "ips"
CLIENT_METRICS, GROUPS, BROKER_LOGGERS = "client-metrics", "groups", "broker-loggers"
SCRAM_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_ITERATIONS: Final = 4096

ENTITY_FLAGS: Final = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker-logger": BROKER_LOGGERS,
    "ip": IPS,
    "client-metrics": CLIENT_METRICS,
    "group": GROUPS,
}
DEFAULTS_FLAGS: Final = {
    "client-defaults": CLIENTS,
    "user-defaults": USERS,
    "broker-defaults": BROKERS,
    "ip-defaults": IPS,
}
RESOURCE_TYPES: Final = {
    TOPICS: ConfigResourceType.TOPIC,
    BROKERS: ConfigResourceType.BROKER,
    BROKER_LOGGERS: ConfigResourceType.BROKER_LOGGER,
    CLIENT_METRICS: ConfigResourceType.CLIENT_METRICS,
    GROUPS: ConfigResourceType.GROUP,
}
QUOTA_TYPES: Final = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}

_TYPES: Final = (TOPICS, CLIENTS, USERS, BROKERS, IPS, CLIENT_METRICS, GROUPS, BROKER_LOGGERS)
_WITH_DEFAULT: Final = {USERS, CLIENTS, BROKERS, IPS}
_OUTSIDE_BRACKETS: Final = r"(?=[^\]]*(?:\[|$))"
_SECRET: Final = re.compile(r"""(password=)("[^"]*"|[^\],\s]*)""", re.IGNORECASE)
_INTEGER: Final = re.compile(r"[+-]?\d+")


class RefusedError(Exception):
    """An error that Kafka's tool prints in one line."""


class MisusedError(RefusedError):
    """An error that Kafka's tool prints before its help."""


@dataclass(frozen=True, slots=True)
class Options:
    """The given options: all values of each, the flags, and names and defaults of entities in order."""

    values: Mapping[str, Sequence[str]]
    flags: frozenset[str]
    ordered_names: Sequence[str]

    def has(self, name: str) -> bool:
        return name in self.flags or bool(self.values.get(name))

    def one(self, name: str) -> str:
        given = self.values[name]
        if len(given) > 1:
            raise RefusedError(f"Found multiple arguments for option {name}, but you asked for only one")
        return given[0]

    @property
    def entity_types(self) -> list[str]:
        flags = [kind for name, kind in (ENTITY_FLAGS | DEFAULTS_FLAGS).items() if self.has(name)]
        return [*self.values.get("entity-type", ()), *flags]

    @property
    def entity_names(self) -> list[str]:
        """The names of entities. An empty name means the default of its type."""
        flags = [self.one(name) for name in ENTITY_FLAGS if self.has(name)]
        return [*self.ordered_names, *flags, *("" for name in DEFAULTS_FLAGS if self.has(name))]


def check(options: Options, is_host: Callable[[str], bool]) -> None:
    """Check the options. Raises RefusedError or MisusedError."""
    _check_actions(options)
    types = options.entity_types
    _check_types(options, types)
    names = options.entity_names
    has_name, has_default = any(names), "" in names
    if options.has("bootstrap-server") and options.has("bootstrap-controller"):
        raise RefusedError("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    if has_name and (BROKERS in types or BROKER_LOGGERS in types):
        for broker_id in (
            options.one(name) for name in ("entity-name", "broker", "broker-logger") if options.has(name)
        ):
            if not _is_int(broker_id):
                text = f"The entity name for {types[0]} must be a valid integer broker id, but it is: {broker_id}"
                raise RefusedError(text)
    if has_name and IPS in types:
        for address in (options.one(name) for name in ("entity-name", "ip") if options.has(name)):
            if not is_host(address):
                text = f"The entity name for {types[0]} must be a valid IP or resolvable host, but it is: {address}"
                raise RefusedError(text)
    if options.has("describe"):
        if not _WITH_DEFAULT & set(types) and options.has("entity-default"):
            raise RefusedError(f"--entity-default must not be specified with --describe of {','.join(types)}")
        if BROKER_LOGGERS in types and not has_name:
            raise RefusedError(f"An entity name must be specified with --describe of {','.join(types)}")
    else:
        _check_alter(options, types, has_name, has_default)


def _check_actions(options: Options) -> None:
    if options.has("alter") == options.has("describe"):
        raise MisusedError("Command must include exactly one action: --describe, --alter")
    for other in ("add-config", "delete-config"):
        if options.has("describe") and options.has(other):
            raise MisusedError(f'Option "[describe]" can\'t be used with option "[{other}]"')


def _check_types(options: Options, types: list[str]) -> None:
    twice = list(types)
    for kind in dict.fromkeys(types):
        twice.remove(kind)
    if twice:
        raise RefusedError(f"Duplicate entity type(s) specified: {','.join(twice)}")
    if not options.has("bootstrap-server") and not options.has("bootstrap-controller"):
        raise RefusedError("Either --bootstrap-server or --bootstrap-controller must be specified.")
    for kind in types:
        if kind not in _TYPES:
            raise RefusedError(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(_TYPES)} with a "
                "--bootstrap-server or --bootstrap-controller argument"
            )
    if not types:
        raise RefusedError("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise RefusedError(f"Only '{USERS}' and '{CLIENTS}' entity types may be specified together")
    general = any(options.has(name) for name in ("entity-name", "entity-type", "entity-default"))
    if general and any(options.has(name) for name in (*ENTITY_FLAGS, *DEFAULTS_FLAGS)):
        raise RefusedError("--entity-{type,name,default} should not be used in conjunction with specific entity flags")


def _check_alter(options: Options, types: list[str], has_name: bool, has_default: bool) -> None:
    if _WITH_DEFAULT & set(types):
        if not has_name and not has_default:
            raise RefusedError(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
    elif not has_name:
        raise RefusedError(f"An entity name must be specified with --alter of {','.join(types)}")
    if options.has("add-config") and options.has("add-config-file"):
        raise RefusedError("Only one of --add-config or --add-config-file must be specified")
    if not any(options.has(name) for name in ("add-config", "add-config-file", "delete-config")):
        raise RefusedError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )


def check_topic_name(name: str) -> None:
    """Check the name of a topic as Kafka's client does, before any request. Raises RefusedError."""
    try:
        topic_names.check(name)
    except KafkaError as error:
        raise RefusedError(str(error.message)) from None


def is_host(name: str) -> bool:
    """Return True for an IP address or a host name that can be resolved."""
    try:
        return bool(socket.getaddrinfo(name, None))
    except (OSError, UnicodeError):
        return False


def _is_int(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and -(2**31) <= int(text) < 2**31


# --- given settings ---------------------------------------------------------------------------------------------------


def to_add(text: str) -> dict[str, str]:
    """Parse --add-config, in the order of Java's hash table. Brackets enclose values with commas. Raises RefusedError.

    >>> to_add("a=1,b=[x,y],c=")
    {'a': '1', 'b': 'x,y', 'c': ''}
    """
    pairs = [re.split(r"\s*=\s*" + _OUTSIDE_BRACKETS, part) for part in _split(text)]
    if any(len(pair) != 2 for pair in pairs):
        raise RefusedError(
            "requirement failed: Invalid entity config: all configs to be added must be in the format "
            '"key=val" or  "key=[val1,val2]" to group values which contain commas.'
        )
    found = {key.strip(): re.sub(r"[\[\]]", "", value).strip() for key, value in pairs}
    return {key: found[key] for key in hash_order(found)}


def _split(text: str) -> list[str]:
    parts = re.split("," + _OUTSIDE_BRACKETS, text)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def check_keys(names: Iterable[str]) -> None:
    for name in names:
        if not re.fullmatch(r"[$a-zA-Z0-9._-]*", name):
            raise RefusedError(f"Invalid character found for config key: {name}")


def to_delete(values: Iterable[str]) -> list[str]:
    """Return the names of --delete-config, which may be repeated."""
    return [name.strip() for value in values for name in value.split(",")]


def check_user_or_client(
    types: Sequence[str], names: Sequence[str], added: Iterable[str], deleted: Iterable[str]
) -> bool:
    """Return True if quotas change, False if SCRAM credentials change. Raises RefusedError."""
    known = quotas.user_or_client_definitions()
    added, deleted = list(added), list(deleted)
    scram_added, scram_deleted = ([name for name in some if name in SCRAM_MECHANISMS] for some in (added, deleted))
    odd_added, odd_deleted = (
        [name for name in some if name not in SCRAM_MECHANISMS and name not in known] for some in (added, deleted)
    )
    has_quotas = any(name in known for name in (*added, *deleted))
    if types[0] == CLIENTS or len(types) == 2:
        start = f"for '{CLIENTS}' using --bootstrap-server. Unexpected config names"
        if odd_added or scram_added:
            raise RefusedError(f"Only quota configs can be added {start}: {_scala('Set', odd_added + scram_added)}")
        if odd_deleted or scram_deleted:
            text = _scala("ArrayBuffer", odd_deleted + scram_deleted)
            raise RefusedError(f"Only quota configs can be deleted {start}: {text}")
        return has_quotas
    start = f"for '{USERS}' using --bootstrap-server. Unexpected config names"
    if odd_added:
        raise RefusedError(f"Only quota and SCRAM credential configs can be added {start}: {_scala('Set', odd_added)}")
    if odd_deleted:
        text = _scala("ArrayBuffer", odd_deleted)
        raise RefusedError(f"Only quota and SCRAM credential configs can be deleted {start}: {text}")
    if scram_added or scram_deleted:
        if "" in names:
            raise RefusedError(
                "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using "
                "--bootstrap-server."
            )
        if has_quotas:
            raise RefusedError(
                f"Cannot alter both quota and SCRAM credential configs simultaneously for '{USERS}' using "
                "--bootstrap-server."
            )
    return has_quotas


def _scala(kind: str, names: list[str]) -> str:
    return f"{kind}({', '.join(names)})"


def check_ip(names: Iterable[str]) -> None:
    odd = [name for name in names if name not in quotas.ip_definitions()]
    if odd:
        raise RefusedError(
            f"Only connection quota configs can be added for '{IPS}' using --bootstrap-server. Unexpected config names: "
            f"{','.join(odd)}"
        )


def quota_values(
    added: Mapping[str, str], deleted: Iterable[str], present: Mapping[str, float]
) -> dict[str, float | None]:
    """Return the new quotas; None removes a quota. Raises RefusedError."""
    deleted = list(deleted)
    missing = [name for name in deleted if name not in present]
    if missing:
        raise RefusedError(f"Invalid config(s): {','.join(missing)}")
    values: dict[str, float | None] = {}
    for name, text in added.items():
        try:
            number = parse_value(name, text, ConfigType.DOUBLE)
        except ConfigError:
            raise RefusedError(f"Cannot parse quota configuration value for {name}: {text}") from None
        assert isinstance(number, float)
        values[name] = number
    return values | dict.fromkeys(deleted)


def scram_credential(mechanism: str, text: str) -> tuple[int, str]:
    """Parse iterations and password. Raises RefusedError.

    >>> scram_credential("SCRAM-SHA-256", "iterations=8192,password=secret")
    (8192, 'secret')
    """
    found = re.fullmatch(r"(?:iterations=(-?[0-9]*),)?password=(.*)", text)
    if found is None:
        raise RefusedError(f"Invalid credential property {mechanism.replace('-', '_')}=[hidden]")
    if found[1] is not None and found[1] != "-1":
        if not _is_int(found[1]):
            raise RefusedError(f'For input string: "{found[1]}"')
        iterations = int(found[1])
    else:
        iterations = DEFAULT_ITERATIONS
    if iterations < DEFAULT_ITERATIONS:
        raise RefusedError(
            f"Iterations {iterations} is less than the minimum {DEFAULT_ITERATIONS} required for {mechanism}"
        )
    return iterations, found[2]


def failed_line(args: Sequence[str]) -> str:
    """Return the first line of an error, with passwords hidden."""
    shown = _SECRET.sub(r"\1[hidden]", " ".join(args))
    return f"Error while executing config command with args '{shown}'"


# --- lines ------------------------------------------------------------------------------------------------------------


def is_shown(resource: ConfigResource, entry: ConfigEntry, show_all: bool) -> bool:
    """Return True if a setting is listed. Those of loggers always are."""
    if show_all or resource.type is ConfigResourceType.BROKER_LOGGER:
        return True
    return entry.source is resource.own_source


def heading(kind: str, name: str, show_all: bool) -> str:
    if not name:
        return f"Default configs for {kind} in the cluster are:"
    return f"{'All' if show_all else 'Dynamic'} configs for {kind[:-1]} {name} are:"


def entry_line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(f"{each.source.name}:{each.name}={_text(each.value)}" for each in entry.synonyms)
    sensitive = "true" if entry.is_sensitive else "false"
    return f"  {entry.name}={_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _text(value: str | None) -> str:
    return "null" if value is None else value


def completed_line(kind: str, name: str) -> str:
    if not name:
        return f"Completed updating default config for {kind} in the cluster."
    return f"Completed updating config for {kind[:-1]} {name}."


def quota_lines(found: Mapping[Any, Mapping[str, float]]) -> list[str]:
    """Format quotas, in the order of Java's hash tables."""
    return [
        f"Quota configs for {_entity_text(dict(entity))} are "
        + ", ".join(f"{key}={format_value(found[entity][key])}" for key in hash_order(found[entity], sized=True))
        for entity in hash_order(found, sized=True, hash_of=_entity_hash)
    ]


def _entity_text(parts: Mapping[str, str | None]) -> str:
    words = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
    shown = ((word, parts[kind]) for kind, word in words.items() if kind in parts)
    return ", ".join(f"the default {word}" if name is None else f"{word} '{name}'" for word, name in shown)


def _entity_hash(entity: Iterable[tuple[str, str | None]]) -> int:
    pairs = (text_hash(kind) ^ (0 if name is None else text_hash(name)) for kind, name in entity)
    return (31 + sum(pairs)) & 0xFFFFFFFF
