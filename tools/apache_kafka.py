"""Apache Kafka from Maven, and barnabas, as child processes for the interop tests and the benchmark.

The one rule: nothing is installed and nothing is left behind. Jars are in a git-ignored cache of the repository, data
is in a temporary directory, every port is a free one of the loopback address, and a node stops with its `with` block.
Maven's own settings decide where jars come from.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import os
import random
import re
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

VERSION = "4.3.1"
OLD_VERSION = "3.9.1"  # the last version that supports old request versions
ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
MIN_JAVA = 17

# The JVM options of kafka-server-start and kafka-run-class, without GC log and JMX, which only cost time.
KAFKA_JVM = (
    *(
        "-server",
        "-Xmx1G",
        "-Xms1G",
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
        "-XX:InitiatingHeapOccupancyPercent=35",
    ),
    *("-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
)
# For tests, where several nodes share a small machine and nothing is measured.
SMALL_JVM = ("-Xmx512M", "-Xms64M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
TOOL_JVM = ("-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")

_TOOLS_PACKAGE = "org.apache.kafka.tools"
TOOLS = {
    "kafka-acls": f"{_TOOLS_PACKAGE}.AclCommand",
    "kafka-broker-api-versions": f"{_TOOLS_PACKAGE}.BrokerApiVersionsCommand",
    "kafka-client-metrics": f"{_TOOLS_PACKAGE}.ClientMetricsCommand",
    "kafka-cluster": f"{_TOOLS_PACKAGE}.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": f"{_TOOLS_PACKAGE}.consumer.ConsoleConsumer",
    "kafka-console-producer": f"{_TOOLS_PACKAGE}.ConsoleProducer",
    "kafka-console-share-consumer": f"{_TOOLS_PACKAGE}.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": f"{_TOOLS_PACKAGE}.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": f"{_TOOLS_PACKAGE}.ConsumerPerformance",
    "kafka-delegation-tokens": f"{_TOOLS_PACKAGE}.DelegationTokenCommand",
    "kafka-delete-records": f"{_TOOLS_PACKAGE}.DeleteRecordsCommand",
    "kafka-dump-log": f"{_TOOLS_PACKAGE}.DumpLogSegments",
    "kafka-e2e-latency": f"{_TOOLS_PACKAGE}.EndToEndLatency",
    "kafka-features": f"{_TOOLS_PACKAGE}.FeatureCommand",
    "kafka-get-offsets": f"{_TOOLS_PACKAGE}.GetOffsetShell",
    "kafka-groups": f"{_TOOLS_PACKAGE}.GroupsCommand",
    "kafka-leader-election": f"{_TOOLS_PACKAGE}.LeaderElectionCommand",
    "kafka-log-dirs": f"{_TOOLS_PACKAGE}.LogDirsCommand",
    "kafka-metadata-quorum": f"{_TOOLS_PACKAGE}.MetadataQuorumCommand",
    "kafka-metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "kafka-producer-perf-test": f"{_TOOLS_PACKAGE}.ProducerPerformance",
    "kafka-reassign-partitions": f"{_TOOLS_PACKAGE}.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": f"{_TOOLS_PACKAGE}.ReplicaVerificationTool",
    "kafka-share-groups": f"{_TOOLS_PACKAGE}.consumer.group.ShareGroupCommand",
    "kafka-streams-groups": f"{_TOOLS_PACKAGE}.streams.StreamsGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": f"{_TOOLS_PACKAGE}.TopicCommand",
    "kafka-transactions": f"{_TOOLS_PACKAGE}.TransactionsCommand",
    "kafka-verifiable-consumer": f"{_TOOLS_PACKAGE}.VerifiableConsumer",
    "kafka-verifiable-producer": f"{_TOOLS_PACKAGE}.VerifiableProducer",
}
# Tools with another class in Kafka 3.
OLD_TOOLS = {
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-dump-log": "kafka.tools.DumpLogSegments",
}


class Missing(Exception):  # noqa: N818 - the word says what is wrong
    """Something that Apache Kafka needs is missing. The message says what to install."""


class NotStarted(Exception):  # noqa: N818
    """A node ended or did not respond in time. The message has the end of its log."""


# ---- jars


def ensure(version: str = VERSION) -> Path:
    """Return the folder with Kafka's jars, fetched with Maven on first use."""
    folder = ROOT / ".cache" / f"apache-kafka-{version}"
    _check_java()
    if folder.is_dir():
        return folder
    wanted = [("org.apache.kafka", name, version) for name in ("kafka_2.13", "kafka-tools", "kafka-shell")]
    if not version.startswith("3."):  # Kafka 3 includes an slf4j backend, Kafka 4 leaves it to the distribution
        wanted.append(("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"))
    with _filled_aside(folder) as aside:
        _copy_jars(wanted, aside / "libs")
        _write_logging(aside)
    return folder


def maven_jars(
    name: str, artifacts: Sequence[tuple[str, str, str]], alone: Sequence[tuple[str, str, str]] = ()
) -> Path:
    """Return the folder in the cache with these artifacts (group, name, version) and their dependencies.

    Those in `alone` come without dependencies. They are fetched on first use.
    """
    folder = ROOT / ".cache" / name
    if not folder.is_dir():
        with _filled_aside(folder) as aside:
            _copy_jars(artifacts, aside, alone)
    return folder


@contextlib.contextmanager
def _filled_aside(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed when it is filled, so that an existing folder is complete."""
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}-") as work:
        aside = Path(work) / "whole"
        aside.mkdir()
        yield aside
        with contextlib.suppress(FileExistsError):  # another process was faster
            aside.rename(folder)


def _copy_jars(
    artifacts: Sequence[tuple[str, str, str]], folder: Path, alone: Sequence[tuple[str, str, str]] = ()
) -> None:
    if shutil.which("mvn") is None:
        raise Missing("Maven (mvn) is missing: install the package maven; it downloads the jars once")
    with tempfile.TemporaryDirectory() as work:
        pom = Path(work) / "pom.xml"
        pom.write_text(_pom(artifacts, alone))
        command = ["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(pom), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        names = ", ".join(f"{name} {version}" for _, name, version in (*artifacts, *alone))
        raise Missing(f"Maven could not fetch {names} (is its repository reachable?):\n{tail}")


@functools.cache  # called before every tool, and each call starts a JVM
def _check_java() -> None:
    wanted = f"Java {MIN_JAVA} or newer is needed to run Apache Kafka: install the package openjdk-17-jre-headless"
    if shutil.which("java") is None:
        raise Missing(f"java is missing. {wanted}")
    text = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    found = re.search(r'version "(\d+)', text)
    if found is None or int(found[1]) < MIN_JAVA:
        raise Missing(f"java is too old or broken ({text.splitlines()[0] if text else 'no answer'}). {wanted}")


def _pom(wanted: Sequence[tuple[str, str, str]], alone: Sequence[tuple[str, str, str]] = ()) -> str:
    without = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{number}</version>"
        f"{'' if (group, name, number) in wanted else without}</dependency>"
        for group, name, number in (*wanted, *alone)
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>barnabas</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def _write_logging(folder: Path) -> None:
    for name, level, target in (("server", "INFO", "OUT"), ("tools", "WARN", "ERR")):
        (folder / f"{name}-log4j2.properties").write_text(
            f"rootLogger = {level}, console\n"
            "appender.console.type = Console\nappender.console.name = console\n"
            f"appender.console.target = SYSTEM_{target}\n"
            "appender.console.layout.type = PatternLayout\nappender.console.layout.pattern = [%d] %p %m (%c)%n\n"
        )
        (folder / f"{name}-log4j.properties").write_text(
            f"log4j.rootLogger={level}, console\nlog4j.appender.console=org.apache.log4j.ConsoleAppender\n"
            f"log4j.appender.console.target=System.{target.lower()}\n"
            "log4j.appender.console.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.console.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
        )


def java_command(version: str, jvm: Sequence[str], logging: str, main: str) -> list[str]:
    """Return the command to run a class of Kafka. `logging` is "server" or "tools"."""
    folder = ensure(version)
    if version.startswith("3."):
        log4j = f"-Dlog4j.configuration=file:{folder / f'{logging}-log4j.properties'}"
    else:
        log4j = f"-Dlog4j2.configurationFile={folder / f'{logging}-log4j2.properties'}"
    return ["java", *jvm, log4j, "-cp", f"{folder / 'libs'}/*", main]


def tool_class(name: str, version: str = VERSION) -> str:
    """Return the class of a tool's shell name. A class name is returned as it is."""
    if version.startswith("3.") and name in OLD_TOOLS:
        return OLD_TOOLS[name]
    if name in TOOLS:
        return TOOLS[name]
    if "." not in name:
        raise ValueError(f"{name} is not a known tool of Apache Kafka")
    return name


def run_tool(
    name: str, *args: str, stdin: str | None = None, timeout_s: float = 60, version: str = VERSION
) -> subprocess.CompletedProcess[str]:
    """Run a command line tool of Apache Kafka (`kafka-topics`, or a class) and return its output."""
    command = [*java_command(version, TOOL_JVM, "tools", tool_class(name, version)), *args]
    return subprocess.run(command, input=stdin or "", capture_output=True, text=True, timeout=timeout_s, check=False)


def write_home(folder: Path, version: str = VERSION, jvm: Sequence[str] = SMALL_JVM) -> Path:
    """Write `bin` as in a distribution of Apache Kafka: scripts that run the classes of the cached jars."""
    commands = {name: java_command(version, TOOL_JVM, "tools", main) for name, main in TOOLS.items()}
    commands["kafka-server-start"] = java_command(version, jvm, "server", "kafka.Kafka")
    (folder / "bin").mkdir(parents=True)
    for name, command in commands.items():
        script = folder / "bin" / f"{name}.sh"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        script.chmod(0o755)
    return folder


# ---- sockets

SERVER_PORTS = (10_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Return consecutive ports that were free a moment ago.

    Systems take the ports of outgoing connections from above these, so no connection gets one of them in between.
    """
    while True:
        first = random.randrange(*SERVER_PORTS)
        ports = list(range(first, first + count))
        with contextlib.ExitStack() as stack:
            try:
                for port in ports:
                    stack.enter_context(socket.socket()).bind((HOST, port))
            except OSError:
                continue
            return ports


def exchange(address: tuple[str, int], request: bytes, timeout_s: float = 5) -> bytes:
    """Send one framed request on a new connection, and return the frame of the response without its size."""
    with socket.create_connection(address, timeout=timeout_s) as connection:
        connection.sendall(request)
        size = struct.unpack(">i", _receive(connection, 4))[0]
        return _receive(connection, size)


def _receive(connection: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        part = connection.recv(size - len(got))
        if not part:
            raise ConnectionError(f"closed after {len(got)} of {size} bytes")
        got += part
    return bytes(got)


def api_versions_request(version: int, correlation_id: int = 0) -> bytes:
    """Return an ApiVersions request as a frame. Since version 3 it is flexible and has the client's software name."""
    header = struct.pack(">hhih", 18, version, correlation_id, -1)
    body = b"\x00\x09barnabas\x041.0\x00" if version >= 3 else b""
    return struct.pack(">i", len(header) + len(body)) + header + body


# ---- nodes


class Node:
    """A server process that responds to Kafka requests. `started_s` is the time from spawn to the first response."""

    def __init__(self, command: Sequence[str], address: tuple[str, int], log: Path, ready_text: str | None = None):
        self.command = list(command)
        self.address = address
        self.log = log
        self.started_s = 0.0
        self._ready_text = ready_text
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the node was not started"
        return self._process.pid

    def start(self, timeout_s: float = 90) -> None:
        """Start the process and wait until it responds to ApiVersions and has logged that it is ready."""
        assert self._process is None, "the node runs already"
        with self.log.open("ab") as out:
            begin = out.tell()
            started = time.perf_counter()
            self._process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            self._wait_answer(started + timeout_s)
            self.started_s = time.perf_counter() - started
            while self._ready_text is not None and self._ready_text not in self._log_from(begin):
                self._check_alive(started + timeout_s)
                time.sleep(0.02)
        except BaseException:
            self.kill()
            raise

    def _wait_answer(self, deadline: float) -> None:
        request = api_versions_request(0)
        while True:
            try:
                exchange(self.address, request, timeout_s=2)
                return
            except OSError:
                self._check_alive(deadline)
                time.sleep(0.002)

    def _check_alive(self, deadline: float) -> None:
        assert self._process is not None
        code = self._process.poll()
        if code is None and time.perf_counter() < deadline:
            return
        what = "did not answer in time" if code is None else f"ended with code {code}"
        tail = "\n".join(self._log_from(0).splitlines()[-25:])
        raise NotStarted(f"{self.command[0]} {what}; the end of its log:\n{tail}")

    def _log_from(self, offset: int) -> str:
        with self.log.open("rb") as file:
            file.seek(offset)
            return file.read().decode(errors="replace")

    def stop(self, timeout_s: float = 30) -> int | None:
        """Terminate the process (SIGTERM), kill it after the timeout, and return its exit code."""
        return self._end(timeout_s)

    def kill(self) -> int | None:
        """Kill the process (SIGKILL)."""
        return self._end(0)

    def _end(self, grace_s: float) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        if grace_s > 0:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(grace_s)
        process.kill()
        return process.wait()

    def rss_bytes(self) -> int:
        """Return the resident memory, as reported by the kernel."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        assert found is not None
        return int(found[1]) * 1024

    def cpu_s(self) -> float:
        """Return the processor time used so far, in user and kernel mode."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Stop, and remove temporary files."""
        self.stop()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _OwnedDirectory:
    """A directory that was passed, or a temporary one that is removed when the node is closed."""

    def __init__(self, directory: Path | None, prefix: str):
        self._temporary = tempfile.TemporaryDirectory(prefix=prefix) if directory is None else None
        self.path = Path(self._temporary.name) if self._temporary is not None else Path(directory or "")
        self.path.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()


class ApacheKafka(Node):
    """A node of Apache Kafka, broker and controller in one unless `process.roles` is overridden.

    `directory` has server.properties, server.log and the log dir `data`, which is formatted if needed. The ports stay
    the same when the node is restarted. `more_listeners` are protocols such as SSL, whose `addresses` are chosen.
    """

    def __init__(
        self,
        overrides: Mapping[str, str] | None = None,
        *,
        version: str = VERSION,
        directory: Path | None = None,
        cluster_id: str | None = None,
        format_args: Sequence[str] | None = None,
        jvm: Sequence[str] = SMALL_JVM,
        more_listeners: Sequence[str] = (),
    ):
        self.version = version
        command = java_command(version, jvm, "server", "kafka.Kafka")  # first, because it raises Missing
        self._directory = _OwnedDirectory(directory, "apache-kafka-")
        self.directory = self._directory.path
        broker_port, controller_port = free_ports(2)
        self.controller = f"{HOST}:{controller_port}"
        given = {**_existing(self.directory / "data"), **(overrides or {})}
        self.properties = _properties(self.directory / "data", broker_port, controller_port, given)
        self.addresses = _add_listeners(self.properties, more_listeners)
        self.roles = self.properties["process.roles"].split(",")
        self.cluster_id = cluster_id or new_cluster_id()
        self._format_args = format_args
        self._properties_file = self.directory / "server.properties"
        address = (HOST, broker_port if "broker" in self.roles else controller_port)
        log = self.directory / "server.log"
        super().__init__([*command, str(self._properties_file)], address, log, "Kafka Server started")

    def start(self, timeout_s: float = 90) -> None:
        lines = (f"{name}={value}\n" for name, value in self.properties.items())
        self._properties_file.write_text("".join(lines))
        self.format()
        super().start(timeout_s)

    def format(self) -> None:
        """Format the log dirs with Kafka's storage tool, once."""
        log_dirs = [Path(each) for each in self.properties["log.dirs"].split(",")]
        if any((each / "meta.properties").exists() for each in log_dirs):
            return
        args = ["format", "--cluster-id", self.cluster_id, "--config", str(self._properties_file)]
        if self._format_args is not None:
            args += self._format_args
        elif "controller" in self.roles and "controller.quorum.voters" not in self.properties:
            args.append("--standalone")
        done = run_tool("kafka-storage", *args, version=self.version)
        if done.returncode != 0:
            raise NotStarted(f"kafka-storage format failed:\n{done.stdout}{done.stderr}")

    def tool(
        self, name: str, *args: str, stdin: str | None = None, timeout_s: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a tool of this version against this node, with `--bootstrap-server` added."""
        return run_tool(
            name, "--bootstrap-server", self.bootstrap, *args, stdin=stdin, timeout_s=timeout_s, version=self.version
        )

    def close(self) -> None:
        super().close()
        self._directory.remove()


def new_cluster_id() -> str:
    """Return a random cluster id in Kafka's format. A leading dash would look like an option to Kafka's tools."""
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return text if not text.startswith("-") else new_cluster_id()


def _existing(log_dir: Path) -> dict[str, str]:
    """Return the node id of a formatted directory, because Kafka does not start there with another one."""
    file = log_dir / "meta.properties"
    found = re.search(r"^node\.id=(\d+)", file.read_text(), re.MULTILINE) if file.exists() else None
    return {"node.id": found[1]} if found is not None else {}


def _properties(log_dir: Path, broker_port: int, controller_port: int, overrides: Mapping[str, str]) -> dict[str, str]:
    """Return Kafka's defaults, but addresses, paths and replication factors for a single node, as in its sample."""
    listeners = {"broker": f"PLAINTEXT://{HOST}:{broker_port}", "controller": f"CONTROLLER://{HOST}:{controller_port}"}
    roles = overrides.get("process.roles", "broker,controller")
    properties = {
        "process.roles": roles,
        "node.id": "1",
        "listeners": ",".join(listeners[role] for role in roles.split(",")),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "log.dirs": str(log_dir),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }
    if "controller.quorum.voters" not in overrides:
        properties["controller.quorum.bootstrap.servers"] = f"{HOST}:{controller_port}"
    return {**properties, **overrides}


def _add_listeners(properties: dict[str, str], protocols: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Add listeners with the names of their protocols, and return their addresses."""
    addresses = {each: (HOST, port) for each, port in zip(protocols, free_ports(len(protocols)), strict=True)}
    more = [f"{protocol}://{host}:{port}" for protocol, (host, port) in addresses.items()]
    properties["listeners"] = ",".join([properties["listeners"], *more])
    return addresses


class Barnabas(Node):
    """A node of barnabas, started like a user would: `python -m barnabas serve`, with configs as `--override`."""

    def __init__(
        self,
        overrides: Mapping[str, str] | None = None,
        *,
        directory: Path | None = None,
        more_listeners: Sequence[str] = (),
    ):
        self._directory = _OwnedDirectory(directory, "barnabas-")
        self.directory = self._directory.path
        broker_port, controller_port = free_ports(2)
        self.controller = f"{HOST}:{controller_port}"
        self.properties = {
            "listeners": f"PLAINTEXT://{HOST}:{broker_port},CONTROLLER://{HOST}:{controller_port}",
            "log.dirs": str(self.directory / "data"),
            **(overrides or {}),
        }
        self.addresses = _add_listeners(self.properties, more_listeners)
        command = [sys.executable, "-m", "barnabas", "serve"]
        for name, value in self.properties.items():
            command += ["--override", f"{name}={value}"]
        super().__init__(command, (HOST, broker_port), self.directory / "server.log")

    def close(self) -> None:
        super().close()
        self._directory.remove()


def main() -> None:
    """Run a node (`python tools/apache_kafka.py [VERSION]`) until Enter is pressed."""
    with ApacheKafka(version=sys.argv[1] if len(sys.argv) > 1 else VERSION) as kafka:
        print(f"Apache Kafka {kafka.version} at {kafka.bootstrap} after {kafka.started_s:.1f} s, process {kafka.pid}")
        sys.stdin.readline()


if __name__ == "__main__":
    main()
