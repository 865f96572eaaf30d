"""No value of the command line is dropped: an option given twice collects both values, or is refused."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from barnabas.cli.lake.session import pairs
from barnabas.cli.main import COMMANDS, main
from barnabas.cli.terminal.repeated_options import takes_one_value
from tests.command_line import invoke

LAST_WINS = (
    *("kafka-storage", "kafka-features", "kafka-metadata-quorum", "kafka-transactions", "kafka-cluster"),
    "kafka-producer-perf-test",
)
"""Drop-ins of scripts that use argparse4j, where the last value counts; docs/cli.md says so."""


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from commands(found, (*path, name))
    yield path, command


def single_options(name: str) -> Iterator[tuple[tuple[str, ...], click.Option]]:
    ctx = click.Context(main)
    top = main.get_command(ctx, name)
    assert top is not None
    for path, command in commands(top, (name,)):
        for param in command.params:
            if isinstance(param, click.Option) and takes_one_value(param):
                yield path, param


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in LAST_WINS])
def test_an_option_that_takes_one_value_is_refused_when_it_is_given_twice(name: str) -> None:
    for path, option in single_options(name):
        value = () if option.is_flag else ("1",) * option.nargs
        result = invoke(*path, option.opts[0], *value, option.opts[0], *value)
        assert result.exit_code in (1, 2), (path, option.opts, result.output)
        texts = ("was given more than once, but it takes one value", "Found multiple arguments for option ")
        assert any(text in result.output for text in texts), (path, option.opts, result.output)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_no_two_options_of_a_command_write_the_same_value(name: str) -> None:
    ctx = click.Context(main)
    top = main.get_command(ctx, name)
    assert top is not None
    for path, command in commands(top, (name,)):
        names = [param.name for param in command.params]
        assert len(names) == len(set(names)), path


def test_a_flag_may_be_repeated() -> None:
    assert "more than once" not in invoke("apply", "--dry-run", "--dry-run").stderr


@pytest.mark.parametrize(
    "line",
    [
        "topics list -X a=1 -X a=2",
        "topics create t --config retention.ms=1 --config retention.ms=2",
        "quotas set --user u producer_byte_rate=1 producer_byte_rate=2",
        "serve --override log.dirs=a --override log.dirs=b",
    ],
)
def test_a_key_of_a_repeated_option_is_given_once(line: str) -> None:
    assert " was given more than once." in invoke(*line.split(), code=2).stderr


def test_a_setting_of_spark_is_given_once() -> None:
    assert pairs(("a=1", "b=2"), "--conf") == {"a": "1", "b": "2"}
    with pytest.raises(click.UsageError, match="--conf: a was given more than once"):
        pairs(("a=1", "a=2"), "--conf")


def test_drop_ins_refuse_a_second_value_with_the_text_of_kafkas_script() -> None:
    result = invoke("kafka-topics", "--bootstrap-server", "h:1", "--describe", "--topic", "a", "--topic", "b", code=1)
    text = "Found multiple arguments for option topic, but you asked for only one\n"
    assert result.stdout == f"Error while executing topic command : {text}"
