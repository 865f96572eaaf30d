"""Every command of `barnabas`, found by walking the tree of click; Kafka's scripts are not among them."""

from __future__ import annotations

from collections.abc import Iterator

import click

from barnabas.cli.main import main


def leaves() -> dict[str, click.Command]:
    """Return each command by its words, such as `topics list`."""
    return dict(_walk(main, ()))


def _walk(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(words), command
        return
    for name in command.list_commands(click.Context(command)):
        found = None if name.startswith("kafka-") else command.get_command(click.Context(command), name)
        if found is not None:
            yield from _walk(found, (*words, name))


def names_of(command: click.Command) -> set[str | None]:
    return {param.name for param in command.params}


def option_names(command: click.Command) -> set[str]:
    return {option for param in command.params if isinstance(param, click.Option) for option in param.opts}
