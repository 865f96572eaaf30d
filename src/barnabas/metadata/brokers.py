"""Registered brokers and controllers: their ids, listeners and supported features.

The one rule: a change of a registration has the epoch that it applies to, and matches no other. Apart from `fenced`,
this module does not know whether a node is alive.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.metadata.errors import ReplayError
from barnabas.metadata.pmap import PMap
from barnabas.metadata.versions import MetadataVersion
from barnabas.wire.primitives import Uuid
from barnabas.wire.records.metadata import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

if TYPE_CHECKING:
    from barnabas.metadata.image import Draft


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int
    security_protocol: int


class VersionRange(NamedTuple):
    min: int
    max: int


class Broker(NamedTuple):
    """A registered broker.

    `log_dirs` are its online directories; `cordoned_log_dirs` is None until the broker reports them.
    """

    broker_id: int
    epoch: int
    incarnation_id: Uuid
    listeners: PMap[str, Endpoint]
    features: PMap[str, VersionRange]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    is_migrating_zk_broker: bool
    log_dirs: tuple[Uuid, ...]
    cordoned_log_dirs: tuple[Uuid, ...] | None


class Controller(NamedTuple):
    controller_id: int
    incarnation_id: Uuid
    zk_migration_ready: bool
    listeners: PMap[str, Endpoint]
    features: PMap[str, VersionRange]


Brokers = PMap[int, Broker]
Controllers = PMap[int, Controller]

_FENCING: Final = {-1: False, 0: None, 1: True}
_IN_CONTROLLED_SHUTDOWN: Final = {0: None, 1: True}


def replay_register_broker(draft: Draft, record: RegisterBrokerRecord) -> None:
    if any(not end_point.name for end_point in record.end_points):
        raise ReplayError(f"a listener of broker {record.broker_id} has no name")
    broker = Broker(
        record.broker_id,
        record.broker_epoch,
        record.incarnation_id,
        _listeners(record.end_points),
        _features(record.features),
        record.rack,
        record.fenced,
        record.in_controlled_shutdown,
        record.is_migrating_zk_broker,
        _sorted_dirs(record.log_dirs),
        None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
    )
    draft.brokers.set(record.broker_id, broker)


def replay_unregister_broker(draft: Draft, record: UnregisterBrokerRecord) -> None:
    draft.brokers.remove(record.broker_id)


def replay_fence_broker(draft: Draft, record: FenceBrokerRecord) -> None:
    broker = _registered(draft, record.id, record.epoch)
    draft.brokers.set(record.id, broker._replace(fenced=True))


def replay_unfence_broker(draft: Draft, record: UnfenceBrokerRecord) -> None:
    broker = _registered(draft, record.id, record.epoch)
    draft.brokers.set(record.id, broker._replace(fenced=False))


def replay_broker_registration_change(draft: Draft, record: BrokerRegistrationChangeRecord) -> None:
    """Change a registration. Zero, an empty list of log dirs and null cordoned log dirs mean no change."""
    broker = _registered(draft, record.broker_id, record.broker_epoch)
    if record.fenced not in _FENCING or record.in_controlled_shutdown not in _IN_CONTROLLED_SHUTDOWN:
        raise ReplayError(
            f"fenced {record.fenced} or in_controlled_shutdown {record.in_controlled_shutdown} is not a change"
        )
    fenced, in_controlled_shutdown = _FENCING[record.fenced], _IN_CONTROLLED_SHUTDOWN[record.in_controlled_shutdown]
    cordoned = record.cordoned_log_dirs
    changed = broker._replace(
        fenced=broker.fenced if fenced is None else fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown if in_controlled_shutdown is None else True,
        log_dirs=_sorted_dirs(record.log_dirs) if record.log_dirs else broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else tuple(cordoned),
    )
    draft.brokers.set(record.broker_id, changed)


def replay_register_controller(draft: Draft, record: RegisterControllerRecord) -> None:
    controller = Controller(
        record.controller_id,
        record.incarnation_id,
        record.zk_migration_ready,
        _listeners(record.end_points),
        _features(record.features),
    )
    draft.controllers.set(record.controller_id, controller)


def _registered(draft: Draft, broker_id: int, epoch: int) -> Broker:
    broker = draft.brokers.get(broker_id)
    if broker is None:
        raise ReplayError(f"broker {broker_id} is not registered")
    if broker.epoch != epoch:
        raise ReplayError(f"broker {broker_id} is registered with epoch {broker.epoch}, not {epoch}")
    return broker


def _listeners(
    end_points: Iterable[RegisterBrokerRecord.BrokerEndpoint | RegisterControllerRecord.ControllerEndpoint],
) -> PMap[str, Endpoint]:
    return PMap({e.name: Endpoint(e.name, e.host, e.port, e.security_protocol) for e in end_points})


def _features(
    features: Iterable[RegisterBrokerRecord.BrokerFeature | RegisterControllerRecord.ControllerFeature],
) -> PMap[str, VersionRange]:
    return PMap({f.name: VersionRange(f.min_supported_version, f.max_supported_version) for f in features})


def _sorted_dirs(dirs: Iterable[Uuid]) -> tuple[Uuid, ...]:
    """Sort by Kafka's order of UUIDs, which compares two signed 64-bit integers."""
    return tuple(sorted(dirs, key=lambda directory: struct.unpack(">qq", directory)))


def brokers_to_records(
    brokers: Brokers, version: MetadataVersion, lose: Callable[[str], None]
) -> Iterator[tuple[RegisterBrokerRecord, int]]:
    for broker_id, broker in sorted(brokers.items()):
        record = RegisterBrokerRecord(
            broker_id=broker_id,
            is_migrating_zk_broker=broker.is_migrating_zk_broker,
            incarnation_id=broker.incarnation_id,
            broker_epoch=broker.epoch,
            end_points=[
                RegisterBrokerRecord.BrokerEndpoint(
                    name=name, host=e.host, port=e.port, security_protocol=e.security_protocol
                )
                for name, e in sorted(broker.listeners.items())
            ],
            features=[
                RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(broker.features.items())
            ],
            rack=broker.rack,
            fenced=broker.fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            log_dirs=list(broker.log_dirs),
            cordoned_log_dirs=None if broker.cordoned_log_dirs is None else list(broker.cordoned_log_dirs),
        )
        if record.is_migrating_zk_broker and not version.is_migration_supported:
            lose(f"that broker {broker_id} is migrating")
            record.is_migrating_zk_broker = False
        if record.log_dirs and not version.is_directory_assignment_supported:
            lose(f"the online log directories of broker {broker_id}")
            record.log_dirs = []
        if record.cordoned_log_dirs is not None and not version.is_cordoned_log_dirs_supported:
            lose(f"the cordoned log directories of broker {broker_id}")
            record.cordoned_log_dirs = None
        yield record, version.register_broker_record_version


def controllers_to_records(
    controllers: Controllers, version: MetadataVersion, lose: Callable[[str], None]
) -> Iterator[tuple[RegisterControllerRecord, int]]:
    if controllers and not version.is_controller_registration_supported:
        lose("the registrations of controllers")
        return
    for controller_id, controller in sorted(controllers.items()):
        record = RegisterControllerRecord(
            controller_id=controller_id,
            incarnation_id=controller.incarnation_id,
            zk_migration_ready=controller.zk_migration_ready,
            end_points=[
                RegisterControllerRecord.ControllerEndpoint(
                    name=name, host=e.host, port=e.port, security_protocol=e.security_protocol
                )
                for name, e in sorted(controller.listeners.items())
            ],
            features=[
                RegisterControllerRecord.ControllerFeature(
                    name=name, min_supported_version=low, max_supported_version=high
                )
                for name, (low, high) in sorted(controller.features.items())
            ],
        )
        yield record, 0
