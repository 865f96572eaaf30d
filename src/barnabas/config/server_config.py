"""A node's configuration as a value: typed configs and parsed addresses. `server.load` creates and validates it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.config import broker
from barnabas.config.definitions import Value
from barnabas.config.endpoints import Address, Endpoint, Voter

BROKER = "broker"
CONTROLLER = "controller"


class ServerConfig(NamedTuple):
    """A validated configuration. `given` are the texts that were set, `values` has every known config."""

    given: Mapping[str, str]
    values: Mapping[str, Value]
    warnings: tuple[str, ...]
    listeners: tuple[Endpoint, ...]
    advertised_listeners: tuple[Endpoint, ...]
    advertised_controller_listeners: tuple[Endpoint, ...]
    listener_security_protocol_map: Mapping[str, str]
    inter_broker_listener_name: str
    inter_broker_security_protocol: str
    controller_quorum_voters: tuple[Voter, ...]
    controller_quorum_bootstrap_servers: tuple[Address, ...]
    max_connections_per_ip_overrides: Mapping[str, int]

    def __repr__(self) -> str:
        # Values and texts contain passwords.
        return f"ServerConfig(node_id={self.node_id}, listeners={self.listeners})"

    def get(self, name: str) -> Value:
        """Return the value of a known config. Raises KeyError for an unknown one."""
        return self.values[name]

    def get_int(self, name: str) -> int:
        """Return an integer that is always set."""
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is not a whole number")
        return value

    def get_float(self, name: str) -> float:
        """Return a double."""
        value = self.values[name]
        if not isinstance(value, float):
            raise TypeError(f"{name} is not a double")
        return value

    def get_bool(self, name: str) -> bool:
        """Return a boolean."""
        value = self.values[name]
        if not isinstance(value, bool):
            raise TypeError(f"{name} is not a boolean")
        return value

    def get_list(self, name: str) -> tuple[str, ...]:
        """Return a list, empty if it is not set."""
        value = self.values[name]
        if value is not None and not isinstance(value, tuple):
            raise TypeError(f"{name} is not a list")
        return value or ()

    def get_str(self, name: str) -> str | None:
        """Return a text, or None if it is not set."""
        value = self.values[name]
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} is not a text")
        return value

    def for_listener(self, listener_name: str, name: str, mechanism: str | None = None) -> Value:
        """Return the value for a listener, or a SASL mechanism on it, or else the general value."""
        definition = broker.definitions()[name]
        listener = f"listener.name.{listener_name.lower()}."
        prefixes = (listener,) if mechanism is None else (f"{listener}{mechanism.lower()}.", listener)
        texts = (self.given[prefix + name] for prefix in prefixes if prefix + name in self.given)
        return next((definition.parse(text) for text in texts), self.values[name])

    @property
    def node_id(self) -> int:
        return self.get_int("node.id")

    @property
    def process_roles(self) -> frozenset[str]:
        return frozenset(self.get_list("process.roles"))

    @property
    def is_broker(self) -> bool:
        return BROKER in self.process_roles

    @property
    def knows_other_controllers(self) -> bool:
        """Whether the settings name controllers other than this node."""
        if self.controller_quorum_voters:
            return {voter.id for voter in self.controller_quorum_voters} != {self.node_id}
        return not self.is_controller or len(self.controller_quorum_bootstrap_servers) > 1

    @property
    def is_controller(self) -> bool:
        return CONTROLLER in self.process_roles

    @property
    def controller_listener_names(self) -> tuple[str, ...]:
        return self.get_list("controller.listener.names")

    @property
    def log_dirs(self) -> tuple[str, ...]:
        return self.get_list("log.dirs") or self.get_list("log.dir")

    @property
    def metadata_log_dir(self) -> str:
        return self.get_str("metadata.log.dir") or self.log_dirs[0]

    @property
    def socket_request_max_bytes(self) -> int:
        return self.get_int("socket.request.max.bytes")

    @property
    def connections_max_idle_ms(self) -> int:
        return self.get_int("connections.max.idle.ms")

    @property
    def max_connections(self) -> int:
        return self.get_int("max.connections")

    @property
    def max_connections_per_ip(self) -> int:
        return self.get_int("max.connections.per.ip")

    @property
    def queued_max_requests(self) -> int:
        return self.get_int("queued.max.requests")

    @property
    def num_partitions(self) -> int:
        return self.get_int("num.partitions")

    @property
    def default_replication_factor(self) -> int:
        return self.get_int("default.replication.factor")
