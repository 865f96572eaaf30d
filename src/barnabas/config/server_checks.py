"""The checks of a node's configuration that involve several configs, as Kafka makes them at startup.

Each raises `ConfigError` with the key to change and Kafka's text. They are in Kafka's order, so that the same one of
several errors is reported, except that invalid addresses were rejected earlier. Conditions that Kafka only warns about
are not checked.
"""

from __future__ import annotations

import re

from barnabas.config.definitions import ConfigError
from barnabas.config.endpoints import ANY_ADDRESS
from barnabas.config.server_config import ServerConfig

_CODEC_NUMBERS = range(5)
_MIN_CLEANER_THREAD_BYTES = 1024 * 1024
_HOST = r"[0-9a-zA-Z\-%._:]*"


def check(config: ServerConfig) -> None:
    """Raise `ConfigError` for the first inconsistency."""
    _check_codec(config, "offsets.topic.compression.codec")
    for kind in ("consumer", "share", "streams"):
        _check_groups(config, kind)
    _at_most(config, "group.streams.num.standby.replicas", "group.streams.max.standby.replicas")
    _check_share_records(config)
    _check_codec(config, "share.coordinator.state.topic.compression.codec")
    _check_early_start(config)
    _refuse_unless(
        "classic" in config.get_list("group.coordinator.rebalance.protocols"),
        "group.coordinator.rebalance.protocols",
        "Disabling the 'classic' protocol is not supported.",
    )
    _refuse_unless(
        config.node_id == config.get_int("broker.id"),
        "node.id",
        "You must set `node.id` to the same value as `broker.id`.",
    )
    _check_logs(config)
    _check_replication(config)
    _check_quorum(config)
    if config.is_controller:
        _check_controller(config)
    else:
        _check_broker_only(config)
    if config.is_broker:
        _check_broker(config)
    _check_cordoned(config)
    _check_advertised_hosts(config)
    _check_connections(config)
    _check_sasl(config)


class RequirementError(ConfigError):
    """A failed `require` in Kafka's server.

    Where Kafka returns it to clients, it adds the prefix `requirement failed: `.
    """


def _require(met: bool, key: str, message: str) -> None:
    if not met:
        raise RequirementError(key, message)


def _refuse_unless(met: bool, key: str, message: str) -> None:
    if not met:
        raise ConfigError(key, message)


def _at_least(config: ServerConfig, name: str, other: str) -> None:
    message = f"{name} must be greater than or equal to {other}"
    _refuse_unless(config.get_int(name) >= config.get_int(other), name, message)


def _at_most(config: ServerConfig, name: str, other: str) -> None:
    message = f"{name} must be less than or equal to {other}"
    _refuse_unless(config.get_int(name) <= config.get_int(other), name, message)


def _check_codec(config: ServerConfig, name: str) -> None:
    number = config.get_int(name)
    _refuse_unless(number in _CODEC_NUMBERS, name, f"Unknown compression type id: {number}")


def _check_groups(config: ServerConfig, kind: str) -> None:
    """Check that the default group settings are within the broker's own bounds."""

    def check_bounds(rest: str) -> None:
        name, low, high = (f"group.{kind}.{bound}{rest}" for bound in ("", "min.", "max."))
        _at_least(config, high, low)
        _at_least(config, name, low)
        _at_most(config, name, high)

    check_bounds("heartbeat.interval.ms")
    check_bounds("session.timeout.ms")
    heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
    message = f"{heartbeat} must be less than {session}"
    _refuse_unless(config.get_int(heartbeat) < config.get_int(session), heartbeat, message)
    check_bounds("assignment.interval.ms")


def _check_share_records(config: ServerConfig) -> None:
    for rest in ("delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms"):
        name = f"group.share.{rest}"
        _at_least(config, f"group.share.max.{rest}", name)
        _at_least(config, name, f"group.share.min.{rest}")
    _at_least(config, "group.share.max.share.sessions", "group.share.max.size")
    name = "group.share.assignors"
    count = len(config.get_list(name))
    _refuse_unless(count == 1, name, f"{name} must contain exactly one assignor, but found {count}")


def _check_early_start(config: ServerConfig) -> None:
    known = {each.listener_name for each in config.listeners}
    for name in config.get_list("early.start.listeners"):
        _refuse_unless(
            name in known,
            "early.start.listeners",
            f"early.start.listeners contains listener {name}, "
            "but this is not contained in listeners or controller.listener.names",
        )


def _check_logs(config: ServerConfig) -> None:
    roll_ms = _first_ms(config, {"log.roll.ms": 1, "log.roll.hours": 3_600_000})
    _require(roll_ms >= 1, "log.roll.ms", "log.roll.ms must be greater than or equal to 1")
    jitter_ms = _first_ms(config, {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": 3_600_000})
    _require(jitter_ms >= 0, "log.roll.jitter.ms", "log.roll.jitter.ms must be greater than or equal to 0")
    names = {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
    _require(
        _first_ms(config, names) != 0,
        "log.retention.ms",
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    )
    threads = config.get_int("log.cleaner.threads")
    _require(threads >= 1, "log.cleaner.threads", "log.cleaner.threads must be greater than or equal to 1")
    _require(
        config.get_int("log.cleaner.dedupe.buffer.size") // threads > _MIN_CLEANER_THREAD_BYTES,
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )


def _first_ms(config: ServerConfig, factors: dict[str, int]) -> int:
    return next(config.get_int(name) * factor for name, factor in factors.items() if config.get(name) is not None)


def _check_replication(config: ServerConfig) -> None:
    wait_ms = config.get_int("replica.fetch.wait.max.ms")
    _require(
        wait_ms <= config.get_int("replica.socket.timeout.ms"),
        "replica.socket.timeout.ms",
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms "
        "to prevent unnecessary socket timeouts",
    )
    _require(
        wait_ms <= config.get_int("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms",
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms "
        "to prevent frequent changes in ISR",
    )


def _check_quorum(config: ServerConfig) -> None:
    _refuse_unless(
        bool(config.controller_quorum_voters or config.controller_quorum_bootstrap_servers),
        "controller.quorum.bootstrap.servers",
        "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap "
        "controllers or controller.quorum.voters must contain a parseable set of controllers.",
    )
    ids = sorted(voter.id for voter in config.controller_quorum_voters)
    shown = f"controller.quorum.voters=Set({', '.join(map(str, ids))})"
    if config.is_controller:
        _require(
            not ids or config.node_id in ids,
            "controller.quorum.voters",
            f"If process.roles contains the 'controller' role, the node id {config.node_id} "
            f"must be included in the set of voters {shown}",
        )
    else:
        _require(
            config.node_id not in ids,
            "controller.quorum.voters",
            f"If process.roles contains just the 'broker' role, the node id {config.node_id} "
            f"must not be included in the set of voters {shown}",
        )


def _check_controller(config: ServerConfig) -> None:
    listener_names = {each.listener_name for each in config.listeners}
    names = config.controller_listener_names
    if not config.is_broker:
        _require(
            listener_names <= set(names),
            "listeners",
            "The listeners config must only contain KRaft controller listeners from controller.listener.names "
            "when process.roles=controller",
        )
    _require(
        not listener_names.isdisjoint(names),
        "controller.listener.names",
        "controller.listener.names must contain at least one value appearing in the 'listeners' configuration "
        "when running the KRaft controller role",
    )
    _require(
        listener_names >= set(names),
        "controller.listener.names",
        "controller.listener.names must only contain values appearing in the 'listeners' configuration "
        "when running the KRaft controller role",
    )
    if not config.is_broker and config.get("inter.broker.listener.name") is not None:
        _require(
            config.inter_broker_listener_name not in names,
            "inter.broker.listener.name",
            "controller.listener.names must not contain an explicitly set inter.broker.listener.name "
            "configuration value when process.roles=controller",
        )


def _check_broker_only(config: ServerConfig) -> None:
    listener_names = {each.listener_name for each in config.listeners}
    _require(
        listener_names.isdisjoint(config.controller_listener_names),
        "controller.listener.names",
        "controller.listener.names must not contain a value appearing in the 'listeners' configuration "
        "when running KRaft with just the broker role",
    )
    for name in config.controller_listener_names:
        _refuse_unless(
            name.upper() in config.listener_security_protocol_map,
            "controller.listener.names",
            f"Controller listener with name {name.upper()} defined in controller.listener.names not found in "
            "listener.security.protocol.map  (an explicit security mapping for each controller listener is required "
            "if listener.security.protocol.map is non-empty, or if there are security protocols other than PLAINTEXT "
            "in use)",
        )
    _require(
        not config.get_bool("controller.quorum.auto.join.enable"),
        "controller.quorum.auto.join.enable",
        "controller.quorum.auto.join.enable is only supported when process.roles contains the 'controller' role.",
    )


def _check_broker(config: ServerConfig) -> None:
    names = [each.listener_name for each in config.advertised_listeners]
    _require(
        bool(names),
        "advertised.listeners",
        "There must be at least one broker advertised listener. "
        "Perhaps all listeners appear in controller.listener.names?",
    )
    _require(
        config.inter_broker_listener_name in names,
        "inter.broker.listener.name",
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. "
        f"The valid options based on currently configured listeners are {','.join(names)}",
    )
    listener_names = [each.listener_name for each in config.listeners]
    _require(
        set(names) <= set(listener_names),
        "advertised.listeners",
        "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. "
        f"Found {','.join(names)}. The valid options based on the current configuration are {','.join(listener_names)}",
    )


def _check_cordoned(config: ServerConfig) -> None:
    cordoned = config.get_list("cordoned.log.dirs")
    if "*" in cordoned:
        message = "When cordoned.log.dirs is set to *, it must not contain other values"
        _require(len(cordoned) == 1, "cordoned.log.dirs", message)
    elif missing := [each for each in cordoned if each not in config.log_dirs]:
        message = "All entries in cordoned.log.dirs must be present in log.dirs or log.dir."
        raise RequirementError("cordoned.log.dirs", f"{message} Missing entries : {', '.join(missing)}")


def _check_advertised_hosts(config: ServerConfig) -> None:
    told = config.advertised_listeners + config.advertised_controller_listeners
    _require(
        all(each.host != ANY_ADDRESS for each in told),
        "advertised.listeners",
        f"advertised.listeners cannot use the nonroutable meta-address {ANY_ADDRESS}. Use a routable IP address.",
    )


def _check_connections(config: ServerConfig) -> None:
    queued_bytes = config.get_int("queued.max.request.bytes")
    _require(
        queued_bytes <= 0 or queued_bytes >= config.socket_request_max_bytes,
        "queued.max.request.bytes",
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    _require(
        config.max_connections_per_ip > 0 or bool(config.max_connections_per_ip_overrides),
        "max.connections.per.ip",
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    )
    bad = [host for host in config.max_connections_per_ip_overrides if not re.fullmatch(_HOST, host)]
    _refuse_unless(
        not bad,
        "max.connections.per.ip.overrides",
        f"max.connections.per.ip.overrides contains invalid addresses : {','.join(bad)}",
    )
    delay_ms, idle_ms = config.get_int("connection.failed.authentication.delay.ms"), config.connections_max_idle_ms
    _require(
        idle_ms < 0 or delay_ms < idle_ms,
        "connection.failed.authentication.delay.ms",
        f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
        f"connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing out",
    )


def _check_sasl(config: ServerConfig) -> None:
    listener_name = config.inter_broker_listener_name
    if config.inter_broker_security_protocol.startswith("SASL_"):
        enabled = config.for_listener(listener_name, "sasl.enabled.mechanisms")
        _require(
            isinstance(enabled, tuple) and config.get_str("sasl.mechanism.inter.broker.protocol") in enabled,
            "sasl.mechanism.inter.broker.protocol",
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms "
            "when SASL is used for inter-broker communication",
        )
