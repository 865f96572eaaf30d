"""The files of a new secured node: an authority, certificates, server.properties and the settings of its clients.

Its one rule: files with a secret can be read by their owner only, and no file is ever replaced. Apache Kafka can use all
of them, except the profiles, which are for the command line.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from barnabas.client.jaas import MODULES
from barnabas.config import properties
from barnabas.config.endpoints import address_text
from barnabas.config.unsupported import STANDARD_AUTHORIZER
from barnabas.operations.audit_trail import AUDIT_LOG_PATH
from barnabas.operations.errors import OperationError
from barnabas.operations.security.certificates import Authority, Certificate
from barnabas.operations.security.node_settings import NODE_USER, listener_settings, quoted
from barnabas.security.delegation_token import SECRET_KEY

PROTOCOL: Final = "SASL_SSL"
MECHANISM: Final = "SCRAM-SHA-512"
ADMIN: Final = "admin"
"""A super user."""
CONTROLLERS: Final = "controllers"
"""The settings of `admin` for the listener of the controller, which knows clients by their certificate."""

_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_PASSWORD_BYTES: Final = 18
_SECRET_MODE: Final = 0o600
_USER: Final = r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}"  # as long as a name in a certificate may be
_LABEL: Final = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_MAX_HOST_CHARS: Final = 253


@dataclass(frozen=True, slots=True)
class SecuredNode:
    """What was written: `passwords` are those of the SCRAM users, which the metadata of the new node must have."""

    folder: Path
    server_properties: Path
    profiles: Path
    passwords: Mapping[str, str] = field(repr=False)


def create_secured_node(folder: Path, hosts: Iterable[str], port: int, users: Iterable[str]) -> SecuredNode:
    """Write all files of a node that is reached at these hosts, for the super user `admin` and these users.

    Raises `OperationError` if the folder is not empty, and OSError.
    """
    if folder.exists() and any(folder.iterdir()):
        raise OperationError(
            "the folder is not empty", resource=str(folder), advice="choose a new one: nothing is replaced"
        )
    users = list(users)
    for name in users:
        if name in (NODE_USER, CONTROLLERS):
            raise OperationError("the name is taken", resource=name, advice="choose another name for the user")
        if not re.fullmatch(_USER, name):
            text = "a user name has letters, digits and . _ - @ only, and at most 64 of them"
            raise OperationError(text, resource=name)
    hosts = list(dict.fromkeys(hosts)) or [_LOCAL[0]]
    for host in hosts:
        _check_host(host)
    passwords = {name: secrets.token_urlsafe(_PASSWORD_BYTES) for name in (NODE_USER, ADMIN, *users)}
    authority = Authority("barnabas authority", datetime.datetime.now(datetime.UTC))
    (folder / "clients").mkdir(parents=True)
    (folder / "data").mkdir(mode=0o700)  # its metadata has the keys of users
    folder = folder.absolute()
    (folder / "ca.pem").write_text(authority.pem)
    _write_secret(folder / "ca.key", authority.key)
    _write_store(
        folder / "node.pem", authority.issue(NODE_USER, [*hosts, *(each for each in _LOCAL if each not in hosts)])
    )
    server = _server_settings(folder, hosts[0], port, passwords[NODE_USER])
    _write_secret(folder / "server.properties", properties.dumps(server))
    clients = [name for name in passwords if name != NODE_USER]
    for name in clients:
        settings = _client_settings(folder, address_text(hosts[0], port), name, passwords[name])
        _write_secret(folder / "clients" / f"{name}.properties", properties.dumps(settings))
        of_librdkafka = _librdkafka_settings(folder, settings["bootstrap.servers"], name, passwords[name])
        lines = "".join(f"{key}={value}\n" for key, value in of_librdkafka.items())
        _write_secret(folder / "clients" / f"{name}.librdkafka", lines)
        _write_store(folder / "clients" / f"{name}.pem", authority.issue(name))
    of_controllers = {
        "bootstrap.controllers": server["controller.quorum.bootstrap.servers"],
        "security.protocol": "SSL",
        **_trust(folder),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "clients" / f"{ADMIN}.pem"),
    }
    (folder / "clients" / f"{CONTROLLERS}.properties").write_text(properties.dumps(of_controllers))
    profiles = folder / "config.toml"
    profiles.write_text(_profiles([*clients, CONTROLLERS]))
    return SecuredNode(folder, folder / "server.properties", profiles, passwords)


def _check_host(host: str) -> None:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        labels = host.split(".")
        if len(host) > _MAX_HOST_CHARS or not all(re.fullmatch(_LABEL, each) for each in labels):
            text = "not a name or an address that a certificate can have"
            advice = (
                "give it as in kafka.example.com or 10.0.0.1, without a port; with other letters than a to z as xn--..."
            )
            raise OperationError(text, resource=host or "''", advice=advice) from None


def _server_settings(folder: Path, host: str, port: int, password: str) -> dict[str, str]:
    controller = f"localhost:{port + 1}"
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"{PROTOCOL}://:{port},CONTROLLER://{controller}",
        "advertised.listeners": f"{PROTOCOL}://{address_text(host, port)},CONTROLLER://{controller}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": controller,
        "log.dirs": str(folder / "data"),
        **listener_settings(PROTOCOL, (MECHANISM,), {}, password),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "node.pem"),
        **_trust(folder),
        "authorizer.class.name": STANDARD_AUTHORIZER,
        SECRET_KEY: secrets.token_urlsafe(_PASSWORD_BYTES),
        "super.users": f"User:{NODE_USER};User:{ADMIN}",
        AUDIT_LOG_PATH: str(folder / "audit.log"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def _client_settings(folder: Path, address: str, user: str, password: str) -> dict[str, str]:
    return {
        "bootstrap.servers": address,
        "security.protocol": PROTOCOL,
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": f"{MODULES[MECHANISM]} required username={quoted(user)} password={quoted(password)};",
        **_trust(folder),
    }


def _librdkafka_settings(folder: Path, address: str, user: str, password: str) -> dict[str, str]:
    return {
        "bootstrap.servers": address,
        "security.protocol": PROTOCOL,
        "sasl.mechanism": MECHANISM,
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": str(folder / "ca.pem"),
    }


def _trust(folder: Path) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem")}


def _profiles(names: Iterable[str]) -> str:
    lines = [f'default = "{ADMIN}"\n']
    lines += [f'\n[profiles."{name}"]\ncommand-config = "clients/{name}.properties"\n' for name in names]
    return "".join(lines)


def _write_store(path: Path, certificate: Certificate) -> None:
    _write_secret(path, certificate.key + certificate.chain)


def _write_secret(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _SECRET_MODE), "w", encoding="utf-8") as file:
        file.write(text)
