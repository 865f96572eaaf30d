"""Failures of commands: one message that names the resource, Kafka's error and what to do next; never a traceback.

Its one rule: the code that knows the resource names it. Commands raise `Failure`; `failures` turns exceptions of storage,
protocol, client and operations into one. Exit codes are in `exit_codes`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.operations.errors import OperationError
from barnabas.wire.errors import ErrorCode, KafkaError

ADVICE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "list topics with: barnabas topics list (it omits topics that you may not DESCRIBE)",
    ErrorCode.TOPIC_ALREADY_EXISTS: "describe the topic, or choose another name",
    ErrorCode.NOT_CONTROLLER: "the controller has just changed: retry",
    ErrorCode.REQUEST_TIMED_OUT: "the change may have been made: check before you retry",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "check user and password in the profile or the file of --command-config",
    ErrorCode.ILLEGAL_SASL_STATE: "this listener does not use SASL: set security.protocol to PLAINTEXT or SSL",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "set sasl.mechanism to one that the listener supports",
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old for this; see: barnabas cluster api-versions",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: "this is a broker: pass it with -b instead of --bootstrap-controller",
    ErrorCode.GROUP_ID_NOT_FOUND: "list groups with: barnabas groups list",
    ErrorCode.NON_EMPTY_GROUP: "stop the members of the group first",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it: ask its operators",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "wait and retry, or ask for a larger quota",
}


Advisor = Callable[[ErrorCode], str | None]
ADVISOR = "barnabas.advisor"
"""Key of an `Advisor` in the meta of click's context. It knows what the cluster refused."""


def advice_of(code: ErrorCode | None) -> str | None:
    """Return what to do about an error: what is known about the cluster comes before general advice."""
    return _advice(code, _advisor())


def _advice(code: ErrorCode | None, advisor: Advisor | None) -> str | None:
    if code is None:
        return None
    return (None if advisor is None else advisor(code)) or ADVICE.get(code)


def _advisor() -> Advisor | None:
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(ADVISOR)


class Failure(click.ClickException):
    """Failure of a command; shown as `Error: resource: message`, followed by `Try: advice` if there is one."""

    exit_code = EXIT_FAILED

    def __init__(
        self, message: str, *, resource: str | None = None, advice: str | None = None, code: ErrorCode | None = None
    ) -> None:
        """`code` is Kafka's error. It determines the advice, unless `advice` is given."""
        super().__init__(message if resource is None else f"{resource}: {message}")
        self._advice = advice
        self._code = code
        self._advisor = _advisor()  # click shows the failure after its context has ended

    @property
    def advice(self) -> str | None:
        return self._advice or _advice(self._code, self._advisor)

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"Error: {self.message}", file=file or sys.stderr)
        if advice := self.advice:
            click.echo(f"Try: {advice}", file=file or sys.stderr)


class ItemsFailed(click.ClickException):
    """Failure of items that are shown already; shows only what to do about each kind of error."""

    exit_code = EXIT_FAILED

    def __init__(self, codes: Iterable[ErrorCode]) -> None:
        super().__init__("")
        self._codes = list(codes)
        self._advisor = _advisor()

    def show(self, file: IO[Any] | None = None) -> None:
        for advice in dict.fromkeys(_advice(code, self._advisor) for code in self._codes):
            if advice:
                click.echo(f"Try: {advice}", file=file or sys.stderr)


def failure_of(error: Exception, resource: str | None = None) -> Failure:
    """Turn an expected error into a `Failure`."""
    if isinstance(error, OperationError):
        return Failure(error.message, resource=error.resource or resource, advice=error.advice, code=error.code)
    if isinstance(error, KafkaError):
        if type(error).__module__.startswith(("barnabas.storage", "barnabas.config")):
            return Failure(str(error), resource=resource)  # not a broker's response, so its code is meaningless
        return Failure(f"{error.code.name}: {error.message}", resource=resource, code=error.code)
    if isinstance(error, OSError) and error.strerror:
        where = resource if error.filename is None else str(error.filename)
        return Failure(error.strerror, resource=where)
    return Failure(str(error) or type(error).__name__, resource=resource)


@contextmanager
def failures(resource: str | None = None) -> Iterator[None]:
    """Turn errors of Kafka, the operating system and operations, but not bugs, into a `Failure`."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the output closed the pipe; click ends the command
    except (KafkaError, OSError, OperationError) as error:
        raise failure_of(error, resource) from error


class Misunderstood(click.UsageError):
    """Wrong usage of a command whose exit code 2 has another meaning; exits with 1."""

    exit_code = EXIT_FAILED

    @classmethod
    def of(cls, error: click.UsageError) -> Misunderstood:
        return cls(error.format_message(), error.ctx)


class JudgingCommand(click.Command):
    """A command that checks something and exits with 2 if the result is negative. Wrong usage exits with 1."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise Misunderstood.of(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise Misunderstood.of(error) from None
