"""Runs the commands of a page of docs against a node, so that what people copy works.

A command is a code span that begins with `barnabas` or the name of a script of Kafka, or that pipes `printf` into one. It has
to exit with 0. A comment behind the span, which readers do not see, says what else is expected:

    `barnabas cluster safe-to-stop 1` <!-- exit 2 -->          another exit code
    `barnabas groups describe --all --watch 2` <!-- until TEXT -->   it runs until this text was printed, and is interrupted

localhost:9092 and localhost:9093 stand for the node's broker and controller. `> FILE` and `FOLDER/*` work as in a shell.
"""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.testing import Broker
from tests.command_line import Process, invoke, spawn

ROOT = Path(__file__).parents[1]
_SPAN = re.compile(r"`([^`\n]+)`(?: <!-- (exit|until) (.+?) -->)?")
_COMMAND = re.compile(r"(?:printf '[^']*' \| )?(barnabas|kafka-[a-z-]+\.sh) ?(.*)")
_WITHOUT_SERVER = ("kafka-dump-log", "kafka-storage", "kafka-server-start")
_WITH_COMMANDS_FIRST = ("kafka-cluster",)


class Example(NamedTuple):
    """A command of a page, with the exit code or the text that is expected."""

    line: str
    code: int | None = 0
    """None stands for any but 0."""
    until: str | None = None


def examples(page: str, program: str = "") -> list[Example]:
    """The commands of a page in its order; only those of barnabas, or of Kafka's scripts ("kafka-"), if asked for.

    >>> examples("| `barnabas raw X` <!-- exit 1 --> | `printf 'a\\\\n' \\\\| kafka-acls.sh` |")
    [Example(line='barnabas raw X', code=1, until=None), Example(line="printf 'a\\\\n' | kafka-acls.sh", code=0, until=None)]
    """
    found = []
    for span, word, value in _SPAN.findall(page):
        line = span.replace(r"\|", "|")
        command = _COMMAND.fullmatch(line)
        if command is not None and command[1].startswith(program):
            found.append(Example(line, int(value) if word == "exit" else 0, value if word == "until" else None))
    return found


def _words(line: str, node: Broker) -> tuple[list[str], bytes]:
    """The arguments of barnabas, and its standard input."""
    stdin, _, command = line.rpartition(" | ")
    program, *words = shlex.split(command)
    words = [name for word in words for name in _globbed(word)]
    if program != "barnabas":
        name = program.removesuffix(".sh")
        server = [] if name in _WITHOUT_SERVER else ["--bootstrap-server", "localhost:9092"]
        first = 1 if name in _WITH_COMMANDS_FIRST else 0
        words = [name, *words[:first], *server, *words[first:]]
    addresses = {"localhost:9092": node.bootstrap_servers, "localhost:9093": node.listeners["CONTROLLER"]}
    for address, real in addresses.items():
        words = [word.replace(address, real) for word in words]
    text = shlex.split(stdin)[1].encode().decode("unicode_escape") if stdin else ""
    return words, text.encode()


def _globbed(word: str) -> list[str]:
    return sorted(map(str, Path().glob(word))) if "*" in word and "/" in word else [word]


def run(example: Example, node: Broker) -> str:
    """Run a command, and return what it prints. Another exit code than the expected one fails."""
    line, _, file = example.line.partition(" > ")
    words, stdin = _words(line, node)
    env = {"BARNABAS_BOOTSTRAP_SERVERS": node.bootstrap_servers}
    if example.until is None:
        # A node needs a process of its own: it is not the owner of locks of this one.
        done = spawn(*words, env=env) if words[0] == "serve" else invoke(*words, stdin=stdin, env=env)
        is_expected = done.exit_code == example.code if example.code is not None else done.exit_code != 0
        assert is_expected, f"{example.line}: exit code {done.exit_code}\n{done.output}"
        if file:
            Path(file).write_bytes(done.stdout_bytes)
        return done.output
    with Process(*words, env=env, merged=True) as process:
        process.until(example.until)
        ended = process.stop(signal.SIGINT)
    assert "Traceback" not in ended.output, ended.output
    return "\n".join(process.lines)


@contextmanager
def a_shop(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """A node with its data in `data` of the directory, which becomes the working directory: topics, records, groups, ACLs."""
    monkeypatch.chdir(directory)
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": "0",
    }
    topics = {"orders": 3, "payments": 1, "pii-names": 1, "unused": 1}
    with Broker(topics, config=config, data_dir=directory / "data") as node:
        lines = (
            r"printf 'k1:two apples\nk2:{\"n\": 3}\n' | barnabas records produce orders --key-separator :",
            "barnabas groups reset billing --topic orders --to-latest --yes",
            "barnabas groups reset idle --topic payments --to-latest --yes",
            "barnabas acls create --allow bob --operation read --resource topic:pii- --prefixed",
            r"printf 'k1:three pears\n' | barnabas records produce orders --key-separator :",
        )
        for line in lines:
            run(Example(line), node)
        yield node
