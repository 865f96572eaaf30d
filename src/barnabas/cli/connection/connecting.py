"""Runs the coroutine of a command with one client in one event loop, and names the cluster in its errors.

Its one rule: commands are plain functions. Everything that needs a cluster is one coroutine, run by `run`, which always closes
the client and turns exceptions of the client into a `Failure`.

    def describe(connection: Connection, output: Output, topic: str) -> None:
        output.one(run(connection, lambda cluster: look_at(cluster, topic)))
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from barnabas.cli.connection.profiles import BOOTSTRAP_CONTROLLERS, BOOTSTRAP_SERVERS, BY_DEFAULT, Connection, Setting
from barnabas.cli.connection.refusals import Refusals
from barnabas.cli.terminal.event_loop import fast_loop
from barnabas.cli.terminal.failures import ADVISOR, Failure, advice_of, failure_of

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.errors import CallTimeoutError

T = TypeVar("T")


def run(connection: Connection, work: Callable[[Cluster], Coroutine[Any, Any, T]], *, is_long: bool = False) -> T:
    """Run `work` with a client of the cluster, and close it; with `is_long`, on the faster event loop. Raises Failure."""

    async def main() -> T:
        async with connected(connection) as cluster:
            return await work(cluster)

    with asyncio.Runner(loop_factory=fast_loop() if is_long else None) as runner:
        return runner.run(main())


def through_controllers(connection: Connection) -> Connection:
    """Return a connection to the given controllers, or else to those that the brokers report. Raises Failure."""
    if BOOTSTRAP_CONTROLLERS in connection.settings:
        return connection
    from barnabas.operations.quorum.discovery import find_controllers

    found = ",".join(run(connection, find_controllers))
    settings = {name: setting for name, setting in connection.settings.items() if name != BOOTSTRAP_SERVERS}
    return Connection({**settings, BOOTSTRAP_CONTROLLERS: Setting(found, f"reported by {connection.address}")})


@asynccontextmanager
async def connected(connection: Connection) -> AsyncIterator[Cluster]:
    """Yield a connected client. Errors raised inside become a `Failure` that names the address."""
    from barnabas.client.cluster import Cluster  # slow to import: event loop and TLS
    from barnabas.client.errors import CallTimeoutError, NotABrokerError
    from barnabas.config.values import ConfigError
    from barnabas.operations.errors import OperationError
    from barnabas.wire.errors import ErrorCode, KafkaError, MalformedError, UnsupportedVersionError

    try:
        cluster = Cluster(connection.values())
        refusals = Refusals(cluster.settings)
        cluster.on_response = refusals.see
        if (context := click.get_current_context(silent=True)) is not None:
            context.meta[ADVISOR] = refusals.advice
        try:
            await cluster.start(_first_contact_ms(connection, cluster))
        except CallTimeoutError as error:
            raise _unreachable(connection, error) from error
        try:
            yield cluster
        finally:
            await cluster.close()
    except BrokenPipeError:
        raise  # the reader of the output closed the pipe; click ends the command
    except ConfigError as error:
        raise Failure(str(error), resource=_origin(connection, error.key)) from error
    except CallTimeoutError as error:
        raise _late(connection, error) from error
    except OperationError as error:
        raise failure_of(error) from error
    except KafkaError as error:
        raise failure_of(error, connection.address) from error
    except NotABrokerError as error:
        raise await _not_a_broker(connection) from error
    except UnsupportedVersionError as error:
        advice = advice_of(ErrorCode.UNSUPPORTED_VERSION)
        if BOOTSTRAP_CONTROLLERS in connection.settings:
            advice = "controllers do not serve this: connect to brokers, with -b HOST:PORT"
        raise Failure(str(error), resource=connection.address, advice=advice) from error
    except (MalformedError, OSError) as error:
        text = str(error) or type(error).__name__
        raise Failure(text, resource=connection.address, advice=_next_step(error)) from error


def _first_contact_ms(connection: Connection, cluster: Cluster) -> int:
    """Return the timeout of the first contact. A command also gives up soon if a broker is there and does not answer."""
    whole, first = "default.api.timeout.ms", "bootstrap.timeout.ms"
    is_patient = whole in connection.settings and first not in connection.settings
    return cluster.settings.get_int(whole if is_patient else first)


_SECOND_CONTACT_S = 2.0
_REACH = "check the address, and that its listener uses the same security.protocol"
_CHECK_FIRST = "the change may have been made: check before you retry"
_OVERLOADED = (
    "the node is overloaded or hangs: see its log. A change may have been made. To wait longer: -X request.timeout.ms"
)
_STOPPED = "the node has stopped or restarted: see its log, and retry. A change may have been made: check first"
_NOT_RUNNING = "start the broker, or check host and port: its log shows its listeners"
_NOT_KAFKA = "check host and port: another program listens there"
_NOT_THE_PROTOCOL = "the listener may require TLS or SASL: set security.protocol; or another program listens there"
_SILENT = (
    "it may expect TLS or SASL (set security.protocol), be overloaded, or not be Kafka. "
    "-X bootstrap.timeout.ms=30000 waits longer"
)
_UNTRUSTED = (
    "trust the authority that signed it: -X ssl.truststore.type=PEM -X ssl.truststore.location=FILE; "
    "or, if the listener has no TLS, change security.protocol"
)

_OTHER_HOST = (
    "connect to a name or an address that is in the certificate, or have one made with this name. "
    "The broker tells clients its addresses in advertised.listeners"
)
_NOT_VALID_NOW = "the node needs a new certificate, unless the clock of this machine is wrong"

_REFUSED_TLS = (
    "the node's log says why. It may want a certificate that it trusts: -X ssl.keystore.type=PEM "
    "-X ssl.keystore.location=FILE; or another of ssl.enabled.protocols"
)


def _next_step(error: Exception) -> str:
    """Return what to do about an error of a connection."""
    from barnabas.client.errors import ConnectionLostError, NoAnswerError, NotConnectedError, NotKafkaError, TlsError

    if isinstance(error, TlsError):
        text = str(error)
        if "refused" in text:
            return _REFUSED_TLS
        if "mismatch" in text:
            return _OTHER_HOST
        return _NOT_VALID_NOW if "expired" in text or "not yet valid" in text else _UNTRUSTED
    if isinstance(error, NotKafkaError):
        return _REACH if "TLS" in str(error) else _NOT_KAFKA
    if isinstance(error, NoAnswerError):
        return _OVERLOADED
    if isinstance(error, ConnectionLostError) and not isinstance(error, NotConnectedError):
        return _STOPPED
    return _REACH


def _unreachable(connection: Connection, error: CallTimeoutError) -> Failure:
    """Return the failure of the first contact, with advice about the reasons of the addresses."""
    from barnabas.client.errors import NoNodesError

    last = error.last_error
    reasons = list(last.reasons.values()) if isinstance(last, NoNodesError) else [last] if last is not None else []
    if not reasons or all("did not answer" in str(each) for each in reasons):
        advice = _SILENT
    elif any(isinstance(each.__cause__, ConnectionRefusedError) for each in reasons):
        advice = _NOT_RUNNING
    else:
        advice = _NOT_THE_PROTOCOL if any("connection" in str(each) for each in reasons) else _REACH
    if BY_DEFAULT in connection.address:
        advice = f"-b HOST:PORT; no address was given. Or: {advice}"
    return Failure(str(error), resource=connection.address, advice=advice)


async def _not_a_broker(connection: Connection) -> Failure:
    """Return the failure of a command whose bootstrap server is a controller; its advice names the brokers behind it."""
    from barnabas.client.cluster import Cluster
    from barnabas.operations.errors import OperationError
    from barnabas.operations.quorum.discovery import find_brokers
    from barnabas.wire.errors import KafkaError, MalformedError, UnsupportedVersionError

    given = connection.settings[BOOTSTRAP_SERVERS]
    values = {name: value for name, value in connection.values().items() if name != BOOTSTRAP_SERVERS}
    brokers: list[str] = []
    with contextlib.suppress(OSError, KafkaError, MalformedError, UnsupportedVersionError, OperationError):
        async with asyncio.timeout(_SECOND_CONTACT_S):
            async with Cluster({**values, BOOTSTRAP_CONTROLLERS: given.value}) as cluster:
                brokers = await find_brokers(cluster)
    where = ",".join(brokers) or "HOST:PORT of a broker"
    return Failure(
        "this is a controller, not a broker",
        resource=connection.address,
        advice=f"-b {where}; or, for commands that controllers serve, --bootstrap-controller {given.value}",
    )


def _late(connection: Connection, error: Any) -> Failure:
    advice = _CHECK_FIRST if error.maybe_done else _OVERLOADED
    return Failure(str(error), resource=connection.address, advice=advice)


def _origin(connection: Connection, name: str) -> str:
    setting = connection.settings.get(name)
    return setting.origin if setting is not None else connection.address
