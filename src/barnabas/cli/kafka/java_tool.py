"""The common behaviour of Kafka's Java tools: usage errors, and patterns of topics.

Its one rule: the first line of an error is Kafka's. The stack trace that Kafka's tool may print after it is left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn

import click

from barnabas.cli.connection import profiles
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.kafka.drop_in import KafkaTool
from barnabas.cli.kafka.java_text import exception_text as java_text
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.output import note

__all__ = ["JavaTool", "TopicPattern", "connection_of", "java_int", "java_text", "refuse"]


class JavaTool(KafkaTool):
    """A tool with the usage errors of joptsimple, the library that parses options in Kafka's tools.

    `optional` has the options of which the value may be omitted, and the value that they then have.
    """

    error_prefix = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.error_prefix = kwargs.pop("error_prefix", "")
        self._optional: Mapping[str, str] = kwargs.pop("optional", {})
        # Arguments that belong to no option are ignored.
        kwargs["context_settings"] = {"allow_extra_args": True, **(kwargs.get("context_settings") or {})}
        super().__init__(*args, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, with_omitted_values(args, self._optional))
        except click.NoSuchOption as error:
            message = f"{error.option_name.lstrip('-')} is not a recognized option"
        except click.BadOptionUsage as error:
            message = f"Option {error.option_name.lstrip('-')} requires an argument"
        note(self.error_prefix + message)
        sys.exit(EXIT_FAILED)


def with_omitted_values(args: list[str], optional: Mapping[str, str]) -> list[str]:
    """Add the default after options of which the value may be omitted. A negative number is a value.

    >>> with_omitted_values(["--timeout", "--list", "--timeout", "-5", "--timeout"], {"--timeout": "9"})
    ['--timeout', '9', '--list', '--timeout', '-5', '--timeout', '9']
    """
    words: list[str] = []
    for arg, following in zip_longest(args, args[1:], fillvalue="--"):
        words.append(arg)
        if arg in optional and following.startswith("-") and not re.fullmatch(r"-\d+", following):
            words.append(optional[arg])
    return words


def refuse(ctx: click.Context, message: str) -> NoReturn:
    """Print the error and the help, and exit with 1."""
    note(message)
    note(ctx.get_help())
    sys.exit(EXIT_FAILED)


def connection_of(bootstrap_server: str, command_config: str | None) -> Connection:
    """Return the connection that the options name. Profiles and environment variables are ignored, as in Kafka's tools."""
    config = None if command_config is None else Path(command_config)
    return profiles.resolve({}, bootstrap_servers=bootstrap_server, command_config=config)


def java_int(option: str, text: str | None) -> int | None:
    """Parse the number of an option, when it is needed. Raises ValueError with the message of Kafka's tools."""
    if text is None:
        return None
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII) or not -(2**31) <= int(text) < 2**31:
        raise ValueError(f"Cannot parse argument '{text}' of option {option}")
    return int(text)


class TopicPattern:
    """A regular expression for topics, as Kafka's tools read it: commas separate alternatives, spaces and quotes are ignored.

    >>> pattern = TopicPattern('"a.*, b"')
    >>> pattern.fits("ab"), pattern.fits("b"), pattern.fits("cb")
    (True, True, False)
    """

    def __init__(self, text: str) -> None:
        """Raise ValueError with Kafka's message if the regex is invalid."""
        regex = re.sub("[\"']+$", "", re.sub("^[\"']+", "", text.strip().replace(",", "|").replace(" ", "")))
        try:
            self._regex = re.compile(regex)
        except re.error:
            raise ValueError(f"{regex} is an invalid regex.") from None

    def fits(self, topic: str) -> bool:
        return self._regex.fullmatch(topic) is not None
