"""Runs the coroutine of a command with one client in one event loop, and names the cluster in its errors.

Its one rule: commands are plain functions. Everything that needs a cluster is one coroutine, run by `run`, which always closes
the client and turns exceptions of the client into a `Failure`.

    def describe(connection: Connection, output: Output, topic: str) -> None:
        output.one(run(connection, lambda cluster: look_at(cluster, topic)))
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.event_loop import fast_loop
from barnabas.cli.terminal.failures import ADVICE, Failure, failure_of

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

T = TypeVar("T")


def run(connection: Connection, work: Callable[[Cluster], Coroutine[Any, Any, T]], *, is_long: bool = False) -> T:
    """Run `work` with a client of the cluster, and close it; with `is_long`, on the faster event loop. Raises Failure."""

    async def main() -> T:
        async with connected(connection) as cluster:
            return await work(cluster)

    with asyncio.Runner(loop_factory=fast_loop() if is_long else None) as runner:
        return runner.run(main())


@asynccontextmanager
async def connected(connection: Connection) -> AsyncIterator[Cluster]:
    """Yield a connected client. Errors raised inside become a `Failure` that names the address."""
    from barnabas.client.cluster import Cluster  # slow to import: event loop and TLS
    from barnabas.client.errors import CallTimeoutError
    from barnabas.config.values import ConfigError
    from barnabas.operations.errors import OperationError
    from barnabas.wire.errors import ErrorCode, KafkaError, MalformedError, UnsupportedVersionError

    try:
        cluster = Cluster(connection.values())
        await cluster.start(_first_contact_ms(connection, cluster))
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
    except UnsupportedVersionError as error:
        advice = ADVICE[ErrorCode.UNSUPPORTED_VERSION]
        raise Failure(str(error), resource=connection.address, advice=advice) from error
    except (MalformedError, OSError) as error:
        raise Failure(str(error) or type(error).__name__, resource=connection.address, advice=_REACH) from error


def _first_contact_ms(connection: Connection, cluster: Cluster) -> int:
    """Return the timeout of the first contact. A command also gives up soon if a broker is there and does not answer."""
    whole, first = "default.api.timeout.ms", "bootstrap.timeout.ms"
    is_patient = whole in connection.settings and first not in connection.settings
    return cluster.settings.get_int(whole if is_patient else first)


_REACH = "check the address, and that its listener uses the same security.protocol"


def _late(connection: Connection, error: Any) -> Failure:
    advice = "the change may have been made: check before you retry" if error.maybe_done else _REACH
    return Failure(str(error), resource=connection.address, advice=advice)


def _origin(connection: Connection, name: str) -> str:
    setting = connection.settings.get(name)
    return setting.origin if setting is not None else connection.address
