"""Checks of a server.properties: what a start refuses, what it ignores, and what is dangerous.

Its one rule: a rule of a start is asked, never repeated here: `config.server`, `config.unsupported`, `raft.sole_voter`. The log
dirs that the file names are checked by `doctor.log_dirs`, too.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from barnabas.client.bearer_settings import SignedTokens, check_keys, token_settings
from barnabas.client.http import Timeouts
from barnabas.client.listener_settings import (
    check_own_logins,
    enabled_mechanisms,
    listener_context,
    mapping_rules,
    plain_users,
)
from barnabas.config import broker, properties
from barnabas.config.definitions import ConfigError
from barnabas.config.endpoints import ANY_ADDRESS, Endpoint, address_text, parse_loopback_address
from barnabas.config.listener_prefixes import without_effect
from barnabas.config.server import FAULTS_LISTENER, METRICS_LISTENER, load, replication_warnings
from barnabas.config.server_config import ServerConfig
from barnabas.config.unsupported import ignored, unsupported
from barnabas.operations.doctor.findings import Check, Fault, advised, error, note, warning
from barnabas.operations.quantities import bytes_text, duration_text
from barnabas.security.sasl.oauthbearer import NAME as OAUTHBEARER
from barnabas.similar_names import similar_names
from barnabas.storage.log_dirs import lock_holder

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_RESOLVE_S = 3.0
AUDIT_LOG_PATH: Final = "barnabas.audit.log.path"
_MIN_RETENTION_MS = 10 * 60_000
_MIN_OFFSETS_RETENTION_MS = 86_400_000
_REMOVED: Final[Mapping[str, str]] = {
    "zookeeper.": "Kafka 4 has no ZooKeeper: remove it",
    "inter.broker.protocol.version": "metadata.version replaces it: see barnabas cluster features",
    "log.message.format.version": "Kafka 4 has one message format: remove it",
    "log.message.timestamp.difference.max.ms": "set log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms",
    "delegation.token.master.key": "set delegation.token.secret.key",
    "broker.id.generation.enable": "set node.id",
    "reserved.broker.max.id": "set node.id",
    "control.plane.listener.name": "set controller.listener.names",
    "offsets.commit.required.acks": "Kafka 4 always uses -1: remove it",
    "password.encoder.": "it was needed for ZooKeeper only: remove it",
    "auto.include.jmx.reporter": "set metric.reporters",
}
"""Settings, or beginnings of their names, that Kafka 4 has removed."""


class SettingsFile:
    """A server.properties. `config` is None if a node would not accept it."""

    def __init__(self, path: Path, text: str, mode: int = 0o600) -> None:
        self.path = path
        self.mode = mode
        self.entries = list(properties.entries(text))
        self.given = {key: value for _, key, value in self.entries}
        self.error: ConfigError | None = None
        self.config: ServerConfig | None = None
        try:
            self.config = load(self.given)
        except ConfigError as refused:
            self.error = refused

    def place(self, name: str) -> str:
        """Return where a setting is: the file and the line that counts, if it is set."""
        numbers = [number for number, key, _ in self.entries if key == name]
        return f"{self.path}:{numbers[-1]}" if numbers else str(self.path)

    @cached_property
    def log_dirs(self) -> tuple[Path, ...]:
        """The log dirs and that of the metadata log, each once."""
        if self.config is None:
            return ()
        dirs = [Path(each) for each in (*self.config.log_dirs, self.config.metadata_log_dir)]
        return tuple(dict.fromkeys(dirs))

    @cached_property
    def runs_in(self) -> int | None:
        """The process that runs this node now, if one has locked its log dirs."""
        return next((found for each in self.log_dirs if (found := lock_holder(each)) is not None), None)


def read_settings(path: Path) -> SettingsFile:
    """Read a file. Raises OSError, UnicodeDecodeError, or ConfigError if it is not a properties file."""
    return SettingsFile(path, path.read_text(encoding="utf-8"), path.stat().st_mode)


# --- what a start refuses


def _valid(file: SettingsFile) -> Iterator[Fault]:
    """Each value by itself, and then all together, as a start does."""
    found = False
    for name, text in file.given.items():
        definition = broker.definitions().get(name)
        try:
            if definition is not None:
                definition.parse(text)
        except ConfigError as wrong:
            found = True
            yield error(file.place(name), str(wrong), f"correct {name}")
    if not found and file.error is not None:
        key = file.error.key
        yield error(file.place(key), str(file.error), f"correct {key or 'the file'}")


def _supported(file: SettingsFile) -> Iterator[Fault]:
    if file.config is not None:
        for refused in unsupported(file.config):
            message, remedy = advised(refused)
            yield error(file.place(refused.key), message, remedy or f"remove {refused.key}")


def _secured(file: SettingsFile) -> Iterator[Fault]:
    if file.config is None or list(unsupported(file.config)):
        return
    for name, protocol, *_ in file.config.listeners:
        try:
            if protocol.endswith("SSL"):
                listener_context(file.config, name, protocol)
                mapping_rules(file.config, name)
            if protocol.startswith("SASL_") and "PLAIN" in enabled_mechanisms(file.config, name):
                plain_users(file.config, name)
            if protocol.startswith("SASL_"):
                check_own_logins(file.config, name)
            if protocol.startswith("SASL_") and OAUTHBEARER in enabled_mechanisms(file.config, name):
                tokens = token_settings(file.config, name)
                if isinstance(tokens, SignedTokens):
                    check_keys(tokens.service, Timeouts(_RESOLVE_S, _RESOLVE_S))
        except ConfigError as refused:
            message, remedy = advised(refused)
            yield error(file.place(refused.key), f"listener {name}: {message}", remedy or f"correct {refused.key}")


def _voters(file: SettingsFile) -> Iterator[Fault]:
    config = file.config
    if config is None or not config.is_controller:
        return
    name = "controller.quorum.voters"
    ids = tuple(voter.id for voter in config.controller_quorum_voters)
    own = next((voter for voter in config.controller_quorum_voters if voter.id == config.node_id), None)
    ports = {each.port for each in _controllers(config)}
    if own is not None and own.port not in ports:
        shown = ", ".join(map(str, sorted(ports)))
        yield warning(
            file.place(name),
            f"{name} has port {own.port} for node {own.id}, but its controller listens on {shown}",
            f"set {name}={own.id}@{own.host}:{min(ports)}",
        )
    servers = config.controller_quorum_bootstrap_servers
    if servers and not ids and not config.is_broker:
        return
    if servers and not ids and ports and not any(each.port in ports for each in servers):
        first = _controllers(config)[0]
        yield warning(
            file.place("controller.quorum.bootstrap.servers"),
            "controller.quorum.bootstrap.servers does not name the controller of this node",
            f"add {address_text(_shown_host(first.host), first.port)}",
        )


def _controllers(config: ServerConfig) -> list[Endpoint]:
    return [each for each in config.listeners if each.listener_name in config.controller_listener_names]


# --- what has no effect


def _ignored(file: SettingsFile) -> Iterator[Fault]:
    for text in () if file.config is None else ignored(file.config):
        name = text.split(" ", 1)[0].partition("=")[0]
        yield warning(file.place(name), text, f"correct or remove {name}")
    for text in () if file.config is None else without_effect(file.config):
        name = text.split(" ", 1)[0]
        yield warning(file.place(name), text, f"correct or remove {name}")


def _known(file: SettingsFile) -> Iterator[Fault]:
    for name in file.given:
        if broker.is_known(name):
            continue
        removed = next(
            (each for each in _REMOVED if name == each or (each.endswith(".") and name.startswith(each))), None
        )
        if removed is not None:
            yield warning(file.place(name), f"{name} was removed from Kafka and is ignored", _REMOVED[removed])
            continue
        close = similar_names(name, [*broker.definitions(), *broker.AUTHORIZER_SETTINGS])
        hint = f"write {close[0]}, or remove the line" if close else "remove the line"
        meant = f"; did you mean {close[0]}?" if close else ""
        yield warning(file.place(name), f"{name} is not a known config and is ignored{meant}", hint)


def _repeated(file: SettingsFile) -> Iterator[Fault]:
    lines: dict[str, list[int]] = {}
    for number, key, _ in file.entries:
        lines.setdefault(key, []).append(number)
    for name, numbers in lines.items():
        if len(numbers) > 1:
            shown = ", ".join(map(str, numbers))
            yield warning(
                file.place(name), f"{name} is set in lines {shown}: the last one counts", "remove the other lines"
            )


def _deprecated(file: SettingsFile) -> Iterator[Fault]:
    name = "log.cleaner.enable"
    if file.given.get(name, "").strip().lower() == "false":
        yield warning(
            file.place(name),
            f"{name}=false is deprecated: compacted topics, such as __consumer_offsets, would grow without limit",
            f"remove {name}",
        )


# --- addresses


def _advertised(file: SettingsFile) -> Iterator[Fault]:
    config = file.config
    if config is None or not config.is_broker:
        return
    name = "advertised.listeners"
    bound = {each.listener_name: each for each in config.listeners}
    for each in config.advertised_listeners:
        listener = bound.get(each.listener_name)
        if listener is None:
            continue
        is_everywhere = listener.host in ("", ANY_ADDRESS, "::")
        if each.host in _LOOPBACK and listener.host not in _LOOPBACK:
            yield warning(
                file.place(name),
                f"{each.listener_name} is advertised as {each.host}: clients on other machines would connect to themselves",
                f"set {name}={each.listener_name}://NAME-OF-THIS-MACHINE:{each.port}",
            )
        elif not each.host and is_everywhere:
            yield note(
                file.place("listeners"),
                f"{each.listener_name} listens on every interface, so clients are told the name of this machine",
                f"if clients do not know that name, set {name}={each.listener_name}://HOST:{each.port}",
            )
        elif each.host and each.host not in _LOOPBACK and not _resolves(each.host):
            yield warning(
                file.place(name),
                f"{each.listener_name} is advertised as {each.host}, and this machine does not know that host",
                "correct the name, or add it to the DNS",
            )
        if name in config.given and listener.port and each.port != listener.port:
            yield note(
                file.place(name),
                f"{each.listener_name} listens on port {listener.port} and is advertised with port {each.port}",
                "correct the port, unless something forwards it",
            )
    told = {each.listener_name for each in config.advertised_listeners}
    for each in config.listeners:
        if each.listener_name not in told and each.listener_name not in config.controller_listener_names:
            yield warning(
                file.place("listeners"),
                f"{each.listener_name} is not in {name}: clients that connect to it get no address of it",
                f"add {each.listener_name}://HOST:{each.port} to {name}",
            )


def _resolves(host: str) -> bool:
    """Whether this machine knows the host. A DNS that does not answer in time counts as yes: nothing is known then."""
    unknown = threading.Event()

    def resolve() -> None:
        try:
            socket.getaddrinfo(host, None)
        except (OSError, UnicodeError):
            unknown.set()

    asking = threading.Thread(target=resolve, daemon=True)
    asking.start()
    asking.join(_RESOLVE_S)
    return not unknown.is_set()


def _ports(file: SettingsFile) -> Iterator[Fault]:
    """Whether the node could listen. Ports that the node itself uses now do not count."""
    if file.config is None or file.runs_in is not None:
        return
    for each in file.config.listeners:
        problem = _why_not_bound(each.host, each.port) if each.port else None
        if problem is not None:
            where = f"{each.host or '*'}:{each.port}"
            used = "stop the process that uses it, or " if problem.errno == errno.EADDRINUSE else ""
            yield error(
                file.place("listeners"),
                f"cannot listen on {where} for {each.listener_name}: {problem.strerror or problem}",
                f"{used}choose another port or host in listeners",
            )
    for setting in (METRICS_LISTENER, FAULTS_LISTENER):
        address = parse_loopback_address(setting, file.config.get_str(setting) or "")
        problem = _why_not_bound(*address) if address is not None and address[1] else None
        if address is not None and problem is not None:
            yield error(
                file.place(setting),
                f"cannot listen on {address_text(*address)} for {setting}: {problem.strerror or problem}",
                f"choose another port in {setting}, or empty it",
            )


def _audit_log(file: SettingsFile) -> Iterator[Fault]:
    """Whether the audit log could be written: a start opens it. Nothing is created here."""
    text = "" if file.config is None else file.config.get_str(AUDIT_LOG_PATH)
    if not text:
        return
    path = Path(text)
    folder = path.parent
    why = None
    if path.is_dir():
        why = "it is a directory"
    elif path.exists() and not os.access(path, os.R_OK | os.W_OK):
        why = f"user {os.geteuid()} may not write it"
    elif not folder.is_dir():
        why = f"there is no directory {folder}"
    elif not path.exists() and not os.access(folder, os.W_OK | os.X_OK):
        why = f"user {os.geteuid()} may not write in {folder}"
    if why is not None:
        yield error(
            file.place(AUDIT_LOG_PATH), f"the audit log {path} cannot be written: {why}", f"correct {AUDIT_LOG_PATH}"
        )


def _why_not_bound(host: str, port: int) -> OSError | None:
    """Bind a socket for an instant, without listening: nobody can connect to it."""
    everywhere = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if everywhere or ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            if everywhere:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            sock.bind((host, port))
        except OSError as wrong:
            return wrong
    return None


def _shown_host(host: str) -> str:
    return "localhost" if host in ("", ANY_ADDRESS, "::") else host


# --- log dirs, as settings


def _dirs(file: SettingsFile) -> Iterator[Fault]:
    by_real: dict[Path, Path] = {}
    for each in file.log_dirs:
        real = each.resolve()
        if real in by_real:
            yield error(
                file.place("log.dirs"),
                f"{each} and {by_real[real]} are the same directory",
                "name it once in log.dirs",
            )
        by_real[real] = each
    for real, each in by_real.items():
        outer = next((by_real[other] for other in real.parents if other in by_real), None)
        if outer is not None:
            yield error(file.place("log.dirs"), f"{each} is inside {outer}", "put log dirs beside each other")
        if Path("/tmp") in real.parents:
            yield warning(
                file.place("log.dirs"), f"{each} is under /tmp, which many systems empty at a restart", "move it"
            )
        if not each.is_absolute():
            yield note(
                file.place("log.dirs"),
                f"{each} is relative: it depends on where the node is started (from here, {real})",
                f"write {real}",
            )


# --- what is dangerous


def _replication(file: SettingsFile) -> Iterator[Fault]:
    config = file.config
    if config is None or not config.is_broker:
        return
    for text in replication_warnings(config):
        name = text.partition("=")[0]
        yield warning(file.place(name), f"{text}: such a topic cannot be created", f"set {name}=1")
    for least, factor in (
        ("min.insync.replicas", "default.replication.factor"),
        ("transaction.state.log.min.isr", "transaction.state.log.replication.factor"),
        ("share.coordinator.state.topic.min.isr", "share.coordinator.state.topic.replication.factor"),
    ):
        wanted, there = config.get_int(least), config.get_int(factor)
        if wanted > there:
            yield error(
                file.place(least),
                f"{least}={wanted} exceeds {factor}={there}: writes with acks=all would always fail",
                f"set {least}={there}, or {factor}={wanted}",
            )


def _unclean(file: SettingsFile) -> Iterator[Fault]:
    name = "unclean.leader.election.enable"
    if file.config is not None and file.config.get_bool(name):
        yield warning(
            file.place(name),
            f"{name}=true: a replica that is out of sync may become leader, and acknowledged records are lost",
            f"set {name}=false",
        )


def _retention(file: SettingsFile) -> Iterator[Fault]:
    config = file.config
    if config is None or not config.is_broker:
        return
    factors = {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
    name = next(each for each in factors if config.get(each) is not None)
    kept_ms = config.get_int(name) * factors[name]
    if 0 <= kept_ms < _MIN_RETENTION_MS:
        yield warning(
            file.place(name),
            f"{name}={config.get_int(name)} deletes records after {duration_text(kept_ms)}, also of topics that set nothing",
            f"raise {name}; for one topic: barnabas configs set TOPIC retention.ms=...",
        )
    kept, segment = config.get_int("log.retention.bytes"), config.get_int("log.segment.bytes")
    if 0 <= kept < segment:
        yield warning(
            file.place("log.retention.bytes"),
            f"log.retention.bytes={kept} is smaller than a segment ({bytes_text(segment)}): each segment is deleted when it is "
            "full",
            "raise log.retention.bytes, or lower log.segment.bytes",
        )
    minutes = config.get_int("offsets.retention.minutes")
    if minutes * 60_000 < _MIN_OFFSETS_RETENTION_MS:
        yield warning(
            file.place("offsets.retention.minutes"),
            f"offsets.retention.minutes={minutes}: a group that pauses for {duration_text(minutes * 60_000)} loses its offsets",
            "set offsets.retention.minutes=10080",
        )


def _sizes(file: SettingsFile) -> Iterator[Fault]:
    config = file.config
    if config is None:
        return
    largest, frame = config.get_int("message.max.bytes"), config.socket_request_max_bytes
    if largest > frame:
        yield error(
            file.place("message.max.bytes"),
            f"message.max.bytes={largest} exceeds socket.request.max.bytes={frame}: such a batch cannot arrive",
            f"set socket.request.max.bytes={largest + 1024 * 1024}, or message.max.bytes={frame}",
        )
    if largest > config.get_int("log.segment.bytes"):
        yield error(
            file.place("message.max.bytes"),
            f"message.max.bytes={largest} exceeds log.segment.bytes={config.get_int('log.segment.bytes')}: "
            "such a batch fits into no segment",
            "raise log.segment.bytes, or lower message.max.bytes",
        )


def _secrets(file: SettingsFile) -> Iterator[Fault]:
    if not file.mode & stat.S_IROTH:
        return
    names = [name for name, value in file.given.items() if value.strip() and _is_secret(name, value)]
    if names:
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield warning(
            file.path, f"everyone on this machine can read the file, and it has {shown}", f"chmod 600 {file.path}"
        )


def _is_secret(name: str, value: str) -> bool:
    definition = broker.find(name)
    return definition is not None and definition.sensitive and not value.strip().startswith("${")


CHECKS: Final[tuple[Check[SettingsFile], ...]] = (
    Check("settings-valid", "Values that a node refuses, alone or together.", _valid),
    Check("settings-supported", "Settings that protect something and are not implemented.", _supported),
    Check(
        "secured-listeners",
        "Key and trust stores, rules, users and keys of tokens of listeners that cannot be used.",
        _secured,
    ),
    Check("settings-ignored", "Settings without effect.", _ignored),
    Check("settings-known", "Names that no setting has, or that Kafka has removed.", _known),
    Check("settings-repeated", "Names that are set twice.", _repeated),
    Check("settings-deprecated", "Settings that Kafka will remove.", _deprecated),
    Check("quorum-voters", "Voters that do not match this node.", _voters),
    Check("advertised-listeners", "Addresses that clients cannot use.", _advertised),
    Check("ports", "Ports that this node cannot listen on, also for metrics.", _ports),
    Check("audit-log", "An audit log that cannot be written.", _audit_log),
    Check("log-dirs", "Log dirs that are the same, nested, relative or under /tmp.", _dirs),
    Check("replication-settings", "Replication factors and minimum in-sync replicas that do not fit.", _replication),
    Check("unclean-elections", "Elections that lose records.", _unclean),
    Check("retention", "Retention that deletes almost at once.", _retention),
    Check("message-sizes", "Batches that fit into no request or segment.", _sizes),
    Check("secrets", "Passwords in files that everyone can read.", _secrets),
)
