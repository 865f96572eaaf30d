"""The levels of this process' loggers, as BROKER_LOGGER settings: described, set and reset at runtime.

The loggers are the root logger and those of barnabas, with Python's names. Levels have Kafka's names. The one rule: a
request is checked as a whole before any level changes. Levels are not stored: they are lost when the process ends.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from barnabas.controller.configs import AlterOperation, parse_node_id
from barnabas.wire import ErrorCode, KafkaError

ROOT: Final = "root"
OURS: Final = "barnabas"
LEVELS: Final = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}

_log = logging.getLogger(__name__)


def levels() -> dict[str, str]:
    """Return the effective level of each logger, by name."""
    ours = {name for name in logging.root.manager.loggerDict if name == OURS or name.startswith(f"{OURS}.")}
    return {name: _name_of(_logger(name).getEffectiveLevel()) for name in sorted({*ours, OURS, ROOT})}


def alter(
    node_id: int, resource_name: str, operations: Mapping[str, tuple[int, str | None]], validate_only: bool
) -> None:
    """Set or reset levels on this node. Raises KafkaError if any is refused; then none changes."""
    named = parse_node_id(resource_name)
    if named is None:
        raise _invalid(f"Node id must be an integer, but it is: {resource_name}")
    if named != node_id:
        raise _invalid(f"Unexpected node id. Expected {node_id}, but received {named}")
    known = levels()
    for name, (operation, level) in operations.items():
        _check(name, operation, level, known)
    if validate_only:
        return
    for name, (operation, level) in operations.items():
        if operation == AlterOperation.SET and level is not None:
            _logger(name).setLevel(LEVELS[level])
            _log.warning("the level of logger %s is now %s", name, level)
        else:
            _logger(name).setLevel(logging.NOTSET)
            _log.warning("the level of logger %s is now that of its parent", name)


def _check(name: str, operation: int, level: str | None, known: Mapping[str, str]) -> None:
    if operation in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
        raise _invalid(f"{AlterOperation(operation).name} operation is not allowed for the BROKER_LOGGER resource")
    if operation not in (AlterOperation.SET, AlterOperation.DELETE):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if name not in known:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == AlterOperation.SET and level not in LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}",
        )
    if operation == AlterOperation.DELETE and name == ROOT:
        raise _invalid(f"Removing the log level of the {ROOT} logger is not allowed")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _name_of(level: int) -> str:
    """Return the lowest of Kafka's levels that the logger emits."""
    return next((name for name, number in LEVELS.items() if level <= number), "FATAL")
