"""Failures of commands: one message that names the resource, Kafka's error and what to do next; never a traceback.

Its one rule: the code that knows the resource names it. Commands raise `Failure`; `failures` turns exceptions of storage,
protocol, client and operations into one. Exit codes are in `exit_codes`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.operations.errors import OperationError
from barnabas.wire.errors import ErrorCode, KafkaError

ADVICE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "see what there is with: barnabas topics list",
    ErrorCode.TOPIC_ALREADY_EXISTS: "describe it, or choose another name",
    ErrorCode.NOT_CONTROLLER: "the controller has just changed: try again",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the principal needs an ACL on this topic: barnabas acls explain",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the principal needs an ACL on this group: barnabas acls explain",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "the principal needs an ACL on the cluster: barnabas acls explain",
    ErrorCode.REQUEST_TIMED_OUT: "it may have happened all the same: look before you try again",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "check user and password in the profile or the file of --command-config",
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old for this; barnabas cluster features says what it has",
    ErrorCode.GROUP_ID_NOT_FOUND: "see what there is with: barnabas groups list",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it: ask those who run it",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "wait, or ask for a larger quota",
}


class Failure(click.ClickException):
    """A command that failed; shown as `Error: resource: what is wrong`, with a line that says what to try."""

    exit_code = EXIT_FAILED

    def __init__(self, message: str, *, resource: str | None = None, advice: str | None = None) -> None:
        super().__init__(message if resource is None else f"{resource}: {message}")
        self.advice = advice

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"Error: {self.message}", file=file or sys.stderr)
        if self.advice:
            click.echo(f"Try: {self.advice}", file=file or sys.stderr)


def failure_of(error: Exception, resource: str | None = None) -> Failure:
    """Turn an error that was to be expected into a `Failure`."""
    if isinstance(error, OperationError):
        advice = error.advice or (ADVICE.get(error.code) if error.code is not None else None)
        return Failure(error.message, resource=error.resource or resource, advice=advice)
    if isinstance(error, KafkaError):
        if type(error).__module__.startswith(("barnabas.storage", "barnabas.config")):
            return Failure(str(error), resource=resource)  # no broker said it, so its code says nothing
        advice = ADVICE.get(error.code)
        return Failure(f"{error.code.name}: {error.message}", resource=resource, advice=advice)
    if isinstance(error, OSError) and error.strerror:
        where = resource if error.filename is None else str(error.filename)
        return Failure(error.strerror, resource=where)
    return Failure(str(error) or type(error).__name__, resource=resource)


@contextmanager
def failures(resource: str | None = None) -> Iterator[None]:
    """End the command with one message if something fails in here that is not a bug of this program."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever read the output has seen enough; click ends the command
    except (KafkaError, OSError, OperationError) as error:
        raise failure_of(error, resource) from error


class Misunderstood(click.UsageError):
    """Wrong usage of a command whose exit code 2 means something else."""

    exit_code = EXIT_FAILED

    @classmethod
    def of(cls, error: click.UsageError) -> Misunderstood:
        return cls(error.format_message(), error.ctx)


class JudgingCommand(click.Command):
    """A command that answers yes or no and exits with 2 for no. Wrong usage exits with 1, like any other failure."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise Misunderstood.of(error) from None
