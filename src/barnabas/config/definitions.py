"""What a setting is: its name, type, default, bounds, who may change it while the node runs, and a sentence about it.

The settings themselves are tables of text, one setting to two lines, read on first use:

    segment.ms long 604800000 medium >=1 <- log.roll.ms log.roll.hours*3600000
        Age at which a segment is closed.

that is name, type, default (`-` is none, `!` must be given, `""` is the empty text), importance, then in any order what
applies of: per-broker or cluster-wide (else it is read-only), internal, a validator in its short form; and after `<-` the
settings it stands for or takes its default from, with the factor between their units. Tables keep Kafka's own order:
of several bad values, the first in that order is the one that is refused.
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
    """How much a setting matters to most users."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class UpdateMode(Enum):
    """Whether a broker's setting can change while it runs, and for whom."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Synonym(NamedTuple):
    """A broker setting that gives another one its value, times the factor."""

    name: str
    factor: int = 1


class Definition(NamedTuple):
    """One setting. `default` is text; None is no value, and where `required` it must be given."""

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
        """Whether the value is never shown."""
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str | None) -> Value:
        """The value of a text; raises `ConfigError` when this setting does not take it."""
        value = parse_value(self.name, text, self.type)
        if isinstance(self.validator, ValidList) and isinstance(value, tuple):
            value = tuple(dict.fromkeys(value))
        if self.validator is not None:
            self.validator.ensure(self.name, value)
        return value

    def default_value(self) -> Value:
        """The value when none is given; raises `ConfigError` when one must be."""
        if self.required:
            raise ConfigError(self.name, f'Missing required configuration "{self.name}" which has no default value.')
        return parse_value(self.name, self.default, self.type)

    def format(self, value: Value) -> str | None:
        """The text of a value, or None when it is not to be shown."""
        return None if self.sensitive else format_value(value)


def parse_all(definitions: Mapping[str, Definition], texts: Mapping[str, str | None]) -> dict[str, Value]:
    """The value of every defined setting, from its text or its default; texts of unknown names are ignored."""
    return {
        name: definition.parse(texts[name]) if name in texts else definition.default_value()
        for name, definition in definitions.items()
    }


def parse_table(table: str) -> Mapping[str, Definition]:
    """The settings of a table, by name, in the table's order."""
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
