"""What a console shows and to whom: the clusters, the address it listens on, and whether changes are allowed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LOGIN_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CREDENTIALS = ("sasl.jaas.config", "sasl.username", "sasl.password")
"""Settings with the credentials of a user. A console has none of its own: its users log in."""
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._:-]+")
_IMPATIENT = {"default.api.timeout.ms": "10000", "request.timeout.ms": "8000", "bootstrap.timeout.ms": "4000"}


class ConsoleError(Exception):
    """A console that cannot be started as it was asked for."""


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """A cluster of the console: its name in addresses, its client settings, and the options that select it in commands."""

    name: str
    settings: Mapping[str, str] = field(repr=False)
    arguments: tuple[str, ...] = ()
    declared: tuple[Path, ...] = ()
    """Files that declare the cluster. Differences are shown as drift."""
    audit_logs: tuple[Path, ...] = ()
    """Audit logs of its controllers, which say who made a change."""

    @property
    def requires_login(self) -> bool:
        return self.settings.get("security.protocol", "PLAINTEXT").upper().startswith("SASL_")

    @property
    def mechanism(self) -> str:
        return self.settings.get("sasl.mechanism", "SCRAM-SHA-512").upper()

    def client_settings(self, user: str | None = None, password: str | None = None) -> dict[str, str]:
        """Return the settings of a client of this console, with the login of a user if the cluster requires one."""
        found = {**_IMPATIENT, "client.id": "barnabas-console", **self.settings}
        if self.requires_login:
            for name in CREDENTIALS:
                found.pop(name, None)
            found |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": user or "",
                "sasl.password": password or "",
            }
        return found

    def command(self, *words: str) -> str:
        """Return the command to type for the same thing.

        >>> ClusterEntry("local", {}, ("-b", "localhost:9092")).command("topics", "delete", "a b")
        "barnabas topics delete 'a b' -b localhost:9092"
        """
        return shlex.join(("barnabas", *words, *self.arguments))


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The settings of a console. `token` starts a session where no cluster requires a login."""

    clusters: tuple[ClusterEntry, ...]
    token: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 8080
    host_names: tuple[str, ...] = ()
    """More names under which browsers may reach the console."""
    allow_changes: bool = False
    certificate: Path | None = None
    key: Path | None = None
    lake: Path | None = None
    report: Path | None = None
    """The directory of a report on the lake."""
    patience_s: float = 5.0
    """How long a page waits for an answer that nobody has asked for before."""

    def __post_init__(self) -> None:
        for entry in self.clusters:
            if entry.requires_login and entry.mechanism not in LOGIN_MECHANISMS:
                known = ", ".join(LOGIN_MECHANISMS)
                raise ConsoleError(f"{entry.name}: users cannot log in with {entry.mechanism}; the console has {known}")

    @property
    def has_tls(self) -> bool:
        return self.certificate is not None

    @property
    def scheme(self) -> str:
        return "https" if self.has_tls else "http"

    def cluster(self, name: str) -> ClusterEntry | None:
        return next((each for each in self.clusters if each.name == name), None)


def unique_names(wanted: Iterable[str]) -> list[str]:
    """Return names for addresses: only safe characters, each name once.

    >>> unique_names(["local", "a:1,b:2", "local"])
    ['local', 'a:1', 'local-2']
    """
    names: list[str] = []
    for text in wanted:
        name = _NOT_IN_A_NAME.sub("-", text.partition(",")[0]).strip(".") or "cluster"
        count = 1
        while (unique := name if count == 1 else f"{name}-{count}") in names:
            count += 1
        names.append(unique)
    return names
