"""Decisions about brokers and controllers: registration, heartbeats, fencing, controlled shutdown, unregistration.

The one rule: a fenced broker leads nothing and is in no ISR; so the changes of a broker and of its partitions are records
of one decision. The time of a broker's last heartbeat is soft state, in `heartbeats`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.config.server_config import ServerConfig
from barnabas.controller.heartbeats import BrokerState, next_state
from barnabas.controller.operation_size import Versioned, check_size
from barnabas.controller.partition_change import PartitionChanges
from barnabas.controller.situation import Situation
from barnabas.metadata.brokers import Broker
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.versions import KRAFT_VERSION, METADATA_VERSION
from barnabas.replicated.decision import Result
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest
from barnabas.wire.records.metadata import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)

_SECURITY_PROTOCOLS: Final = range(4)
_FENCE, _UNFENCE, _SHUT_DOWN = 1, -1, 1
_RESERVED_DIRECTORIES: Final = 100
_NONE_BEFORE: Final = -2  # a broker that knows of no earlier registration reports -1
_CHECKS_PER_SESSION: Final = 8


class Heartbeat(NamedTuple):
    """The response to a heartbeat."""

    is_caught_up: bool
    state: BrokerState


class Silence(NamedTuple):
    """A broker whose session timed out."""

    broker_id: int
    epoch: int
    silent_ms: int
    is_fenced: bool
    """Whether it is fenced for that. It is not if it was fenced before, or has registered again."""


def check_broker_epoch(image: MetadataImage, broker_id: int, broker_epoch: int) -> Broker:
    """Return the registration with this epoch. Raises STALE_BROKER_EPOCH."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if broker.epoch != broker_epoch:
        message = f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, message)
    return broker


# --- registration


def register(situation: Situation, request: BrokerRegistrationRequest, version: int) -> Slices[Result[int]]:
    """Register a broker and return its epoch. The same incarnation updates its registration and keeps the epoch.

    Another incarnation is rejected while the previous one has a valid session. It starts fenced and outside every ISR.
    After an unclean shutdown (unknown before version 3) it also leaves the eligible leader replicas.
    """
    image, heartbeats = situation.image, situation.heartbeats
    existing = image.brokers.get(request.broker_id)
    _check_cluster(situation, request)
    is_same = existing is not None and existing.incarnation_id == request.incarnation_id
    if existing is not None and not is_same:
        timeout_ms = situation.config.get_int("broker.session.timeout.ms")
        if heartbeats.has_valid_session(existing, situation.monotonic_ms, timeout_ms):
            raise KafkaError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                "Another broker is registered with that broker id. If the broker was recently restarted this should "
                "self-resolve once the heartbeat manager expires the broker's session.",
            )
    if request.is_migrating_zk_broker:
        message = "Controller does not support registering ZK brokers."
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    record = _registration(situation, request)
    records: list[Versioned] = []
    if existing is not None and is_same:
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
        record.broker_epoch = existing.epoch
    else:
        stored_epoch = _NONE_BEFORE if existing is None else existing.epoch
        is_clean = version >= 3 and stored_epoch == request.previous_broker_epoch
        records += yield from _stopped(situation, request.broker_id, is_clean)
        record.broker_epoch = situation.next_offset
    # Last: if a failure keeps only this record from being written, the broker registers again.
    records.append((record, situation.metadata_version.register_broker_record_version))
    heartbeats.registered(request.broker_id, record.broker_epoch, image.offset + len(records))
    return Result(records, record.broker_epoch)


def _check_cluster(situation: Situation, request: BrokerRegistrationRequest) -> None:
    if request.cluster_id != situation.cluster_id:
        message = f"Expected cluster ID {situation.cluster_id}, but got cluster ID {request.cluster_id}"
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, message)
    if request.broker_id < 0:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, f"Broker ID {request.broker_id} is negative")


def _registration(situation: Situation, request: BrokerRegistrationRequest) -> RegisterBrokerRecord:
    has_directories = situation.metadata_version.is_directory_assignment_supported
    if has_directories:
        _check_directories(situation.image, request)
    _check_listeners(request.listeners)
    _check_features(situation, request.features)
    listeners = {listener.name: listener for listener in request.listeners}
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        rack=request.rack,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name=name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for name, each in listeners.items()
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
        log_dirs=list(request.log_dirs) if has_directories else [],
    )


def _check_directories(image: MetadataImage, request: BrokerRegistrationRequest) -> None:
    directories = request.log_dirs
    if not directories:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "No directories specified in request")
    if any(_is_reserved(directory) for directory in directories):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Reserved directory ID in request")
    if len(set(directories)) != len(directories):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID in request")
    owners = {directory: broker.broker_id for broker in image.brokers.values() for directory in broker.log_dirs}
    for directory in directories:
        owner = owners.get(directory, request.broker_id)
        if owner != request.broker_id:
            message = f"Broker {owner} is already registered with directory {directory}"
            raise KafkaError(ErrorCode.INVALID_REGISTRATION, message)


def _is_reserved(directory: Uuid) -> bool:
    high, low = struct.unpack(">qq", directory)
    return bool(high == 0 and low < _RESERVED_DIRECTORIES)


def _check_listeners(
    listeners: Iterable[BrokerRegistrationRequest.Listener | ControllerRegistrationRequest.Listener],
) -> None:
    for listener in listeners:
        if not listener.name:
            raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Listeners must be named.")
        if listener.security_protocol not in _SECURITY_PROTOCOLS:
            message = f"Unknown security protocol {listener.security_protocol} in listener {listener.name}"
            raise KafkaError(ErrorCode.INVALID_REGISTRATION, message)


def _check_features(situation: Situation, features: Iterable[BrokerRegistrationRequest.Feature]) -> None:
    """Raise UNSUPPORTED_VERSION unless the broker supports every finalized feature level."""
    finalized = {**situation.image.features, KRAFT_VERSION: situation.kraft_version}
    ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in features}
    for name, (low, high) in ranges.items():
        _check_feature(name, finalized.get(name, 0), low, high)
    if METADATA_VERSION not in ranges:
        message = f"Request features do not contain '{METADATA_VERSION}'"
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, message)
    for name, level in sorted(finalized.items()):
        if name not in ranges:
            _check_feature(name, level, 0, 0)


def _check_feature(name: str, level: int, low: int, high: int) -> None:
    if not low <= level <= high:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Unable to register because the broker does not support finalized version {level} of {name}. "
            f"The broker wants a version between {low} and {high}, inclusive.",
        )


def _stopped(situation: Situation, broker_id: int, is_clean: bool) -> Slices[list[Versioned]]:
    """Return the partition changes after the previous incarnation of a broker has stopped."""
    changes, topics = PartitionChanges(situation), situation.image.topics
    in_isr = yield from topics.in_sync_on(broker_id)
    if is_clean or not situation.image.is_elr_enabled:
        return (yield from changes.updates(in_isr, removed=broker_id))
    in_elr = yield from topics.select(lambda some: [index for index, each in enumerate(some) if broker_id in each.elr])
    records = yield from changes.updates(in_isr, uncleanly_stopped=broker_id)
    records += yield from changes.updates(in_elr, uncleanly_stopped=broker_id)
    return records


def unregister(situation: Situation, broker_id: int) -> Slices[Result[None]]:
    """Remove a broker. If it is still running, it registers again after its next heartbeat fails."""
    broker = situation.image.brokers.get(broker_id)
    if broker is None:
        message = f"Broker ID {broker_id} is not currently registered"
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    changes, topics = PartitionChanges(situation), situation.image.topics
    in_isr = yield from topics.in_sync_on(broker_id)
    in_elr = yield from topics.select(lambda some: [index for index, each in enumerate(some) if broker_id in each.elr])
    records = yield from changes.updates(in_isr, removed=broker_id)
    records += yield from changes.updates(in_elr, removed=broker_id)
    records.append((UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch), 0))
    check_size(records)
    return Result(records, None)


def register_controller(situation: Situation, request: ControllerRegistrationRequest) -> Result[None]:
    """Register the listeners and features of a controller."""
    if not situation.metadata_version.is_controller_registration_supported:
        message = "The current MetadataVersion is too old to support controller registrations."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
    _check_listeners(request.listeners)
    listeners = {listener.name: listener for listener in request.listeners}
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for name, each in listeners.items()
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
    )
    return Result([(record, 0)], None)


# --- heartbeats and sessions


def heartbeat(situation: Situation, request: BrokerHeartbeatRequest) -> Slices[Result[Heartbeat]]:
    """Record a heartbeat, and fence, unfence or shut down the broker, as requested and allowed."""
    image, heartbeats = situation.image, situation.heartbeats
    broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    offset = request.current_metadata_offset
    current, state = next_state(heartbeats, image, broker, offset, request.want_fence, request.want_shut_down)
    records: list[Versioned] = []
    if state is not current:
        if state is BrokerState.UNFENCED:
            records += yield from _unfence(situation, broker)
        elif state is BrokerState.CONTROLLED_SHUTDOWN:
            records += yield from _begin_controlled_shutdown(situation, broker)
        else:
            records += yield from _fence(situation, broker)
    if situation.metadata_version.is_directory_assignment_supported:
        records += yield from _take_offline(situation, broker, request.offline_log_dirs)
    if situation.metadata_version.is_cordoned_log_dirs_supported:
        records += _cordon(broker, request.cordoned_log_dirs)
    is_caught_up = offset >= heartbeats.session(broker).registration_offset
    heartbeats.touched(broker, state, offset, image.offset + len(records), situation.monotonic_ms)
    return Result(records, Heartbeat(is_caught_up, state))


def session_check_ms(config: ServerConfig) -> int:
    """Return the time between two checks of the sessions of brokers."""
    return config.get_int("broker.session.timeout.ms") // _CHECKS_PER_SESSION


def fence_stale_brokers(situation: Situation) -> Slices[Result[Silence | None]]:
    """Fence the broker whose session expired first. Unless it returns None, it must be called again at once.

    One broker at a time, so that each election takes the previous fencing into account. Called every `session_check_ms`.
    """
    heartbeats, now_ms = situation.heartbeats, situation.monotonic_ms
    heartbeats.checked(now_ms, session_check_ms(situation.config))
    expired = heartbeats.expired(now_ms, situation.config.get_int("broker.session.timeout.ms"))
    if expired is None:
        return Result([], None)
    broker_id, session = expired
    broker = situation.image.brokers.get(broker_id)
    is_current = broker is not None and broker.epoch == session.epoch and not broker.fenced
    records = (yield from _fence(situation, broker)) if broker is not None and is_current else []
    heartbeats.forget(broker_id)
    silent_ms = now_ms - (session.contact_ms or now_ms)
    return Result(records, Silence(broker_id, session.epoch, silent_ms, is_current))


def _fence(situation: Situation, broker: Broker) -> Slices[list[Versioned]]:
    broker_id = broker.broker_id
    in_isr = yield from situation.image.topics.in_sync_on(broker_id)
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=_FENCE)
    records = yield from PartitionChanges(situation).updates(in_isr, removed=broker_id)
    return [*records, (change, 0)]


def _unfence(situation: Situation, broker: Broker) -> Slices[list[Versioned]]:
    change = BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=_UNFENCE)
    leaderless = yield from situation.image.topics.leaderless()
    records = yield from PartitionChanges(situation).updates(leaderless, added=broker.broker_id)
    return [(change, 0), *records]


def _begin_controlled_shutdown(situation: Situation, broker: Broker) -> Slices[list[Versioned]]:
    broker_id = broker.broker_id
    in_isr = yield from situation.image.topics.in_sync_on(broker_id)
    records = yield from PartitionChanges(situation).updates(in_isr, removed=broker_id)
    if broker.in_controlled_shutdown:
        return records
    change = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=_SHUT_DOWN
    )
    return [(change, 1), *records]


def _take_offline(situation: Situation, broker: Broker, offline: Iterable[Uuid]) -> Slices[list[Versioned]]:
    """Remove replicas in newly failed directories from the ISR."""
    failed = set(offline) & set(broker.log_dirs)
    if not failed:
        return []
    lost = yield from situation.image.topics.select(
        lambda some: [index for index, each in enumerate(some) if not failed.isdisjoint(each.directories)]
    )
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.epoch,
        log_dirs=[directory for directory in broker.log_dirs if directory not in failed],
    )
    records = yield from PartitionChanges(situation).updates(lost, removed=broker.broker_id)
    return [*records, (change, 2)]


def _cordon(broker: Broker, cordoned: list[Uuid] | None) -> list[Versioned]:
    """Update the cordoned directories. None means that the broker has not read its own configs yet."""
    known = broker.cordoned_log_dirs
    if cordoned is None or (known is not None and set(known) == set(cordoned)):
        return []
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
    )
    return [(change, 3)]
