"""A node's whole configuration: from the text of a server.properties to validated, typed values.

`load` either returns a consistent configuration or raises `ConfigError`, which names the key. Questionable but valid
configs are in `warnings`. Without a file, the embedded defaults for a single node are used. Values such as
`${file:secrets:password}` are not resolved: config providers are not supported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from barnabas.config import broker, properties
from barnabas.config.definitions import ConfigError, Value, parse_all
from barnabas.config.endpoints import (
    ANY_ADDRESS,
    Endpoint,
    Voter,
    parse_addresses,
    parse_listeners,
    parse_pairs,
    parse_protocol_map,
    parse_voters,
)
from barnabas.config.listener_prefixes import without_effect
from barnabas.config.server_checks import check
from barnabas.config.server_config import ServerConfig
from barnabas.config.unsupported import ignored
from barnabas.config.values import split_list
from barnabas.similar_names import did_you_mean

__all__ = [
    "EMBEDDED_DEFAULTS",
    "FAULTS",
    "FAULTS_LISTENER",
    "METRICS",
    "METRICS_LISTENER",
    "ServerConfig",
    "load",
    "on_port",
    "parse_override",
]

# A single node for development: it is its own controller, and no internal topic needs more brokers.
EMBEDDED_DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
        "log.dirs": "./data",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
)

FAULTS_LISTENER = "barnabas.faults.listener"
FAULTS = "faults"  # its name among the addresses of a node; names of listeners are in upper case
METRICS_LISTENER = "barnabas.metrics.listener"
METRICS = "metrics"

_REPLICATION_FACTORS = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)


def load(
    source: str | Mapping[str, str] | None = None,
    overrides: Mapping[str, str] = MappingProxyType({}),
    *,
    broker_count: int | None = None,
) -> ServerConfig:
    """Load the text of a server.properties, or its keys and values. None means the embedded defaults.

    `broker_count` is the number of brokers in the cluster, if known. A combined node that is its own quorum counts as
    one.
    """
    if source is None:
        given = _embedded(overrides)
    else:
        given = {**(properties.loads(source) if isinstance(source, str) else source), **overrides}
    unknown = [name for name in given if not broker.is_known(name)]
    _fill_node_id(given)
    values = parse_all(broker.definitions(), given)
    config = _assemble(given, values)
    check(config)
    warnings = [
        f"{name} is not a known config and is ignored{did_you_mean(name, broker.definitions())}" for name in unknown
    ]
    warnings += without_effect(config)
    warnings += ignored(config)
    warnings += replication_warnings(config, broker_count)
    return config._replace(warnings=tuple(warnings))


def parse_override(text: str) -> tuple[str, str]:
    """Split a `key=value` argument."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(key, f"An override must have the form key=value, not '{text}'")
    return key.strip(), value


def on_port(port: int, source: Mapping[str, str] | None, overrides: Mapping[str, str]) -> dict[str, str]:
    """Return overrides that move the first client listener to this port, also in advertised.listeners.

    With the embedded defaults, the controller then uses a free port, so that several nodes do not conflict.
    """
    given = {**(EMBEDDED_DEFAULTS if source is None else source), **overrides}
    if source is None and "listeners" not in overrides:
        given["listeners"] = "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:0"
    controllers = {name.upper() for name in split_list(given.get("controller.listener.names", ""))}
    listeners = split_list(given.get("listeners", "PLAINTEXT://:9092"))
    names = (entry.partition("://")[0].upper() for entry in listeners)
    chosen = next((name for name in names if name not in controllers), None)
    if chosen is None:
        raise ConfigError("listeners", "There is no client listener whose port could be set")

    def moved(entry: str) -> str:
        return f"{entry.rpartition(':')[0]}:{port}" if entry.partition("://")[0].upper() == chosen else entry

    changed = {"listeners": ",".join(map(moved, listeners))}
    if "advertised.listeners" in given:
        changed["advertised.listeners"] = ",".join(map(moved, split_list(given["advertised.listeners"])))
    return {**overrides, **changed}


def _embedded(overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the embedded defaults. The quorum is reached at the controller listener, unless it is overridden."""
    given = {**EMBEDDED_DEFAULTS, **overrides}
    if "controller.quorum.bootstrap.servers" not in overrides:
        for entry in split_list(given["listeners"]):
            name, _, address = entry.partition("://")
            host, _, port = address.rpartition(":")
            if name.upper() in split_list(given["controller.listener.names"])[:1]:
                reachable = "127.0.0.1" if host in ("", ANY_ADDRESS) else host
                given["controller.quorum.bootstrap.servers"] = f"{reachable}:{port}"
    return given


def _fill_node_id(given: dict[str, str]) -> None:
    """Set node.id and broker.id from each other."""
    for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
        if other in given:
            given.setdefault(name, given[other])


def _assemble(given: Mapping[str, str], values: Mapping[str, Value]) -> ServerConfig:
    def entries(name: str) -> tuple[str, ...]:
        value = values[name]
        return value if isinstance(value, tuple) else ()

    controller_names = entries("controller.listener.names")
    protocols = _protocols(given, values, controller_names)
    listeners = parse_listeners("listeners", entries("listeners"), protocols)
    told = parse_listeners("advertised.listeners", entries("advertised.listeners"), protocols, same_port_allowed=True)
    voters = parse_voters("controller.quorum.voters", entries("controller.quorum.voters"))
    voter = next((each for each in voters if each.id == values["node.id"]), None)
    inter_broker_listener_name, inter_broker_security_protocol = _inter_broker(given, values, protocols)
    return ServerConfig(
        given=MappingProxyType(dict(given)),
        values=MappingProxyType(dict(values)),
        warnings=(),
        listeners=listeners,
        advertised_listeners=tuple(each for each in told or listeners if each.listener_name not in controller_names),
        advertised_controller_listeners=_advertised_controllers(controller_names, listeners, told, voter),
        listener_security_protocol_map=MappingProxyType(protocols),
        inter_broker_listener_name=inter_broker_listener_name,
        inter_broker_security_protocol=inter_broker_security_protocol,
        controller_quorum_voters=voters,
        controller_quorum_bootstrap_servers=parse_addresses(
            "controller.quorum.bootstrap.servers", entries("controller.quorum.bootstrap.servers")
        ),
        max_connections_per_ip_overrides=MappingProxyType(_per_ip_overrides(values)),
    )


def _protocols(
    given: Mapping[str, str], values: Mapping[str, Value], controller_names: Iterable[str]
) -> dict[str, str]:
    """Return the protocol map. Controller listeners without an entry are PLAINTEXT unless a listener is secured."""
    name = "listener.security.protocol.map"
    protocols = parse_protocol_map(name, str(values[name]))
    listeners = values["listeners"]
    assert isinstance(listeners, tuple)
    for entry in listeners:
        if "://" not in entry:
            raise ConfigError("listeners", f"Unable to parse a listener name from {entry}")
    if name not in given and not any(_is_secured(entry.partition("://")[0].upper()) for entry in listeners):
        protocols.update((each, "PLAINTEXT") for each in controller_names if not _is_secured(each))
    return protocols


def _is_secured(listener_name: str) -> bool:
    return listener_name in ("SSL", "SASL_PLAINTEXT", "SASL_SSL")


def _advertised_controllers(
    names: Sequence[str], listeners: Iterable[Endpoint], told: Iterable[Endpoint], voter: Voter | None
) -> tuple[Endpoint, ...]:
    """Return the advertised controller listeners. An empty host means the node's own host name.

    For a listener on all interfaces, the first controller listener is advertised as in this node's entry in
    controller.quorum.voters.
    """
    by_name = {each.listener_name: each for each in told}
    for each in listeners:
        everywhere = each.host in ("", ANY_ADDRESS)
        if everywhere and voter is not None and each.listener_name == names[0] and names[0] not in by_name:
            if voter.host == ANY_ADDRESS:
                raise ConfigError("controller.quorum.voters", f"Host string ({voter.host}) is not routeable")
            by_name[each.listener_name] = each._replace(host=voter.host, port=voter.port)
        else:
            by_name.setdefault(each.listener_name, each._replace(host="") if everywhere else each)
    return tuple(by_name[name] for name in names if name in by_name)


def _inter_broker(
    given: Mapping[str, str], values: Mapping[str, Value], protocols: Mapping[str, str]
) -> tuple[str, str]:
    """Return the listener between brokers and its protocol. One of the two is configured and determines the other."""
    name = values["inter.broker.listener.name"]
    if not isinstance(name, str):
        protocol = str(values["security.inter.broker.protocol"])
        return protocol, protocol
    if "security.inter.broker.protocol" in given:
        raise ConfigError(
            "inter.broker.listener.name",
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
        )
    if name.upper() not in protocols:
        raise ConfigError(
            "inter.broker.listener.name",
            f"Listener with name {name.upper()} defined in inter.broker.listener.name "
            "not found in listener.security.protocol.map.",
        )
    return name.upper(), protocols[name.upper()]


def _per_ip_overrides(values: Mapping[str, Value]) -> dict[str, int]:
    name = "max.connections.per.ip.overrides"
    overrides = {}
    for host, count in parse_pairs(name, str(values[name])).items():
        try:
            overrides[host] = int(count)
        except ValueError:
            raise ConfigError(
                name, f"Invalid value {count} for configuration {name}: Not a number of type INT"
            ) from None
    return overrides


def replication_warnings(config: ServerConfig, broker_count: int | None = None) -> list[str]:
    """Return a warning for each replication factor that exceeds the number of brokers, if that is known."""
    if broker_count is None:
        quorum = config.controller_quorum_voters or config.controller_quorum_bootstrap_servers
        alone = config.is_broker and config.is_controller and len(quorum) == 1
        broker_count = 1 if alone else None
    if broker_count is None:
        return []
    brokers = "1 broker" if broker_count == 1 else f"{broker_count} brokers"
    return [
        f"{name}={config.get_int(name)} exceeds the size of the cluster: {brokers}"
        for name in _REPLICATION_FACTORS
        if config.get_int(name) > broker_count
    ]
