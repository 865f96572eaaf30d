"""Checks of declared configs and quotas that need no cluster. Pure.

Its one rule: a check knows the settings of the Kafka release that barnabas follows. A cluster of another release may know
others, so the caller decides what an error means.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.config import broker, quotas, topic
from barnabas.config.values import ConfigError


class SettingError(NamedTuple):
    """The reason why a setting is wrong. `is_unknown` is set if its name is not known."""

    message: str
    is_unknown: bool = False


def check_topic_setting(name: str, value: str | None) -> SettingError | None:
    """Check a config of a topic. A value of None removes it."""
    definition = topic.definitions().get(name)
    if definition is None:
        return _unknown("config", name, topic.definitions())
    try:
        if value is not None:
            definition.parse(value)
    except ConfigError as error:
        return SettingError(error.message)
    return None


def check_broker_setting(name: str, value: str | None, *, cluster_wide: bool) -> SettingError | None:
    """Check a dynamic config of one broker, or of all."""
    if broker.find(name) is None and not broker.is_known(name):
        return _unknown("config", name, (*broker.definitions(), *broker.dynamic_definitions()))
    try:
        broker.validate_dynamic({name: value}, cluster_wide=cluster_wide)
    except ConfigError as error:
        return SettingError(error.message)
    return None


def check_quota(name: str, value: float | None, *, is_ip: bool) -> SettingError | None:
    """Check a quota of an entity. A value of None removes it."""
    definitions = quotas.ip_definitions() if is_ip else quotas.user_or_client_definitions()
    if name not in definitions:
        return _unknown("quota", name, definitions)
    try:
        if value is not None:
            quotas.validate(definitions, name, value)
    except ConfigError as error:
        return SettingError(error.message)
    return None


def check_compaction_lags(configs: Mapping[str, str | None]) -> SettingError | None:
    """Check that the least lag before compaction is not above the largest one, if both are declared."""
    names = ("min.compaction.lag.ms", "max.compaction.lag.ms")
    try:
        low, high = (topic.definitions()[name].parse(configs.get(name)) for name in names)
    except ConfigError:
        return None
    if isinstance(low, int) and isinstance(high, int) and low > high:
        return SettingError(f"{names[0]} ({low}) is greater than {names[1]} ({high})")
    return None


def _unknown(what: str, name: str, known: Iterable[str]) -> SettingError:
    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {close[0]}?" if close else f": expected {', '.join(names)}" if len(names) < 10 else ""
    return SettingError(f"unknown {what} {name}{hint}", is_unknown=True)
