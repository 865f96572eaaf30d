"""What `barnabas lake run` shows to others while it runs: metrics, a report that is written again, limits and a hook.

Its one rule: it reads the lake's last commit, as anybody else would, and never stops the run: what fails is a warning.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.lake.asking.findings import Breach, Limit
    from barnabas.lake.keeping.folders import Folder

METRICS_PATH: Final = "/metrics"
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_HOOK_S: Final = 60.0
_REST_FACTOR: Final = 4
"""A report is not written again before this many times the time that the last one took, so that reading goes on."""

_Key = tuple[str, tuple[tuple[str, str], ...], float]


class Watch:
    """Looks at a lake after its commits."""

    def __init__(
        self,
        directory: Folder,
        limits: Sequence[Limit] = (),
        hook: str | None = None,
        tell: Callable[[str], None] = print,
        write_report: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory, self._limits, self._hook, self._tell = directory, limits, hook, tell
        self._write_report, self._clock = write_report, clock
        self._seen = self._reported = -1
        self._report_at = clock()
        self._breaches: dict[_Key, Breach] = {}
        self.metrics = ""

    @property
    def has_breaches(self) -> bool:
        return bool(self._breaches)

    def look(self) -> None:
        """Read the lake if it has a new commit, and tell what changed about limits."""
        from barnabas.lake.asking.findings import breaches, exposition, samples
        from barnabas.lake.asking.stored import StoredLake
        from barnabas.lake.keeping.manifest import NotStoredError
        from barnabas.lake.keeping.store import Lake

        lake = Lake(self._directory)
        manifest = lake.manifest()
        version = manifest.version
        if version != self._seen:
            try:
                with StoredLake(lake) as stored:
                    found = samples(stored)
            except NotStoredError as reason:
                if manifest.streams:  # else nothing was read yet
                    self._tell(f"warning: there are no metrics: {reason}")
                found = []
            self._seen = version
            self.metrics = exposition(found)
            self._compare({_key(breach): breach for breach in breaches(found, self._limits)})
        if self._write_report is not None and self._reported != version and self._clock() >= self._report_at:
            began = self._clock()
            try:
                self._write_report()
            except Failure as failure:
                self._tell(f"warning: the report was not written: {failure.message}")
            self._reported = version
            self._report_at = self._clock() + _REST_FACTOR * (self._clock() - began)

    def _compare(self, now: dict[_Key, Breach]) -> None:
        before, self._breaches = self._breaches, now
        for key in [key for key in now if key not in before]:
            self._tell(f"warning: {now[key].sentence()}")
            self._call(now[key], "breach")
        for key in [key for key in before if key not in now]:
            self._tell(f"within its limit again: {before[key].sample.finding}")
            self._call(before[key], "over")

    def _call(self, breach: Breach, state: str) -> None:
        if self._hook is None:
            return
        from barnabas.lake.asking.findings import number_text

        environment = {
            **os.environ,
            "BARNABAS_STATE": state,
            "BARNABAS_FINDING": breach.sample.finding,
            "BARNABAS_LABELS": json.dumps(dict(breach.sample.labels)),
            "BARNABAS_VALUE": number_text(breach.sample.value),
            "BARNABAS_LIMIT": number_text(breach.limit.most),
        }
        try:
            done = subprocess.run(
                shlex.split(self._hook), env=environment, timeout=_HOOK_S, check=False, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self._tell(f"warning: the command of --on-breach failed: {error}")
        else:
            if done.returncode:
                self._tell(f"warning: the command of --on-breach ended with {done.returncode}")


def _key(breach: Breach) -> _Key:
    return breach.sample.finding, tuple(sorted(breach.sample.labels.items())), breach.limit.most


@dataclass(frozen=True, slots=True)
class Shown:
    """What the command line asks for."""

    directory: Folder
    limits: tuple[str, ...]
    hook: str | None
    address: str | None
    report: Path | None

    def check(self) -> list[Limit]:
        """Return the limits. Raises click.UsageError for what cannot be meant, before anything else takes time."""
        if self.hook is not None and not self.limits:
            raise click.UsageError("--on-breach needs --limit.")
        if self.address is not None:
            _place(self.address)
        from barnabas.lake.asking.findings import parse_limit

        try:
            return [parse_limit(text) for text in self.limits]
        except ValueError as error:
            raise click.UsageError(f"--limit {error}.") from None

    @contextmanager
    def watching(self, spark: SparkSession | None) -> Iterator[Watch | None]:
        """Yield what looks at the lake, if anything was asked for; only a report needs Spark. Raises click.UsageError
        and Failure."""
        limits = self.check()
        if not (limits or self.address or self.report):
            yield None
            return
        write = (
            None if self.report is None or spark is None else partial(_write_report, spark, self.directory, self.report)
        )
        watch = Watch(self.directory, limits, self.hook, note, write)
        with ExitStack() as stack:
            if self.address is not None:
                host, port = _place(self.address)
                bound = stack.enter_context(serving(host, port, watch, self.report))
                note(f"metrics: http://{host}:{bound}{METRICS_PATH}")
                if self.report is not None:
                    note(f"report: http://{host}:{bound}/index.html")
            yield watch


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise click.UsageError(f"--serve {address}: must be PORT or HOST:PORT.")
    return host.strip("[]") or "127.0.0.1", int(port)


def _write_report(spark: SparkSession, directory: Folder, out: Path) -> None:
    """Write the page of the last commit, beside the one that is being served, and replace that."""
    from pyspark.errors import PySparkException

    from barnabas.lake.asking.opened import OpenLake
    from barnabas.lake.keeping.store import Lake
    from barnabas.lake.report.asking import ask, make
    from barnabas.lake.report.page import render
    from barnabas.lake.spark.session import for_rows

    tables = OpenLake(spark, Lake(directory))
    try:
        with for_rows(spark, sum(stream.rows for stream in tables.manifest.streams.values())):
            page = render(ask(tables, make(tables), "rows"))
    except PySparkException as error:
        raise Failure(str(error).partition("\n")[0]) from error
    out.mkdir(parents=True, exist_ok=True)
    temporary = out / ".index.html.tmp"
    temporary.write_text(page, encoding="utf-8")
    temporary.replace(out / "index.html")


@contextmanager
def serving(host: str, port: int, watch: Watch, report: Path | None) -> Iterator[int]:
    """Serve the metrics, and the report if there is one, until the end. Yield the port."""
    handler = partial(_Handler, watch, report)
    try:
        server = ThreadingHTTPServer((host, port), handler)
    except OSError as error:
        raise Failure(f"cannot listen: {error.strerror}", resource=f"{host}:{port}") from error
    thread = threading.Thread(target=server.serve_forever, name="lake metrics", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


class _Handler(SimpleHTTPRequestHandler):
    """Answers GET and HEAD for the metrics and for files of the report."""

    timeout = 10
    server_version, sys_version = "barnabas", ""

    def __init__(self, watch: Watch, report: Path | None, *arguments: Any) -> None:
        self._watch, self._report = watch, report
        super().__init__(*arguments, directory=str(report) if report is not None else os.devnull)

    def do_GET(self) -> None:
        if self.path.partition("?")[0] == METRICS_PATH:
            self._send_metrics()
        elif self._report is None:
            self.send_error(404, "only /metrics is served; --report adds the report")
        else:
            super().do_GET()

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send_metrics(self) -> None:
        body = self._watch.metrics.encode()
        self.send_response(200)
        self.send_header("Content-Type", METRICS_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def list_directory(self, path: str | os.PathLike[str]) -> None:
        self.send_error(404, "directories are not listed")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Write no line for each request."""
