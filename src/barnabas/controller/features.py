"""Changes or validates feature levels.

The one rule: every level is supported by all brokers and controllers, and one invalid update rejects them all.
`metadata.versions` defines what a level of metadata.version means. kraft.version belongs to the voters and is only
checked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.config.hash_order import hash_order, hash_order_in_slices
from barnabas.config.resolve import Layers, broker_value
from barnabas.config.resource_type import ConfigResourceType
from barnabas.controller.configs import MIN_INSYNC_REPLICAS
from barnabas.controller.situation import Situation
from barnabas.metadata.brokers import VersionRange
from barnabas.metadata.versions import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    FEATURES,
    KRAFT_VERSION,
    LATEST_VERSION,
    METADATA_VERSION,
    MINIMUM_VERSION,
    metadata_changed,
    metadata_version,
)
from barnabas.replicated.decision import Result
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.records.metadata import ConfigRecord, FeatureLevelRecord, NoOpRecord


class UpgradeType(IntEnum):
    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class Update(NamedTuple):
    """The requested level of a feature, and the allowed direction."""

    level: int
    upgrade_type: int = UpgradeType.UPGRADE


_DISABLED: Final = VersionRange(0, 0)

SUPPORTED: Final[Mapping[str, VersionRange]] = {
    METADATA_VERSION: VersionRange(MINIMUM_VERSION.value, LATEST_VERSION.value),
    **{name: VersionRange(levels[0].level, levels[-1].level) for name, levels in FEATURES.items()},
}
"""The feature levels that this program supports."""
SHOWN_ORDER: Final = tuple(hash_order(SUPPORTED))
"""The order in which Kafka shows features, which is that of a hash table."""


def update(situation: Situation, updates: Mapping[str, Update], validate_only: bool) -> Slices[Result[None]]:
    """Set these levels. Raises KafkaError if one of them is not possible."""
    proposed = {**situation.image.features, **{name: updates[name].level for name in SUPPORTED if name in updates}}
    records: list[tuple[Message, int]] = []
    for name in (yield from hash_order_in_slices(updates)):
        yield
        _check(situation, name, updates[name])
        if name == KRAFT_VERSION:
            # Adds a record whose commit can be awaited, because the level itself is not in the image.
            records += [(NoOpRecord(), 0)] if updates[name].upgrade_type == UpgradeType.UPGRADE else []
            continue
        if name != METADATA_VERSION:
            _check_needs(name, updates[name].level, proposed)
        records.append((FeatureLevelRecord(name=name, feature_level=updates[name].level), 0))
    if validate_only:
        return Result([], None)
    if ELIGIBLE_LEADER_REPLICAS_VERSION in updates and updates[ELIGIBLE_LEADER_REPLICAS_VERSION].level > 0:
        records = [*settings_for_elr(situation), *records]
    return Result(records, None)


def _refusal(name: str, level: int, why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {why}")


def _check(situation: Situation, name: str, wanted: Update) -> None:
    level, upgrade_type = wanted
    if upgrade_type not in (UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE):
        raise _refusal(name, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _refusal(name, level, "A feature version cannot be less than 0.")
    if (why := _why_not_supported(situation, name, level)) is not None:
        raise _refusal(name, level, why)
    current = situation.kraft_version if name == KRAFT_VERSION else situation.image.features.get(name, 0)
    if level < current and upgrade_type == UpgradeType.UPGRADE:
        why = "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
        raise _refusal(name, level, why + "downgrade.")
    if level > current and upgrade_type != UpgradeType.UPGRADE:
        raise _refusal(name, level, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION and level < current:
        _check_metadata_downgrade(current, level, upgrade_type)
    if name == KRAFT_VERSION and level < current:
        raise _refusal(name, level, "Can't downgrade the version of this feature.")


def _check_metadata_downgrade(current: int, level: int, upgrade_type: int) -> None:
    if metadata_changed(metadata_version(current), metadata_version(level)):
        why = (
            "Unsafe metadata downgrade is not supported in this version."
            if upgrade_type == UpgradeType.UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata information."
        )
        message = f"Unsupported metadata.version downgrade from {current} to {level}. {why}"
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, message)


def _check_needs(name: str, level: int, proposed: Mapping[str, int]) -> None:
    if name not in FEATURES:  # every node supports level 0 of an unknown feature
        raise _refusal(name, level, f"Feature {name} not found.")
    needs = next(each.needs for each in FEATURES[name] if each.level == level)
    for other, least in needs:
        if proposed.get(other, 0) < least:
            raise _refusal(
                name, level, f"{name} could not be set to {level} because it depends on {other} level {least}"
            )


def _why_not_supported(situation: Situation, name: str, level: int) -> str | None:
    for what, supported in _nodes(situation):
        low, high = supported.get(name, _DISABLED)
        if not low <= level <= high:
            levels = f"{low}" if low == high else f"{low}-{high}"
            return f"{what} does not support this feature." if high == 0 else f"{what} only supports versions {levels}"
    if situation.metadata_version.is_controller_registration_supported:
        for voter in situation.config.controller_quorum_voters:
            if voter.id != situation.config.node_id and voter.id not in situation.image.controllers:
                return f"controller {voter.id} has not registered, and may not support this feature"
    return None


def _nodes(situation: Situation) -> Iterator[tuple[str, Mapping[str, VersionRange]]]:
    """Yield the nodes that must support a level: this controller, every broker, and all registered controllers."""
    node_id = situation.config.node_id
    yield f"Local controller {node_id}", SUPPORTED
    for broker_id, broker in sorted(situation.image.brokers.items()):
        yield f"Broker {broker_id}", broker.features
    if situation.metadata_version.is_controller_registration_supported:
        for controller_id, controller in sorted(situation.image.controllers.items()):
            if controller_id != node_id:
                yield f"Controller {controller_id}", controller.features


def settings_for_elr(situation: Situation) -> Iterator[tuple[Message, int]]:
    """Yield the configs that ELR requires: min.insync.replicas is set cluster-wide and not per broker."""

    def record(broker_name: str, text: str | None) -> tuple[Message, int]:
        kind = ConfigResourceType.BROKER
        return ConfigRecord(resource_type=kind, resource_name=broker_name, name=MIN_INSYNC_REPLICAS, value=text), 0

    if MIN_INSYNC_REPLICAS not in situation.image.config(ConfigResourceType.BROKER, ""):
        yield record("", str(broker_value(MIN_INSYNC_REPLICAS, Layers(static=situation.config.given))))
    for resource, config in sorted(situation.image.configs.items()):
        if resource.type == ConfigResourceType.BROKER and resource.name and MIN_INSYNC_REPLICAS in config:
            yield record(resource.name, None)
