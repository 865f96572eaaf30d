"""How a command fails: one message that names the resource, Kafka's error and what to do next, and no traceback.

Its one rule: whoever knows the resource says it. `Failure` is what a command raises; `failures` turns what storage, protocol
and client raise into one. Exit codes are in `cli.terminal.output`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from barnabas.cli.terminal.output import EXIT_FAILED
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
    """Something that could not be done; shown as `Error: resource: what is wrong` and a line with what to try."""

    exit_code = EXIT_FAILED

    def __init__(self, message: str, *, resource: str | None = None, advice: str | None = None) -> None:
        super().__init__(message if resource is None else f"{resource}: {message}")
        self.advice = advice

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"Error: {self.message}", file=file or sys.stderr)
        if self.advice:
            click.echo(f"Try: {self.advice}", file=file or sys.stderr)


def failure_of(error: Exception, resource: str | None = None) -> Failure:
    """What to say of an error that was expected to be possible."""
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
    """Whatever goes wrong in here that is nobody's mistake in this program ends the command with one message."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever read the output has seen enough; click ends the command
    except (KafkaError, OSError) as error:
        raise failure_of(error, resource) from error


class Misunderstood(click.UsageError):
    """A command that was not understood, where exit code 2 means something else."""

    exit_code = EXIT_FAILED

    @classmethod
    def of(cls, error: click.UsageError) -> Misunderstood:
        return cls(error.format_message(), error.ctx)


class Verdict(click.Command):
    """A command that judges, and says no with exit code 2: so what it does not understand is 1, as any other failure."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise Misunderstood.of(error) from None
