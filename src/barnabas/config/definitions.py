"""The definition of a config: name, type, default, restrictions, whether it can change at runtime, and a description.

The configs are tables of text with two lines per config, parsed on first use:

    segment.ms long 604800000 medium >=1 <- log.roll.ms log.roll.hours*3600000
        Age at which a segment is rolled.

The fields are name, type, default (`-` is null, `!` is required, `""` is the empty text) and importance. Then follow,
in any order and only where they apply: per-broker or cluster-wide (otherwise read-only), internal, and a validator in
its short form. After `<-` are the synonyms, or the configs that provide the default, with the factor between their
units. Tables keep Kafka's own order: among several invalid values, the first in that order is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from barnabas.config.validators import Validator, ValidList, validator_of
from barnabas.config.values import ConfigError, ConfigType, Value, format_value, parse_value

__all__ = [
    "ConfigError",
    "ConfigType",
    "Definition",
    "Importance",
    "Synonym",
    "UpdateMode",
    "Value",
    "parse_all",
    "parse_table",
]


class Importance(Enum):
    """How important a config is for most users."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class UpdateMode(Enum):
    """Whether a broker config can change at runtime, and at which level."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Synonym(NamedTuple):
    """A broker config that provides the value of another one, multiplied by the factor."""

    name: str
    factor: int = 1


class Definition(NamedTuple):
    """A config. `default` is text; None means null, or no default if `required`."""

    name: str
    type: ConfigType
    default: str | None
    importance: Importance
    doc: str
    required: bool = False
    internal: bool = False
    update: UpdateMode = UpdateMode.READ_ONLY
    validator: Validator | None = None
    synonyms: tuple[Synonym, ...] = ()

    @property
    def sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str | None) -> Value:
        """Return the value of a text. Raises `ConfigError` if it is invalid."""
        value = parse_value(self.name, text, self.type)
        if isinstance(self.validator, ValidList) and isinstance(value, tuple):
            value = tuple(dict.fromkeys(value))
        if self.validator is not None:
            self.validator.ensure(self.name, value)
        return value

    def default_value(self) -> Value:
        """Return the default value. Raises `ConfigError` if the config is required."""
        if self.required:
            raise ConfigError(self.name, f'Missing required configuration "{self.name}" which has no default value.')
        return parse_value(self.name, self.default, self.type)

    def format(self, value: Value) -> str | None:
        """Format a value, or return None if it is sensitive."""
        return None if self.sensitive else format_value(value)


def parse_all(definitions: Mapping[str, Definition], texts: Mapping[str, str | None]) -> dict[str, Value]:
    """Return the value of every defined config, from its text or its default. Unknown names are ignored."""
    return {
        name: definition.parse(texts[name]) if name in texts else definition.default_value()
        for name, definition in definitions.items()
    }


def parse_table(table: str) -> Mapping[str, Definition]:
    """Return the configs of a table by name, in its order."""
    lines = [line for line in table.splitlines() if line and not line.startswith("#")]
    rows = (_parse_row(row, doc.strip()) for row, doc in zip(lines[::2], lines[1::2], strict=True))
    return MappingProxyType({definition.name: definition for definition in rows})


_UPDATES = {mode.value: mode for mode in UpdateMode}


def _parse_row(row: str, doc: str) -> Definition:
    facts, _, synonyms = row.partition(" <- ")
    name, type_name, default, importance, *rest = facts.split()
    update = UpdateMode.READ_ONLY
    validator = None
    for word in rest:
        if word in _UPDATES:
            update = _UPDATES[word]
        elif word != "internal":
            validator = validator_of(word)
    return Definition(
        name=name,
        type=ConfigType[type_name.upper()],
        default=None if default in ("-", "!") else "" if default == '""' else default,
        importance=Importance(importance),
        doc=doc,
        required=default == "!",
        internal="internal" in rest,
        update=update,
        validator=validator,
        synonyms=tuple(_parse_synonym(word) for word in synonyms.split()),
    )


def _parse_synonym(word: str) -> Synonym:
    name, _, factor = word.partition("*")
    return Synonym(name, int(factor or 1))
